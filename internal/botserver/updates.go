package botserver

import (
	"context"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/tgspool/tgspool/internal/spool"
)

// updates is what the endpoint keeps in memory of those who take updates.
type updates struct {
	mu     sync.Mutex
	takers map[*spool.Bot]*taker
	launch func(loop) // nil while RunWebhooks doesn't run
}

// taker is how one bot's updates are taken: by polls, or by a webhook.
type taker struct {
	mu           sync.Mutex // guards all below
	parked       *parked
	lastOffset   int64
	lastPoll     time.Time
	nextConflict time.Time
	asked        map[string][]string // per client: the kinds that it last asked for

	loaded bool // hook is what the spool holds
	hook   *hook
}

// parked is a getUpdates call that waits. The channel holds one value, the 409
// that ends it.
type parked struct{ abort chan conflict }

// conflict is a 409 and how long it is held back.
type conflict struct {
	err   *apiError
	after time.Duration
}

func (u *updates) taker(b *spool.Bot) *taker {
	u.mu.Lock()
	defer u.mu.Unlock()
	t, ok := u.takers[b]
	if !ok {
		t = &taker{asked: map[string][]string{}}
		if u.takers == nil {
			u.takers = map[*spool.Bot]*taker{}
		}
		u.takers[b] = t
	}
	return t
}

// Polled is when getUpdates was last called for a bot; zero: never since the
// start.
func (s *Server) Polled(b *spool.Bot) time.Time {
	t := s.updates.taker(b)
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.lastPoll
}

// conflictSpacing is how far apart 409s are that tell pollers of each other: a
// client that answers one by polling again at once must not spin.
const conflictSpacing = 3 * time.Second

// conflictLocked makes a 409; the first in a while comes at once, the others
// are held back.
func (t *taker) conflictLocked(text string) conflict {
	c := conflict{err: errorf(http.StatusConflict, "%s", text)}
	now := time.Now()
	if now.Before(t.nextConflict) {
		c.after = conflictSpacing
		return c
	}
	t.nextConflict = now.Add(conflictSpacing)
	return c
}

// abortLocked ends the parked poll, if there is one, with a 409.
func (t *taker) abortLocked(text string) {
	if t.parked == nil {
		return
	}
	t.parked.abort <- t.conflictLocked(text) // never blocks: one abort for each parked poll
	t.parked = nil
}

// park makes a poll the one that waits. The newest wins: one that was ended, and
// has looked once more before it heard of that, stays so.
func (t *taker) park(p *parked) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.parked != p && len(p.abort) == 0 {
		t.abortLocked(textOtherPoll)
		t.parked = p
	}
}

func (t *taker) unpark(p *parked) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.parked == p {
		t.parked = nil
	}
}

// asks takes over the kinds of updates that a client asks for and reports
// whether that is news of it: two clients with different wishes, each repeating
// its own, must not take turns in changing what Telegram is asked for.
func (t *taker) asks(client string, kinds []string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	before, known := t.asked[client]
	t.asked[client] = kinds
	return !known || !slices.Equal(before, kinds)
}

// holdBack waits; false when the caller has gone meanwhile. Its end comes early
// when the daemon stops.
func (s *Server) holdBack(ctx context.Context, d time.Duration) bool {
	if d <= 0 {
		return ctx.Err() == nil
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-s.stopping.Done():
	case <-ctx.Done():
	}
	return ctx.Err() == nil
}
