package spool

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"time"
)

// Enqueue stores calls. Either all are on disk when it returns, or none. A call
// whose dedupe key is held is answered with the job that holds it.
func (b *Bot) Enqueue(ctx context.Context, jobs ...NewJob) ([]Queued, error) {
	for i := range jobs {
		if err := jobs[i].check(); err != nil {
			return nil, err
		}
	}
	var out []Queued
	err := b.s.do(ctx, sizeOf(jobs), func(t *txn) error {
		out = make([]Queued, 0, len(jobs))
		if err := t.admissible(b, jobs); err != nil {
			return err
		}
		for i := range jobs {
			out = append(out, t.accept(b, &jobs[i]))
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

func sizeOf(jobs []NewJob) (n int) {
	for i := range jobs {
		n += len(jobs[i].Params) + 128
	}
	return n
}

func (j *NewJob) check() error {
	switch {
	case j.Method == "":
		return fmt.Errorf("a job needs a method: %w", ErrInvalid)
	case j.Weight < 0 || j.Weight > math.MaxUint8:
		return fmt.Errorf("weight %d: %w", j.Weight, ErrInvalid)
	case len(j.DedupeKey) > 1024:
		return fmt.Errorf("a dedupe key of %d bytes is longer than 1024: %w", len(j.DedupeKey), ErrInvalid)
	}
	return nil
}

// admissible checks what only the store can know before anything is written:
// a call to an inactive chat is refused, unless it is forced, repeats a known
// key, or is the one that may try after a week.
func (t *txn) admissible(b *Bot, jobs []NewJob) error {
	for i := range jobs {
		j := &jobs[i]
		if j.Force || t.keyHolder(b, j.DedupeKey) != 0 {
			continue
		}
		if c := t.chat(b, t.lookupChat(b, chatName(j.Chat))); c != nil && c.Gone != "" && t.now < c.GoneAt+int64(probeGoneAfter) {
			return &InactiveError{Chat: j.Chat, Reason: c.Gone, Since: instant(c.GoneAt)}
		}
	}
	return nil
}

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

// accept stores one checked call.
func (t *txn) accept(b *Bot, j *NewJob) Queued {
	if id := t.keyHolder(b, j.DedupeKey); id != 0 {
		if r, err := t.job(id); err == nil {
			return Queued{Job: t.full(r).view(b.rec.Name), Duplicate: true}
		}
		// The record is gone, the key is remembered: say so with what is known.
		return Queued{Job: Job{ID: id, Bot: b.rec.Name, Method: j.Method, State: Done, DedupeKey: &j.DedupeKey, Lane: Normal, OnUncertain: PolicyHold}, Duplicate: true}
	}
	r := t.newRecord(b, j)
	if r.Key != "" {
		t.put(bKey, dedupeKey(b.num, r.Key), keyValue(r.ID, r.KeyUntil))
	}
	t.place(b, r)
	return Queued{Job: t.full(r).view(b.rec.Name)}
}

func keyValue(id, until int64) []byte { return newKey(16).u64(uint64(id)).u64(uint64(until)) }

// newRecord makes the record of a call, without a place yet.
func (t *txn) newRecord(b *Bot, j *NewJob) *jobRec {
	no, c := t.internChat(b, chatName(j.Chat))
	t.s.nextJob++
	t.undo = append(t.undo, func() { t.s.nextJob-- })
	t.put(bMeta, kNextJob, u64bytes(uint64(t.s.nextJob)))
	l := b.cfg.Limits
	r := &jobRec{
		ID: t.s.nextJob, Method: j.Method, ChatNo: no, ChatRaw: j.ChatRaw,
		Lane: laneOr(j.Lane).code(), Weight: byte(j.Weight), Safe: j.SafeToRepeat,
		Params: j.Params, Files: j.Files, Key: j.DedupeKey,
		NotBefore: nanos(j.NotBefore), ExpiresAt: nanos(j.ExpiresAt),
		MaxAttempts: j.MaxAttempts, OnUncertain: j.OnUncertain,
		Origin: j.Origin, Created: t.now, Updated: t.now, Force: j.Force,
	}
	if r.Key != "" && j.DedupeFor > 0 {
		r.KeyUntil = t.now + int64(j.DedupeFor)
	}
	if r.MaxAttempts <= 0 {
		r.MaxAttempts = l.MaxAttempts
	}
	if r.OnUncertain == "" {
		r.OnUncertain = l.OnUncertain
	}
	if r.ExpiresAt == 0 && l.TTL > 0 {
		r.ExpiresAt = max(t.now, r.NotBefore) + int64(l.TTL)
	}
	if c.Gone != "" && !r.Force {
		t.probeGone(b, no, c, r)
	}
	if len(r.Params) > inlineMax {
		k := bodyKey(r.ID)
		t.put(bBody, k, seal(k, r.Params))
		r.Params, r.InBody = nil, true
	}
	return r
}

// probeGone decides about a call to an inactive chat: after a week it is the
// one that tries, before that it is dead on arrival.
func (t *txn) probeGone(b *Bot, no uint32, c *chatRec, r *jobRec) {
	if t.now >= c.GoneAt+int64(probeGoneAfter) {
		r.Force = true
		c.GoneAt = t.now // the next one waits another week
		t.touchChat(b, no, c)
		return
	}
	r.Error = &JobError{Class: "chat_gone", Description: c.Gone, At: instant(t.now)}
	r.state = Dead
}

func laneOr(l Lane) Lane {
	if l == "" {
		return Normal
	}
	return l
}

// place gives a new record its first stand.
func (t *txn) place(b *Bot, r *jobRec) {
	if r.state == Dead {
		t.count(b, "", Dead)
		t.freeKey(b, r)
		t.putParked(b, r)
		return
	}
	r.state = Pending
	t.count(b, "", Pending)
	if r.ExpiresAt != 0 {
		t.put(bTimer, timerKey(r.ExpiresAt, timerExpire, b.num, uint64(r.ID)), []byte{})
	}
	t.await(b, r)
}

// await puts a pending job where it waits: in its chat's queue, or with the
// timers when it isn't due yet.
func (t *txn) await(b *Bot, r *jobRec) {
	r.ChatNo = t.follow(b, r.ChatNo)
	if r.NotBefore > t.now && r.Order == 0 {
		t.putLive(b, r)
		t.put(bTimer, timerKey(r.NotBefore, timerDue, b.num, uint64(r.ID)), []byte{})
		return
	}
	if r.Order == 0 {
		b.rec.Order++
		r.Order = b.rec.Order
		t.touchBot(b)
	}
	t.putLive(b, r)
	t.line(b, r)
}

// line puts a job into its chat's queue by its order, and the heads into the
// ready index.
func (t *txn) line(b *Bot, r *jobRec) {
	p := queuePrefix(b.num, r.ChatNo, r.Lane)
	head, _ := t.first(bQueue, p)
	q := queued{id: r.ID, weight: r.Weight, retryAt: r.RetryAt}
	if head != nil && u64at(head, len(p)) < r.Order {
		t.put(bQueue, queueKey(b.num, r.ChatNo, r.Lane, r.Order), q.bytes())
		return // an older one stands before it: nothing changes for the chat
	}
	t.unready(b, r.ChatNo)
	t.put(bQueue, queueKey(b.num, r.ChatNo, r.Lane, r.Order), q.bytes())
	t.rearm(b, r.ChatNo)
}

// unline takes a job out of its chat's queue.
func (t *txn) unline(b *Bot, r *jobRec) {
	t.unready(b, r.ChatNo)
	t.del(bQueue, queueKey(b.num, r.ChatNo, r.Lane, r.Order))
	t.rearm(b, r.ChatNo)
}

// unready takes the heads of a chat out of the ready index.
func (t *txn) unready(b *Bot, chat uint32) {
	for lane := range Lanes() {
		p := queuePrefix(b.num, chat, byte(lane))
		if head, _ := t.first(bQueue, p); head != nil {
			k := readyKey(b.num, byte(lane), u64at(head, len(p)))
			if t.get(bReady, k) != nil {
				t.del(bReady, k)
			}
		}
	}
}

// rearm puts the heads of a chat whose gates are open into the ready index and
// sets a timer for the first of the others. A busy chat waits for its job.
func (t *txn) rearm(b *Bot, chat uint32) {
	if _, busy := b.busy[chat]; busy {
		return
	}
	c := t.chat(b, chat)
	if c == nil {
		return
	}
	wake := int64(0)
	for lane := range Lanes() {
		p := queuePrefix(b.num, chat, byte(lane))
		head, v := t.first(bQueue, p)
		q, ok := readQueued(v)
		if head == nil || !ok {
			continue
		}
		at := c.opensAt(b.cfg.Limits, q.weight, q.retryAt)
		if at <= t.now {
			order := u64at(head, len(p))
			t.put(bReady, readyKey(b.num, byte(lane), order), newKey(12).u32(chat).u64(uint64(q.id)))
		} else if wake == 0 || at < wake {
			wake = at
		}
	}
	if wake != 0 && (c.WakeAt == 0 || wake < c.WakeAt || c.WakeAt <= t.now) {
		t.put(bTimer, timerKey(wake, timerChat, b.num, uint64(chat)), []byte{})
		c.WakeAt = wake
		t.touchChat(b, chat, c)
	}
}

// putLive writes a job that is pending or running.
func (t *txn) putLive(b *Bot, r *jobRec) {
	k := liveKey(b.num, r.ID)
	t.put(bLive, k, encode(k, r))
}

// putParked writes a job that is neither.
func (t *txn) putParked(b *Bot, r *jobRec) {
	k := stateKey(b.num, r.state.code(), r.ID)
	t.put(standOf(r.state), k, encode(k, r))
}

// standOf is the bucket in which jobs of a state stand.
func standOf(s State) []byte {
	switch {
	case s.Open():
		return bLive
	case s.Ended():
		return bEnded
	default:
		return bParked
	}
}

// full fills in the parameters of a record whose payload stands elsewhere.
func (t *txn) full(r *jobRec) *jobRec {
	if !r.InBody {
		return r
	}
	c := *r
	k := bodyKey(r.ID)
	v, err := unseal(k, t.get(bBody, k))
	if err != nil {
		c.Error = &JobError{Class: "damaged", Description: "the parameters are damaged on disk", At: instant(t.now)}
		return &c
	}
	c.Params = append([]byte(nil), v...)
	return &c
}

// liveJob reads a job that is pending or running.
func (t *txn) liveJob(b *Bot, id int64) (*jobRec, error) {
	k := liveKey(b.num, id)
	v := t.get(bLive, k)
	if v == nil {
		return nil, ErrNotFound
	}
	r, err := decode[jobRec](k, v)
	if err != nil {
		return nil, err
	}
	r.state = Pending
	if rk := liveKey(b.num, id); t.get(bRun, rk) != nil {
		r.state = Running
	}
	return r, nil
}

// job finds a job by its id, whatever its bot and state.
func (t *txn) job(id int64) (*jobRec, error) {
	_, r, err := t.jobAndBot(id)
	return r, err
}

func (t *txn) jobAndBot(id int64) (*Bot, *jobRec, error) {
	if id <= 0 {
		return nil, nil, fmt.Errorf("job %d: %w", id, ErrNotFound)
	}
	for _, b := range t.s.known() {
		if r, err := t.liveJob(b, id); err == nil {
			t.fillRun(b, r)
			return b, r, nil
		}
		for _, st := range States() {
			k := stateKey(b.num, st.code(), id)
			if st.Open() || t.get(standOf(st), k) == nil {
				continue
			}
			r, err := decode[jobRec](k, t.get(standOf(st), k))
			if err != nil {
				return nil, nil, fmt.Errorf("job %d: %w", id, err)
			}
			r.state = st
			return b, r, nil
		}
	}
	return nil, nil, fmt.Errorf("job %d: %w", id, ErrNotFound)
}

// fillRun shows the attempt under way in a running job's record.
func (t *txn) fillRun(b *Bot, r *jobRec) *runRec {
	k := liveKey(b.num, r.ID)
	v := t.get(bRun, k)
	if v == nil {
		return nil
	}
	run, err := decode[runRec](k, v)
	if err != nil {
		return nil
	}
	r.Attempts, r.SentChat, r.Updated = run.Attempt, run.Chat, run.Started
	return run
}

// known lists the bots for readers and the writer alike.
func (s *Store) known() []*Bot {
	return s.Bots()
}

// freeKey lets a dedupe key go, unless an attempt may have reached Telegram.
func (t *txn) freeKey(b *Bot, r *jobRec) {
	if r.Key == "" || r.Reply || r.MaybeSent {
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

// Job reads a job by its id.
func (s *Store) Job(id int64) (job Job, err error) {
	err = s.view(func(t *txn) error {
		b, r, err := t.jobAndBot(id)
		if err == nil {
			job = t.full(r).view(b.Name())
		}
		return err
	})
	return job, err
}

// Wait returns the job when its state is neither pending nor running, or as it
// is when ctx ends, with ctx's error.
func (s *Store) Wait(ctx context.Context, id int64) (Job, error) {
	ch := make(chan struct{}, 1)
	s.watch(id, ch)
	defer s.unwatch(id, ch)
	for {
		job, err := s.Job(id)
		if err != nil || !job.State.Open() {
			return job, err
		}
		select {
		case <-ch:
		case <-ctx.Done():
			return job, ctx.Err()
		case <-s.stop:
			return job, ErrClosed
		}
	}
}

func (s *Store) watch(id int64, ch chan struct{}) {
	s.mu.Lock()
	s.watches[id] = append(s.watches[id], ch)
	s.mu.Unlock()
}

func (s *Store) unwatch(id int64, ch chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	rest := s.watches[id][:0]
	for _, c := range s.watches[id] {
		if c != ch {
			rest = append(rest, c)
		}
	}
	if s.watches[id] = rest; len(rest) == 0 {
		delete(s.watches, id)
	}
}

// tell wakes those who wait for a job, after the commit.
func (t *txn) tell(id int64) {
	t.after = append(t.after, func() {
		t.s.mu.RLock()
		defer t.s.mu.RUnlock()
		for _, ch := range t.s.watches[id] {
			select {
			case ch <- struct{}{}:
			default:
			}
		}
	})
}

// expiryOf is when a job's time runs out, seen from now on.
func expiryOf(r *jobRec) time.Time { return instant(r.ExpiresAt) }
