package spool

import (
	"fmt"
	"sync"
	"time"
)

// Taker is a way in which clients take the updates of the pull route.
type Taker string

// The ways. Clients of two of them at once would each get a part of what comes.
const (
	ByPolls   Taker = "getUpdates"
	ByLeases  Taker = "leases"
	ByWebhook Taker = "setWebhook"
)

// TakerWindow is how long after its last use a way keeps the others out.
const TakerWindow = time.Minute

// taking is who takes a bot's updates. It is forgotten by a restart, which no
// client waits a minute for.
type taking struct {
	mu    sync.Mutex
	under map[Taker]int // calls under way
	last  map[Taker]time.Time
}

// TakenBy notes that a client takes updates in a way from now on until done is
// called. While leases and getUpdates are used, and for a minute after, the
// other one is refused with a *TakenError; leases are refused also while a
// webhook is pushed to, which nobody keeps out.
func (b *Bot) TakenBy(way Taker) (done func(), err error) {
	s := &b.taking
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case way == ByPolls && s.busyLocked(ByLeases):
		return nil, &TakenError{ByLeases}
	case way == ByLeases && s.busyLocked(ByPolls):
		return nil, &TakenError{ByPolls}
	case way == ByLeases && s.under[ByWebhook] > 0:
		return nil, &TakenError{ByWebhook}
	}
	if s.under == nil {
		s.under, s.last = map[Taker]int{}, map[Taker]time.Time{}
	}
	s.under[way]++
	return sync.OnceFunc(func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.under[way]--
		s.last[way] = time.Now()
	}), nil
}

func (s *taking) busyLocked(way Taker) bool {
	last, used := s.last[way]
	return s.under[way] > 0 || used && time.Since(last) < TakerWindow
}

// TakenError says in which other way updates are taken. It is an ErrConflict.
type TakenError struct{ By Taker }

// Error says what to do about it, in words for clients.
func (e *TakenError) Error() string {
	switch e.By {
	case ByLeases:
		return fmt.Sprintf("updates are taken by leases over the management API; getUpdates works again %s after the last of them was used", TakerWindow)
	case ByWebhook:
		return "updates are pushed to the webhook that a client has set; leases work again after deleteWebhook"
	case ByPolls:
	}
	return fmt.Sprintf("updates are taken by getUpdates; leases work again %s after its last call", TakerWindow)
}

// Is makes every TakenError an ErrConflict.
func (e *TakenError) Is(target error) bool { return target == ErrConflict }
