package spool

import (
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"
)

// Clock is where the store takes its time from.
type Clock interface {
	// Wall is what the wall clock says, right or wrong.
	Wall() time.Time
	// Boot names the present boot and how long it has lasted, time asleep
	// included. Within one boot it never jumps.
	Boot() (id string, up time.Duration)
	// NewAlarm makes an alarm that is off.
	NewAlarm() Alarm
}

// Alarm wakes the writer after a span of Boot's time.
type Alarm interface {
	// C receives when the span is over.
	C() <-chan time.Time
	// Set starts it anew; 0 or less switches it off.
	Set(d time.Duration)
	Close()
}

// clockTolerance is how far the wall clock may be from Telegram's to be believed.
const clockTolerance = 5 * time.Minute

// timeline is the store's own time, in nanoseconds: it runs with the boot's
// clock and never goes back, whatever happens to the wall clock, so that no
// deadline comes early and none comes all at once. It began as Unix time and
// stays close to it; shift is the difference, for what people see and say.
//
// After a reboot it goes on from the last stored moment: by as much as the wall
// clock says, where that is known, else not at all, so that every span that was
// left is waited for whole.
type timeline struct {
	sys   Clock
	built time.Time // no right clock is before this
	log   *slog.Logger
	shift atomic.Int64 // wall − timeline, nanoseconds
	ok    atomic.Bool  // the wall clock is known to be right

	mu       sync.Mutex
	base     int64 // the timeline at baseUp of this boot
	baseUp   time.Duration
	stored   int64 // wall clock at the last stored moment before this boot, Unix nanoseconds
	distrust bool  // Telegram contradicts the wall clock
	caughtUp bool  // the time that the box was off is in base
}

// clockRec is the last moment that is on disk.
type clockRec struct {
	Line  int64         `cbor:"1,keyasint"` // the timeline
	Wall  int64         `cbor:"2,keyasint"` // Unix nanoseconds, the last that was known to be right
	Boot  string        `cbor:"3,keyasint"`
	Up    time.Duration `cbor:"4,keyasint"`
	Shift int64         `cbor:"5,keyasint,omitempty"`
}

// newTimeline goes on from the last stored moment; rec is nil for a new store.
func newTimeline(sys Clock, built time.Time, logger *slog.Logger, rec *clockRec) *timeline {
	boot, up := sys.Boot()
	wall := sys.Wall().UnixNano()
	c := &timeline{sys: sys, built: built, log: logger, baseUp: up, caughtUp: true}
	switch {
	case rec == nil:
		c.base, c.stored = wall, wall
	case rec.Boot == boot:
		c.base, c.stored = rec.Line+int64(up-rec.Up), rec.Wall
		c.shift.Store(rec.Shift)
	default:
		c.base, c.stored, c.caughtUp = rec.Line, rec.Wall, false
		c.shift.Store(rec.Shift)
	}
	c.look()
	if !c.ok.Load() {
		logger.Warn("the clock isn't known to be right: nothing expires until it is",
			slog.Time("due", instantOf(wall)))
	}
	return c
}

func instantOf(ns int64) time.Time { return time.Unix(0, ns).UTC() }

// now is the present moment of the timeline.
func (c *timeline) now() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	_, up := c.sys.Boot()
	return c.base + int64(up-c.baseUp)
}

// look judges the wall clock again and follows its steps.
func (c *timeline) look() {
	c.mu.Lock()
	defer c.mu.Unlock()
	wall := c.sys.Wall()
	ok := !c.distrust && !wall.Before(c.built) && wall.UnixNano() >= c.stored
	_, up := c.sys.Boot()
	if ok && !c.caughtUp {
		c.caughtUp = true
		// What the box was off for, without what has been counted since.
		c.base += max(0, wall.UnixNano()-c.stored-int64(up-c.baseUp))
	}
	c.ok.Store(ok)
	if !ok {
		return
	}
	// Two clocks are never read at the same moment; only a step is followed, so
	// that a stored moment doesn't look different each time.
	shift := wall.UnixNano() - (c.base + int64(up-c.baseUp))
	if d := shift - c.shift.Load(); d > int64(time.Second) || d < -int64(time.Second) {
		c.shift.Store(shift)
	}
}

// witness compares the wall clock with what Telegram says over verified TLS.
// When both agree the clock is known, even if it is before what was stored. It
// reports whether anything is different now.
func (c *timeline) witness(telegram time.Time) (changed bool) {
	off := c.sys.Wall().Sub(telegram)
	agree := off.Abs() <= clockTolerance
	c.mu.Lock()
	changed = c.distrust == agree || agree && !c.ok.Load()
	c.distrust = !agree
	if agree && changed {
		c.stored = min(c.stored, c.sys.Wall().UnixNano())
	}
	c.mu.Unlock()
	if !changed {
		return false
	}
	c.look()
	if agree {
		c.log.Info("the clock is known to be right")
	} else {
		c.log.Warn("the clock is off, says Telegram: nothing expires until it is right",
			slog.Duration("duration", off.Round(time.Second)))
	}
	return true
}

// record is the present moment for the disk.
func (c *timeline) record() *clockRec {
	line, shift := c.now(), c.shift.Load()
	c.mu.Lock()
	defer c.mu.Unlock()
	boot, up := c.sys.Boot()
	wall := c.stored
	if c.ok.Load() {
		wall = c.sys.Wall().UnixNano()
	}
	return &clockRec{Line: line, Wall: wall, Boot: boot, Up: up, Shift: shift}
}

// at is a moment of the timeline as people see it; zero for none.
func (c *timeline) at(ns int64) time.Time {
	if ns == 0 {
		return time.Time{}
	}
	return instantOf(ns + c.shift.Load())
}

func (c *timeline) atPtr(ns int64) *time.Time {
	if ns == 0 {
		return nil
	}
	t := c.at(ns)
	return &t
}

// ns is a deadline that a part of this process has just set, on the timeline.
// What counts is the span until then: the wall clock that it was reckoned from
// may be wrong.
func (c *timeline) ns(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return c.now() + int64(t.Sub(c.sys.Wall()))
}

// named is a time of day that somebody has named, or one that a part of this
// process has reckoned, which still bears a monotonic reading.
func (c *timeline) named(t time.Time) int64 {
	if t.IsZero() || t.Round(0) != t {
		return c.ns(t)
	}
	return t.UnixNano() - c.shift.Load()
}

// left is how long a moment of the timeline is away, 0 when it has been.
func (c *timeline) left(ns int64) time.Duration {
	return time.Duration(max(0, ns-c.now()))
}

// ClockKnown reports whether the wall clock is known to be right. While it
// isn't, nothing expires, nothing is removed and absolute times wait.
func (s *Store) ClockKnown() bool { return s.clock.ok.Load() }

// BestTime is the time of day as well as it is known: never before a moment
// that has been already. Certificates are judged by it, so that a box which has
// slept off its clock can reach Telegram to hear what time it is.
func (s *Store) BestTime() time.Time {
	wall, line := s.clock.sys.Wall(), s.clock.at(s.clock.now())
	if line.After(wall) && !s.ClockKnown() {
		return line
	}
	return wall
}

// Witness tells the store what time Telegram has put on an answer that came
// over verified TLS. It is cheap; call it for every answer.
func (s *Store) Witness(telegram time.Time) {
	if s.clock.witness(telegram) {
		s.kick()
	}
}

// processClock is the clock of a process: its boot is the process itself.
type processClock struct {
	id    string
	start time.Time
}

func newProcessClock() Clock {
	now := time.Now()
	return processClock{id: fmt.Sprintf("process %d", now.UnixNano()), start: now}
}

func (c processClock) Wall() time.Time               { return time.Now() }
func (c processClock) Boot() (string, time.Duration) { return c.id, time.Since(c.start) }
func (c processClock) NewAlarm() Alarm {
	t := time.NewTimer(time.Hour)
	t.Stop()
	return timerAlarm{t}
}

type timerAlarm struct{ t *time.Timer }

func (a timerAlarm) C() <-chan time.Time { return a.t.C }
func (a timerAlarm) Close()              { a.t.Stop() }
func (a timerAlarm) Set(d time.Duration) {
	a.t.Stop()
	if d > 0 {
		a.t.Reset(d)
	}
}
