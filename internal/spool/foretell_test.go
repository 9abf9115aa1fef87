package spool

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	bolt "go.etcd.io/bbolt"
)

// answered queues a job, claims it, and begins to settle it; the commit waits for
// release. It returns when nothing moves any more.
func answered(t *testing.T, s *Store, b *Bot, j NewJob, v Verdict) (id int64, release func() error) {
	t.Helper()
	made, err := b.Enqueue(t.Context(), j)
	if err != nil {
		t.Fatal(err)
	}
	c, err := b.Claim(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	synctest.Wait() // the writer sleeps
	free, gate := s.disk.commit, make(chan struct{})
	s.disk.commit = func(tx *bolt.Tx) error { <-gate; return free(tx) }
	ctx, cancel := context.WithCancel(t.Context())
	settled := make(chan error, 1)
	go func() {
		_, err := b.SettleAndClaim(ctx, c, v)
		settled <- err
	}()
	synctest.Wait()
	return made[0].Job.ID, func() error {
		close(gate)
		synctest.Wait()
		s.disk.commit = free
		cancel()
		if err := <-settled; !errors.Is(err, context.Canceled) {
			return err
		}
		return nil
	}
}

var delivered = Verdict{State: Done, Result: []byte(`{"message_id":5}`), Reached: true}

// TestWaitAnswer_BeforeTheCommit: the answer is told while it is written. If we
// stop then, nobody sends it again.
func TestWaitAnswer_BeforeTheCommit(t *testing.T) {
	copied := filepath.Join(t.TempDir(), "spool.db")
	onScarce(t, func(t *testing.T, s *Store, b *Bot, _ *scarce) {
		id, release := answered(t, s, b, job("1", "x"), delivered)
		got, err := s.WaitAnswer(t.Context(), id)
		if err != nil || got.State != Done || string(got.Result) != `{"message_id":5}` {
			t.Errorf("the answer: %+v, %v", got, err)
		}
		if kept, err := s.Job(id); err != nil || kept.State != Running {
			t.Errorf("on disk: %s, %v", kept.State, err)
		}
		raw, err := os.ReadFile(s.path)
		if err == nil {
			err = os.WriteFile(copied, raw, 0o600) //nolint:gosec // a folder of the test's own
		}
		if err != nil {
			t.Fatal(err)
		}
		found := make(chan State, 1)
		go func() {
			s.Settled(t.Context())
			kept, _ := s.Job(id)
			found <- kept.State
		}()
		if err := release(); err != nil {
			t.Fatal(err)
		}
		if state := <-found; state != Done {
			t.Errorf("whoever asks after the answer finds the job %s", state)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		s, err := Open(t.Context(), Options{Path: copied})
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = s.Close() }()
		b, err := s.Attach(t.Context(), BotConfig{ID: 7, Name: "home"})
		if err != nil {
			t.Fatal(err)
		}
		page, err := b.Jobs(JobFilter{})
		if err != nil || len(page.Items) != 1 || page.Items[0].State != Uncertain {
			t.Errorf("after a stop before the commit: %+v, %v", page.Items, err)
		}
	})
}

// TestWaitAnswer_OnlyWhatIsSafe: what a start would send again, or forget, isn't
// told before it is on disk.
func TestWaitAnswer_OnlyWhatIsSafe(t *testing.T) {
	tests := []struct {
		name    string
		policy  Policy
		safe    bool
		verdict Verdict
		early   bool
		most    int // attempts
	}{
		{"hold, its last attempt", PolicyHold, false, delivered, true, 1},
		{"safe to repeat, but no more", PolicyHold, true, delivered, false, 1},
		{"hold", PolicyHold, false, delivered, true, 0},
		{"resend", PolicyResend, false, delivered, false, 0},
		{"resend marked", PolicyResendMarked, false, delivered, false, 0},
		{"drop", PolicyDrop, false, delivered, false, 0},
		{"resend, safe to repeat", PolicyResend, true, delivered, true, 0},
		{"rejected", PolicyHold, false, Verdict{State: Dead, Error: &JobError{Class: "rejected", Code: 400}}, false, 0},
		{"uncertain", PolicyHold, false, Verdict{State: Uncertain, MaybeSent: true}, false, 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			onScarce(t, func(t *testing.T, s *Store, b *Bot, _ *scarce) {
				j := job("1", "x")
				j.OnUncertain, j.SafeToRepeat, j.MaxAttempts = tt.policy, tt.safe, tt.most
				id, release := answered(t, s, b, j, tt.verdict)
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				if _, err := s.WaitAnswer(ctx, id); (err == nil) != tt.early {
					t.Errorf("before the commit: %v", err)
				}
				if err := release(); err != nil {
					t.Fatal(err)
				}
				if got, err := s.WaitAnswer(t.Context(), id); err != nil || got.State != tt.verdict.State {
					t.Errorf("after it: %s, %v", got.State, err)
				}
			})
		})
	}
}

// TestWaitAnswer_CommitFails: what was told stays true; the job runs on, and is
// done when the disk takes it.
func TestWaitAnswer_CommitFails(t *testing.T) {
	onScarce(t, func(t *testing.T, s *Store, b *Bot, d *scarce) {
		made, err := b.Enqueue(t.Context(), job("1", "x"))
		if err != nil {
			t.Fatal(err)
		}
		id := made[0].Job.ID
		c, err := b.Claim(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		heard := make(chan Job, 1)
		go func() {
			got, _ := s.WaitAnswer(t.Context(), id)
			heard <- got
		}()
		synctest.Wait()
		d.fail, d.with = 1, errors.New("the card is gone")
		if _, err := b.SettleAndClaim(t.Context(), c, delivered); err == nil {
			t.Fatal("the commit hasn't failed")
		}
		if got := <-heard; got.State != Done {
			t.Errorf("the caller heard of a job that is %s", got.State)
		}
		if kept, _ := s.Job(id); kept.State != Running {
			t.Errorf("the job is %s", kept.State)
		}
		s.Settled(t.Context()) // nothing is under way
		if _, err := b.Settle(t.Context(), c, delivered); err != nil {
			t.Fatal(err)
		}
		if kept, _ := s.Job(id); kept.State != Done {
			t.Errorf("afterwards the job is %s", kept.State)
		}
	})
}
