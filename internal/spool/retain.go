package spool

import (
	"encoding/binary"
	"slices"
	"time"
)

const (
	sweepInterval = time.Hour
	sweepBatch    = 256            // removals in one transaction
	seenAtLeast   = 48 * time.Hour // an update_id is remembered that long, whatever the settings
)

// stand is one prefix of ended records: a bot's jobs or updates of one state.
type stand struct {
	b      *Bot
	bucket []byte
	state  byte
	keep   int64 // nanoseconds
}

func (st stand) prefix() key { return stateKey(st.b.num, st.state, 0)[:3] }

// stands lists where ended records stand.
func (t *txn) stands() (list []stand) {
	k := t.s.keep
	for _, b := range t.s.all {
		for _, st := range States() {
			if st.Ended() {
				list = append(list, stand{b, bEnded, st.code(), int64(pickKeep(st == Dead, k.Dead, k.Done))})
			}
		}
		for _, st := range UpdateStates() {
			if st.Ended() {
				keep := pickKeep(st == UpdateDead, k.Dead, max(k.Handled, seenAtLeast))
				list = append(list, stand{b, bInEnded, st.code(), int64(keep)})
			}
		}
	}
	return list
}

func pickKeep(dead bool, ifDead, otherwise time.Duration) time.Duration {
	if dead {
		return ifDead
	}
	return otherwise
}

// sweep removes ended records whose time is over, once an hour, and the oldest
// ones whenever all together take more than they may. Ids ascend with time, so
// the old ones stand first: it looks at no more than it removes, and one more.
func (t *txn) sweep() {
	t.sweepBySize()
	s := t.s
	switch {
	case s.nextSweep == 0:
		s.nextSweep = t.now + int64(time.Minute) // not in the rush of a start
	case t.now < s.nextSweep:
	case !s.clock.ok.Load(): // nobody knows how old anything is
		s.nextSweep = t.now + int64(sweepInterval)
	default:
		removed := t.expirePulls(sweepBatch)
		for _, st := range t.stands() {
			removed += t.sweepStand(st, sweepBatch-removed, func(updated int64) bool { return updated+st.keep <= t.now })
		}
		more := t.sweepLoose()
		s.nextSweep = t.now + int64(sweepInterval)
		if more || removed >= sweepBatch {
			s.nextSweep = t.now + int64(100*time.Millisecond) // room for others in between
		}
	}
}

// pullFor is how long an update waits for a client to take it.
const pullFor = 24 * time.Hour

// expirePulls ends what no client has taken in time. Only heads are looked at;
// those behind them are younger.
func (t *txn) expirePulls(room int) (expired int) {
	for _, b := range t.s.all {
		for more := true; more && expired < room; {
			var old []*updateRec
			p := inReadyPrefix(b.num, hash64(PullRoute))
			t.each(bInReady, p, p, func(k, _ []byte) bool {
				r, err := t.update(b, int64(u64at(k, 10)))
				if err != nil || r.Received+int64(pullFor) > t.now {
					return false
				}
				old = append(old, r)
				return len(old)+expired < room
			})
			for _, r := range old {
				t.expireOpen(b, r, "no client has taken it in 24 h")
			}
			expired, more = expired+len(old), len(old) > 0
		}
	}
	return expired
}

// looseBatch is how many remembered keys and ids one transaction looks at.
const looseBatch = 4096

// sweepLoose forgets keys and ids whose records are gone and whose time is
// over, a part at a time; it reports whether there is more to look at. Stores
// in which none outlives its record are never walked.
func (t *txn) sweepLoose() (more bool) {
	s := t.s
	if !slices.ContainsFunc(s.all, func(b *Bot) bool { return b.rec.Loose }) {
		return false
	}
	looked, left := 0, s.loose.left
	var gone [][]byte
	bucket := [][]byte{bKey, bSeen}[s.loose.bucket]
	c := t.bucket(bucket).Cursor()
	k, v := c.Seek(s.loose.after)
	for ; k != nil && looked < looseBatch; k, v = c.Next() {
		looked++
		if until := untilOf(v); until == 0 {
			continue
		} else if until <= t.now {
			gone = append(gone, slices.Clone(k))
		} else {
			left = true
		}
	}
	if k != nil {
		s.loose = loose{bucket: s.loose.bucket, after: slices.Clone(k), left: left}
	} else {
		s.loose = loose{bucket: 1 - s.loose.bucket, left: left}
	}
	for _, k := range gone {
		t.del(bucket, k)
	}
	if k != nil || s.loose.bucket == 1 {
		return true
	}
	s.loose = loose{}
	for _, b := range s.all {
		if b.rec.Loose != left {
			b.rec.Loose = left
			t.touchBot(b)
		}
	}
	return false
}

// loose is how far sweepLoose has come.
type loose struct {
	bucket int
	after  []byte
	left   bool // something must be remembered on
}

// untilOf is when a remembered key or id is over, 0 when its record decides.
func untilOf(v []byte) int64 {
	if len(v) != 16 {
		return 0
	}
	return int64(u64at(v, 8))
}

func (s *Store) endedBytes() (n int64) {
	for _, b := range s.all {
		n += b.rec.Ended
	}
	return n
}

// keepWhenFull is what ended records may take, in bytes, while there is no room.
const keepWhenFull = 64 << 10

// sweepBySize removes the oldest ended records until the rest has room again,
// with a margin, so that not every commit removes one.
func (t *txn) sweepBySize() {
	s := t.s
	keep := s.keepSize
	if s.room.disk || s.room.size {
		keep = min(keep, keepWhenFull) // what has ended gives way to what is still to be delivered
	}
	if s.endedBytes() <= keep {
		return
	}
	for n := 0; s.endedBytes() > keep/100*98 && n < sweepBatch; { // what is left goes with the next commit
		oldest := t.oldestStand(false)
		if oldest.b == nil && keep == s.keepSize {
			oldest = t.oldestStand(true)
		}
		if oldest.b == nil {
			return // what is dead waits for a person, also when there is no room
		}
		n += t.sweepStand(oldest, 16, func(int64) bool { return true })
	}
}

// oldestStand finds where the oldest record stands, among the dead ones or
// among the others; its bot is nil when there is none.
func (t *txn) oldestStand(dead bool) (oldest stand) {
	at := int64(0)
	for _, st := range t.stands() {
		if st.dead() != dead {
			continue
		}
		if u, ok := t.oldest(st); ok && (oldest.b == nil || u < at) {
			oldest, at = st, u
		}
	}
	return oldest
}

func (st stand) dead() bool {
	if string(st.bucket) == string(bEnded) {
		return st.state == Dead.code()
	}
	return st.state == UpdateDead.code()
}

// oldest is when the first record of a stand ended.
func (t *txn) oldest(st stand) (updated int64, ok bool) {
	k, v := t.first(st.bucket, st.prefix())
	if k == nil {
		return 0, false
	}
	return updatedOf(st.bucket, k, v), true
}

// updatedOf is when an ended record was last changed; a damaged one is as old
// as can be, since there is nothing to keep it for. Only that field is read.
func updatedOf(bucket, k, v []byte) int64 {
	value, err := unseal(k, v)
	if err != nil {
		return 0
	}
	if string(bucket) == string(bEnded) {
		var r struct {
			Updated int64 `cbor:"25,keyasint"`
		}
		_ = decMode.Unmarshal(value, &r) // 0 when it can't be read
		return r.Updated
	}
	var r struct {
		Updated int64 `cbor:"10,keyasint"`
	}
	_ = decMode.Unmarshal(value, &r)
	return r.Updated
}

// sweepStand removes the first records of a stand while they may go.
func (t *txn) sweepStand(st stand, room int, gone func(updated int64) bool) int {
	var keys [][]byte
	if room > 0 {
		t.each(st.bucket, st.prefix(), st.prefix(), func(k, v []byte) bool {
			if !gone(updatedOf(st.bucket, k, v)) {
				return false
			}
			keys = append(keys, slices.Clone(k))
			return len(keys) < room
		})
	}
	for _, k := range keys {
		if string(st.bucket) == string(bEnded) {
			t.removeJob(st, k)
		} else {
			t.removeUpdate(st, k)
		}
	}
	return len(keys)
}

// putEnded and delEnded keep count of what ended records take.
func (t *txn) putEnded(b *Bot, bucket []byte, k key, v []byte) {
	t.put(bucket, k, v)
	b.rec.Ended += int64(len(v) + t.bodyLen(b, bucket, k))
	t.touchBot(b)
}

func (t *txn) delEnded(b *Bot, bucket []byte, k key) {
	b.rec.Ended -= int64(len(t.get(bucket, k)) + t.bodyLen(b, bucket, k))
	t.touchBot(b)
	t.del(bucket, k)
}

// bodyLen is the size of the payload that stands apart from a record.
func (t *txn) bodyLen(b *Bot, bucket []byte, k key) int {
	id := int64(u64at(k, 3))
	if string(bucket) == string(bEnded) {
		return len(t.get(bBody, bodyKey(id)))
	}
	return len(t.get(bInBody, inBodyKey(b.num, id)))
}

// removeJob removes a job. Its key is remembered as long as it would have been,
// when the record has to go before its time.
func (t *txn) removeJob(st stand, k key) {
	id := int64(u64at(k, 3))
	r, err := decode[jobRec](k, t.get(bEnded, k))
	t.delEnded(st.b, bEnded, k)
	if bk := bodyKey(id); t.get(bBody, bk) != nil {
		t.del(bBody, bk)
	}
	t.count(st.b, States()[st.state], "")
	if err != nil {
		return
	}
	dk := dedupeKey(st.b.num, r.Key)
	if v := t.get(bKey, dk); r.Key != "" && !r.Reply && len(v) == 16 && int64(binary.BigEndian.Uint64(v)) == id {
		until := r.KeyUntil
		if until == 0 {
			until = r.Updated + st.keep
		}
		t.outlive(st.b, bKey, dk, id, until)
	}
	t.dropPrint(st.b, r)
}

// outlive lets a key or an id be remembered until then, or forgets it at once.
func (t *txn) outlive(b *Bot, bucket []byte, k key, id, until int64) {
	if until <= t.now {
		t.del(bucket, k)
		return
	}
	t.put(bucket, k, keyValue(id, until))
	b.rec.Loose = true
	t.touchBot(b)
}

// removeUpdate removes an update. Its id is remembered as long as told.
func (t *txn) removeUpdate(st stand, k key) {
	seq := int64(u64at(k, 3))
	r, err := decode[updateRec](k, t.get(bInEnded, k))
	if err == nil {
		r = t.fullUpdate(st.b, r)
	}
	t.delEnded(st.b, bInEnded, k)
	if bk := inBodyKey(st.b.num, seq); t.get(bInBody, bk) != nil {
		t.del(bInBody, bk)
	}
	t.countUpdate(st.b, UpdateStates()[st.state], "")
	switch {
	case err != nil:
	case !r.HasID:
		t.outlive(st.b, bKey, dedupeKey(st.b.num, malformedKey(&NewUpdate{Raw: r.Raw})), seq, r.Received+int64(seenAtLeast))
	default:
		sk := seenKey(st.b.num, r.UpdateID)
		if slices.Equal(t.get(bSeen, sk), u64bytes(uint64(seq))) {
			t.outlive(st.b, bSeen, sk, seq, r.Received+int64(seenAtLeast))
		}
	}
}
