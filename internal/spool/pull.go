package spool

import (
	"context"
	"errors"
	"math"
	"sync"
)

// maxPullBytes is about where a page is cut, as Telegram cuts its answers.
const maxPullBytes = 4 << 20

// aheadOfTail is how far an offset may lie above the newest update before it is
// taken for one of another bot or another time.
const aheadOfTail = 10

// pulls are those who wait for updates of the pull route.
type pulls struct {
	mu      sync.Mutex
	waiting map[chan struct{}]struct{}
}

// WatchPull returns a channel that gets a value after each commit that makes an
// update of the pull route open; stop ends that. Look with Pull after calling
// it and before waiting, so that nothing falls between.
func (b *Bot) WatchPull() (arrived <-chan struct{}, stop func()) {
	ch := make(chan struct{}, 1)
	b.pulls.mu.Lock()
	defer b.pulls.mu.Unlock()
	if b.pulls.waiting == nil {
		b.pulls.waiting = map[chan struct{}]struct{}{}
	}
	b.pulls.waiting[ch] = struct{}{}
	return ch, func() {
		b.pulls.mu.Lock()
		defer b.pulls.mu.Unlock()
		delete(b.pulls.waiting, ch)
	}
}

func (p *pulls) wake() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for ch := range p.waiting {
		select {
		case ch <- struct{}{}:
		default: // it is awake already and will look
		}
	}
}

// Pull returns what a client gets that takes updates by itself: at most limit
// open updates of the pull route (1 to 100), oldest first, their ids ascending.
// They stay open until Acknowledge. A replayed update comes alone and is handled
// before Pull returns: the client's offset can't tell whether it has had it.
func (b *Bot) Pull(ctx context.Context, limit int) ([]Update, error) {
	for {
		list, replayed, err := b.pullPage(min(max(limit, 1), 100))
		if err != nil || !replayed {
			return list, err
		}
		err = b.s.do(ctx, 64, func(t *txn) error {
			r, err := t.update(b, list[0].Seq)
			if err == nil && !r.pulled() {
				err = ErrConflict
			}
			if err == nil {
				t.endPull(b, r, UpdateHandled, "")
			}
			return err
		})
		if !errors.Is(err, ErrConflict) && !errors.Is(err, ErrNotFound) {
			return list, err
		}
	}
}

// pulled reports whether an update waits for a client that takes it by itself.
func (r *updateRec) pulled() bool { return r.state == UpdateOpen && r.Handler == PullRoute }

func (b *Bot) pullPage(limit int) (list []Update, replayed bool, err error) {
	if _, paused := b.Paused(PartHandlers); paused {
		return nil, false, nil
	}
	err = b.s.view(func(t *txn) error {
		size, last := 0, int64(math.MinInt64)
		t.eachPull(b, func(e pullEntry) bool {
			if len(list) > 0 && (e.replayed || e.id <= last) {
				return false
			}
			r, err := t.update(b, e.seq)
			if err != nil || !r.pulled() || r.StaleAt != 0 && r.StaleAt <= t.now {
				return true // whoever changes it next puts it right
			}
			u := t.fullUpdate(b, r).view(t.s.clock)
			if size += len(u.Raw) + 1; len(list) > 0 && size > maxPullBytes {
				return false
			}
			list, last, replayed = append(list, u), e.id, e.replayed
			return len(list) < limit && !replayed
		})
		return nil
	})
	return list, replayed, err
}

// endPull ends an open update of the pull route.
func (t *txn) endPull(b *Bot, r *updateRec, to UpdateState, reason string) {
	t.unlineIn(b, r)
	r.Error = reason
	t.shelve(b, r, UpdateOpen, to)
}

// Acknowledge does what an offset of getUpdates says, on disk before it
// returns, and reports how many updates that has ended. An offset N above zero
// acknowledges update N-1 and all that arrived before it; when nobody knows an
// update N-1, those with lower ids of the oldest run of ascending ids, unless N
// is from another time. Below zero it ignores all but the newest -N. Only open
// updates of the pull route count, replayed ones don't.
func (b *Bot) Acknowledge(ctx context.Context, offset int64) (int, error) {
	upTo, err := b.acknowledged(offset)
	if err != nil || upTo == 0 {
		return 0, err
	}
	if offset < 0 {
		return b.endPulls(ctx, upTo, UpdateIgnored, "dropped by the client's getUpdates with a negative offset")
	}
	return b.endPulls(ctx, upTo, UpdateHandled, "")
}

// DropPulls ignores all open updates of the pull route, replayed ones left out,
// and reports how many. The reason is kept with each of them.
func (b *Bot) DropPulls(ctx context.Context, reason string) (int, error) {
	return b.endPulls(ctx, math.MaxInt64, UpdateIgnored, reason)
}

// acknowledged is the seq up to which an offset speaks of updates, 0 for none
// that is open.
func (b *Bot) acknowledged(offset int64) (upTo int64, err error) {
	err = b.s.view(func(t *txn) error {
		switch {
		case offset < 0:
			upTo = t.allBut(b, -max(offset, -math.MaxInt64))
		case offset > 0:
			if v := t.get(bSeen, seenKey(b.num, offset-1)); len(v) == 8 || len(v) == 16 {
				upTo = t.openUpTo(b, int64(u64at(v, 0)))
			} else {
				upTo = t.lowerInRun(b, offset)
			}
		}
		return nil
	})
	return upTo, err
}

// openUpTo returns seq when an open update that isn't a replay has it or arrived
// before it: where there is none, nothing needs to be written.
func (t *txn) openUpTo(b *Bot, seq int64) (upTo int64) {
	t.eachPull(b, func(e pullEntry) bool {
		if e.seq <= seq && !e.replayed {
			upTo = seq
		}
		return e.seq <= seq && upTo == 0
	})
	return upTo
}

// lowerInRun is the last seq of the oldest run of ids whose id is below an
// offset that nobody knows; 0 when the offset is too far above the run.
func (t *txn) lowerInRun(b *Bot, offset int64) (upTo int64) {
	last, within := int64(math.MinInt64), false
	t.eachPull(b, func(e pullEntry) bool {
		switch {
		case e.replayed:
			return true
		case e.id <= last:
			return false
		case e.id >= offset:
			within = true
			return false
		}
		upTo, last = e.seq, e.id
		return true
	})
	if !within && offset-1-aheadOfTail > last {
		return 0
	}
	return upTo
}

// allBut is the last seq of those that stay behind when only the newest n are
// kept, 0 for none.
func (t *txn) allBut(b *Bot, n int64) int64 {
	c := t.bucket(bInPull).Cursor()
	back := c.Prev
	if k, _ := c.Seek(botKey(b.num + 1)); k == nil {
		back = c.Last
	}
	k, v := back()
	for ; hasPrefix(k, botKey(b.num)); k, v = c.Prev() {
		if len(v) != 9 || v[8] != 0 {
			continue
		}
		if n--; n < 0 {
			return int64(u64at(k, 2))
		}
	}
	return 0
}

// endPulls ends the open updates of the pull route up to a seq. Each of its
// transactions is whole: if we stop between two, the client's next call with
// the same offset ends the rest.
func (b *Bot) endPulls(ctx context.Context, upTo int64, to UpdateState, reason string) (ended int, err error) {
	for more := true; more; {
		var n int
		err := b.s.do(ctx, 64, func(t *txn) error {
			n, more = t.endPullsUpTo(b, upTo, to, reason)
			return nil
		})
		if err != nil {
			return ended, err
		}
		ended += n
	}
	return ended, nil
}

func (t *txn) endPullsUpTo(b *Bot, upTo int64, to UpdateState, reason string) (n int, more bool) {
	var list []int64
	t.eachPull(b, func(e pullEntry) bool {
		if e.seq <= upTo && !e.replayed {
			list = append(list, e.seq)
		}
		return e.seq <= upTo && len(list) < maxBatchOps
	})
	for _, seq := range list {
		r, err := t.update(b, seq)
		if err != nil || !r.pulled() {
			t.del(bInPull, inboxKey(b.num, seq)) // it leads to the wrong update
			t.after = append(t.after, t.s.reportIndex)
			continue
		}
		t.endPull(b, r, to, reason)
		n++
	}
	return n, len(list) == maxBatchOps
}

// PullCount is how many updates wait for a client that takes them by itself,
// those with a webhook included.
func (b *Bot) PullCount() (n int64, err error) {
	err = b.s.view(func(t *txn) error {
		t.eachPull(b, func(pullEntry) bool { n++; return true })
		t.each(bInLease, botKey(b.num), botKey(b.num), func(k, _ []byte) bool {
			if r, err := t.update(b, int64(u64at(k, 2))); err == nil && r.Handler == PullRoute {
				n++
			}
			return true
		})
		return nil
	})
	return n, err
}
