package spool

import "slices"

// fireTimers handles what is due, up to a bound; the rest follows at once in
// the next transaction.
func (t *txn) fireTimers() {
	type due struct {
		k   key
		at  int64
		bot *Bot
		id  uint64
	}
	var list []due
	c := t.bucket(bTimer).Cursor()
	for k, _ := c.First(); len(k) == 19 && len(list) < maxDue; k, _ = c.Next() {
		at := int64(u64at(k, 0))
		if at > t.now {
			break
		}
		if b := t.armed(k); b != nil {
			list = append(list, due{slices.Clone(key(k)), at, b, u64at(k, 11)})
		}
	}
	for _, d := range list {
		t.del(bTimer, d.k)
		t.fire(d.bot, timerKind(d.k[8]), d.at, d.id)
	}
}

// armed returns the bot of a timer that may go off: a bot that isn't in the
// settings now is left alone until it is back, and what depends on the time of
// day waits until that is known.
func (t *txn) armed(k key) *Bot {
	b := t.botByNum(u16at(k, 9))
	if b == nil || !b.attached.Load() {
		return nil
	}
	switch timerKind(k[8]) {
	case timerDue, timerExpire, timerUncertain:
		if !t.s.clock.ok.Load() {
			return nil
		}
	case timerChat, timerFlood, timerUpdate, timerStale, timerGone, timerLease, timerWaits, timerPause:
	}
	return b
}

func (t *txn) botByNum(num uint16) *Bot {
	for _, b := range t.s.all {
		if b.num == num {
			return b
		}
	}
	return nil
}

// fire does what one timer is for. A timer whose reason has gone does nothing.
func (t *txn) fire(b *Bot, kind timerKind, at int64, id uint64) {
	switch kind {
	case timerChat:
		t.wakeChat(b, uint32(id), at)
	case timerGone:
		t.endWaiting(b, uint32(id))
	case timerPause:
		t.endPause(b, at, id)
	case timerWaits:
		t.tellWaiting(b, int64(id))
	case timerUpdate:
		t.wakeUpdate(b, int64(id))
	case timerStale:
		t.expireStale(b, int64(id))
	case timerLease:
		t.expireLease(b, int64(id), at)
	case timerDue, timerExpire, timerUncertain, timerFlood:
		t.fireJob(b, kind, at, int64(id))
	}
}

func (t *txn) wakeChat(b *Bot, chat uint32, at int64) {
	c := t.queuedChat(b, chat)
	if c == nil {
		return
	}
	if c.WakeAt == at {
		c.WakeAt = 0
		t.touchChat(b, chat, c)
	}
	t.unready(b, chat)
	t.rearm(b, chat)
}

func (t *txn) fireJob(b *Bot, kind timerKind, at, id int64) {
	_, r, err := t.jobAndBot(id)
	if err != nil {
		return
	}
	switch {
	case kind == timerDue && r.state == Pending && r.Order == 0 && r.NotBefore == at:
		t.await(b, r)
	case kind == timerExpire && r.state == Pending && r.ExpiresAt == at:
		t.end(b, r, Expired, &JobError{Class: "expired", Description: "its time ran out before it could go", At: t.s.clock.at(t.now)})
	case kind == timerUncertain && r.state == Uncertain && r.DecideBy == at:
		t.decide(b, r, Cancelled, func(r *jobRec) {
			r.Error = &JobError{Class: "unknown_outcome", Description: "nobody decided in time; it may or may not have arrived", At: t.s.clock.at(t.now)}
		})
	case kind == timerFlood && r.state == Held && r.HeldBy == HeldByFlood && r.DecideBy == at:
		t.decide(b, r, Pending, func(*jobRec) {})
	}
}

// nextWake is when the writer has something to do without being asked.
func (t *txn) nextWake() int64 {
	if t.again {
		return t.now
	}
	next := t.s.nextSweep
	earlier := func(at int64) {
		if at != 0 && at != never && (next == 0 || at < next) {
			next = at
		}
	}
	c := t.bucket(bTimer).Cursor()
	for k, _ := c.First(); len(k) == 19; k, _ = c.Next() {
		if t.armed(k) != nil {
			earlier(int64(u64at(k, 0)))
			break
		}
	}
	for _, b := range t.s.all {
		if len(b.parked) > 0 && b.askAt > t.now {
			earlier(b.askAt)
		}
	}
	return next
}
