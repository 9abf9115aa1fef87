package spool

import (
	"context"
	"slices"
	"time"
)

// waiter is a worker that waits for a job. Its channel is buffered, so that
// the writer never waits for a worker.
type waiter struct{ ch chan *Claim }

// Claim waits until a job of the bot may go out now: every gate is open, a
// token is taken, and the attempt is marked on disk. Nothing may be waited for
// between its return and the call. It ends with ctx's error, or ErrClosed.
func (b *Bot) Claim(ctx context.Context) (*Claim, error) {
	w := &waiter{ch: make(chan *Claim, 1)}
	if err := b.s.do(ctx, 0, func(t *txn) error { b.park(t, w); return nil }); err != nil {
		return nil, b.unpark(w, err)
	}
	return b.await(ctx, w)
}

// SettleAndClaim ends an attempt and waits for the next job; where one is
// ready both are one commit.
func (b *Bot) SettleAndClaim(ctx context.Context, c *Claim, v Verdict) (*Claim, error) {
	w := &waiter{ch: make(chan *Claim, 1)}
	// The verdict must reach the disk even when the worker is being stopped.
	o := &op{size: len(v.Result) + 256, adds: ends, done: make(chan error, 1), fn: func(t *txn) error {
		if _, err := t.settle(b, c, v); err != nil {
			return err
		}
		if ctx.Err() == nil {
			b.park(t, w)
		}
		return nil
	}}
	told := func() {}
	if mayForetell(c, v) {
		o.told = b.s.awaited(c.ID)
		o.taken = func() { told = b.s.foretell(c, v) }
	}
	err := b.s.submit(context.WithoutCancel(ctx), o)
	told()
	if err != nil {
		return nil, err
	}
	return b.await(ctx, w)
}

func (b *Bot) park(t *txn, w *waiter) {
	b.parked = append(b.parked, w)
	t.undo = append(t.undo, func() {
		b.parked = slices.DeleteFunc(b.parked, func(x *waiter) bool { return x == w })
	})
}

func (b *Bot) await(ctx context.Context, w *waiter) (*Claim, error) {
	select {
	case c := <-w.ch:
		return c, nil
	case <-ctx.Done():
		return nil, b.unpark(w, ctx.Err())
	case <-b.s.stopped:
		return nil, ErrClosed
	}
}

// unpark takes a waiting worker out. A claim that was given to it meanwhile
// goes back to its place: if we stop before that, it is an unknown outcome,
// which is the safe side.
func (b *Bot) unpark(w *waiter, cause error) error {
	_ = b.s.do(context.Background(), 0, func(t *txn) error {
		before := len(b.parked)
		b.parked = slices.DeleteFunc(b.parked, func(x *waiter) bool { return x == w })
		if len(b.parked) < before {
			return nil
		}
		select {
		case c := <-w.ch:
			_, err := t.settle(b, c, Verdict{State: Pending, GiveBack: true})
			return err
		default:
			return nil // it was never parked
		}
	})
	return cause
}

// fill claims jobs for the workers that wait, as far as gates and queue allow.
func (t *txn) fill(b *Bot) {
	for n := 0; len(b.parked) > 0 && b.askAt <= t.now; n++ {
		if n == maxBatchOps {
			t.again = true // the rest in the next transaction
			return
		}
		lane, k, v := t.pick(b)
		if k == nil {
			return
		}
		if admit := b.cfg.Admit; admit != nil {
			// The gate lives in the process' time, the store in its own: only the
			// span between is the same in both.
			now := time.Now()
			ok, at := admit(now, Lanes()[lane])
			if !ok {
				b.askAt = never
				if !at.IsZero() {
					b.askAt = t.now + int64(at.Sub(now))
				}
				return
			}
		}
		if t.claim(b, k, v) {
			t.undo = append(t.undo, b.refund)
		} else {
			b.refund()
		}
	}
}

// never is further away than any deadline: only a kick ends it.
const never int64 = 1<<63 - 1

func (b *Bot) refund() {
	if b.cfg.Refund != nil {
		b.cfg.Refund()
	}
}

// pick chooses the next head: the most urgent lane that has one, but every
// tenth call goes to a lower lane, normal and bulk in turn.
func (t *txn) pick(b *Bot) (lane byte, k, v []byte) {
	var heads [3]struct{ k, v []byte }
	for i := range Lanes() {
		heads[i].k, heads[i].v = t.first(bReady, readyPrefix(b.num, byte(i)))
	}
	order := [3]byte{0, 1, 2}
	if turn := b.rec.Turn % 20; turn == 9 {
		order = [3]byte{1, 2, 0}
	} else if turn == 19 {
		order = [3]byte{2, 1, 0}
	}
	for _, lane := range order {
		if heads[lane].k != nil {
			return lane, slices.Clone(heads[lane].k), slices.Clone(heads[lane].v)
		}
	}
	return 0, nil, nil
}

// claim marks the attempt of the job at the head of a ready entry and hands it
// to the worker that has waited longest; false when the job turned out not to
// be one that can go.
func (t *txn) claim(b *Bot, k, v []byte) bool {
	if len(v) != 12 {
		t.del(bReady, k)
		return false
	}
	chat, id := u32at(v, 0), int64(u64at(v, 4))
	r, err := t.liveJob(b, id)
	if err != nil {
		t.dropHead(b, k, chat, id, err)
		return false
	}
	if r.state != Pending || r.Order != u64at(k, 3) || r.Lane != k[2] || t.follow(b, r.ChatNo) != chat {
		t.dropEntry(b, k, chat)
		return false
	}
	c := t.chat(b, chat)
	if c == nil { // lost: where it has a queue it gets a record, and a pause
		t.del(bReady, k)
		t.after = append(t.after, t.s.reportIndex)
		t.rearm(b, chat)
		return false
	}
	switch {
	case t.expired(r):
		t.end(b, r, Expired, &JobError{Class: "expired", Description: "its time ran out before it could go", At: t.s.clock.at(t.now)})
		return false
	case c.Gone != "" && !r.Force:
		t.end(b, r, Dead, &JobError{Class: "chat_gone", Description: c.Gone, At: t.s.clock.at(t.now)})
		return false
	}
	t.unready(b, chat)
	t.del(bQueue, queueKey(b.num, chat, r.Lane, r.Order))
	run := &runRec{Attempt: r.Attempts + 1, Started: t.now, ChatNo: chat, Chat: c.Name}
	rk := liveKey(b.num, id)
	t.put(bRun, rk, encode(rk, run))
	t.setBusy(b, chat, id)
	b.rec.Turn++
	r.state = Running
	t.count(b, Pending, Running)
	t.hand(b, r, run)
	return true
}

// setBusy keeps a chat's other jobs back while one is in flight.
func (t *txn) setBusy(b *Bot, chat uint32, id int64) {
	b.busy[chat] = id
	t.undo = append(t.undo, func() { delete(b.busy, chat) })
}

func (t *txn) clearBusy(b *Bot, chat uint32) {
	id := b.busy[chat]
	delete(b.busy, chat)
	t.undo = append(t.undo, func() { b.busy[chat] = id })
}

// hand gives a claimed job to the first waiting worker, after the commit.
func (t *txn) hand(b *Bot, r *jobRec, run *runRec) {
	w := b.parked[0]
	b.parked = slices.Clone(b.parked[1:])
	full := *t.full(r)
	full.Attempts, full.SentChat, full.Updated = run.Attempt, run.Chat, t.now
	t.changedJob(b, &full)
	full.Method, full.Params = full.call()
	claim := &Claim{
		Job: full.view(b.rec.Name, t.s.clock), Chat: run.Chat, Weight: int(r.Weight),
		SafeToRepeat: r.Safe, MaybeSent: r.MaybeSent, CanFallBack: r.canFallBack(), LateNote: r.LateNote, ForMarkup: r.Fallback != nil && r.Fallback.Markup, chatNo: run.ChatNo, bot: b,
	}
	t.undo = append(t.undo, func() { b.parked = append([]*waiter{w}, b.parked...) })
	t.after = append(t.after, func() { w.ch <- claim })
	t.tell(r.ID)
}

// dropEntry takes an entry out that leads to the wrong job: something in an
// index is wrong that no checksum shows. That job has a place of its own;
// claimed by this one it would go out twice.
func (t *txn) dropEntry(b *Bot, k []byte, chat uint32) {
	t.del(bReady, k)
	t.del(bQueue, queueKey(b.num, chat, k[2], u64at(k, 3)))
	t.after = append(t.after, t.s.reportIndex)
	t.rearm(b, chat)
}

// dropHead takes a head out whose record can't be read.
func (t *txn) dropHead(b *Bot, k []byte, chat uint32, id int64, err error) {
	lk := liveKey(b.num, id)
	if t.get(bLive, lk) == nil {
		t.dropEntry(b, k, chat)
		return
	}
	t.del(bReady, k)
	t.del(bQueue, queueKey(b.num, chat, k[2], u64at(k, 3)))
	t.setAside(bLive, lk, err)
	t.count(b, Pending, "")
	t.rearm(b, chat)
}
