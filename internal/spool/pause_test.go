package spool_test

import (
	"errors"
	"testing"
	"time"

	"github.com/tgspool/tgspool/internal/spool"
)

// TestPause: a part stands still until its time or a person ends that, over
// restarts; whoever acts on it is told each time.
func TestPause(t *testing.T) {
	bubble(t, spool.Limits{}, func(t *testing.T, f *fixture) {
		told := make(chan struct{}, 10)
		f.cfg.PauseChanged = func() { told <- struct{}{} }
		f.reopen()
		f.intake(text(1, 9))
		if err := f.bot.Pause(t.Context(), spool.PartHandlers, time.Hour); err != nil {
			t.Fatal(err)
		}
		if err := f.bot.Pause(t.Context(), spool.PartSender, 0); err != nil {
			t.Fatal(err)
		}
		if f.lease(time.Minute) != nil {
			t.Error("an update was handed out")
		}
		f.reopen()
		list := f.store.Status().Bots[0].Paused
		if len(list) != 2 || list[0].Part != spool.PartHandlers || list[0].Until == nil || list[1].Part != spool.PartSender || list[1].Until != nil {
			t.Fatalf("paused %+v", list)
		}
		if left := time.Until(*list[0].Until); left != 59*minute {
			t.Errorf("left %s", left)
		}
		pass(58 * minute)
		if f.lease(time.Second) != nil {
			t.Error("an update was handed out too early")
		}
		if f.lease(2*minute) == nil {
			t.Error("no update when the pause was over")
		}
		if _, paused := f.bot.Paused(spool.PartHandlers); paused {
			t.Error("still paused")
		}
		for range 2 { // the second time there is nothing to end
			if err := f.bot.Resume(t.Context(), spool.PartSender); err != nil {
				t.Fatal(err)
			}
		}
		if got := f.store.Status().Bots[0].Paused; len(got) != 0 {
			t.Errorf("paused %+v", got)
		}
		if len(told) != 4 {
			t.Errorf("told %d times, want 4", len(told))
		}
	})
}

// TestPause_Longer: another pause replaces the first, whose time then means nothing.
func TestPause_Longer(t *testing.T) {
	bubble(t, spool.Limits{}, func(t *testing.T, f *fixture) {
		for _, span := range []time.Duration{time.Minute, time.Hour} {
			if err := f.bot.Pause(t.Context(), spool.PartIntake, span); err != nil {
				t.Fatal(err)
			}
		}
		pass(30 * minute)
		if _, paused := f.bot.Paused(spool.PartIntake); !paused {
			t.Error("the first time has ended the second pause")
		}
		pass(31 * minute)
		if _, paused := f.bot.Paused(spool.PartIntake); paused {
			t.Error("still paused")
		}
		for _, err := range []error{
			f.bot.Pause(t.Context(), "all", 0), f.bot.Pause(t.Context(), spool.PartIntake, -1), f.bot.Resume(t.Context(), ""),
		} {
			if !errors.Is(err, spool.ErrInvalid) {
				t.Errorf("error %v", err)
			}
		}
	})
}

// TestPause_Pull: clients that take updates by themselves get none, and are woken.
func TestPause_Pull(t *testing.T) {
	bubble(t, spool.Limits{}, func(t *testing.T, f *fixture) {
		u := text(1, 9)
		u.Route = spool.Route{Handler: spool.PullRoute}
		f.intake(u)
		if err := f.bot.Pause(t.Context(), spool.PartHandlers, time.Minute); err != nil {
			t.Fatal(err)
		}
		woken, stop := f.bot.WatchPull()
		defer stop()
		if list, err := f.bot.Pull(t.Context(), 10); err != nil || len(list) != 0 {
			t.Errorf("got %v, %v", list, err)
		}
		<-woken
		if list, err := f.bot.Pull(t.Context(), 10); err != nil || len(list) != 1 {
			t.Errorf("got %v, %v", list, err)
		}
	})
}
