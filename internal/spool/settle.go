package spool

import (
	"context"
	"fmt"
)

// Settle ends an attempt. It is refused with ErrConflict when the job isn't
// running this attempt any more.
func (b *Bot) Settle(ctx context.Context, c *Claim, v Verdict) (job Job, err error) {
	err = b.s.do(context.WithoutCancel(ctx), len(v.Result)+256, func(t *txn) error {
		r, err := t.settle(b, c, v)
		if err == nil {
			job = t.full(r).view(b.rec.Name, t.s.clock)
		}
		return err
	})
	return job, err
}

// settle is the end of an attempt: the job's next state, what the chat and the
// bot have learned, and who may go next, in one transaction.
func (t *txn) settle(b *Bot, c *Claim, v Verdict) (*jobRec, error) {
	r, run, err := t.running(b, c, v.State)
	if err != nil {
		return nil, err
	}
	if v.FallBack && !r.canFallBack() {
		v.State = Dead
	}
	busy := r.ChatNo
	r.ChatNo = t.follow(b, r.ChatNo)
	chat := t.chat(b, r.ChatNo)
	if v.MigrateTo != 0 && chat != nil {
		if err := t.migrateChecked(b, r.ChatNo, chat, v.MigrateTo); err != nil {
			return nil, err
		}
	}
	t.del(bRun, liveKey(b.num, r.ID))
	t.clearBusy(b, busy)
	r.record(run, v, t.now)
	t.learn(b, r, v)
	if v.State == Pending {
		t.requeue(b, r, v)
	} else {
		t.leave(b, r, Running, v)
	}
	if v.ChatGone != "" {
		t.endWaiting(b, r.ChatNo)
	}
	t.rearm(b, r.ChatNo)
	t.tell(r.ID)
	return r, nil
}

// running checks that a verdict is about an attempt that is under way.
func (t *txn) running(b *Bot, c *Claim, to State) (*jobRec, *runRec, error) {
	r, err := t.liveJob(b, c.ID)
	if err != nil {
		if _, r, err := t.jobAndBot(c.ID); err == nil {
			return nil, nil, &StateError{What: "job", ID: c.ID, Now: string(r.state), Want: string(to)}
		}
		return nil, nil, fmt.Errorf("job %d: %w", c.ID, err)
	}
	shown := *r
	run := t.fillRun(b, &shown)
	if run == nil || run.Attempt != c.Attempts || !canMove(Running, to) {
		return nil, nil, &StateError{What: "job", ID: c.ID, Now: string(r.state), Want: string(to)}
	}
	return r, run, nil
}

// migrateChecked refuses a loop before anything is written.
func (t *txn) migrateChecked(b *Bot, no uint32, c *chatRec, to int64) error {
	before := *c
	if err := t.migrate(b, no, c, to); err != nil {
		*c = before
		return err
	}
	return nil
}

// record writes what an attempt has shown into the job's record.
func (r *jobRec) record(run *runRec, v Verdict, now int64) {
	r.Updated, r.SentChat = now, run.Chat
	r.Attempts = run.Attempt
	if v.GiveBack {
		r.Attempts--
	}
	switch {
	case v.State == Done || v.State == Dead && v.Error != nil:
		r.Error = r.lastError(v.Error)
	case v.Error != nil:
		r.Error = v.Error
	}
	if v.Evidence != nil {
		r.Evidence = v.Evidence
	}
	if v.Result != nil {
		r.Result = v.Result
	}
	r.RetryAt = 0
	if v.State == Uncertain {
		r.Tried = run.Started
	}
	r.MaybeSent = r.MaybeSent || v.MaybeSent || v.State == Uncertain
}

// learn takes over what the attempt says about chat and bot.
func (t *txn) learn(b *Bot, r *jobRec, v Verdict) {
	t.extendCooldown(b, t.s.clock.ns(v.BotCooldown))
	c := t.chat(b, r.ChatNo)
	if c == nil {
		return
	}
	if v.Reached && c.spend(b.cfg.Limits, t.now, int(r.Weight)) {
		t.touchChat(b, r.ChatNo, c)
	}
	if until := t.s.clock.ns(v.ChatCooldown); until > c.Cooldown {
		c.Cooldown = until
		t.touchChat(b, r.ChatNo, c)
		t.changedChat(b, c)
	}
	if v.State == Done {
		t.replied(b, r)
		t.activate(b, r.ChatNo, c)
		t.see(b, r.ChatNo, c, v.Chat)
	}
	if v.ChatGone != "" {
		t.deactivate(b, r.ChatNo, c, v.ChatGone)
	}
}

// requeue puts a job back into its place.
func (t *txn) requeue(b *Bot, r *jobRec, v Verdict) {
	if t.expired(r) {
		v = Verdict{State: Expired}
		t.leave(b, r, Running, v)
		return
	}
	if v.FallBack {
		r.fallBack(v.Error)
	}
	r.RetryAt = t.s.clock.ns(v.RetryAt)
	r.state = Pending
	t.count(b, Running, Pending)
	t.changedJob(b, r)
	t.await(b, r)
}

// expired reports whether a job's time is over. Nobody can say so while the
// clock isn't known.
func (t *txn) expired(r *jobRec) bool {
	return r.ExpiresAt != 0 && r.ExpiresAt <= t.now && t.s.clock.ok.Load()
}

// leave moves a job out of live: it is uncertain, held, or ended. The parts of a
// text that stand behind one that dies die with it.
func (t *txn) leave(b *Bot, r *jobRec, from State, v Verdict) {
	t.depart(b, r, from, v)
	if v.State == Dead {
		t.endRest(b, r, Dead, t.partError(r))
	}
}

func (t *txn) depart(b *Bot, r *jobRec, from State, v Verdict) {
	t.del(bLive, liveKey(b.num, r.ID))
	r.state = v.State
	t.count(b, from, v.State)
	t.changedJob(b, r)
	switch v.State { //nolint:exhaustive // all others are ends
	case Uncertain:
		r.DecideBy = t.now + int64(b.cfg.Limits.UncertainFor)
		t.put(bTimer, timerKey(r.DecideBy, timerUncertain, b.num, uint64(r.ID)), []byte{})
	case Held:
		r.HeldBy, r.HeldAt = v.HeldBy, t.now
		if until := t.s.clock.ns(v.ReleaseAt); until != 0 {
			r.DecideBy = until
			t.put(bTimer, timerKey(until, timerFlood, b.num, uint64(r.ID)), []byte{})
		}
	default:
		t.closeJob(b, r)
	}
	t.putParked(b, r)
	t.tell(r.ID)
	if r.state.Ended() && !r.Folded { // else once its successor stands
		t.tellWaiting(b, r.ID)
	}
}

// closeJob does what goes with a job's end, whatever the end is.
func (t *txn) closeJob(b *Bot, r *jobRec) {
	if r.ExpiresAt != 0 {
		t.dropTimer(timerKey(r.ExpiresAt, timerExpire, b.num, uint64(r.ID)))
	}
	if r.NotBefore > t.now && r.Order == 0 {
		t.dropTimer(timerKey(r.NotBefore, timerDue, b.num, uint64(r.ID)))
	}
	if r.state != Done {
		t.freeKey(b, r)
	}
	r.HeldBy = ""
	t.unlinkEdits(b, r)
	t.dropFiles(r)
	t.dropQueue(b, r.ChatNo)
}

// dropQueue forgets the queue of calls that go to no chat, once it is empty:
// each answered query has had one of its own.
func (t *txn) dropQueue(b *Bot, no uint32) {
	c := t.chat(b, no)
	if c == nil || c.Name == "" || isChatName(c.Name) {
		return
	}
	if _, busy := b.busy[no]; busy {
		return
	}
	if head, _ := t.first(bQueue, chatKey(b.num, no)); head != nil {
		return
	}
	t.del(bAlias, nameKey(b.num, c.Name))
	t.del(bChat, chatKey(b.num, no))
	id := uint64(b.num)<<32 | uint64(no)
	delete(t.chats, id)
	delete(t.dirty, id)
}

func (t *txn) dropTimer(k key) {
	if t.get(bTimer, k) != nil {
		t.del(bTimer, k)
	}
}

// end finishes a job that waits: it leaves its queue, too.
func (t *txn) end(b *Bot, r *jobRec, to State, why *JobError) {
	t.leaveQueue(b, r)
	r.Error, r.Updated = why, t.now
	t.leave(b, r, Pending, Verdict{State: to})
}

// leaveQueue takes a pending job from wherever it waits.
func (t *txn) leaveQueue(b *Bot, r *jobRec) {
	switch {
	case r.waiting():
		t.unwait(b, r)
	case r.Order != 0:
		t.unline(b, r)
	default:
		t.dropTimer(timerKey(r.NotBefore, timerDue, b.num, uint64(r.ID)))
	}
}

// maxEndings bounds how many waiting jobs of a dead chat end in one transaction.
const maxEndings = 256

// endWaiting ends all that wait for a chat which can't be written to.
func (t *txn) endWaiting(b *Bot, chat uint32) {
	c := t.chat(b, chat)
	if c == nil || c.Gone == "" {
		return
	}
	var ids []int64
	for lane := range Lanes() {
		p := queuePrefix(b.num, chat, byte(lane))
		t.each(bQueue, p, p, func(_, v []byte) bool {
			if q, ok := readQueued(v); ok {
				ids = append(ids, q.id)
			}
			return len(ids) < maxEndings
		})
	}
	ended := 0
	for _, id := range ids {
		if r, err := t.liveJob(b, id); err == nil && !r.Force {
			t.end(b, r, Dead, &JobError{Class: "chat_gone", Description: c.Gone, At: t.s.clock.at(t.now)})
			ended++
		}
	}
	if len(ids) >= maxEndings && ended > 0 {
		// If we stop here, the timer goes on with the rest at the next start.
		t.put(bTimer, timerKey(t.now, timerGone, b.num, uint64(chat)), []byte{})
	}
}
