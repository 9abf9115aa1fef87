package spool

import (
	"fmt"
	"slices"
)

// A text that is longer than a message becomes an ordered group of jobs: its
// parts. They are made in one transaction and stand behind each other in their
// chat's lane. The first holds the dedupe key for all. When one dies, those that
// still wait behind it die with it: a text must not go on behind a hole. What is
// uncertain or held lets the others pass, as everywhere.

// PartOf says which part of a long text a job is.
type PartOf struct {
	Number int   `json:"number"` // 1 is the first
	Of     int   `json:"of"`
	Next   int64 `json:"next"` // the job that follows, 0 behind the last
}

// partRec is the place of a job among the parts of a text.
type partRec struct {
	Number int   `cbor:"1,keyasint"`
	Of     int   `cbor:"2,keyasint"`
	Next   int64 `cbor:"3,keyasint,omitempty"` // the job that follows
}

func (p *partRec) view() *PartOf {
	if p == nil {
		return nil
	}
	return &PartOf{Number: p.Number, Of: p.Of, Next: p.Next}
}

// store gives the record of a call its place, and those of its further parts
// places behind it. It returns the ids of all; none of a call without parts.
func (t *txn) store(b *Bot, first *jobRec, j *NewJob) []int64 {
	if len(j.Parts) == 0 {
		t.place(b, first)
		return nil
	}
	of := len(j.Parts) + 1
	first.Part = &partRec{Number: 1, Of: of}
	first.Order = 0 // in the place of an older one it would leave its parts behind
	waits := first.waitsOnly()
	ids := []int64{first.ID}
	last := first
	for i := range j.Parts {
		next := j.Parts[i]
		next.Lane, next.NotBefore, next.ExpiresAt = Lanes()[first.Lane], j.NotBefore, j.ExpiresAt
		// Of an inactive chat the first part is the one that tries; the others
		// follow or die with it.
		next.Force = first.Force
		r := t.newRecord(b, &next)
		r.Part, r.Refs = &partRec{Number: i + 2, Of: of}, slices.Clone(waits)
		last.Part.Next = r.ID
		if t.place(b, last); last.state == Dead && r.state != Dead {
			r.state, r.Error = Dead, t.partError(first)
		}
		ids = append(ids, r.ID)
		last = r
	}
	t.place(b, last)
	return ids
}

// waitsOnly are the waits of a call for others' results, for those that may not
// go before it.
func (r *jobRec) waitsOnly() (list []refRec) {
	for _, ref := range r.refs() {
		if ref.With == "" {
			list = append(list, refRec{Key: ref.Key, Job: ref.Job, Only: true})
		}
	}
	return list
}

// parts are the ids of the parts of a text from this one on, as far as their
// records are kept.
func (t *txn) parts(r *jobRec) []int64 {
	if r.Part == nil {
		return nil
	}
	ids := []int64{r.ID}
	for len(ids) < r.Part.Of && r.Part.Next != 0 {
		next, err := t.job(r.Part.Next)
		ids = append(ids, r.Part.Next)
		if err != nil || next.Part == nil {
			break
		}
		r = next
	}
	return ids
}

// endRest ends the parts that wait behind one that has died or was superseded.
func (t *txn) endRest(b *Bot, from *jobRec, to State, why *JobError) {
	if from.Part == nil {
		return
	}
	for next := from.Part.Next; next != 0; {
		r, err := t.job(next)
		if err != nil || r.Part == nil || r.Part.Number <= from.Part.Number {
			return
		}
		if next = r.Part.Next; r.state != Pending {
			continue
		}
		t.leaveQueue(b, r)
		r.Error, r.Updated = why, t.now
		t.depart(b, r, Pending, Verdict{State: to})
	}
}

// partError says why the parts behind a dead one are dead.
func (t *txn) partError(dead *jobRec) *JobError {
	if dead.Part == nil {
		return nil
	}
	why := ""
	if e := dead.Error; e != nil {
		why = fmt.Sprintf(", %s: %s", e.Class, e.Description)
	}
	return &JobError{Class: "part_dead", At: t.s.clock.at(t.now), Description: fmt.Sprintf(
		"part %d of %d of the text is dead (job %d%s)", dead.Part.Number, dead.Part.Of, dead.ID, why)}
}
