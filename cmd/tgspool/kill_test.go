package main_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/tgspool/tgspool/internal/demo"
)

// TestKill ends the real binary without warning, again and again, at moments
// that a seed chooses, while updates and jobs keep coming in; then it lets the
// last process finish and compares what was asked for with what the simulator
// has received. TGSPOOL_KILLS is the number of kills, 20 when it isn't set, and
// TGSPOOL_KILL_SEED repeats the moments of an earlier run, more or less.
func TestKill(t *testing.T) {
	binary := build(t)
	all := number(t, "TGSPOOL_KILLS", 20)
	seed := number(t, "TGSPOOL_KILL_SEED", int(time.Now().UnixNano()&0xffffff))
	t.Logf("%d kills, seed %d", all, seed)
	some := max(5, all/10)
	for name, test := range map[string]func(*testing.T, *rig){
		"any moment":   func(t *testing.T, r *rig) { anyMoment(t, r, all) },
		"during stop":  func(t *testing.T, r *rig) { duringStop(t, r, some) },
		"first start":  func(t *testing.T, r *rig) { firstStart(t, r, some) },
		"second start": func(t *testing.T, r *rig) { secondStart(t, r, 2) },
	} {
		t.Run(name, func(t *testing.T) {
			test(t, newRig(t, binary, uint64(seed)))
		})
	}
}

// build makes the real binary.
func build(t *testing.T) string {
	t.Helper()
	binary := filepath.Join(t.TempDir(), "tgspool")
	command := exec.CommandContext(t.Context(), "go", "build", "-o", binary, ".")
	if out, err := command.CombinedOutput(); err != nil {
		t.Fatalf("building the binary: %v\n%s", err, out)
	}
	return binary
}

// number reads a number from the environment.
func number(t *testing.T, name string, otherwise int) int {
	text := os.Getenv(name)
	if text == "" {
		return otherwise
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		t.Fatalf("%s is %q, not a number above 0", name, text)
	}
	return n
}

// anyMoment kills 5 to 300 ms after the start: while it starts, recovers,
// catches up, and works.
func anyMoment(t *testing.T, r *rig, kills int) {
	stopLoad := r.load()
	for range kills {
		r.start()
		r.wait(5*time.Millisecond, 300*time.Millisecond)
		r.kill()
	}
	r.start()
	stopLoad()
	r.finish()
}

// duringStop kills shortly after SIGTERM: while calls and handlers in flight
// are waited for and the store is closed. A daemon that was faster than the
// kill must have left nothing in flight.
func duringStop(t *testing.T, r *rig, kills int) {
	stopLoad := r.load()
	clean := 0
	for range kills {
		r.start()
		r.wait(50*time.Millisecond, 300*time.Millisecond)
		if err := r.daemon.cmd.Process.Signal(syscall.SIGTERM); err != nil {
			t.Fatalf("sending SIGTERM: %v", err)
		}
		r.waitOrEnd(0, 25*time.Millisecond)
		if r.kill(); r.daemon.cmd.ProcessState.Success() {
			clean++
			last := r.record.Kills[len(r.record.Kills)-1]
			if len(last.Running) > 0 {
				t.Errorf("jobs %v are running after a clean stop", last.Running)
			}
		}
	}
	t.Logf("%d of %d stops were faster than the kill", clean, kills)
	r.start()
	stopLoad()
	r.finish()
}

// firstStart kills while the store is made, each time in an empty folder. What
// is left must let the next start make it.
func firstStart(t *testing.T, r *rig, kills int) {
	for range kills {
		for _, name := range []string{"spool.db", "spool.db.new", "spool.lock"} {
			if err := os.Remove(filepath.Join(r.dir, name)); err != nil && !errors.Is(err, os.ErrNotExist) {
				t.Fatal(err)
			}
		}
		r.record = demo.Record{}
		r.start()
		r.wait(time.Millisecond, 40*time.Millisecond)
		r.kill()
		r.start()
		r.ready()
		r.kill()
	}
	r.start()
	r.feed()
	r.post(t.Context(), 1)
	r.finish()
}

// secondStart starts a second daemon on the store of the first and kills the
// first: the second must have been refused, and the first unharmed by it.
func secondStart(t *testing.T, r *rig, kills int) {
	stopLoad := r.load()
	for range kills {
		r.start()
		r.ready()
		second := exec.CommandContext(t.Context(), r.binary, "run", "--config", r.settings)
		out, err := second.CombinedOutput()
		if code := second.ProcessState.ExitCode(); code != exitTempFail {
			t.Fatalf("a second daemon ended with %d (%v), want %d:\n%s", code, err, exitTempFail, out)
		}
		r.kill()
	}
	r.start()
	stopLoad()
	r.finish()
}

// exitTempFail is EX_TEMPFAIL of sysexits.h.
const exitTempFail = 75

// wait waits for a random time of the daemon's life.
func (r *rig) wait(least, most time.Duration) {
	r.t.Helper()
	r.waitOrEnd(least, most)
	select {
	case <-r.daemon.ended:
		r.fatal("the daemon has ended by itself")
	default:
	}
}

// waitOrEnd waits for a random time, or until the daemon ends.
func (r *rig) waitOrEnd(least, most time.Duration) {
	timer := time.NewTimer(least + time.Duration(r.rng.Int64N(int64(most-least))))
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-r.daemon.ended:
	}
}

// kill kills the daemon and notes what was in flight.
func (r *rig) kill() {
	r.t.Helper()
	_ = r.daemon.cmd.Process.Kill() // it may have ended just now
	<-r.daemon.ended
	running, err := demo.InFlight(r.t.Context(), r.store)
	if err != nil {
		r.fatal("reading the store after a kill: %v", err)
	}
	if len(running) > workers {
		r.fatal("%d jobs are running, with %d workers: %v", len(running), workers, running)
	}
	r.record.Kills = append(r.record.Kills, demo.Kill{Running: running})
	if len(r.record.Kills)%checkEvery == 0 {
		r.check()
	}
}

// checkEvery is how many kills pass between two looks at the whole store.
const checkEvery = 10

// check has the store as the kill has left it recovered in a copy, and checks
// that. There is nothing to check when there is no store yet.
func (r *rig) check() {
	r.t.Helper()
	contents, err := demo.ReadAll(r.t.Context(), r.store, rigBot)
	switch {
	case errors.Is(err, os.ErrNotExist):
	case err != nil:
		r.fatal("reading the store after a kill: %v", err)
	case len(contents.Faults) > 0:
		r.fatal("the store doesn't fit together after a kill:\n%s", strings.Join(contents.Faults, "\n"))
	}
}

// finish lets the daemon do what is left, stops it, and compares the records.
func (r *rig) finish() {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(r.t.Context(), 2*time.Minute)
	defer cancel()
	r.drain(ctx)
	if err := r.daemon.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		r.fatal("sending SIGTERM: %v", err)
	}
	select {
	case <-r.daemon.ended:
	case <-ctx.Done():
		r.fatal("the daemon did not end after SIGTERM")
	}
	if !r.daemon.cmd.ProcessState.Success() {
		r.fatal("the daemon ended with %s", r.daemon.cmd.ProcessState)
	}
	r.compare(ctx)
}
