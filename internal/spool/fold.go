package spool

import (
	"fmt"
	"math"
	"slices"
	"strings"
)

// A queued edit gives way to a newer one of the same method on the same message,
// which takes its place; whoever waits for the old one gets the end of the new
// one. A delete ends all edits of its message. A call that replaces the pending
// holder of its key goes the same way. What gives way ends as cancelled, class
// superseded, and its key stays taken.

// supersededClass is the error class of a job whose place another has taken.
const supersededClass = "superseded"

// edits is the message that a job edits, under the name that links have; "" for
// none. A message that another job has yet to make is named by that job.
func (r *jobRec) edits() string {
	if len(r.Refs) == 0 {
		return r.Edits
	}
	return strings.Replace(r.Edits, RefMark, r.Refs[0].name(), 1)
}

func (t *txn) linkEdits(b *Bot, r *jobRec) {
	if r.Edits != "" {
		t.putLink(b, linkEdits, r.edits(), r.ID)
	}
}

func (t *txn) unlinkEdits(b *Bot, r *jobRec) {
	if r.Edits != "" {
		t.dropLink(b, linkEdits, r.edits(), r.ID)
	}
}

// maxFolding bounds how many edits of one message are looked at for those to fold,
// the youngest: those that aren't due yet stay where they are, maybe thousands.
const maxFolding = 100

// overtake lets a new job, which has no place yet, take over from those that it
// makes pointless. One that isn't due yet takes over from none: until then they
// are right.
func (t *txn) overtake(b *Bot, j *NewJob, r *jobRec) {
	if r.state == Dead || r.NotBefore > t.now {
		return
	}
	if name := r.edits(); name != "" {
		for _, old := range t.newest(b, linkEdits, name, maxFolding) {
			if old.Method == r.Method && old.edits() == name && t.follow(b, old.ChatNo) == r.ChatNo && t.sameWait(old, r) {
				t.takeOver(b, old, r)
			}
		}
	}
	for _, name := range j.Deletes {
		if len(r.Refs) > 0 {
			name = strings.Replace(name, RefMark, r.Refs[0].name(), 1)
		}
		for _, old := range t.linked(b, linkEdits, name, math.MaxInt) {
			if old.edits() == name {
				t.supersede(b, old, r.ID, fmt.Sprintf("job %d deletes the message", r.ID))
			}
		}
	}
}

// sameWait reports whether an edit stands where its newer one would: both in the
// queue, or both waiting for the same message.
func (t *txn) sameWait(old, r *jobRec) bool {
	if old.NotBefore > t.now && old.Order == 0 {
		return false
	}
	return old.waiting() == r.waiting() && !r.needsYounger(old)
}

// needsYounger reports whether a call needs the result of a job that came after
// another. In that one's place it could wait for a job that waits for itself.
func (r *jobRec) needsYounger(old *jobRec) bool {
	younger := func(ref refRec) bool { return ref.Job > old.ID }
	return slices.ContainsFunc(r.Refs, younger) || r.Fallback != nil && slices.ContainsFunc(r.Fallback.Refs, younger)
}

// takeOver gives a new job the place of an old one, and those who wait for the
// old one to the new one. What the old one has met lately holds for the new one.
func (t *txn) takeOver(b *Bot, old, r *jobRec) {
	due := r.NotBefore <= t.now && t.follow(b, old.ChatNo) == r.ChatNo
	if due && old.Order != 0 && (r.Order == 0 || old.Order < r.Order) {
		r.Order, r.RetryAt = old.Order, max(r.RetryAt, old.RetryAt)
	}
	r.Lane = min(r.Lane, old.Lane)
	old.Folded = true
	t.taken = append(t.taken, old.ID)
	t.supersede(b, old, r.ID, fmt.Sprintf("job %d took its place with newer content", r.ID))
}

// supersede ends a pending job in favour of another.
func (t *txn) supersede(b *Bot, old *jobRec, by int64, why string) {
	t.leaveQueue(b, old)
	if old.By = by; old.Folded {
		old.Order = 0 // its place is another's now, also if a person brings it back
	}
	old.Error, old.Updated = &JobError{Class: supersededClass, Description: why, At: t.s.clock.at(t.now)}, t.now
	t.leave(b, old, Pending, Verdict{State: Cancelled})
	t.endRest(b, old, Cancelled, old.Error)
}

// replaced finds the pending job that a call replaces: the holder of its key,
// also one that holds it only in its record because its span is over. One that
// may have reached Telegram is never replaced: both would arrive.
func (t *txn) replaced(b *Bot, j *NewJob) *jobRec {
	if !j.Replace || j.DedupeKey == "" {
		return nil
	}
	v := t.get(bKey, dedupeKey(b.num, j.DedupeKey))
	if len(v) != 16 {
		return nil
	}
	r, err := t.liveJob(b, int64(u64at(v, 0)))
	if err != nil || r.state != Pending || r.MaybeSent || r.Key != j.DedupeKey || j.OwnOnly && r.Origin != j.Origin {
		return nil
	}
	return r
}

// successor follows a job whose place was taken to the one that stands for it.
func (t *txn) successor(b *Bot, r *jobRec) (*Bot, *jobRec) {
	for r.Folded {
		nb, next, err := t.jobAndBot(r.By)
		if err != nil || next.ID <= r.ID {
			break // removed since; what is known of the old one is all there is
		}
		b, r = nb, next
	}
	return b, r
}
