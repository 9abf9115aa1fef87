package spool

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
)

// fenceBatch bounds the records of one transaction of a recovery.
const fenceBatch = 256

// recoveryStep is one bounded transaction; it reports whether its part is done.
type recoveryStep func(t *txn, r *recoveryRec) (done bool)

// recoverySteps lists what each kind of recovery does, in order. Every step can
// be cut off after any of its transactions.
func recoverySteps(kind string) []recoveryStep {
	if kind == kindRepair {
		return []recoveryStep{holdStrays, dropIndexes, queueAgain, parkAgain, openChats, lineAgain, sessionsAside, recount}
	}
	return []recoveryStep{dropIndexes, holdLive, holdParked, dropAttempts, endInbox, sessionsAside, recount}
}

// endRecovery goes on with a restore or a repair until it is over. Nobody has
// the store yet, so that nothing goes out before.
func (s *Store) endRecovery(ctx context.Context) error {
	rec := s.past.recovery
	if rec == nil || rec.Over {
		return nil
	}
	steps := recoverySteps(rec.Kind)
	for !rec.Over {
		if err := ctx.Err(); err != nil {
			return err
		}
		s.past.files.progress("restoring the spool")
		next := *rec
		if err := s.recoveryTx(steps, &next); err != nil {
			return fmt.Errorf("restoring the spool: %w", err)
		}
		*rec = next
		s.past.files.hook("recovering")
	}
	s.log.LogAttrs(ctx, slog.LevelWarn, "the spool is restored", slog.String("reason", rec.Reason),
		slog.Int64("jobs_held", rec.Held), slog.Int64("updates_dead", rec.Dead))
	return nil
}

func (s *Store) recoveryTx(steps []recoveryStep, rec *recoveryRec) error {
	tx, err := s.db.Begin(true)
	if err != nil {
		return s.fault(err)
	}
	t := s.begin(tx)
	err = t.call(func(t *txn) error {
		if steps[rec.Step](t, rec) {
			rec.Step, rec.After = rec.Step+1, nil
		}
		rec.Over = rec.Step == len(steps)
		t.put(bMeta, kRecovery, encode(kRecovery, rec))
		t.flush()
		return nil
	})
	if err != nil {
		t.abandon()
		return err
	}
	if err := tx.Commit(); err != nil {
		t.abandon()
		return s.fault(err)
	}
	t.finish()
	return nil
}

// some visits at most fenceBatch records of a bucket behind the last one, of
// bots that are known, and reports whether there are no more.
func (t *txn) some(bucket []byte, after *[]byte, fn func(b *Bot, k, v []byte)) (done bool) {
	type entry struct{ k, v []byte }
	var list []entry
	size := 0
	c := t.bucket(bucket).Cursor()
	k, v := c.Seek(*after)
	if *after != nil && slices.Equal(k, *after) {
		k, v = c.Next()
	}
	for ; k != nil && len(list) < fenceBatch && size < maxBatchBytes; k, v = c.Next() {
		list = append(list, entry{slices.Clone(k), slices.Clone(v)})
		size += len(k) + len(v)
	}
	for _, e := range list {
		*after = e.k
		if b := t.botByNum(u16at(e.k, 0)); b != nil {
			fn(b, e.k, e.v)
		}
	}
	return k == nil
}

// empty drops all of a bucket at once.
func (t *txn) empty(bucket []byte) {
	t.writes++
	err := t.tx.DeleteBucket(bucket)
	if err == nil {
		_, err = t.tx.CreateBucket(bucket)
	}
	if err != nil {
		panic(storeFault{fmt.Errorf("emptying %s: %w", bucket, err)})
	}
}

func dropIndexes(t *txn, _ *recoveryRec) bool {
	for _, name := range [][]byte{bQueue, bReady, bInQueue, bInReady, bInPull, bTimer} {
		t.empty(name)
	}
	return true
}

// holdLive holds all that was pending or running: it may have been sent since.
func holdLive(t *txn, r *recoveryRec) bool {
	return t.some(bLive, &r.After, func(b *Bot, k, v []byte) {
		job, err := decode[jobRec](slices.Clone(k), v)
		if err != nil {
			t.setAside(bLive, k, err)
			return
		}
		job.state = Pending
		if t.fillRun(b, job) != nil { // the attempt counts
			job.state = Running
		}
		t.holdRestored(b, job)
		r.Held++
	})
}

// holdRestored holds a live job. Its key stays taken whatever is decided, since
// the call may have been made.
func (t *txn) holdRestored(b *Bot, job *jobRec) {
	t.unwait(b, job)
	t.unlinkEdits(b, job)
	t.del(bLive, liveKey(b.num, job.ID))
	job.state, job.MaybeSent = Held, true
	job.HeldBy, job.HeldAt, job.Updated = HeldByRestore, t.now, t.now
	t.putParked(b, job)
}

// holdParked keeps what was held: a flood's end must not send what a person may
// have released since. Uncertain jobs wait for their decision as before.
func holdParked(t *txn, r *recoveryRec) bool {
	return t.some(bParked, &r.After, func(b *Bot, k, v []byte) {
		job, err := decode[jobRec](slices.Clone(k), v)
		switch {
		case err != nil:
			t.setAside(bParked, k, err)
		case k[2] == Uncertain.code():
			t.timeUncertain(b, job)
		case job.HeldBy != HeldByRestore:
			job.state, job.HeldBy, job.DecideBy, job.MaybeSent = Held, HeldByRestore, 0, true
			t.putParked(b, job)
			r.Held++
		}
	})
}

func (t *txn) timeUncertain(b *Bot, job *jobRec) {
	if job.DecideBy != 0 {
		t.put(bTimer, timerKey(job.DecideBy, timerUncertain, b.num, uint64(job.ID)), []byte{})
	}
}

func dropAttempts(t *txn, _ *recoveryRec) bool {
	t.empty(bRun)
	t.empty(bInLease)
	t.findBusy()
	return true
}

// restoredReason is the error of an update whose handling can't be known after
// a restore.
const restoredReason = "restored"

// endInbox ends all updates that were open: they may have been handled since.
func endInbox(t *txn, r *recoveryRec) bool {
	return t.some(bInbox, &r.After, func(b *Bot, k, v []byte) {
		u, err := decode[updateRec](slices.Clone(k), v)
		if err != nil {
			t.setAside(bInbox, k, err)
			return
		}
		u.Error = restoredReason
		t.shelve(b, u, UpdateOpen, UpdateDead)
		r.Dead++
	})
}

// recount sets all counters to what is there.
func recount(t *txn, _ *recoveryRec) bool {
	for _, b := range t.s.all {
		jobs, updates := make([]int64, len(States())), make([]int64, len(UpdateStates()))
		t.tally(b, bLive, func(k, _ []byte) {
			if t.get(bRun, k) != nil {
				jobs[Running.code()]++
			} else {
				jobs[Pending.code()]++
			}
		})
		b.rec.Ended = 0
		t.tally(b, bParked, func(k, _ []byte) { jobs[k[2]]++ })
		t.tally(b, bEnded, func(k, v []byte) {
			jobs[k[2]]++
			b.rec.Ended += int64(len(v) + t.bodyLen(b, bEnded, k))
		})
		t.tally(b, bInbox, func(k, _ []byte) {
			if t.get(bInLease, k) != nil {
				updates[UpdateLeased.code()]++
			} else {
				updates[UpdateOpen.code()]++
			}
		})
		t.tally(b, bInEnded, func(k, v []byte) {
			updates[k[2]]++
			b.rec.Ended += int64(len(v) + t.bodyLen(b, bInEnded, k))
		})
		b.rec.Jobs, b.rec.Updates = jobs, updates
		b.rec.normalize()
		t.touchBot(b)
	}
	return true
}

// tally visits all records of a bot in a bucket, those with an unknown state
// left out.
func (t *txn) tally(b *Bot, bucket []byte, fn func(k, v []byte)) {
	t.each(bucket, botKey(b.num), botKey(b.num), func(k, v []byte) bool {
		if len(k) != 11 || int(k[2]) < len(States()) && (string(bucket) != string(bInEnded) || int(k[2]) < len(UpdateStates())) {
			fn(k, v)
		}
		return true
	})
}
