package handler

import (
	"context"
	"sync"
	"time"
)

// The waits of a route whose program can't be started. There is nothing to be
// gained from longer ones: a try costs a look at the file.
const (
	firstReach = time.Second
	maxReach   = 15 * time.Second
)

// reach is whether a route's program can be started at all. While it can't, one
// worker at a time tries, after a wait that grows; the others hold still, so
// that a missing program costs one try a wait and not one for each update.
type reach struct {
	mu     sync.Mutex // guards all below
	reason string     // why not; empty while all is well
	wait   time.Duration
	until  time.Time
	trying bool
	change chan struct{} // closed and replaced when any of this changes
}

func newReach() *reach { return &reach{change: make(chan struct{})} }

// enter waits until the caller may lease an update. probe tells that it is the
// one that tries; it ends with lost, found or left.
func (r *reach) enter(ctx context.Context) (probe bool, err error) {
	for {
		r.mu.Lock()
		if r.reason == "" {
			r.mu.Unlock()
			return false, ctx.Err()
		}
		wait, change := time.Until(r.until), r.change
		if wait <= 0 && !r.trying {
			r.trying = true
			r.mu.Unlock()
			return true, nil
		}
		r.mu.Unlock()
		if wait <= 0 {
			wait = maxReach // somebody tries; its end is a change
		}
		timer := time.NewTimer(wait)
		select {
		case <-ctx.Done():
			timer.Stop()
			return false, ctx.Err()
		case <-change:
			timer.Stop()
		case <-timer.C:
		}
	}
}

// why tells why the program can't be started; empty while it can. A worker that
// isn't the probe gives back what it has leased meanwhile.
func (r *reach) why() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.reason
}

// lost notes that the handler can't be reached, and for how long it has asked to
// be left alone, and reports whether that, or the reason for it, is news. Workers that were under way when the first of them
// failed have no news, even where their reason reads otherwise: only the probe
// has seen something later.
func (r *reach) lost(probe bool, reason string, asked time.Duration) (news bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	news = r.reason == "" || probe && r.reason != reason
	if r.reason == "" {
		r.wait = 0
	}
	if r.wait == 0 || probe {
		r.wait = min(max(2*r.wait, firstReach), maxReach)
		r.until = time.Now().Add(r.wait)
	}
	if until := time.Now().Add(asked); until.After(r.until) {
		r.until = until
	}
	if news {
		r.reason = reason
	}
	r.turn(probe)
	return news
}

// found notes that the program has started and reports whether that is news.
func (r *reach) found(probe bool) (news bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	news, r.reason = r.reason != "", ""
	if news || probe {
		r.turn(probe)
	}
	return news
}

// left ends a probe that came to nothing: there was no update to try with.
func (r *reach) left(probe bool) {
	if !probe {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.turn(true)
}

// turn wakes all that wait in enter, so that they look again.
func (r *reach) turn(probe bool) {
	if probe {
		r.trying = false
	}
	close(r.change)
	r.change = make(chan struct{})
}
