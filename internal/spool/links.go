package spool

import (
	"crypto/sha256"
	"math"
	"slices"
)

// A link leads from a name to jobs: from a message to the edits that are queued
// for it, from a job to those that wait for its result. Links stand in the bucket
// of the dedupe keys beside the fingerprints, and are only hints: who follows one
// looks at the record.

// The kinds of links.
const (
	linkEdits = "edits" // name: the message, as NewJob.Edits has it
	linkWaits = "waits" // name: the id of the job that is waited for
)

func linkPrefix(bot uint16, kind, name string) key {
	h := sha256.Sum256([]byte(kind + "\x00" + name))
	return newKey(18).u16(bot).text(string(h[:8]))
}

func (t *txn) putLink(b *Bot, kind, name string, id int64) {
	t.put(bKey, linkPrefix(b.num, kind, name).u64(uint64(id)), keyValue(id, 0))
}

func (t *txn) dropLink(b *Bot, kind, name string, id int64) {
	t.dropKey(bKey, linkPrefix(b.num, kind, name).u64(uint64(id)))
}

func (t *txn) hasLink(b *Bot, kind, name string, id int64) bool {
	return t.get(bKey, linkPrefix(b.num, kind, name).u64(uint64(id))) != nil
}

// linked lists the pending jobs to which a name leads, by id, at most so many.
// There is more when as many are returned.
func (t *txn) linked(b *Bot, kind, name string, most int) (list []*jobRec) {
	p := linkPrefix(b.num, kind, name)
	t.each(bKey, p, p, func(k, v []byte) bool {
		if r := t.atLink(b, k, v); r != nil {
			list = append(list, r)
		}
		return len(list) < most
	})
	return list
}

// newest is linked for the youngest of them.
func (t *txn) newest(b *Bot, kind, name string, most int) (list []*jobRec) {
	p := linkPrefix(b.num, kind, name)
	c := t.bucket(bKey).Cursor()
	c.Seek(slices.Clone(p).u64(math.MaxUint64)) // no id is that high
	k, v := c.Prev()
	for ; hasPrefix(k, p) && len(list) < most; k, v = c.Prev() {
		if r := t.atLink(b, k, v); r != nil {
			list = append(list, r)
		}
	}
	slices.Reverse(list)
	return list
}

// atLink is the pending job to which a link leads; nil when there is none.
func (t *txn) atLink(b *Bot, k, v []byte) *jobRec {
	if len(k) != 18 || len(v) != 16 || u64at(k, 10) != u64at(v, 0) {
		return nil
	}
	if r, err := t.liveJob(b, int64(u64at(v, 0))); err == nil && r.state == Pending {
		return r
	}
	return nil
}
