package spool

import (
	"context"
	"encoding/json"
	"fmt"
)

// Cancel calls a job off that is pending, held or uncertain. With a part of a text
// that is pending go the parts that wait behind it.
func (s *Store) Cancel(ctx context.Context, id int64) (Job, error) {
	return s.decision(ctx, id, Cancelled, func(r *jobRec) bool { return !r.state.Ended() && r.state != Running },
		func(r *jobRec, now int64) {
			r.Error = &JobError{Class: "cancelled", Description: "called off while it was " + string(r.state), At: s.clock.at(now)}
		})
}

// Hold keeps a pending job back until it is released. Its expiry clock stands
// still meanwhile.
func (s *Store) Hold(ctx context.Context, id int64) (Job, error) {
	return s.decision(ctx, id, Held, func(r *jobRec) bool { return r.state == Pending }, func(*jobRec, int64) {})
}

// Release lets a held job go back to its place.
func (s *Store) Release(ctx context.Context, id int64) (Job, error) {
	return s.decision(ctx, id, Pending, func(r *jobRec) bool { return r.state == Held }, func(*jobRec, int64) {})
}

// Retry brings a dead, cancelled or expired job back, before younger ones that
// still wait, with all its attempts. Its dedupe key must still be free.
func (s *Store) Retry(ctx context.Context, id int64) (Job, error) {
	return s.decision(ctx, id, Pending, func(r *jobRec) bool { return r.state.Ended() && r.state != Done },
		func(r *jobRec, _ int64) {
			r.Attempts, r.ExpiresAt, r.NotBefore = 0, 0, 0
			r.startOver()
			r.By, r.Folded = 0, false
			r.Force = true // a person has decided: an inactive chat is tried
		})
}

// Resolve decides about an uncertain job: it arrived after all, send it again,
// or let it be.
func (s *Store) Resolve(ctx context.Context, id int64, res Resolution) (Job, error) {
	uncertain := func(r *jobRec) bool { return r.state == Uncertain }
	switch res.Outcome {
	case "sent":
		return s.decision(ctx, id, Done, uncertain, func(r *jobRec, _ int64) {
			if res.MessageID != 0 {
				r.Result = must(json.Marshal(map[string]int64{"message_id": res.MessageID}))
			}
		})
	case "resend":
		// A person wants it to arrive, late or not.
		return s.decision(ctx, id, Pending, uncertain, func(r *jobRec, _ int64) { r.ExpiresAt = 0 })
	case "drop":
		return s.decision(ctx, id, Cancelled, uncertain, func(r *jobRec, now int64) {
			r.Error = &JobError{Class: "unknown_outcome", Description: "dropped; it may or may not have arrived", At: s.clock.at(now)}
		})
	}
	return Job{}, fmt.Errorf("outcome %q (sent, resend or drop): %w", res.Outcome, ErrInvalid)
}

// decision is one person's word on one job. A job that has moved is refused
// with its state now.
func (s *Store) decision(ctx context.Context, id int64, to State, allowed func(*jobRec) bool, change func(*jobRec, int64)) (job Job, err error) {
	err = s.do(ctx, 256, func(t *txn) error {
		b, r, err := t.jobAndBot(id)
		if err != nil {
			return err
		}
		if !allowed(r) || !canMove(r.state, to) {
			return &StateError{What: "job", ID: id, Now: string(r.state), Want: string(to)}
		}
		if to == Pending && r.state.Ended() && !t.keyFree(b, r) {
			return fmt.Errorf("job %d: its dedupe key is held by another job: %w", id, ErrConflict)
		}
		if to == Pending && r.state.Ended() && len(r.Files) > 0 {
			return fmt.Errorf("job %d: its files were removed when it ended: %w", id, ErrConflict)
		}
		from := r.state
		t.decide(b, r, to, func(r *jobRec) { change(r, t.now) })
		if from == Pending && to == Cancelled {
			t.endRest(b, r, Cancelled, r.Error)
		}
		job = t.full(r).view(b.rec.Name, t.s.clock)
		return nil
	})
	return job, err
}

func (t *txn) keyFree(b *Bot, r *jobRec) bool {
	holder := t.keyHolder(b, r.Key)
	return r.Key == "" || r.Reply || holder == 0 || holder == r.ID
}

// decide moves a job that isn't running from one stand to another.
func (t *txn) decide(b *Bot, r *jobRec, to State, change func(*jobRec)) {
	from := r.state
	t.vacate(b, r)
	change(r)
	r.Updated = t.now
	if to == Pending {
		t.bringBack(b, r, from)
		return
	}
	r.state = to
	t.count(b, from, to)
	t.changedJob(b, r)
	if to == Held {
		r.HeldBy, r.HeldAt = HeldByUser, t.now
	} else {
		t.closeJob(b, r)
	}
	t.putParked(b, r)
	t.tell(r.ID)
	if to.Ended() {
		t.tellWaiting(b, r.ID)
	}
}

// vacate takes a job from where it stands, with its timers.
func (t *txn) vacate(b *Bot, r *jobRec) {
	if r.ExpiresAt != 0 {
		t.dropTimer(timerKey(r.ExpiresAt, timerExpire, b.num, uint64(r.ID)))
	}
	if r.state == Pending {
		t.leaveQueue(b, r)
		t.unlinkEdits(b, r)
		t.del(bLive, liveKey(b.num, r.ID))
		return
	}
	if k := stateKey(b.num, r.state.code(), r.ID); r.state.Ended() {
		t.delEnded(b, bEnded, k)
	} else {
		t.del(bParked, k)
	}
	if r.DecideBy != 0 {
		t.dropTimer(timerKey(r.DecideBy, timerUncertain, b.num, uint64(r.ID)))
		t.dropTimer(timerKey(r.DecideBy, timerFlood, b.num, uint64(r.ID)))
		r.DecideBy = 0
	}
}

// bringBack makes a job pending again, in its old place.
func (t *txn) bringBack(b *Bot, r *jobRec, from State) {
	if from == Held && r.ExpiresAt != 0 {
		r.ExpiresAt += t.now - r.HeldAt // the clock stood still
	}
	r.HeldBy, r.HeldAt, r.RetryAt = "", 0, 0
	r.state = Pending
	t.holdKey(b, r)
	t.count(b, from, Pending)
	t.changedJob(b, r)
	if r.ExpiresAt != 0 {
		t.put(bTimer, timerKey(r.ExpiresAt, timerExpire, b.num, uint64(r.ID)), []byte{})
	}
	t.await(b, r)
	t.tell(r.ID)
}
