package spool

import (
	"errors"
	"slices"

	bolt "go.etcd.io/bbolt"
)

// pullEntry is an entry of inpull: what acknowledging needs to know of an open
// update without reading its record.
type pullEntry struct {
	seq, id  int64
	replayed bool // a person wants it handed out again: no offset acknowledges it
}

func pullValue(r *updateRec) []byte {
	replayed := byte(0)
	if r.Replays > 0 {
		replayed = 1
	}
	return newKey(9).u64(uint64(r.UpdateID)).u8(replayed)
}

// eachPull walks the open updates of the pull route in order of arrival.
func (t *txn) eachPull(b *Bot, fn func(e pullEntry) (more bool)) {
	t.each(bInPull, botKey(b.num), botKey(b.num), func(k, v []byte) bool {
		return len(v) != 9 || fn(pullEntry{seq: int64(u64at(k, 2)), id: int64(u64at(v, 0)), replayed: v[8] != 0})
	})
}

// linePull and unlinePull keep the index of the pull route in step with inqueue.
func (t *txn) linePull(b *Bot, r *updateRec) {
	if r.Handler == PullRoute {
		t.put(bInPull, inboxKey(b.num, r.Seq), pullValue(r))
		t.after = append(t.after, b.pulls.wake)
	}
}

func (t *txn) unqueueIn(b *Bot, order uint64, seq int64) {
	t.dropKey(bInPull, inboxKey(b.num, seq))
	t.del(bInQueue, inQueueKey(b.num, order, seq))
}

// pullsAstray finds entries of the pull route's index that lead to no open
// update of it.
func pullsAstray(t *txn, after *[]byte, found *int) bool {
	return t.some(bInPull, after, func(b *Bot, k, _ []byte) {
		r, err := t.update(b, int64(u64at(k, 2)))
		if errors.Is(err, ErrNotFound) || err == nil && !r.pulled() {
			*found++
		}
	})
}

// addPulls makes the index of the pull route in a file of before there was one.
func (s *Store) addPulls() error {
	if missing, err := s.lacks(bInPull); err != nil || !missing {
		return err
	}
	return s.db.Update(func(tx *bolt.Tx) error {
		to, err := tx.CreateBucket(bInPull)
		if err != nil {
			return err
		}
		pull := hash64(PullRoute)
		return tx.Bucket(bInQueue).ForEach(func(k, v []byte) error {
			if len(k) != 18 || len(v) != 16 || u64at(v, 0) != pull {
				return nil
			}
			key := inboxKey(u16at(k, 0), int64(u64at(k, 10)))
			r, err := decode[updateRec](key, tx.Bucket(bInbox).Get(key))
			if err != nil {
				return nil //nolint:nilerr // who meets the record sets it aside
			}
			return to.Put(slices.Clone(key), pullValue(r))
		})
	})
}
