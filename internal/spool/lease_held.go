package spool

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"time"

	bolt "go.etcd.io/bbolt"
)

// Leases that are held over the API: by a deadline instead of by this process,
// which may be restarted while the holder works on. Token and number are all
// that the holder shows; whoever comes with an old token is refused.

const (
	// heldAttempts is how often an update is leased until it is dead, where its
	// route doesn't say.
	heldAttempts = 5
	// The waits before an update is leased again that its holder has failed.
	firstHeldRetry = time.Second
	maxHeldRetry   = 5 * time.Minute
)

// ClaimUpdates leases updates of a handler's route, at most most at once, each the
// oldest of a free order key; where there is none it waits for the first, and
// returns none when the wait is over. The leases hold for a span, over restarts,
// too; then the updates are given back. The attempts are counted on disk.
func (b *Bot) ClaimUpdates(ctx context.Context, handler string, most int, span, wait time.Duration) ([]*Lease, error) {
	if most < 1 || span <= 0 {
		return nil, fmt.Errorf("a claim of %d updates for %s: %w", most, span, ErrInvalid)
	}
	waiting, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	got, err := b.claimUpdates(ctx, waiting, handler, &updateWaiter{ch: make(chan []*Lease, 1), most: most, span: int64(span)})
	if err != nil && ctx.Err() == nil && errors.Is(err, waiting.Err()) {
		err = nil
	}
	return got, err
}

// Token is what the holder of the lease shows.
func (l *Lease) Token() string { return strconv.FormatUint(l.token, 16) }

// HeldLease is the lease of an update that somebody shows a token for. Whether it
// holds is for the transition to find out that it is used in.
func (b *Bot) HeldLease(seq int64, token string) *Lease {
	l := &Lease{Update: Update{Seq: seq}, bot: b}
	l.token, _ = strconv.ParseUint(token, 16, 64) // 0, which no lease has, when it is none
	return l
}

// ExtendLease lets a lease hold for a span from now and returns its new end.
func (b *Bot) ExtendLease(ctx context.Context, l *Lease, span time.Duration) (until time.Time, err error) {
	err = b.s.do(ctx, 64, func(t *txn) error {
		if _, err := t.leased(b, l, UpdateOpen); err != nil {
			return err
		}
		lease, err := t.lease(b, l.Seq)
		if err != nil {
			return err
		}
		t.dropLease(b, l.Seq)
		lease.Until = t.now + int64(span)
		t.putLease(b, l.Seq, lease)
		until = t.s.clock.at(lease.Until)
		return nil
	})
	return until, err
}

// FailLease ends a lease whose holder has failed. The update is open again after
// a wait that doubles with each attempt; it is dead when its attempts are spent,
// or at once when the failure is permanent.
func (b *Bot) FailLease(ctx context.Context, l *Lease, reason string, permanent bool) error {
	return b.s.do(ctx, len(reason)+64, func(t *txn) error {
		r, err := t.leased(b, l, UpdateOpen)
		if err != nil {
			return err
		}
		t.endLease(b, r)
		t.failHeld(b, r, reason, permanent, heldRetry(r.Attempts))
		return nil
	})
}

// failHeld opens an update again whose lease has ended in vain, or gives it up.
func (t *txn) failHeld(b *Bot, r *updateRec, reason string, permanent bool, wait time.Duration) {
	most := r.Most
	if most <= 0 {
		most = heldAttempts
	}
	r.Error = reason
	if !permanent && r.Attempts < most {
		r.NextAt = t.now + int64(wait)
		t.open(b, r, UpdateLeased)
		return
	}
	if !permanent {
		r.Error = fmt.Sprintf("given up after %d attempts: %s", r.Attempts, reason)
	}
	t.shelve(b, r, UpdateLeased, UpdateDead)
	t.rearmIn(b, hash64(r.OrderKey))
}

// heldRetry is the wait after a number of attempts; the jitter only adds.
func heldRetry(attempts int) time.Duration {
	d := maxHeldRetry
	if attempts < 9 {
		d = firstHeldRetry << max(attempts-1, 0)
	}
	return min(d+rand.N(d/4), maxHeldRetry)
}

// expireLease gives an update back whose lease has run out, at once: nothing says
// that another holder will fail.
func (t *txn) expireLease(b *Bot, seq, at int64) {
	lease, err := t.lease(b, seq)
	if err == nil && (lease == nil || lease.Until != at) {
		return
	}
	r, err := t.update(b, seq)
	if err != nil {
		return // who meets it sets it aside
	}
	if r.state != UpdateLeased { // the lease's own record is damaged
		r.state, r.Attempts = UpdateLeased, r.Attempts+1
	}
	t.endLease(b, r)
	t.failHeld(b, r, fmt.Sprintf("the lease of attempt %d has run out", r.Attempts), false, 0)
}

func (t *txn) putLease(b *Bot, seq int64, lease *leaseRec) {
	k := inboxKey(b.num, seq)
	t.put(bInLease, k, encode(k, lease))
	if lease.Until != 0 {
		t.put(bTimer, timerKey(lease.Until, timerLease, b.num, uint64(seq)), []byte{})
	}
}

func (t *txn) dropLease(b *Bot, seq int64) {
	if lease, err := t.lease(b, seq); err == nil && lease != nil && lease.Until != 0 {
		t.dropKey(bTimer, timerKey(lease.Until, timerLease, b.num, uint64(seq)))
	}
	t.del(bInLease, inboxKey(b.num, seq))
}

// readBusy is findBusy before the writer begins.
func (s *Store) readBusy() error {
	return s.db.View(func(tx *bolt.Tx) error {
		s.begin(tx).findBusy()
		return nil
	})
}

// findBusy reads which order keys have a leased update.
func (t *txn) findBusy() {
	for _, b := range t.s.all {
		clear(b.inbusy)
		t.each(bInLease, botKey(b.num), botKey(b.num), func(k, _ []byte) bool {
			if r, err := t.update(b, int64(u64at(k, 2))); err == nil {
				b.inbusy[hash64(r.OrderKey)] = r.Seq
			}
			return true
		})
	}
}

// leasesAstray finds leases that nothing ends.
func leasesAstray(t *txn, after *[]byte, found *int) bool {
	return t.some(bInLease, after, func(b *Bot, k, _ []byte) {
		seq := int64(u64at(k, 2))
		lease, err := t.lease(b, seq)
		if err == nil && lease != nil && lease.Until != 0 && t.get(bTimer, timerKey(lease.Until, timerLease, b.num, uint64(seq))) == nil {
			*found++
		}
	})
}

// LeaseError is an ErrLeaseLost that knows the update's state now.
type LeaseError struct {
	Seq int64
	Now UpdateState
}

// Error names the update and its state.
func (e *LeaseError) Error() string {
	return fmt.Sprintf("update %d is %s: %v", e.Seq, e.Now, ErrLeaseLost)
}

// Is makes every LeaseError an ErrLeaseLost.
func (e *LeaseError) Is(target error) bool { return target == ErrLeaseLost }
