package spool_test

import (
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tgspool/tgspool/internal/spool"
)

// board is a box with a clock that can be wrong: its boots, and what its wall
// clock says beside the truth, which is the bubble's time.
type board struct {
	spool.Clock
	boot  string
	start time.Time
	skew  time.Duration
}

func (b *board) Wall() time.Time               { return time.Now().Add(b.skew).Round(0) }
func (b *board) Boot() (string, time.Duration) { return b.boot, time.Since(b.start) }
func (b *board) NewAlarm() spool.Alarm         { return alarm{time.NewTimer(time.Hour)} }

func (b *board) reboot(id string) { b.boot, b.start = id, time.Now() }

type alarm struct{ t *time.Timer }

func (a alarm) C() <-chan time.Time { return a.t.C }
func (a alarm) Close()              { a.t.Stop() }
func (a alarm) Set(d time.Duration) {
	a.t.Stop()
	if d > 0 {
		a.t.Reset(d)
	}
}

// onBoard runs a scenario with a store on a board; start opens the store again.
func onBoard(t *testing.T, scenario func(t *testing.T, f *fixture, b *board, start func())) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		b := &board{boot: "first", start: time.Now()}
		f := &fixture{t: t, dir: dir, cfg: spool.BotConfig{ID: 7, Name: "home", Limits: limits()}}
		start := func() {
			var err error
			f.store, err = spool.Open(t.Context(), spool.Options{
				Path: filepath.Join(dir, "spool.db"), Clock: b, Built: time.Date(1999, 1, 1, 0, 0, 0, 0, time.UTC),
			})
			if err != nil {
				t.Fatal(err)
			}
			if f.bot, err = f.store.Attach(t.Context(), f.cfg); err != nil {
				t.Fatal(err)
			}
		}
		start()
		defer func() { _ = f.store.Close() }()
		scenario(t, f, b, start)
		f.check()
	})
}

func (f *fixture) retryIn(b *board, d time.Duration) int64 {
	f.t.Helper()
	id := f.send("1", "a")
	c := f.mustClaim()
	f.settle(c, spool.Verdict{State: spool.Pending, RetryAt: b.Wall().Add(d), Error: &spool.JobError{Class: "transient"}})
	return id
}

// claimedAfter waits for the next job and returns how long that took.
func (f *fixture) claimedAfter(limit time.Duration) time.Duration {
	f.t.Helper()
	start := time.Now()
	if c := f.claim(limit); c != nil {
		f.done(c)
		return time.Since(start)
	}
	return limit
}

func near(d, want time.Duration) bool { return (d - want).Abs() < 2*time.Second }

func TestClock_TheTimeTheBoxWasOffCountsWhenTheClockIsKnown(t *testing.T) {
	onBoard(t, func(t *testing.T, f *fixture, b *board, start func()) {
		f.retryIn(b, time.Hour)
		_ = f.store.Close()
		time.Sleep(40 * time.Minute)
		b.reboot("second")
		start()
		if d := f.claimedAfter(2 * time.Hour); !near(d, 20*time.Minute) {
			t.Errorf("came back after %s", d)
		}
	})
}

func TestClock_UnknownAfterARebootWaitsTheWholeSpan(t *testing.T) {
	onBoard(t, func(t *testing.T, f *fixture, b *board, start func()) {
		f.retryIn(b, time.Hour)
		mortal := message("2", "b")
		mortal.ExpiresAt = time.Now().Add(10 * time.Minute)
		id := f.enqueue(mortal)[0].Job.ID
		_ = f.store.Close()
		time.Sleep(40 * time.Minute)
		b.skew = -5 * 365 * 24 * time.Hour
		b.reboot("second")
		start()
		if f.store.ClockKnown() {
			t.Fatal("a clock five years back is believed")
		}
		if c := f.mustClaim(); c.ID != id {
			t.Fatalf("claimed %d: nothing expires while the clock is unknown", c.ID)
		} else {
			f.done(c)
		}
		if d := f.claimedAfter(2 * time.Hour); !near(d, time.Hour) {
			t.Errorf("came back after %s", d)
		}
	})
}

func TestClock_CatchesUpWhenItBecomesKnown(t *testing.T) {
	onBoard(t, func(t *testing.T, f *fixture, b *board, start func()) {
		f.retryIn(b, time.Hour)
		mortal := message("1", "b") // behind the first
		mortal.ExpiresAt = time.Now().Add(10 * time.Minute)
		id := f.enqueue(mortal)[0].Job.ID
		_ = f.store.Close()
		time.Sleep(2 * time.Hour)
		b.skew = -5 * 365 * 24 * time.Hour
		b.reboot("second")
		start()
		if c := f.claim(time.Minute); c != nil {
			t.Fatalf("claimed %d", c.ID)
		}
		b.skew = 0
		f.store.Witness(time.Now())
		if d := f.claimedAfter(time.Hour); d > 5*time.Second {
			t.Errorf("came back after %s although the clock says that it is late", d)
		}
		f.wantState(id, spool.Expired)
		if !f.store.ClockKnown() {
			t.Error("still unknown")
		}
	})
}

func TestClock_StepsWithinABootMoveNoDeadline(t *testing.T) {
	for _, step := range []time.Duration{12 * 365 * 24 * time.Hour, time.Hour, -time.Hour} {
		onBoard(t, func(t *testing.T, f *fixture, b *board, _ func()) {
			mortal := message("2", "b")
			mortal.ExpiresAt = time.Now().Add(10 * time.Minute)
			_, _ = f.retryIn(b, time.Hour), f.enqueue(mortal)
			b.skew = step
			f.send("3", "something happens")
			for range 2 {
				if d := f.claimedAfter(time.Minute); d == time.Minute {
					t.Errorf("step %s: a job has expired or waits", step)
				}
			}
			if d := f.claimedAfter(2 * time.Hour); !near(d, time.Hour) {
				t.Errorf("step %s: came back after %s", step, d)
			}
		})
	}
}

func TestClock_TelegramEndsAClockThatRanAhead(t *testing.T) {
	onBoard(t, func(t *testing.T, f *fixture, b *board, start func()) {
		_ = f.store.Close()
		b.skew = 12 * 365 * 24 * time.Hour
		b.reboot("in the future")
		start()
		f.retryIn(b, time.Hour)
		f.store.Witness(time.Now())
		if f.store.ClockKnown() {
			t.Error("a clock that Telegram contradicts is believed")
		}
		_ = f.store.Close()
		b.skew = 0
		b.reboot("right again")
		start()
		if f.store.ClockKnown() {
			t.Error("a clock before the last stored time is believed")
		}
		f.store.Witness(time.Now())
		if !f.store.ClockKnown() {
			t.Error("a clock that Telegram confirms isn't believed")
		}
		if d := f.claimedAfter(3 * time.Hour); !near(d, time.Hour) {
			t.Errorf("came back after %s", d)
		}
		if j, err := f.store.Job(f.send("1", "x")); err != nil || !near(time.Since(j.CreatedAt), 0) {
			t.Errorf("created at %s: %v", j.CreatedAt, err)
		}
	})
}

func TestClock_SystemClockRuns(t *testing.T) {
	c, err := spool.SystemClock()
	if err != nil {
		t.Fatal(err)
	}
	id, up := c.Boot()
	if id == "" || up <= 0 {
		t.Errorf("boot %q, up %s", id, up)
	}
	a := c.NewAlarm()
	defer a.Close()
	a.Set(time.Hour)
	a.Set(time.Millisecond)
	<-a.C()
}

func TestClock_DeadlinesOfTheProcessAreSpansWhateverTheClockSays(t *testing.T) {
	for name, skew := range map[string]time.Duration{"right": 0, "behind": -time.Hour, "years behind": -5 * 365 * 24 * time.Hour} {
		onBoard(t, func(t *testing.T, f *fixture, b *board, start func()) {
			f.send("9", "x")
			f.done(f.mustClaim())
			_ = f.store.Close()
			b.skew = skew
			b.reboot("second")
			start()
			u := text(5, 1)
			u.StaleAt = b.Wall().Add(150 * time.Second)
			f.intake(u)
			if l := f.lease(time.Second); l == nil {
				t.Errorf("%s: a query is stale on arrival", name)
			}
			f.send("1", "a")
			until := b.Wall().Add(10 * time.Minute)
			f.settle(f.mustClaim(), spool.Verdict{State: spool.Pending, GiveBack: true, ChatCooldown: until, BotCooldown: until})
			if left := time.Until(f.bot.Cooldown()); !near(left, 10*time.Minute) {
				t.Errorf("%s: the bot's cooldown is over in %s", name, left)
			}
			if d := f.claimedAfter(2 * time.Hour); !near(d, 10*time.Minute) {
				t.Errorf("%s: the chat's cooldown lasted %s", name, d)
			}
			f.retryIn(b, 10*time.Minute)
			if d := f.claimedAfter(2 * time.Hour); !near(d, 10*time.Minute) {
				t.Errorf("%s: the retry came after %s", name, d)
			}
		})
	}
}

func TestClock_ACooldownThatIsOverStaysOver(t *testing.T) {
	onBoard(t, func(t *testing.T, f *fixture, b *board, start func()) {
		f.send("1", "a")
		f.settle(f.mustClaim(), spool.Verdict{State: spool.Pending, GiveBack: true, BotCooldown: b.Wall().Add(time.Minute)})
		time.Sleep(48 * time.Hour)
		f.done(f.mustClaim())
		_ = f.store.Close()
		b.skew = -365 * 24 * time.Hour
		b.reboot("second")
		start()
		if !f.bot.Cooldown().IsZero() {
			t.Errorf("a cooldown of two days ago lasts until %s", f.bot.Cooldown())
		}
	})
}
