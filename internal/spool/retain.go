package spool

import (
	"encoding/binary"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"
)

// Retention runs once an hour, in transactions of at most sweepBatch removals.
const (
	sweepInterval = time.Hour
	sweepBatch    = 256
	seenAtLeast   = 48 * time.Hour // an update_id is remembered that long, whatever the settings
)

// sweep removes ended records whose time is over. Ids ascend with time, so the
// old ones stand first: it looks at no more than it removes, and one more.
func (t *txn) sweep() {
	s := t.s
	if s.nextSweep == 0 {
		s.nextSweep = t.now + int64(time.Minute) // not in the rush of a start
		return
	}
	if t.now < s.nextSweep {
		return
	}
	if !s.clock.ok.Load() { // nothing is removed while nobody knows how old it is
		s.nextSweep = t.now + int64(sweepInterval)
		return
	}
	removed := 0
	for _, b := range s.all {
		removed += t.sweepJobs(b, sweepBatch-removed)
		removed += t.sweepUpdates(b, sweepBatch-removed)
	}
	next := t.now + int64(sweepInterval)
	if removed >= sweepBatch {
		next = t.now + int64(100*time.Millisecond) // room for others in between
	}
	s.nextSweep = next
}

func (t *txn) keepJob(s State) int64 {
	if s == Dead {
		return int64(t.s.keep.Dead)
	}
	return int64(t.s.keep.Done)
}

func (t *txn) keepUpdate(s UpdateState) int64 {
	if s == UpdateDead {
		return int64(t.s.keep.Dead)
	}
	return int64(max(t.s.keep.Handled, seenAtLeast))
}

func (t *txn) sweepJobs(b *Bot, room int) int {
	var old []*jobRec
	for _, st := range States() {
		if !st.Ended() {
			continue
		}
		p := stateKey(b.num, st.code(), 0)[:3]
		t.each(bEnded, p, p, func(k, v []byte) bool {
			r, err := decode[jobRec](k, v)
			if err != nil {
				r = &jobRec{ID: int64(u64at(k, 3))} // damaged and ended: nothing to keep it for
			}
			if r.Updated+t.keepJob(st) > t.now {
				return false
			}
			r.state = st
			old = append(old, r)
			return len(old) < room
		})
	}
	for _, r := range old {
		t.removeJob(b, r)
	}
	return len(old)
}

func (t *txn) removeJob(b *Bot, r *jobRec) {
	t.del(bEnded, stateKey(b.num, r.state.code(), r.ID))
	if r.InBody {
		t.del(bBody, bodyKey(r.ID))
	}
	t.count(b, r.state, "")
	if r.Key != "" && !r.Reply && r.KeyUntil <= t.now {
		k := dedupeKey(b.num, r.Key)
		if v := t.get(bKey, k); len(v) == 16 && int64(binary.BigEndian.Uint64(v)) == r.ID {
			t.del(bKey, k)
		}
	}
	if len(r.Files) > 0 {
		dir := filepath.Join(t.s.Dir(), "files", strconv.FormatInt(r.ID, 10))
		t.after = append(t.after, func() { _ = os.RemoveAll(dir) })
	}
}

func (t *txn) sweepUpdates(b *Bot, room int) int {
	var old []*updateRec
	for _, st := range UpdateStates() {
		if !st.Ended() {
			continue
		}
		p := stateKey(b.num, st.code(), 0)[:3]
		t.each(bInEnded, p, p, func(k, v []byte) bool {
			r, err := decode[updateRec](k, v)
			if err != nil {
				r = &updateRec{Seq: int64(u64at(k, 3))}
			}
			if r.Updated+t.keepUpdate(st) > t.now {
				return false
			}
			r.state = st
			old = append(old, r)
			return len(old) < room
		})
	}
	for _, r := range old {
		t.removeUpdate(b, r)
	}
	return len(old)
}

func (t *txn) removeUpdate(b *Bot, r *updateRec) {
	full := t.fullUpdate(b, r)
	t.del(bInEnded, stateKey(b.num, r.state.code(), r.Seq))
	if r.InBody {
		t.del(bInBody, inBodyKey(b.num, r.Seq))
	}
	t.countUpdate(b, r.state, "")
	if !r.HasID {
		t.del(bKey, dedupeKey(b.num, malformedKey(&NewUpdate{Raw: full.Raw})))
		return
	}
	k := seenKey(b.num, r.UpdateID)
	if slices.Equal(t.get(bSeen, k), u64bytes(uint64(r.Seq))) {
		t.del(bSeen, k)
	}
}
