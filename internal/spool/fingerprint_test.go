package spool_test

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tgspool/tgspool/internal/spool"
)

const minute = time.Minute

// pass lets time pass, until everything has come to rest at its end.
func pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

func printed(text string, sum byte) spool.NewJob {
	j := message("5", text)
	p := [spool.PrintSize]byte{sum, 1, 2, 3}
	j.Print = p[:]
	return j
}

func TestUnread(t *testing.T) {
	bubble(t, spool.Limits{}, func(t *testing.T, f *fixture) {
		unread := func(sum byte, want ...int64) {
			t.Helper()
			got, err := f.bot.Unread([spool.PrintSize]byte{sum, 1, 2, 3}, minute)
			if err != nil || !slices.Equal(got, want) {
				t.Errorf("unread %v, %v; want %v", got, err, want)
			}
		}
		f.enqueue(printed("a", 1), printed("b", 2), printed("a", 1), message("5", "a"))
		unread(1, 1, 3)
		unread(2, 2)
		unread(3)
		f.reopen()
		unread(1, 1, 3)

		f.done(f.mustClaim()) // job 1
		unread(1, 1, 3)
		f.settle(f.mustClaim(), spool.Verdict{State: spool.Uncertain, Reached: true}) // job 2
		pass(minute - time.Second)
		unread(1, 1, 3)
		pass(time.Second)
		unread(1, 3)
		unread(2, 2)
		if err := f.bot.MarkRead(t.Context(), spool.Print{Sum: [spool.PrintSize]byte{1, 1, 2, 3}, ID: 3}, spool.Print{ID: 99}); err != nil {
			t.Fatal(err)
		}
		unread(1)
		f.reopen()
		unread(1)
		unread(2, 2)
	})
}

func TestUnread_GoesWithTheRecord(t *testing.T) {
	bubble(t, spool.Limits{}, func(t *testing.T, f *fixture) {
		f.enqueue(printed("a", 1))
		f.done(f.mustClaim())
		pass(100 * time.Hour) // retention removes the record
		if _, err := f.store.Job(1); err == nil {
			t.Fatal("the job is still there")
		}
		if got, err := f.bot.Unread([spool.PrintSize]byte{1, 1, 2, 3}, 1000*time.Hour); err != nil || len(got) > 0 {
			t.Errorf("unread %v, %v", got, err)
		}
	})
}

func TestEnqueue_RefusesAShortFingerprint(t *testing.T) {
	bubble(t, spool.Limits{}, func(t *testing.T, f *fixture) {
		j := message("5", "a")
		j.Print = []byte("short")
		if _, err := f.bot.Enqueue(t.Context(), j); err == nil {
			t.Error("it was taken")
		}
	})
}
