package spool

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"time"

	bolt "go.etcd.io/bbolt"
)

// A page can be whole and yet wrong: a flipped bit in an index shows in no
// checksum. A job that nothing leads to would then wait for ever, silently. So
// each record that must be led to is looked at from the other side.

// astray is one part of that look: at most fenceBatch records a call. It counts
// what is in no place, and reports whether its part is done.
type astray func(t *txn, after *[]byte, found *int) (done bool)

func astrayParts() []astray {
	return []astray{jobsAstray, entriesAstray, headsAstray, marksAstray(bRun, bLive), marksAstray(bInLease, bInbox), leasesAstray, chatsAstray, updatesAstray, ordersAstray, pullsAstray}
}

// jobsAstray finds pending jobs that neither queue nor timer leads to. A record
// that is damaged itself is the business of who meets it.
func jobsAstray(t *txn, after *[]byte, found *int) bool {
	return t.some(bLive, after, func(b *Bot, k, v []byte) {
		job, err := decode[jobRec](slices.Clone(k), v)
		if err == nil && t.get(bRun, k) == nil && !t.hasPlace(b, job) {
			*found++
		}
	})
}

// entriesAstray finds places in queues that don't lead to the job which has that
// place.
func entriesAstray(t *txn, after *[]byte, found *int) bool {
	return t.some(bQueue, after, func(b *Bot, k, v []byte) {
		q, _ := readQueued(v)
		job, err := t.liveJob(b, q.id)
		switch {
		case err == nil:
			if job.state != Pending || job.Order != u64at(k, 7) || job.Lane != k[6] || t.follow(b, job.ChatNo) != u32at(k, 2) {
				*found++
			}
		case errors.Is(err, ErrNotFound):
			*found++
		}
	})
}

// headsAstray finds ready entries that don't agree with the head of their queue.
func headsAstray(t *txn, after *[]byte, found *int) bool {
	return t.some(bReady, after, func(b *Bot, k, v []byte) {
		head, hv := t.first(bQueue, queuePrefix(b.num, u32at(v, 0), k[2]))
		if q, _ := readQueued(hv); head == nil || u64at(head, 7) != u64at(k, 3) || q.id != int64(u64at(v, 4)) {
			*found++
		}
	})
}

// marksAstray finds attempts and leases of records that aren't there.
func marksAstray(marks, records []byte) astray {
	return func(t *txn, after *[]byte, found *int) bool {
		return t.some(marks, after, func(_ *Bot, k, _ []byte) {
			if t.get(records, k) == nil {
				*found++
			}
		})
	}
}

// chatsAstray finds chats with a queue that will never be looked at: no head is
// ready, no timer set, and no job on its way.
func chatsAstray(t *txn, after *[]byte, found *int) bool {
	return t.some(bChat, after, func(b *Bot, k, _ []byte) {
		no := u32at(k, 2)
		if head, _ := t.first(bQueue, chatKey(b.num, no)); head == nil || t.headReady(b, no) {
			return
		}
		c := t.chat(b, no)
		timed := c.WakeAt != 0 && t.get(bTimer, timerKey(c.WakeAt, timerChat, b.num, uint64(no))) != nil
		if !timed && t.runningIn(b, no) == 0 {
			*found++
		}
	})
}

func (t *txn) headReady(b *Bot, no uint32) bool {
	for lane := range Lanes() {
		p := queuePrefix(b.num, no, byte(lane))
		head, _ := t.first(bQueue, p)
		if head != nil && t.get(bReady, readyKey(b.num, byte(lane), u64at(head, len(p)))) != nil {
			return true
		}
	}
	return false
}

func updatesAstray(t *txn, after *[]byte, found *int) bool {
	return t.some(bInbox, after, func(b *Bot, k, v []byte) {
		u, err := decode[updateRec](slices.Clone(k), v)
		if err != nil || t.get(bInLease, k) != nil {
			return
		}
		queued := t.get(bInQueue, inQueueKey(b.num, hash64(u.OrderKey), u.Seq)) != nil
		if !queued || u.Handler == PullRoute && t.get(bInPull, k) == nil {
			*found++
		}
	})
}

// ordersAstray finds heads of order keys that nobody will be handed: not ready,
// without a timer, and no update of the key with a handler.
func ordersAstray(t *txn, after *[]byte, found *int) bool {
	return t.some(bInQueue, after, func(b *Bot, k, v []byte) {
		order, seq := u64at(k, 2), int64(u64at(k, 10))
		head, _ := t.first(bInQueue, inQueuePrefix(b.num, order))
		if !slices.Equal(head, k) || len(v) != 16 {
			return
		}
		ready := t.get(bInReady, inReadyKey(b.num, u64at(v, 0), seq)) != nil
		timed := t.get(bTimer, timerKey(int64(u64at(v, 8)), timerUpdate, b.num, uint64(seq))) != nil
		if !ready && !timed && !t.leasedIn(b, order) {
			*found++
		}
	})
}

// leasedIn reports whether an update of an order key is with a handler.
func (t *txn) leasedIn(b *Bot, order uint64) (leased bool) {
	t.each(bInLease, botKey(b.num), botKey(b.num), func(k, _ []byte) bool {
		u, err := t.update(b, int64(u64at(k, 2)))
		leased = err == nil && hash64(u.OrderKey) == order
		return !leased
	})
	return leased
}

// reportIndex tells of an index that has led to the wrong record.
func (s *Store) reportIndex() {
	s.log.Error("an index is damaged: something may wait that nothing leads to; stop the daemon and run tgspool db check --repair",
		slog.String("path", s.path))
}

// repairUpTo is the size in bytes up to which all records are looked at before a
// store is used. A start with 100,000 jobs must not take longer by that, and a
// small board is ten times as slow.
const repairUpTo = 8 << 20

// repairAstray looks at a small store before it is used, and repairs it where
// something is in no place.
func (s *Store) repairAstray(ctx context.Context) error {
	if s.past.files.found.size > repairUpTo {
		return nil
	}
	n, err := s.countAstray(ctx, 0, func(fn func(*txn) error) error {
		return s.db.View(func(tx *bolt.Tx) error { return fn(s.begin(tx)) }) // a fault here is Open's own
	})
	if n == 0 || err != nil {
		return err
	}
	s.log.LogAttrs(ctx, slog.LevelError, "the spool's indexes are damaged; making them again from the records",
		slog.Int("count", n), slog.String("path", s.path))
	s.past.recovery = &recoveryRec{Kind: kindRepair, Reason: "damaged indexes", At: time.Now().UnixNano()}
	return s.endRecovery(ctx)
}

// countAstray looks at the whole store in short transactions, with a rest after
// each.
func (s *Store) countAstray(ctx context.Context, rest time.Duration, view func(func(*txn) error) error) (n int, err error) {
	for _, part := range astrayParts() {
		var after []byte
		for done := false; !done; {
			err := view(func(t *txn) error {
				done = part(t, &after, &n)
				return nil
			})
			if err == nil && rest > 0 {
				err = pace(ctx, time.Now(), int64(rest), int64(time.Second))
			}
			if err != nil {
				return n, err
			}
		}
	}
	return n, ctx.Err()
}

// lookRest is how long the look at a big store rests between its transactions:
// a million jobs in about twenty minutes, at under one percent of the time.
const lookRest = 250 * time.Millisecond

// lookAround is the look at a big store while it is used. It changes nothing:
// what it finds is for a person to decide.
func (s *Store) lookAround(ctx context.Context) {
	if s.past.files.found.size <= repairUpTo {
		return // repairAstray has done that
	}
	ctx, cancel := s.whileOpen(ctx)
	defer cancel()
	n, err := s.countAstray(ctx, lookRest, s.view)
	if n > 0 {
		s.log.LogAttrs(ctx, slog.LevelError, "the spool's indexes are damaged: jobs wait that nothing leads to; stop the daemon and run tgspool db check --repair",
			slog.Int("count", n), slog.String("path", s.path))
	}
	if err != nil && ctx.Err() == nil && !isFileDamage(err) {
		s.log.LogAttrs(ctx, slog.LevelError, "looking at the whole spool failed", slog.Any("err", err))
	}
}
