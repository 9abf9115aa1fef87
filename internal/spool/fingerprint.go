package spool

import (
	"context"
	"time"
)

// A fingerprint finds the job of a call whose caller went away before it heard
// the end, when the same call is made again. It stands in the job's record and,
// as long as the answer hasn't been read, in the bucket of the dedupe keys: bot,
// half of the fingerprint, job. Several jobs may have the same one, since the
// same call made by two callers who wait is two messages.

// PrintSize is the length of a fingerprint in bytes.
const PrintSize = 16

// Print names a job by the fingerprint of its call.
type Print struct {
	Sum [PrintSize]byte
	ID  int64
}

func printPrefix(bot uint16, sum []byte) key        { return newKey(18).u16(bot).text(string(sum[:8])) }
func printKey(bot uint16, sum []byte, id int64) key { return printPrefix(bot, sum).u64(uint64(id)) }

func (t *txn) putPrint(b *Bot, r *jobRec) {
	if len(r.Print) == PrintSize {
		t.put(bKey, printKey(b.num, r.Print, r.ID), keyValue(r.ID, 0))
	}
}

func (t *txn) dropPrint(b *Bot, r *jobRec) {
	if len(r.Print) != PrintSize {
		return
	}
	if k := printKey(b.num, r.Print, r.ID); t.get(bKey, k) != nil {
		t.del(bKey, k)
	}
}

// Unread lists the jobs with a fingerprint whose end nobody has read, in the
// order in which they were accepted: those that live, and those that ended less
// than within ago.
func (b *Bot) Unread(sum [PrintSize]byte, within time.Duration) (ids []int64, err error) {
	err = b.s.view(func(t *txn) error {
		p := printPrefix(b.num, sum[:])
		t.each(bKey, p, p, func(k, v []byte) bool {
			if len(k) != 18 || len(v) != 16 {
				return true
			}
			id := int64(u64at(k, 10))
			_, r, err := t.jobAndBot(id)
			switch {
			case err != nil || string(r.Print) != string(sum[:]):
			case r.state.Ended() && r.Updated+int64(within) <= t.now:
			default:
				ids = append(ids, id)
			}
			return true
		})
		return nil
	})
	return ids, err
}

// MarkRead says that the ends of these jobs have been read: from now on the same
// call is a new one.
func (b *Bot) MarkRead(ctx context.Context, prints ...Print) error {
	return b.s.do(ctx, 32*len(prints), func(t *txn) error {
		t.markRead(b, prints)
		return nil
	})
}

func (t *txn) markRead(b *Bot, prints []Print) {
	for i := range prints {
		if k := printKey(b.num, prints[i].Sum[:], prints[i].ID); t.get(bKey, k) != nil {
			t.del(bKey, k)
		}
	}
}
