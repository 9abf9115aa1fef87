package spool_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	bolt "go.etcd.io/bbolt"

	"github.com/tgspool/tgspool/internal/spool"
)

// hold leases what is ready of the pull route, waiting at most d.
func (f *fixture) hold(most int, span, d time.Duration) []*spool.Lease {
	f.t.Helper()
	got, err := f.bot.ClaimUpdates(f.t.Context(), spool.PullRoute, most, span, d)
	if err != nil {
		f.t.Fatal(err)
	}
	return got
}

func idsOf(list []*spool.Lease) (ids []int64) {
	for _, l := range list {
		ids = append(ids, *l.UpdateID)
	}
	return ids
}

func (f *fixture) wantUpdate(seq int64, state spool.UpdateState, attempts int) spool.Update {
	f.t.Helper()
	u, err := f.bot.Update(seq)
	if err != nil || u.State != state || u.Attempts != attempts {
		f.t.Errorf("update %d is %s after %d attempts (%v), want %s after %d", seq, u.State, u.Attempts, err, state, attempts)
	}
	return u
}

// TestHeld_OneOfEachKey: a claim takes the heads, never two of one key.
func TestHeld_OneOfEachKey(t *testing.T) {
	bubble(t, limits(), func(t *testing.T, f *fixture) {
		f.intake(pullText(1, 1), pullText(2, 1), pullText(3, 2), pullText(4, 3))
		if got := fmt.Sprint(idsOf(f.hold(2, time.Minute, 0))); got != "[1 3]" {
			t.Errorf("two of them: %s", got)
		}
		rest := f.hold(10, time.Minute, 0)
		if got := fmt.Sprint(idsOf(rest)); got != "[4]" {
			t.Errorf("the rest: %s", got)
		}
		if got := f.hold(10, time.Minute, 0); len(got) != 0 {
			t.Errorf("still more: %v", idsOf(got))
		}
		if ids := f.poll(0, 100); fmt.Sprint(ids) != "[2]" {
			t.Errorf("getUpdates shows %v", ids)
		}
	})
}

// TestHeld_Waits: the claim is there before the update, and has it in its commit.
func TestHeld_Waits(t *testing.T) {
	bubble(t, limits(), func(t *testing.T, f *fixture) {
		got := make(chan []*spool.Lease, 2)
		for range 2 {
			go func() { got <- f.hold(10, 3*time.Hour, time.Hour) }()
		}
		synctest.Wait() // both wait
		before := f.store.Commits()
		f.intake(pullText(1, 1), pullText(2, 2))
		if l := <-got; fmt.Sprint(idsOf(l)) != "[1 2]" || f.store.Commits() != before+1 {
			t.Errorf("%v after %d commits", idsOf(l), f.store.Commits()-before)
		}
		time.Sleep(2 * time.Hour)
		if l := <-got; len(l) != 0 {
			t.Errorf("the other one got %v", idsOf(l))
		}
	})
}

// TestHeld_RunsOut: the update comes back with its attempt spent, its old holder
// is refused whatever it wants, and after the last attempt it is dead.
func TestHeld_RunsOut(t *testing.T) {
	bubble(t, limits(), func(t *testing.T, f *fixture) {
		f.intake(pullText(1, 1), pullText(2, 1))
		var old *spool.Lease
		for attempt := 1; attempt <= 5; attempt++ {
			got := f.hold(10, 10*time.Second, time.Minute)
			if len(got) != 1 || *got[0].UpdateID != 1 || got[0].Attempts != attempt {
				t.Fatalf("attempt %d: got %v", attempt, idsOf(got))
			}
			if old != nil {
				f.lost(old)
			}
			if left := time.Until(got[0].Until); left != 10*time.Second {
				t.Errorf("it holds for %s", left)
			}
			old = f.bot.HeldLease(got[0].Seq, got[0].Token())
			if attempt < 5 {
				time.Sleep(11 * time.Second)
				f.wantUpdate(1, spool.UpdateOpen, attempt)
			}
		}
		time.Sleep(9 * time.Second)
		f.wantUpdate(1, spool.UpdateLeased, 5)
		time.Sleep(2 * time.Second)
		u := f.wantUpdate(1, spool.UpdateDead, 5)
		if *u.Error != "given up after 5 attempts: the lease of attempt 5 has run out" {
			t.Errorf("error %q", *u.Error)
		}
		f.lost(old)
		if got := f.hold(1, time.Minute, 0); fmt.Sprint(idsOf(got)) != "[2]" {
			t.Errorf("behind it: %v", idsOf(got))
		}
	})
}

// lost checks that a lease is good for nothing any more.
func (f *fixture) lost(l *spool.Lease) {
	f.t.Helper()
	ctx := f.t.Context()
	_, err := f.bot.Handled(ctx, l, spool.Handling{Jobs: []spool.NewJob{message("1", "late")}, Session: change(`{"late":1}`, 0)})
	_, extended := f.bot.ExtendLease(ctx, l, time.Minute)
	for _, err := range []error{err, extended, f.bot.FailLease(ctx, l, "late", false), f.bot.FailLease(ctx, l, "late", true)} {
		if !errors.Is(err, spool.ErrLeaseLost) {
			f.t.Errorf("an old lease is answered %v", err)
		}
	}
	if page, err := f.bot.Jobs(spool.JobFilter{}); err != nil || len(page.Items) != 0 {
		f.t.Errorf("%d jobs, %v", len(page.Items), err)
	}
	f.wantSession(key(1, 0), "")
}

// TestHeld_OverARestart: who holds a lease goes on; the update behind it waits,
// and a lease that nobody ends runs out all the same.
func TestHeld_OverARestart(t *testing.T) {
	bubble(t, limits(), func(t *testing.T, f *fixture) {
		f.intake(pullText(1, 1), pullText(2, 1), pullText(3, 2), text(4, 3))
		held := f.hold(10, time.Minute, 0)
		if f.lease(time.Second) == nil {
			t.Fatal("no lease of a handler of ours")
		}
		f.reopen()
		f.wantUpdate(1, spool.UpdateLeased, 1)
		f.wantUpdate(4, spool.UpdateOpen, 1)
		if got := f.hold(10, time.Minute, 0); len(got) != 0 {
			t.Errorf("handed out beside its holder: %v", idsOf(got))
		}
		f.cfg.Routes, f.cfg.Route = "other", func(raw []byte) spool.Route { return spool.Route{Handler: spool.PullRoute} }
		f.reopen() // with routes that find all handlers again
		if got := f.hold(10, time.Minute, 0); fmt.Sprint(idsOf(got)) != "[4]" {
			t.Errorf("after new routes: %v", idsOf(got))
		}
		if _, err := f.bot.ExtendLease(t.Context(), f.bot.HeldLease(1, held[0].Token()), time.Hour); err != nil {
			t.Error(err)
		}
		time.Sleep(2 * time.Minute)
		f.wantUpdate(1, spool.UpdateLeased, 1)
		f.wantUpdate(3, spool.UpdateOpen, 1)
		f.reopen()
		if _, err := f.bot.Handled(t.Context(), f.bot.HeldLease(1, held[0].Token()), spool.Handling{Jobs: []spool.NewJob{message("1", "x")}}); err != nil {
			t.Error(err)
		}
		f.wantUpdate(1, spool.UpdateHandled, 1)
		if got := f.hold(10, time.Minute, 0); fmt.Sprint(idsOf(got)) != "[2 3 4]" {
			t.Errorf("then: %v", idsOf(got))
		}
	})
}

// TestHeld_Fails: later each time, or never again.
func TestHeld_Fails(t *testing.T) {
	bubble(t, limits(), func(t *testing.T, f *fixture) {
		u := pullText(1, 1)
		u.Route.Attempts = 2
		f.intake(u, pullText(2, 2), pullText(3, 2))
		held := f.hold(10, time.Minute, 0)
		for i, permanent := range []bool{false, true} {
			if err := f.bot.FailLease(t.Context(), held[i], "no luck", permanent); err != nil {
				t.Fatal(err)
			}
		}
		f.wantUpdate(2, spool.UpdateDead, 1)
		u1 := f.wantUpdate(1, spool.UpdateOpen, 1)
		if wait := time.Until(*u1.NextAttemptAt); wait < time.Second || wait > 2*time.Second {
			t.Errorf("the wait is %s", wait)
		}
		if got := f.hold(10, time.Minute, 0); fmt.Sprint(idsOf(got)) != "[3]" {
			t.Errorf("at once: %v", idsOf(got))
		}
		got := f.hold(10, time.Minute, 5*time.Second)
		if fmt.Sprint(idsOf(got)) != "[1]" || got[0].Attempts != 2 || *got[0].Error != "no luck" {
			t.Fatalf("after the wait: %v", idsOf(got))
		}
		if err := f.bot.FailLease(t.Context(), got[0], "no luck", false); err != nil {
			t.Fatal(err)
		}
		if u := f.wantUpdate(1, spool.UpdateDead, 2); !strings.HasPrefix(*u.Error, "given up after 2 attempts") {
			t.Errorf("error %q", *u.Error)
		}
	})
}

// TestHeld_CallerGone: what was leased for somebody who has gone isn't lost.
func TestHeld_CallerGone(t *testing.T) {
	bubble(t, limits(), func(t *testing.T, f *fixture) {
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() {
			_, err := f.bot.ClaimUpdates(ctx, spool.PullRoute, 1, time.Minute, time.Hour)
			ended <- err
		}()
		time.Sleep(time.Second)
		cancel()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		f.intake(pullText(1, 1))
		if got := f.hold(1, time.Minute, 0); len(got) != 1 || got[0].Attempts != 1 {
			t.Errorf("got %v", idsOf(got))
		}
	})
}

// TestHeld_TimerLost: an index that has lost the end of a lease is found and mended.
func TestHeld_TimerLost(t *testing.T) {
	bubble(t, limits(), func(t *testing.T, f *fixture) {
		f.intake(pullText(1, 1), pullText(2, 1))
		f.hold(1, time.Minute, 0)
		if err := f.store.Close(); err != nil {
			t.Fatal(err)
		}
		editBolt(t, filepath.Join(f.dir, "spool.db"), func(tx *bolt.Tx) error {
			if err := tx.DeleteBucket([]byte("timer")); err != nil {
				return err
			}
			_, err := tx.CreateBucket([]byte("timer"))
			return err
		})
		f.open()
		if got := f.hold(1, time.Minute, 30*time.Second); len(got) != 0 {
			t.Errorf("handed out beside its holder: %v", idsOf(got))
		}
		if got := f.hold(1, time.Minute, time.Minute); fmt.Sprint(idsOf(got)) != "[1]" {
			t.Errorf("after its end: %v", idsOf(got))
		}
	})
}

// TestTaken: leases and getUpdates keep each other out.
func TestTaken(t *testing.T) {
	bubble(t, limits(), func(t *testing.T, f *fixture) {
		take := func(way spool.Taker, ok bool) func() {
			t.Helper()
			done, err := f.bot.TakenBy(way)
			if (err == nil) != ok || err != nil && !errors.Is(err, spool.ErrConflict) {
				t.Errorf("%s: %v", way, err)
			}
			return done
		}
		polled := take(spool.ByPolls, true)
		time.Sleep(2 * time.Minute)
		take(spool.ByLeases, false) // it waits still
		polled()
		time.Sleep(59 * time.Second)
		take(spool.ByLeases, false)
		take(spool.ByPolls, true)()
		time.Sleep(time.Minute)
		one, other := take(spool.ByLeases, true), take(spool.ByLeases, true)
		one()
		time.Sleep(2 * time.Minute)
		take(spool.ByPolls, false)
		other()
		time.Sleep(time.Minute)
		hook := take(spool.ByWebhook, true)
		take(spool.ByLeases, false)
		hook()
		take(spool.ByLeases, true)()
	})
}
