package spool

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"
)

// updateWaiter is a handler that waits for updates. Its channel is buffered, so
// that the writer never waits for it.
type updateWaiter struct {
	ch   chan []*Lease
	most int   // how many it takes at once
	span int64 // how long its leases hold, in nanoseconds; 0: as long as this process
}

// ClaimUpdate waits for the next update of a handler's route: the oldest whose
// order key is free. The attempt is counted on disk before it returns.
func (b *Bot) ClaimUpdate(ctx context.Context, handler string) (*Lease, error) {
	got, err := b.claimUpdates(ctx, ctx, handler, &updateWaiter{ch: make(chan []*Lease, 1), most: 1})
	if err != nil {
		return nil, err
	}
	return got[0], nil
}

// claimUpdates asks with ctx and waits with another: what is there at once is
// had also where nothing is waited for.
func (b *Bot) claimUpdates(ctx, waiting context.Context, handler string, w *updateWaiter) ([]*Lease, error) {
	h := hash64(handler)
	err := b.s.do(ctx, 0, func(t *txn) error {
		b.inparked[h] = append(b.inparked[h], w)
		t.undo = append(t.undo, func() { b.unparkUpdate(h, w) })
		return nil
	})
	if err != nil {
		return nil, b.returnLease(h, w, err)
	}
	select {
	case got := <-w.ch:
		return got, nil
	default:
	}
	select {
	case got := <-w.ch:
		return got, nil
	case <-waiting.Done():
		return nil, b.returnLease(h, w, waiting.Err())
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

// returnLease takes a waiting handler out; what it was given meanwhile goes back
// with its attempts.
func (b *Bot) returnLease(h uint64, w *updateWaiter, cause error) error {
	_ = b.s.do(context.Background(), 0, func(t *txn) error {
		if b.unparkUpdate(h, w) {
			return nil
		}
		select {
		case got := <-w.ch:
			for _, l := range got {
				// One that is gone already has nothing to give back.
				_ = t.failUpdate(b, l, Failure{State: UpdateOpen, GiveBack: true})
			}
		default:
		}
		return nil
	})
	return cause
}

// fillUpdates leases ready updates to the handlers that wait.
func (t *txn) fillUpdates(b *Bot) {
	if _, paused := b.rec.pauseOf(PartHandlers); paused {
		return
	}
	room := maxBatchOps
	for h := range b.inparked {
		for len(b.inparked[h]) > 0 && room > 0 {
			w := b.inparked[h][0]
			got := t.claimFor(b, h, w, &room)
			if len(got) == 0 {
				break
			}
			t.handUpdates(b, h, w, got)
		}
	}
	t.again = t.again || room == 0
}

// claimFor leases as many ready updates as one handler takes, and there are.
func (t *txn) claimFor(b *Bot, h uint64, w *updateWaiter, room *int) (got []*Lease) {
	for size := 0; len(got) < w.most && size < maxPullBytes && *room > 0; *room-- {
		k, v := t.first(bInReady, inReadyPrefix(b.num, h))
		if k == nil {
			break
		}
		if l := t.claimUpdate(b, w, slices.Clone(k), slices.Clone(v)); l != nil {
			got, size = append(got, l), size+len(l.Raw)
		}
	}
	return got
}

// claimUpdate leases the update of a ready entry; nil when it can't be had or
// has become stale.
func (t *txn) claimUpdate(b *Bot, w *updateWaiter, k, v []byte) *Lease {
	t.del(bInReady, k)
	seq := int64(u64at(k, 10))
	r, err := t.update(b, seq)
	if err != nil || len(v) != 8 {
		t.dropUpdate(b, v, seq, err)
		return nil
	}
	order := u64at(v, 0)
	if r.state != UpdateOpen || hash64(r.OrderKey) != order {
		// It leads to the wrong update, which may be handled already.
		t.unqueueIn(b, order, seq)
		t.rearmIn(b, order)
		t.after = append(t.after, t.s.reportIndex)
		return nil
	}
	t.unqueueIn(b, order, seq)
	if r.StaleAt != 0 && r.StaleAt <= t.now {
		r.Error = staleReason
		t.shelve(b, r, UpdateOpen, UpdateExpired)
		t.rearmIn(b, order)
		return nil
	}
	t.s.leaseSeed++
	lease := &leaseRec{Token: uint64(t.now) + t.s.leaseSeed, Started: t.now, Attempt: r.Attempts + 1}
	if w.span > 0 {
		lease.Until = t.now + w.span
	}
	t.putLease(b, seq, lease)
	b.inbusy[order] = seq
	t.undo = append(t.undo, func() { delete(b.inbusy, order) })
	t.countUpdate(b, UpdateOpen, UpdateLeased)
	return t.leaseOf(b, r, lease)
}

// leaseOf is what a handler gets of a leased update.
func (t *txn) leaseOf(b *Bot, r *updateRec, lease *leaseRec) *Lease {
	full := *t.fullUpdate(b, r)
	full.state, full.Attempts = UpdateLeased, lease.Attempt
	t.changedUpdate(b, &full)
	return &Lease{
		Update: full.view(t.s.clock), ChatID: r.ChatID, UserID: r.UserID, Replayed: r.Replays > 0, Fresh: r.Fresh,
		Waited: time.Duration(t.now - r.Received), Until: t.s.clock.at(lease.Until), Session: t.sessionOf(b, r), token: lease.Token, bot: b,
	}
}

// handUpdates gives leases to the handler that waits for them, after the commit.
func (t *txn) handUpdates(b *Bot, h uint64, w *updateWaiter, got []*Lease) {
	b.unparkUpdate(h, w)
	t.undo = append(t.undo, func() { b.inparked[h] = append([]*updateWaiter{w}, b.inparked[h]...) })
	t.after = append(t.after, func() { w.ch <- got })
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

// Handled ends a handler's run: the update is handled, its calls are queued and
// its session is changed in one transaction. A change of a session that another
// has changed meanwhile is ErrStale, and the lease stands. The n-th call has the key reply:<update_id>:<n>, so that
// a run that comes twice causes one set of jobs.
func (b *Bot) Handled(ctx context.Context, l *Lease, h Handling) ([]Queued, error) {
	for i := range h.Jobs {
		if err := h.Jobs[i].check(); err != nil {
			return nil, fmt.Errorf("call %d: %w", i+1, err)
		}
	}
	if err := h.Session.check(); err != nil {
		return nil, err
	}
	var out []Queued
	size := sizeOf(h.Jobs) + len(h.Output) + h.Session.size()
	err := b.s.do(context.WithoutCancel(ctx), size, func(t *txn) error {
		r, err := t.leased(b, l, UpdateHandled)
		if err != nil {
			return err
		}
		if err := t.changeSession(b, r, h.Session); err != nil {
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
		return nil, &LeaseError{Seq: l.Seq, Now: r.state}
	}
	r.leasedAt = lease.Started
	return r, nil
}

func (t *txn) endLease(b *Bot, r *updateRec) {
	order := hash64(r.OrderKey)
	t.dropLease(b, r.Seq)
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
		job, ids := t.caused(b, r, i, j)
		out = append(out, Queued{Job: t.full(job).view(b.rec.Name, t.s.clock), Parts: ids})
		if len(ids) > 0 {
			r.Further = append(r.Further, ids[1:]...)
		}
		if i < len(r.Jobs) {
			r.Jobs[i] = job.ID
		} else {
			r.Jobs = append(r.Jobs, job.ID)
		}
	}
	return out
}

// caused makes the job of an update's n-th call, n counted from 0, and returns its
// parts.
func (t *txn) caused(b *Bot, r *updateRec, n int, j NewJob) (job *jobRec, parts []int64) {
	j.DedupeKey = ""
	if j.Lane == "" {
		j.Lane = Interactive
	}
	job = t.newRecord(b, &j)
	job.Key, job.Reply, job.Asked = r.replyKey(n), true, r.Received
	return job, t.store(b, job, &j)
}

// tellUser queues what a user is told of an update that isn't handed over, or is
// dead. None of it is a call of the handler's: one that runs all the same, in a
// replay, makes its own.
func (t *txn) tellUser(b *Bot, r *updateRec, jobs []NewJob) {
	for i := range jobs {
		job, parts := t.caused(b, r, len(r.Jobs)+i, jobs[i])
		if len(parts) == 0 {
			parts = []int64{job.ID}
		}
		r.Further = append(r.Further, parts...)
	}
}

// freed reports whether the job's end has let its key go.
func (r *jobRec) freed() bool {
	return r.state.Ended() && r.state != Done && !r.MaybeSent && r.By == 0
}

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
	t.tellUser(b, r, f.Jobs)
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
