package spool

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"

	bolterrors "go.etcd.io/bbolt/errors"
)

// Check compares records, indexes and counters with each other and returns
// what doesn't fit, nothing when all is well. It reads the whole store in one
// read transaction, so it is for tests, for snapshots and for files that nobody
// has open.
func (s *Store) Check() (problems []string, err error) {
	tx, err := s.db.Begin(false)
	if errors.Is(err, bolterrors.ErrDatabaseNotOpen) {
		return nil, ErrClosed
	}
	if err != nil {
		return nil, fmt.Errorf("checking spool %q: %w", s.path, err)
	}
	defer func() { err = errors.Join(err, tx.Rollback()) }()
	c := checker{t: s.begin(tx)}
	for _, b := range s.Bots() {
		rec, err := c.botRec(b)
		if err != nil {
			c.say("bot %s: %v", b.Name(), err)
			continue
		}
		c.jobs(b, rec)
		c.queue(b)
		c.updates(b, rec)
		c.leases(b)
		c.sessions(b, rec)
	}
	c.damaged()
	return c.found, nil
}

type checker struct {
	t     *txn
	found []string
}

// botRec is the bot's record in the file; the one in memory may be a moment
// behind it.
func (c *checker) botRec(b *Bot) (*botRec, error) {
	k := botKey(b.num)
	rec, err := decode[botRec](k, c.t.get(bBots, k))
	if err == nil {
		rec.normalize()
	}
	return rec, err
}

func (c *checker) say(format string, args ...any) {
	c.found = append(c.found, fmt.Sprintf(format, args...))
}

// jobs compares the records of each state with the counters, and live jobs
// with the places where they must wait.
func (c *checker) jobs(b *Bot, rec *botRec) {
	counts := make([]int64, len(States()))
	c.t.each(bLive, botKey(b.num), botKey(b.num), func(k, _ []byte) bool {
		id := int64(u64at(k, 2))
		r, err := c.t.liveJob(b, id)
		if err != nil {
			c.say("job %d: %v", id, err)
			return true
		}
		counts[r.state.code()]++
		c.place(b, r)
		return true
	})
	for _, st := range States() {
		if !st.Open() {
			p := stateKey(b.num, st.code(), 0)[:3]
			c.t.each(standOf(st), p, p, func(k, v []byte) bool {
				if _, err := decode[jobRec](k, v); err != nil {
					c.say("job %d: %v", u64at(k, 3), err)
				}
				counts[st.code()]++
				return true
			})
		}
		if counts[st.code()] != rec.Jobs[st.code()] {
			c.say("bot %s: %d jobs are %s, the counter says %d", rec.Name, counts[st.code()], st, rec.Jobs[st.code()])
		}
	}
}

// place checks that a live job waits in exactly the place that fits its state.
func (c *checker) place(b *Bot, r *jobRec) {
	queued := c.t.get(bQueue, queueKey(b.num, r.ChatNo, r.Lane, r.Order)) != nil && r.Order != 0
	timed := c.t.get(bTimer, timerKey(r.NotBefore, timerDue, b.num, uint64(r.ID))) != nil
	switch {
	case r.state == Running && queued:
		c.say("job %d is running and in the queue", r.ID)
	case r.state == Pending && r.waiting():
		if queued || !c.t.hasPlace(b, r) {
			c.say("job %d waits for a result, queued: %v", r.ID, queued)
		}
	case r.state == Pending && r.Edits != "" && !c.t.hasLink(b, linkEdits, r.edits(), r.ID):
		c.say("job %d edits a message that doesn't lead to it", r.ID)
	case r.state == Pending && r.Order != 0 && !queued:
		c.say("job %d is pending, but not in the queue", r.ID)
	case r.state == Pending && r.Order == 0 && !timed:
		c.say("job %d is pending, but no timer leads to it", r.ID)
	case r.state == Pending && r.ExpiresAt != 0 && c.t.get(bTimer, timerKey(r.ExpiresAt, timerExpire, b.num, uint64(r.ID))) == nil:
		c.say("job %d expires, but no timer leads to it", r.ID)
	}
}

// queue checks that ready holds just the heads of free chats with open gates,
// and that every closed head has a timer.
func (c *checker) queue(b *Bot) {
	want := map[string]bool{}
	c.t.each(bChat, botKey(b.num), botKey(b.num), func(k, _ []byte) bool {
		no := u32at(k, 2)
		if c.t.runningIn(b, no) == 0 {
			c.heads(b, no, want)
		}
		return true
	})
	c.t.each(bReady, botKey(b.num), botKey(b.num), func(k, _ []byte) bool {
		if !want[string(k)] {
			c.say("bot %d: ready has %x, which is no head of a free chat", b.num, k)
		}
		delete(want, string(k))
		return true
	})
	for k := range want {
		c.say("bot %d: ready lacks %x", b.num, k)
	}
}

func (c *checker) heads(b *Bot, no uint32, want map[string]bool) {
	rec := c.t.chat(b, no)
	for lane := range Lanes() {
		p := queuePrefix(b.num, no, byte(lane))
		head, v := c.t.first(bQueue, p)
		if head == nil {
			continue
		}
		q, _ := readQueued(v)
		k := readyKey(b.num, byte(lane), u64at(head, len(p)))
		at := rec.opensAt(b.limits(), q.weight, q.retryAt)
		timer := rec.WakeAt != 0 && rec.WakeAt <= max(at, c.t.now) &&
			c.t.get(bTimer, timerKey(rec.WakeAt, timerChat, b.num, uint64(no))) != nil
		switch inReady := c.t.get(bReady, k) != nil; {
		case inReady, at <= c.t.now && !timer:
			want[string(k)] = true
		case !timer:
			c.say("chat %s: its head waits until %s, but no timer leads to it", rec.Name, c.t.s.clock.at(at))
		}
	}
}

func (c *checker) updates(b *Bot, rec *botRec) {
	counts := make([]int64, len(UpdateStates()))
	c.t.each(bInbox, botKey(b.num), botKey(b.num), func(k, _ []byte) bool {
		r, err := c.t.update(b, int64(u64at(k, 2)))
		if err != nil {
			c.say("%v", err)
			return true
		}
		counts[r.state.code()]++
		queued := c.t.get(bInQueue, inQueueKey(b.num, hash64(r.OrderKey), r.Seq)) != nil
		if queued != (r.state == UpdateOpen) {
			c.say("update %d is %s and queued: %v", r.Seq, r.state, queued)
		}
		if c.t.bucket(bInPull) != nil && r.pulled() != (c.t.get(bInPull, k) != nil) {
			c.say("update %d is %s for handler %q and in the pull route's index: %v", r.Seq, r.state, r.Handler, !r.pulled())
		}
		return true
	})
	for _, st := range UpdateStates() {
		p := stateKey(b.num, st.code(), 0)[:3]
		c.t.each(bInEnded, p, p, func(_, _ []byte) bool { counts[st.code()]++; return true })
		if counts[st.code()] != rec.Updates[st.code()] {
			c.say("bot %s: %d updates are %s, the counter says %d", rec.Name, counts[st.code()], st, rec.Updates[st.code()])
		}
	}
	c.inReady(b)
	c.inPull(b)
}

// inPull checks that the pull route's index leads to records.
func (c *checker) inPull(b *Bot) {
	if c.t.bucket(bInPull) == nil {
		return // a file of before there was one, that nobody has opened since
	}
	c.t.eachPull(b, func(e pullEntry) bool {
		if c.t.get(bInbox, inboxKey(b.num, e.seq)) == nil {
			c.say("bot %d: inpull has %d, which isn't in the inbox", b.num, e.seq)
		}
		return true
	})
}

// leases checks that every lease with an end has a timer.
func (c *checker) leases(b *Bot) {
	c.t.each(bInLease, botKey(b.num), botKey(b.num), func(k, v []byte) bool {
		lease, err := decode[leaseRec](k, v)
		seq := u64at(k, 2)
		switch {
		case err != nil:
			c.say("the lease of update %d: %v", seq, err)
		case lease.Until != 0 && c.t.get(bTimer, timerKey(lease.Until, timerLease, b.num, seq)) == nil:
			c.say("the lease of update %d runs out, but no timer leads to it", seq)
		}
		return true
	})
}

// sessions checks that sessions can be read and stand under ids of today.
func (c *checker) sessions(b *Bot, rec *botRec) {
	if c.t.bucket(bSession) == nil {
		return // a file of before there were any, that nobody has opened since
	}
	c.t.each(bSession, botKey(b.num), botKey(b.num), func(k, _ []byte) bool {
		sk := readSessionKey(k)
		s, err := c.t.session(b, sk)
		switch {
		case err != nil:
			c.say("%v", err)
		case s.Version < 1 || !json.Valid(s.Data):
			c.say("bot %s: session %s has version %d and %d bytes that may be no JSON", rec.Name, sk, s.Version, len(s.Data))
		case c.t.today(b, sk) != sk:
			c.say("bot %s: session %s stands under an id that its chat has no more", rec.Name, sk)
		}
		return true
	})
}

// inReady checks that the ready index of the inbox holds only heads.
func (c *checker) inReady(b *Bot) {
	c.t.each(bInReady, botKey(b.num), botKey(b.num), func(k, v []byte) bool {
		order := binary.BigEndian.Uint64(v)
		head, hv := c.t.first(bInQueue, inQueuePrefix(b.num, order))
		if head == nil || u64at(head, 10) != u64at(k, 10) || !bytes.Equal(hv[:8], k[2:10]) {
			c.say("bot %d: inready has %x, which is no head", b.num, k)
		}
		return true
	})
}

// setAsideNote begins what is said of a record that was damaged once. It is out
// of the way: nothing has to be done about it.
const setAsideNote = "a damaged record was set aside"

func (c *checker) damaged() {
	_ = c.t.bucket(bDamaged).ForEach(func(k, _ []byte) error {
		c.say("%s: %x", setAsideNote, k)
		return nil
	})
	if err := c.t.s.checkPages(c.t.tx); err != nil {
		c.say("file: %v", err)
	}
}
