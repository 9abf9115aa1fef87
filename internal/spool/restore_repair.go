package spool

import (
	"encoding/binary"
	"slices"
	"strconv"
	"strings"
)

// The steps of a repair: what stands in indexes is made again from the records.
// Where an index held the only trace of something, the safe side is taken.

// holdStrays holds pending jobs that nothing leads to. Such a job was claimed,
// or its place was lost: whether it was sent can't be known.
func holdStrays(t *txn, r *recoveryRec) bool {
	if r.After == nil {
		t.dropLost(bRun, bLive)
		t.dropLost(bInLease, bInbox)
	}
	return t.some(bLive, &r.After, func(b *Bot, k, v []byte) {
		job, err := decode[jobRec](slices.Clone(k), v)
		if err != nil {
			t.setAside(bLive, k, err)
			t.dropKey(bRun, k)
			return
		}
		if t.get(bRun, k) == nil && !t.hasPlace(b, job) {
			job.state = Pending
			t.holdRestored(b, job)
			r.Held++
		}
	})
}

// hasPlace reports whether something leads to a pending job.
func (t *txn) hasPlace(b *Bot, job *jobRec) bool {
	for _, ref := range job.refs() {
		if ref.With == "" {
			return t.hasLink(b, linkWaits, strconv.FormatInt(ref.Job, 10), job.ID)
		}
	}
	if job.Order != 0 {
		return t.chat(b, job.ChatNo) != nil && t.get(bQueue, queueKey(b.num, job.ChatNo, job.Lane, job.Order)) != nil
	}
	return t.get(bTimer, timerKey(job.NotBefore, timerDue, b.num, uint64(job.ID))) != nil
}

// dropLost removes marks of records that aren't there.
func (t *txn) dropLost(marks, records []byte) {
	var lost [][]byte
	_ = t.bucket(marks).ForEach(func(k, _ []byte) error { // fn never fails
		if t.get(records, k) == nil {
			lost = append(lost, slices.Clone(k))
		}
		return nil
	})
	for _, k := range lost {
		t.del(marks, k)
	}
}

func (t *txn) dropKey(bucket []byte, k key) {
	if t.get(bucket, k) != nil {
		t.del(bucket, k)
	}
}

// queueAgain gives all live jobs their places and timers.
func queueAgain(t *txn, r *recoveryRec) bool {
	return t.some(bLive, &r.After, func(b *Bot, k, v []byte) {
		job, err := decode[jobRec](slices.Clone(k), v)
		if err != nil {
			return // set aside before
		}
		if no := t.follow(b, job.ChatNo); no != job.ChatNo {
			job.ChatNo = no
			t.putLive(b, job)
		}
		t.ensureChat(b, job)
		t.ensureKey(b, job)
		if b.rec.Order < job.Order {
			b.rec.Order = job.Order
			t.touchBot(b)
		}
		if job.ExpiresAt != 0 {
			t.put(bTimer, timerKey(job.ExpiresAt, timerExpire, b.num, uint64(job.ID)), []byte{})
		}
		switch {
		case t.get(bRun, k) != nil: // Attach decides about it
		case job.waiting():
			t.waitAgain(b, job)
		case job.Order == 0:
			t.put(bTimer, timerKey(job.NotBefore, timerDue, b.num, uint64(job.ID)), []byte{})
		default:
			t.put(bQueue, queueKey(b.num, job.ChatNo, job.Lane, job.Order), queued{id: job.ID, weight: job.Weight, retryAt: job.RetryAt}.bytes())
		}
	})
}

// waitAgain lets a job wait for its results. What has ended meanwhile is looked
// at once the bot is attached.
func (t *txn) waitAgain(b *Bot, job *jobRec) {
	t.wait(b, job)
	for _, ref := range job.refs() {
		if ref.With == "" {
			t.put(bTimer, timerKey(t.now, timerWaits, b.num, uint64(ref.Job)), []byte{})
		}
	}
}

// ensureChat makes a chat's record where it is lost.
func (t *txn) ensureChat(b *Bot, job *jobRec) {
	if t.chat(b, job.ChatNo) != nil {
		return
	}
	c := t.lostChat(b, job.ChatNo)
	if c.Name == "" {
		c.Name = chatName(strings.Trim(string(job.ChatRaw), `"`))
	}
	if b.rec.ChatNo < job.ChatNo {
		b.rec.ChatNo = job.ChatNo
		t.touchBot(b)
	}
	t.touchChat(b, job.ChatNo, c)
}

// ensureKey takes a dedupe key back that the key index has lost.
func (t *txn) ensureKey(b *Bot, job *jobRec) {
	if job.Key == "" || job.Reply {
		return
	}
	if k := dedupeKey(b.num, job.Key); t.get(bKey, k) == nil {
		t.put(bKey, k, keyValue(job.ID, job.KeyUntil))
	}
}

// parkAgain sets the timers of jobs that wait for a decision.
func parkAgain(t *txn, r *recoveryRec) bool {
	return t.some(bParked, &r.After, func(b *Bot, k, v []byte) {
		job, err := decode[jobRec](slices.Clone(k), v)
		if err != nil {
			t.setAside(bParked, k, err)
			return
		}
		t.ensureKey(b, job)
		switch {
		case k[2] == Uncertain.code():
			t.timeUncertain(b, job)
		case job.HeldBy == HeldByFlood && job.DecideBy != 0:
			t.put(bTimer, timerKey(job.DecideBy, timerFlood, b.num, uint64(job.ID)), []byte{})
		}
	})
}

// openChats puts a timer to each chat with a queue: it fires once the bot is
// attached and its limits are known. Names that the index has lost come back.
func openChats(t *txn, r *recoveryRec) bool {
	return t.some(bChat, &r.After, func(b *Bot, k, _ []byte) {
		no := u32at(k, 2)
		c := t.chat(b, no)
		for _, name := range append([]string{c.Name}, c.Others...) {
			if c.Moved == 0 && name != "" && t.lookupChat(b, name) == 0 {
				t.put(bAlias, nameKey(b.num, name), binary.BigEndian.AppendUint32(nil, no))
			}
		}
		c.WakeAt = 0
		if head, _ := t.first(bQueue, chatKey(b.num, no)); head != nil {
			c.WakeAt = t.now
			t.put(bTimer, timerKey(t.now, timerChat, b.num, uint64(no)), []byte{})
		}
		t.touchChat(b, no, c)
	})
}

// lineAgain puts all open updates into their queues.
func lineAgain(t *txn, r *recoveryRec) bool {
	if r.After == nil {
		t.findBusy() // what is gone holds up nobody
	}
	return t.some(bInbox, &r.After, func(b *Bot, k, v []byte) {
		u, err := decode[updateRec](slices.Clone(k), v)
		if err != nil {
			t.setAside(bInbox, k, err)
			t.dropKey(bInLease, k)
			return
		}
		if sk := seenKey(b.num, u.UpdateID); u.HasID && t.get(bSeen, sk) == nil {
			t.put(bSeen, sk, u64bytes(uint64(u.Seq)))
		}
		if b.rec.Seq < u.Seq {
			b.rec.Seq = u.Seq
			t.touchBot(b)
		}
		if u.StaleAt != 0 {
			t.put(bTimer, timerKey(u.StaleAt, timerStale, b.num, uint64(u.Seq)), []byte{})
		}
		if t.get(bInLease, k) == nil {
			t.lineIn(b, u)
			return
		}
		if lease, err := t.lease(b, u.Seq); err == nil && lease.Until != 0 {
			t.put(bTimer, timerKey(lease.Until, timerLease, b.num, uint64(u.Seq)), []byte{})
		}
	})
}

// sessionsAside sets damaged sessions aside. Nothing leads to them but their keys.
func sessionsAside(t *txn, r *recoveryRec) bool {
	return t.some(bSession, &r.After, func(_ *Bot, k, v []byte) {
		if _, err := decode[sessionRec](slices.Clone(k), v); err != nil {
			t.setAside(bSession, k, err)
		}
	})
}
