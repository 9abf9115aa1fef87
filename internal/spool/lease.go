package spool

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"
)

type updateWaiter struct{ ch chan *Lease }

// ClaimUpdate waits for the next update of a handler's route: the oldest whose
// order key is free. The attempt is counted on disk before it returns.
func (b *Bot) ClaimUpdate(ctx context.Context, handler string) (*Lease, error) {
	w, h := &updateWaiter{ch: make(chan *Lease, 1)}, hash64(handler)
	err := b.s.do(ctx, 0, func(t *txn) error {
		b.inparked[h] = append(b.inparked[h], w)
		t.undo = append(t.undo, func() { b.unparkUpdate(h, w) })
		return nil
	})
	if err != nil {
		return nil, b.returnLease(h, w, err)
	}
	select {
	case l := <-w.ch:
		return l, nil
	case <-ctx.Done():
		return nil, b.returnLease(h, w, ctx.Err())
	case <-b.s.stopped:
		return nil, ErrClosed
	}
}

func (b *Bot) unparkUpdate(h uint64, w *updateWaiter) bool {
	before := len(b.inparked[h])
	rest := slices.DeleteFunc(slices.Clone(b.inparked[h]), func(x *updateWaiter) bool { return x == w })
	if b.inparked[h] = rest; len(rest) == 0 {
		delete(b.inparked, h)
	}
	return len(rest) < before
}

// returnLease takes a waiting handler out; an update that it was given
// meanwhile goes back with its attempt.
func (b *Bot) returnLease(h uint64, w *updateWaiter, cause error) error {
	_ = b.s.do(context.Background(), 0, func(t *txn) error {
		if b.unparkUpdate(h, w) {
			return nil
		}
		select {
		case l := <-w.ch:
			return t.failUpdate(b, l, Failure{State: UpdateOpen, GiveBack: true})
		default:
			return nil
		}
	})
	return cause
}

// fillUpdates leases ready updates to the handlers that wait.
func (t *txn) fillUpdates(b *Bot) {
	n := 0
	for h := range b.inparked {
		for len(b.inparked[h]) > 0 {
			k, v := t.first(bInReady, inReadyPrefix(b.num, h))
			if k == nil {
				break
			}
			if n++; n > maxBatchOps {
				t.again = true
				return
			}
			t.claimUpdate(b, h, slices.Clone(k), slices.Clone(v))
		}
	}
}

// claimUpdate leases the update of a ready entry, unless it has become stale.
func (t *txn) claimUpdate(b *Bot, h uint64, k, v []byte) {
	t.del(bInReady, k)
	seq := int64(u64at(k, 10))
	r, err := t.update(b, seq)
	if err != nil || len(v) != 8 {
		t.dropUpdate(b, v, seq, err)
		return
	}
	order := u64at(v, 0)
	if r.state != UpdateOpen || hash64(r.OrderKey) != order {
		// It leads to the wrong update, which may be handled already.
		t.unqueueIn(b, order, seq)
		t.rearmIn(b, order)
		t.after = append(t.after, t.s.reportIndex)
		return
	}
	if r.StaleAt != 0 && r.StaleAt <= t.now {
		t.unqueueIn(b, order, seq)
		r.Error = staleReason
		t.shelve(b, r, UpdateOpen, UpdateExpired)
		t.rearmIn(b, order)
		return
	}
	t.unqueueIn(b, order, seq)
	t.s.leaseSeed++
	lease := &leaseRec{Token: uint64(t.now) + t.s.leaseSeed, Started: t.now, Attempt: r.Attempts + 1}
	lk := inboxKey(b.num, seq)
	t.put(bInLease, lk, encode(lk, lease))
	b.inbusy[order] = seq
	t.countUpdate(b, UpdateOpen, UpdateLeased)
	t.handUpdate(b, h, r, lease)
	t.undo = append(t.undo, func() { delete(b.inbusy, order) })
}

func (t *txn) handUpdate(b *Bot, h uint64, r *updateRec, lease *leaseRec) {
	w := b.inparked[h][0]
	b.unparkUpdate(h, w)
	full := *t.fullUpdate(b, r)
	full.state, full.Attempts = UpdateLeased, lease.Attempt
	l := &Lease{Update: full.view(t.s.clock), ChatID: r.ChatID, UserID: r.UserID, Replayed: r.Replays > 0, Fresh: r.Fresh, Waited: time.Duration(t.now - r.Received), token: lease.Token, bot: b}
	t.undo = append(t.undo, func() { b.inparked[h] = append([]*updateWaiter{w}, b.inparked[h]...) })
	t.after = append(t.after, func() { w.ch <- l })
}

// dropUpdate takes an entry out whose record can't be read.
func (t *txn) dropUpdate(b *Bot, v []byte, seq int64, err error) {
	if len(v) == 8 {
		t.unqueueIn(b, u64at(v, 0), seq)
		t.rearmIn(b, u64at(v, 0))
	}
	if k := inboxKey(b.num, seq); t.get(bInbox, k) != nil {
		t.setAside(bInbox, k, err)
		t.countUpdate(b, UpdateOpen, "")
	}
}

// Handled ends a handler's run: the update is handled and its calls are queued
// in one transaction. The n-th call has the key reply:<update_id>:<n>, so that
// a run that comes twice causes one set of jobs.
func (b *Bot) Handled(ctx context.Context, l *Lease, h Handling) ([]Queued, error) {
	for i := range h.Jobs {
		if err := h.Jobs[i].check(); err != nil {
			return nil, fmt.Errorf("call %d: %w", i+1, err)
		}
	}
	var out []Queued
	err := b.s.do(context.WithoutCancel(ctx), sizeOf(h.Jobs)+len(h.Output), func(t *txn) error {
		r, err := t.leased(b, l, UpdateHandled)
		if err != nil {
			return err
		}
		out = t.replies(b, r, h.Jobs)
		r.Output, r.Error = h.Output, ""
		t.endLease(b, r)
		t.shelve(b, r, UpdateLeased, UpdateHandled)
		t.rearmIn(b, hash64(r.OrderKey))
		return nil
	})
	return out, err
}

// leased checks that an update is still leased to this caller.
func (t *txn) leased(b *Bot, l *Lease, to UpdateState) (*updateRec, error) {
	r, err := t.update(b, l.Seq)
	if err != nil {
		return nil, err
	}
	lease, err := t.lease(b, l.Seq)
	if err != nil || lease == nil || lease.Token != l.token || !canMoveUpdate(UpdateLeased, to) {
		return nil, fmt.Errorf("update %d is %s: %w", l.Seq, r.state, ErrLeaseLost)
	}
	r.leasedAt = lease.Started
	return r, nil
}

func (t *txn) endLease(b *Bot, r *updateRec) {
	order := hash64(r.OrderKey)
	t.del(bInLease, inboxKey(b.num, r.Seq))
	seq, had := b.inbusy[order]
	delete(b.inbusy, order)
	if had {
		t.undo = append(t.undo, func() { b.inbusy[order] = seq })
	}
}

// replies queues the calls of an update under their keys. A call whose job
// exists already is answered with it.
func (t *txn) replies(b *Bot, r *updateRec, jobs []NewJob) []Queued {
	out := make([]Queued, 0, len(jobs))
	for i := range jobs {
		j := jobs[i]
		if i < len(r.Jobs) {
			if old, err := t.job(r.Jobs[i]); err == nil && !old.freed() {
				out = append(out, Queued{Job: t.full(old).view(b.rec.Name, t.s.clock), Duplicate: true})
				continue
			}
		}
		j.DedupeKey = ""
		if j.Lane == "" {
			j.Lane = Interactive
		}
		job := t.newRecord(b, &j)
		job.Key, job.Reply, job.Asked = r.replyKey(i), true, r.Received
		t.place(b, job)
		out = append(out, Queued{Job: t.full(job).view(b.rec.Name, t.s.clock)})
		if i < len(r.Jobs) {
			r.Jobs[i] = job.ID
		} else {
			r.Jobs = append(r.Jobs, job.ID)
		}
	}
	return out
}

// freed reports whether the job's end has let its key go.
func (r *jobRec) freed() bool { return r.state.Ended() && r.state != Done && !r.MaybeSent }

// replyKey is the key of an update's n-th call, n counted from 1.
func (r *updateRec) replyKey(i int) string {
	k := "reply:" + strconv.FormatInt(r.UpdateID, 10) + ":" + strconv.Itoa(i+1)
	if r.Fresh > 0 {
		k += ":" + strconv.Itoa(r.Fresh)
	}
	return k
}

// FailUpdate ends a handler's run that went wrong, or gives the update back.
func (b *Bot) FailUpdate(ctx context.Context, l *Lease, f Failure) error {
	for i := range f.Jobs {
		if err := f.Jobs[i].check(); err != nil {
			return fmt.Errorf("call %d: %w", i+1, err)
		}
	}
	return b.s.do(context.WithoutCancel(ctx), len(f.Output)+len(f.Error)+sizeOf(f.Jobs), func(t *txn) error {
		return t.failUpdate(b, l, f)
	})
}

func (t *txn) failUpdate(b *Bot, l *Lease, f Failure) error {
	r, err := t.leased(b, l, f.State)
	if err != nil {
		return err
	}
	t.replies(b, r, f.Jobs)
	if f.Error != "" {
		r.Error = f.Error
	}
	if f.Output != "" {
		r.Output = f.Output
	}
	t.endLease(b, r)
	if f.State != UpdateOpen {
		t.shelve(b, r, UpdateLeased, f.State)
		t.rearmIn(b, hash64(r.OrderKey))
		return nil
	}
	if f.GiveBack {
		r.Attempts--
	}
	r.NextAt = t.s.clock.ns(f.RetryAt)
	t.open(b, r, UpdateLeased)
	return nil
}
