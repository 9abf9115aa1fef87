package spool_test

import (
	"errors"
	"testing"

	"github.com/tgspool/tgspool/internal/spool"
)

func TestStateErrorSaysWhatIsPossible(t *testing.T) {
	for _, tt := range []struct{ what, now, want, text string }{
		{"job", "done", "done", "job 1 is done; only uncertain jobs can be resolved"},
		{"job", "pending", "cancelled", "job 1 is pending; only uncertain jobs can be resolved"},
		{"job", "running", "cancelled", "job 1 is running: a call in flight can't be called off"},
		{"job", "dead", "cancelled", "job 1 is dead: it is over already"},
		{"job", "held", "held", "job 1 is held; only pending jobs can be held"},
		{"job", "pending", "pending", "job 1 is pending: it waits for its turn already"},
		{"job", "running", "pending", "job 1 is running: it is in flight"},
		{"job", "uncertain", "pending", "job 1 is uncertain; tgspool queue resolve decides about it"},
		{"job", "held", "pending", "job 1 is held; tgspool queue release lets it go on"},
		{"job", "done", "pending", "job 1 is done: it has been sent"},
		{"job", "expired", "pending", "job 1 is expired; tgspool queue retry brings it back"},
		{"job", "done", "dead", "job 1 is done and can't become dead"},
		{"update", "open", "open", "update 1 is open: it hasn't been handled yet"},
		{"update", "leased", "open", "update 1 is leased: its handler is at work"},
		{"update", "dead", "open", "update 1 is dead, and malformed: no handler can take it"},
		{"update", "leased", "ignored", "update 1 is leased: its handler is at work"},
		{"update", "handled", "ignored", "update 1 is handled: it is over already"},
		{"update", "open", "handled", "update 1 is open and can't become handled"},
	} {
		err := &spool.StateError{What: tt.what, ID: 1, Now: tt.now, Want: tt.want}
		if err.Error() != tt.text || !errors.Is(err, spool.ErrConflict) {
			t.Errorf("got %q, want %q", err, tt.text)
		}
	}
}

// The lock is the folder's: the store in use there may be another one.
func TestLockedErrorNamesTheFolder(t *testing.T) {
	for _, tt := range []struct {
		pid  int
		want string
	}{
		{7, "the folder /srv/pi is in use by process 7; every daemon needs a store folder of its own"},
		{0, "the folder /srv/pi is in use by another process; every daemon needs a store folder of its own"},
	} {
		if err := (&spool.LockedError{Path: "/srv/pi/other.db", PID: tt.pid}); err.Error() != tt.want {
			t.Errorf("got %q, want %q", err, tt.want)
		}
	}
}
