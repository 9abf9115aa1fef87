package spool

import (
	"cmp"
	"context"
	"fmt"
	"math"
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
	err := b.s.add(ctx, sizeOf(jobs), fillingOf(jobs), func(t *txn) error {
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
		if f := jobs[i].Fallback; f != nil {
			n += len(f.Params)
		}
		n += sizeOf(jobs[i].Parts)
	}
	return n
}

// fillingOf tells a small posting from one that a full store turns away.
func fillingOf(jobs []NewJob) filling {
	if sizeOf(jobs) > smallJob {
		return addsMuch
	}
	for i := range jobs {
		if len(jobs[i].Files) > 0 {
			return addsMuch
		}
	}
	return addsSmall
}

func (j *NewJob) check() error {
	for i := range j.Parts {
		p := &j.Parts[i]
		if p.DedupeKey != "" || len(p.Files) > 0 || len(p.Parts) > 0 || p.ID != 0 || len(p.Print) > 0 || p.Chat != j.Chat {
			return fmt.Errorf("part %d of a text is more than a part: %w", i+2, ErrInvalid)
		}
		if err := p.check(); err != nil {
			return err
		}
	}
	switch {
	case j.Method == "":
		return fmt.Errorf("a job needs a method: %w", ErrInvalid)
	case j.Weight < 0 || j.Weight > math.MaxUint8:
		return fmt.Errorf("weight %d: %w", j.Weight, ErrInvalid)
	case j.Fallback != nil && (j.Fallback.Method == "" || j.Fallback.Weight < 0 || j.Fallback.Weight > math.MaxUint8):
		return fmt.Errorf("a fallback needs a method and a weight of a call: %w", ErrInvalid)
	case j.Replace && j.DedupeKey == "":
		return fmt.Errorf("only the holder of a dedupe key can be replaced: %w", ErrInvalid)
	case len(j.Print) != 0 && len(j.Print) != PrintSize:
		return fmt.Errorf("a fingerprint of %d bytes: %w", len(j.Print), ErrInvalid)
	case len(j.DedupeKey) > 1024:
		return fmt.Errorf("a dedupe key of %d bytes is longer than 1024: %w", len(j.DedupeKey), ErrInvalid)
	}
	if j.Fallback != nil {
		if err := checkRefs(j.Fallback.Refs, j.Fallback.Params); err != nil {
			return err
		}
	}
	return checkRefs(j.Refs, j.Params)
}

// admissible checks what only the store can know before anything is written:
// a call to an inactive chat is refused, unless it is forced, repeats a known
// key, or is the one that may try after a week; so is one that names the result
// of a job that doesn't exist.
func (t *txn) admissible(b *Bot, jobs []NewJob) error {
	keys := map[string]bool{} // of the jobs before, in the same posting
	for i := range jobs {
		j := &jobs[i]
		if t.keyHolder(b, j.DedupeKey) != 0 && t.replaced(b, j) == nil {
			continue
		}
		if err := t.referable(b, j, keys); err != nil {
			return err
		}
		if keys[j.DedupeKey] = true; j.Force {
			continue
		}
		if c := t.chat(b, t.lookupChat(b, chatName(j.Chat))); c != nil && c.Gone != "" && t.now < c.GoneAt+int64(probeGoneAfter) {
			return &InactiveError{Chat: j.Chat, Reason: c.Gone, Since: t.s.clock.at(c.GoneAt)}
		}
	}
	return nil
}

// accept stores one checked call.
func (t *txn) accept(b *Bot, j *NewJob) Queued {
	t.markRead(b, j.Read)
	old := t.replaced(b, j)
	if id := t.keyHolder(b, j.DedupeKey); id != 0 && old == nil {
		if r, err := t.job(id); err == nil {
			return Queued{Job: t.full(r).view(b.rec.Name, t.s.clock), Duplicate: true, Parts: t.parts(r)}
		}
		// The record is gone, the key is remembered: say so with what is known.
		return Queued{Job: Job{ID: id, Bot: b.rec.Name, Method: j.Method, State: Done, DedupeKey: &j.DedupeKey, Lane: Normal, OnUncertain: PolicyHold}, Duplicate: true}
	}
	r := t.newRecord(b, j)
	if old != nil && r.state != Dead {
		t.takeOver(b, old, r)
	}
	if r.Key != "" {
		t.put(bKey, dedupeKey(b.num, r.Key), keyValue(r.ID, r.KeyUntil))
	}
	t.putPrint(b, r)
	parts := t.store(b, r, j)
	return Queued{Job: t.full(r).view(b.rec.Name, t.s.clock), Parts: parts}
}

// newRecord makes the record of a call, without a place yet.
func (t *txn) newRecord(b *Bot, j *NewJob) *jobRec {
	no, c := t.internChat(b, chatName(j.Chat))
	id := j.ID
	if id == 0 {
		id = t.nextJobID()
	}
	l := b.cfg.Limits
	r := &jobRec{
		ID: id, Method: j.Method, ChatNo: no, ChatRaw: j.ChatRaw,
		Lane: laneOr(j.Lane).code(), Weight: byte(j.Weight), Safe: j.SafeToRepeat,
		Params: j.Params, Files: j.Files, Key: j.DedupeKey,
		NotBefore: t.s.clock.named(j.NotBefore), ExpiresAt: t.s.clock.named(j.ExpiresAt),
		MaxAttempts: j.MaxAttempts, OnUncertain: j.OnUncertain,
		Origin: j.Origin, Created: t.now, Updated: t.now, Force: j.Force, Print: j.Print, LateNote: j.LateNote,
		Fallback: j.Fallback.record(),
	}
	if r.Key != "" && j.DedupeFor > 0 {
		r.KeyUntil = t.now + int64(j.DedupeFor)
	}
	if r.MaxAttempts <= 0 {
		r.MaxAttempts = cmp.Or(l.MaxAttempts, defaultMaxAttempts)
	}
	if r.OnUncertain == "" {
		r.OnUncertain = cmp.Or(l.OnUncertain, PolicyHold)
	}
	if r.ExpiresAt == 0 && l.TTL > 0 {
		r.ExpiresAt = max(t.now, r.NotBefore) + int64(l.TTL)
	}
	if c.Gone != "" && !r.Force {
		t.probeGone(b, no, c, r)
	}
	if r.Edits = j.Edits; len(j.refKeys()) > 0 {
		t.referAll(b, j, r)
	}
	t.overtake(b, j, r)
	if r.payload() > inlineMax {
		k := bodyKey(r.ID)
		t.put(bBody, k, seal(k, r.packBody()))
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
	r.Error = &JobError{Class: "chat_gone", Description: c.Gone, At: t.s.clock.at(t.now)}
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
		t.changedJob(b, r)
		t.freeKey(b, r)
		t.dropFiles(r)
		t.putParked(b, r)
		return
	}
	r.state = Pending
	t.count(b, "", Pending)
	t.changedJob(b, r)
	if r.ExpiresAt != 0 {
		t.put(bTimer, timerKey(r.ExpiresAt, timerExpire, b.num, uint64(r.ID)), []byte{})
	}
	t.await(b, r)
	taken := t.taken
	t.taken = nil
	for _, id := range taken {
		t.tellWaiting(b, id)
	}
}

// await puts a pending job where it waits: in its chat's queue, or with the
// timers when it isn't due yet.
func (t *txn) await(b *Bot, r *jobRec) {
	r.ChatNo = t.follow(b, r.ChatNo)
	if t.chat(b, r.ChatNo) == nil { // brought back after its own queue was dropped
		r.ChatNo, _ = t.internChat(b, "")
	}
	if err := t.lookForResults(b, r); err != nil {
		t.end(b, r, Dead, t.waitsError(err))
		return
	}
	t.linkEdits(b, r)
	if r.waiting() {
		t.putLive(b, r)
		t.wait(b, r)
		return
	}
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

// putLive writes a job that is pending or running.
func (t *txn) putLive(b *Bot, r *jobRec) {
	k := liveKey(b.num, r.ID)
	t.put(bLive, k, encode(k, r))
}

// putParked writes a job that is neither.
func (t *txn) putParked(b *Bot, r *jobRec) {
	k := stateKey(b.num, r.state.code(), r.ID)
	if r.state.Ended() {
		t.putEnded(b, bEnded, k, encode(k, r))
	} else {
		t.put(bParked, k, encode(k, r))
	}
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
