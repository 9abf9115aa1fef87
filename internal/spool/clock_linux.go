package spool

import (
	"encoding/binary"
	"fmt"
	"os"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// SystemClock is the machine's clock: boots are told apart by the kernel's boot
// id, and time goes on while the machine sleeps. Where the kernel doesn't offer
// that (an error), the process' own clock has to do.
func SystemClock() (Clock, error) {
	id, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return newProcessClock(), fmt.Errorf("reading the boot id: %w", err)
	}
	c := systemClock{id: strings.TrimSpace(string(id))}
	if fd, err := unix.TimerfdCreate(unix.CLOCK_BOOTTIME, unix.TFD_CLOEXEC|unix.TFD_NONBLOCK); err != nil {
		return newProcessClock(), fmt.Errorf("making a timer that runs while the machine sleeps: %w", err)
	} else if err := unix.Close(fd); err != nil {
		return nil, err
	}
	return c, nil
}

type systemClock struct{ id string }

func (c systemClock) Wall() time.Time { return time.Now() }

func (c systemClock) Boot() (string, time.Duration) {
	var ts unix.Timespec
	// It can't fail for a clock that a timer was made of.
	_ = unix.ClockGettime(unix.CLOCK_BOOTTIME, &ts)
	return c.id, time.Duration(ts.Nano())
}

// NewAlarm makes a timer of the kernel's that goes off on time after a sleep of
// the machine; the runtime's timers don't count that.
func (c systemClock) NewAlarm() Alarm {
	fd, err := unix.TimerfdCreate(unix.CLOCK_BOOTTIME, unix.TFD_CLOEXEC|unix.TFD_NONBLOCK)
	if err != nil { // out of descriptors: late after a sleep is better than never
		return newProcessClock().NewAlarm()
	}
	a := &bootAlarm{f: os.NewFile(uintptr(fd), "timerfd"), fd: fd, c: make(chan time.Time, 1)}
	go a.wait()
	return a
}

type bootAlarm struct {
	f  *os.File
	fd int
	c  chan time.Time
}

// wait hands on what the kernel says, until the alarm is closed.
func (a *bootAlarm) wait() {
	var buf [8]byte
	for {
		if _, err := a.f.Read(buf[:]); err != nil {
			return
		}
		if binary.NativeEndian.Uint64(buf[:]) == 0 {
			continue
		}
		select {
		case a.c <- time.Now():
		default: // it hasn't heard of the last one yet
		}
	}
}

func (a *bootAlarm) C() <-chan time.Time { return a.c }
func (a *bootAlarm) Close()              { _ = a.f.Close() }

func (a *bootAlarm) Set(d time.Duration) {
	select {
	case <-a.c: // one that has just gone off is out of date now
	default:
	}
	spec := unix.ItimerSpec{Value: unix.NsecToTimespec(int64(max(d, 0)))}
	// A zero span switches it off; the call can't fail on a timer of ours.
	_ = unix.TimerfdSettime(a.fd, 0, &spec, nil)
}
