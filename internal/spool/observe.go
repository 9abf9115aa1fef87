package spool

import "time"

// Observer is told what the writer has done, for figures. Its methods are called
// by the writer after a commit; they must return at once and call nobody back.
type Observer interface {
	// Committed: a transaction has reached the disk, whose pages take that many bytes.
	Committed(took time.Duration, bytes int64)
	// Handled: a handler's run has ended, took since its lease. The handler is
	// PullRoute where a client had it; UpdateOpen means that it is tried again.
	Handled(bot, handler string, result UpdateState, took time.Duration)
	// Replied: a call that a handler asked for is done, took since its update came in.
	Replied(bot string, took time.Duration)
}

// ran tells the end of a handler's run.
func (t *txn) ran(b *Bot, r *updateRec, result UpdateState) {
	if o := t.s.observer; o != nil && r.leasedAt != 0 {
		name, handler, took := b.rec.Name, r.Handler, time.Duration(t.now-r.leasedAt)
		t.after = append(t.after, func() { o.Handled(name, handler, result, took) })
	}
}

// replied tells that a reply has reached its chat.
func (t *txn) replied(b *Bot, r *jobRec) {
	if o := t.s.observer; o != nil && r.Asked != 0 {
		name, took := b.rec.Name, time.Duration(t.now-r.Asked)
		t.after = append(t.after, func() { o.Replied(name, took) })
	}
}
