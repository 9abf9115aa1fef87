package handler

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tgspool/tgspool/internal/spool"
)

// stubborn is an inbox that refuses to store the end of runs for a while.
type stubborn struct {
	Inbox
	left int
	err  error
}

func (s *stubborn) Handled(ctx context.Context, l *spool.Lease, h spool.Handling) ([]spool.Queued, error) {
	if s.left > 0 {
		s.left--
		return nil, s.err
	}
	return s.Inbox.Handled(ctx, l, h)
}

func TestHandlers_EndThatCannotBeStored(t *testing.T) {
	tests := []struct {
		name  string
		err   error
		times int
		state spool.UpdateState
		why   string
	}{
		{"disk full for a while", spool.ErrFull, 10, spool.UpdateHandled, ""},
		{"I/O error for a while", &fs.PathError{Op: "write", Path: "x", Err: errors.New("input/output error")}, 3, spool.UpdateHandled, ""},
		{"a call that is refused", fmt.Errorf("weight -1: %w", spool.ErrInvalid), 1, spool.UpdateDead, "weight -1"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				marks := filepath.Join(t.TempDir(), "marks")
				h := openHouse(t, does(t, "it", ReplyText, "append", marks, "run\n"))
				defer h.close()
				h.run(func(c *Config) { c.Bot = &stubborn{Inbox: c.Bot, left: tt.times, err: tt.err} })
				defer h.stop()
				seq := h.feed(said(7, "a"))
				<-time.After(10 * time.Minute)
				synctest.Wait()
				h.want(seq, tt.state, 1, tt.why)
				if got := len(lines(t, marks)); got != 1 {
					t.Errorf("the program ran %d times", got)
				}
				if n := h.logged("the end of a handler's run can't be stored"); n > 1 {
					t.Errorf("that was logged %d times", n)
				}
			})
		})
	}
}

// dry is an inbox that can't lease anything for a while.
type dry struct {
	Inbox
	calls atomic.Int64
}

func (d *dry) ClaimUpdate(ctx context.Context, handler string) (*spool.Lease, error) {
	if d.calls.Add(1) <= 100 {
		return nil, spool.ErrFull
	}
	return d.Inbox.ClaimUpdate(ctx, handler)
}

func TestHandlers_LeaseThatCannotBeStoredIsNoBusyLoop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		route := does(t, "it", ReplyText, "print", "a")
		route.Parallel = 1
		h := openHouse(t, route)
		defer h.close()
		d := &dry{}
		h.run(func(c *Config) { d.Inbox = c.Bot; c.Bot = d })
		defer h.stop()
		seq := h.feed(said(7, "a"))
		<-time.After(10 * time.Minute)
		synctest.Wait()
		if n := d.calls.Load(); n > 50 || h.logged("no update can be leased") != 1 {
			t.Errorf("%d tries in 10 minutes, logged %d times", n, h.logged("no update can be leased"))
		}
		<-time.After(20 * time.Minute)
		synctest.Wait()
		h.want(seq, spool.UpdateHandled, 1, "")
	})
}
