package spool

import "encoding/binary"

// keyHolder finds the job that holds a dedupe key, 0 when it is free.
func (t *txn) keyHolder(b *Bot, name string) int64 {
	if name == "" {
		return 0
	}
	v := t.get(bKey, dedupeKey(b.num, name))
	if len(v) != 16 {
		return 0
	}
	if until := int64(u64at(v, 8)); until != 0 && until <= t.now {
		return 0
	}
	return int64(u64at(v, 0))
}

func keyValue(id, until int64) []byte { return newKey(16).u64(uint64(id)).u64(uint64(until)) }

// freeKey lets a dedupe key go, unless an attempt may have reached Telegram or
// another job stands for this one.
func (t *txn) freeKey(b *Bot, r *jobRec) {
	if r.Key == "" || r.Reply || r.MaybeSent || r.By != 0 {
		return
	}
	k := dedupeKey(b.num, r.Key)
	if v := t.get(bKey, k); len(v) == 16 && int64(binary.BigEndian.Uint64(v)) == r.ID {
		t.del(bKey, k)
	}
}

// holdKey takes a freed key back for a job that a person brings back; false
// when another job holds it by now.
func (t *txn) holdKey(b *Bot, r *jobRec) bool {
	if r.Key == "" || r.Reply {
		return true
	}
	switch holder := t.keyHolder(b, r.Key); holder {
	case r.ID:
		return true
	case 0:
		t.put(bKey, dedupeKey(b.num, r.Key), keyValue(r.ID, r.KeyUntil))
		return true
	default:
		return false
	}
}
