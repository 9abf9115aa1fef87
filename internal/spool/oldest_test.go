package spool_test

import (
	"testing"
	"time"

	"github.com/tgspool/tgspool/internal/spool"
)

// TestOldestPending: what is for later doesn't hide what is overdue, however much
// of it stands before.
func TestOldestPending(t *testing.T) {
	bubble(t, spool.Limits{}, func(t *testing.T, f *fixture) {
		age := func() float64 { return f.store.Status().Bots[0].OldestPendingAgeS }
		if got := age(); got != 0 {
			t.Errorf("nothing queued: %v", got)
		}
		tomorrow := make([]spool.NewJob, 500)
		for i := range tomorrow {
			tomorrow[i] = message("8", "later")
			tomorrow[i].NotBefore = time.Now().Add(24 * time.Hour)
		}
		for n := 0; n <= 10_000; n += len(tomorrow) {
			f.enqueue(tomorrow...)
		}
		if got := age(); got != 0 {
			t.Errorf("all is for tomorrow: %v", got)
		}
		f.send("9", "now")
		pass(time.Minute)
		f.send("9", "then")
		if got := age(); got != 60 {
			t.Errorf("the oldest is %v s overdue, want 60", got)
		}
	})
}

// seen collects what an observer is told.
type seen struct {
	commits, bytes int64
	runs           []string
	took           []time.Duration
}

func (s *seen) Committed(_ time.Duration, bytes int64) { s.commits++; s.bytes += bytes }

func (s *seen) Handled(bot, handler string, result spool.UpdateState, took time.Duration) {
	s.runs = append(s.runs, bot+" "+handler+" "+string(result))
	s.took = append(s.took, took)
}

func (s *seen) Replied(bot string, took time.Duration) {
	s.runs = append(s.runs, bot+" replied")
	s.took = append(s.took, took)
}

// TestObserver: what is measured is measured from the right moments, and only
// what came about.
func TestObserver(t *testing.T) {
	o := &seen{}
	bubble(t, spool.Limits{}, func(t *testing.T, f *fixture) {
		f.observe(o)
		f.intake(text(1, 9))
		pass(time.Second)
		l := f.lease(time.Second)
		pass(2 * time.Second)
		if err := f.bot.FailUpdate(t.Context(), l, spool.Failure{State: spool.UpdateOpen}); err != nil {
			t.Fatal(err)
		}
		l = f.lease(time.Second)
		if _, err := f.bot.Handled(t.Context(), l, spool.Handling{Jobs: []spool.NewJob{message("9", "hi")}}); err != nil {
			t.Fatal(err)
		}
		c := f.mustClaim()
		pass(time.Second)
		f.done(c)
		f.send("9", "no reply")
		f.done(f.mustClaim())
		want := []string{"home echo open", "home echo handled", "home replied"}
		for i, d := range []time.Duration{2 * time.Second, 0, 4 * time.Second} {
			if i >= len(o.runs) || o.runs[i] != want[i] || o.took[i] != d {
				t.Fatalf("told %v %v, want %v", o.runs, o.took, want)
			}
		}
		if len(o.runs) != 3 {
			t.Errorf("told %v", o.runs)
		}
		if o.commits != f.store.Commits() || o.bytes < o.commits*8192 {
			t.Errorf("%d commits of %d, %d bytes", o.commits, f.store.Commits(), o.bytes)
		}
	})
}
