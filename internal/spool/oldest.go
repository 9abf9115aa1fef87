package spool

// dueRec is what a job's record says of when it is due; the rest isn't decoded.
type dueRec struct {
	NotBefore int64 `cbor:"15,keyasint,omitempty"`
	Created   int64 `cbor:"24,keyasint"`

	Fallback *fallbackRec `cbor:"40,keyasint,omitempty"`
	Refs     []refRec     `cbor:"41,keyasint,omitempty"`
}

// due is never for a job that waits for the result of another.
func (r *dueRec) due() int64 {
	if (&jobRec{Fallback: r.Fallback, Refs: r.Refs}).waiting() {
		return never
	}
	return max(r.Created, r.NotBefore)
}

// oldestPending is since when the longest waiting pending or running job is
// due, 0 when there is none. Ids ascend with time, so it is among the first; where
// a great many stand before it that are for later, the heads of the open chats
// know it as well as can be.
func (t *txn) oldestPending(b *Bot) int64 {
	oldest, looked := int64(0), 0
	t.each(bLive, botKey(b.num), botKey(b.num), func(k, v []byte) bool {
		looked++
		r, err := decode[dueRec](k, v)
		if err != nil {
			return looked < maxLooked
		}
		oldest = earlierDue(oldest, r.due(), t.now)
		// Later ones are due later, unless one with a not_before stood first.
		return (oldest == 0 || r.NotBefore != 0) && looked < maxLooked
	})
	if oldest != 0 || looked < maxLooked {
		return oldest
	}
	for lane := range Lanes() {
		_, v := t.first(bReady, readyPrefix(b.num, byte(lane)))
		if len(v) != 12 {
			continue
		}
		k := liveKey(b.num, int64(u64at(v, 4)))
		if r, err := decode[dueRec](k, t.get(bLive, k)); err == nil {
			oldest = earlierDue(oldest, r.due(), t.now)
		}
	}
	return oldest
}

// earlierDue is the earlier of two times, one that is still to come left out.
func earlierDue(oldest, due, now int64) int64 {
	if due <= now && (oldest == 0 || due < oldest) {
		return due
	}
	return oldest
}
