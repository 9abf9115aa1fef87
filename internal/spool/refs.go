package spool

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
)

// A call may name the result of another job where a message's number goes. It
// waits until that job has ended well, outside of any queue, and then takes its
// place like one that has become due. Each number is kept with the job as soon as
// it is known, so that the other's record may go.

// waitsClass is the error class of a job whose awaited result never came.
const waitsClass = "waits_for_job"

// RefMark stands, in NewJob.Edits and Deletes, for the message that the call's
// first reference names.
const RefMark = "$"

// Ref is a place in a call's parameters where the number of a message goes that
// another job makes.
type Ref struct {
	Key        string // dedupe key of the other job
	Start, End int    // bytes of the parameters that the number takes the place of
	List       bool   // the numbers of all its messages, as a JSON array
}

// refRec is a reference on disk.
type refRec struct {
	Key   string `cbor:"1,keyasint"`
	Start int    `cbor:"2,keyasint"`
	End   int    `cbor:"3,keyasint"`
	List  bool   `cbor:"4,keyasint,omitempty"`
	Job   int64  `cbor:"5,keyasint"`           // the other job
	With  string `cbor:"6,keyasint,omitempty"` // the number; empty: not known yet
	Only  bool   `cbor:"7,keyasint,omitempty"` // the wait only: it stands nowhere, and any end will do
}

// name is what a reference stands for in the name of a message.
func (r *refRec) name() string {
	if r.With != "" {
		return r.With
	}
	return "job " + strconv.FormatInt(r.Job, 10)
}

// maxRefs is the most references of one call.
const maxRefs = 100

func checkRefs(refs []Ref, params []byte) error {
	if len(refs) > maxRefs {
		return fmt.Errorf("%d references to other jobs, more than %d: %w", len(refs), maxRefs, ErrInvalid)
	}
	at := 0
	for _, r := range refs {
		if r.Key == "" || r.Start < at || r.End <= r.Start || r.End > len(params) {
			return fmt.Errorf("a reference to the job of key %q at %d to %d of %d bytes: %w", r.Key, r.Start, r.End, len(params), ErrInvalid)
		}
		at = r.End
	}
	return nil
}

// refs are the references of the call that is to be made.
func (r *jobRec) refs() []refRec {
	if r.Fallback != nil && r.Fallback.Used {
		return r.Fallback.Refs
	}
	return r.Refs
}

// waiting reports whether a result is still to come.
func (r *jobRec) waiting() bool {
	return slices.ContainsFunc(r.refs(), func(ref refRec) bool { return ref.With == "" })
}

// fillIn puts the numbers where the references stand, which is in order.
func fillIn(params []byte, refs []refRec) []byte {
	var out []byte
	at := 0
	for _, ref := range refs {
		if ref.Only {
			continue
		}
		out = append(append(out, params[at:ref.Start]...), ref.With...)
		at = ref.End
	}
	if at == 0 {
		return params
	}
	return append(out, params[at:]...)
}

// findRef finds the job that holds a key, or that an update caused under one.
func (t *txn) findRef(b *Bot, k string) (*jobRec, error) {
	id := t.keyHolder(b, k)
	if id == 0 {
		id = t.replyHolder(b, k)
	}
	if id == 0 {
		return nil, fmt.Errorf("no job holds the key %q: %w", k, ErrInvalid)
	}
	r, err := t.job(id)
	if err != nil {
		return nil, fmt.Errorf("job %d of the key %q is gone, and its result with it: %w", id, k, ErrInvalid)
	}
	if _, r = t.successor(b, r); r.state.Ended() && r.state != Done {
		return nil, fmt.Errorf("job %d, which holds the key %q, is %s: %w", r.ID, k, r.state, ErrInvalid)
	}
	return r, nil
}

// refKeys lists the keys that a call's references name.
func (j *NewJob) refKeys() (list []string) {
	for _, r := range j.Refs {
		list = append(list, r.Key)
	}
	if j.Fallback != nil {
		for _, r := range j.Fallback.Refs {
			list = append(list, r.Key)
		}
	}
	return list
}

// referable checks that the jobs which a call's references name are there, or
// come before it in the same posting.
func (t *txn) referable(b *Bot, j *NewJob, before map[string]bool) error {
	old := t.replaced(b, j)
	for _, k := range j.refKeys() {
		r, err := t.findRef(b, k)
		if err != nil && !before[k] {
			return err
		}
		if old != nil && (err != nil || r.ID >= old.ID) {
			return fmt.Errorf("the job of the key %q is younger than the one to be replaced: %w", k, ErrInvalid)
		}
	}
	return nil
}

// refer finds the jobs that a new call's references name.
func (t *txn) refer(b *Bot, refs []Ref) (list []refRec, err error) {
	for _, r := range refs {
		other, err := t.findRef(b, r.Key)
		if err != nil {
			return nil, err
		}
		list = append(list, refRec{Key: r.Key, Start: r.Start, End: r.End, List: r.List, Job: other.ID})
	}
	return list, nil
}

// referAll gives a new record its references. One that leads nowhere, which can
// only be met in a handler's commit, ends the job.
func (t *txn) referAll(b *Bot, j *NewJob, r *jobRec) {
	var err error
	if r.Refs, err = t.refer(b, j.Refs); err == nil && j.Fallback != nil {
		r.Fallback.Refs, err = t.refer(b, j.Fallback.Refs)
	}
	if err == nil {
		err = t.lookForResults(b, r)
	}
	if err != nil && r.state != Dead {
		r.state, r.Error = Dead, t.waitsError(err)
	}
}

func (t *txn) waitsError(err error) *JobError {
	return &JobError{Class: waitsClass, Description: err.Error(), At: t.s.clock.at(t.now)}
}

// lookForResults fills in what is known by now. The error says why something
// will never be; a call with a fallback that needs nothing falls back on it.
func (t *txn) lookForResults(b *Bot, r *jobRec) error {
	err := t.fillRefs(b, r.refs())
	if err != nil && r.canFallBack() && len(r.Fallback.Refs) == 0 {
		r.fallBack(t.waitsError(err))
		return nil
	}
	return err
}

func (t *txn) fillRefs(b *Bot, refs []refRec) error {
	for i := range refs {
		ref := &refs[i]
		if ref.With != "" {
			continue
		}
		other, err := t.job(ref.Job)
		if err != nil && ref.Only {
			ref.With = "-"
			continue
		}
		if err != nil {
			return fmt.Errorf("job %d (%s) is gone, and its result with it", ref.Job, ref.Key)
		}
		_, other = t.successor(b, other)
		ref.Job = other.ID
		if !other.state.Ended() {
			continue
		}
		if ref.Only {
			ref.With = "-"
			continue
		}
		if ref.With, err = ref.from(other); err != nil {
			return err
		}
	}
	return nil
}

// from reads what a reference stands for out of the result of a job that has ended.
func (r *refRec) from(other *jobRec) (string, error) {
	if other.state != Done {
		why := ""
		if e := other.Error; e != nil {
			why = ": " + e.Class + ": " + e.Description
		}
		return "", fmt.Errorf("job %d (%s) is %s%s", other.ID, r.Key, other.state, why)
	}
	ids := messageIDs(other.Result)
	if len(ids) == 0 {
		return "", fmt.Errorf("job %d (%s) is done, but its result names no message", other.ID, r.Key)
	}
	if r.List {
		return string(must(json.Marshal(ids))), nil
	}
	return strconv.FormatInt(ids[0], 10), nil
}

// messageIDs are the messages of a result: one, or an album's.
func messageIDs(result []byte) (ids []int64) {
	type message struct {
		ID int64 `json:"message_id"`
	}
	var one message
	var many []message
	if json.Unmarshal(result, &one) == nil && one.ID != 0 {
		return []int64{one.ID}
	}
	if json.Unmarshal(result, &many) == nil {
		for _, m := range many {
			ids = append(ids, m.ID)
		}
	}
	return ids
}

// wait puts a job aside until the results that it needs are there.
func (t *txn) wait(b *Bot, r *jobRec) {
	for _, ref := range r.refs() {
		if ref.With == "" {
			t.putLink(b, linkWaits, strconv.FormatInt(ref.Job, 10), r.ID)
		}
	}
}

func (t *txn) unwait(b *Bot, r *jobRec) {
	for _, ref := range r.refs() {
		if ref.With == "" {
			t.dropLink(b, linkWaits, strconv.FormatInt(ref.Job, 10), r.ID)
		}
	}
}

// maxNested bounds how long a chain of jobs, each waiting for the one before,
// is followed within one transaction.
const maxNested = 16

// tellWaiting lets those go on that wait for a job which has ended: they take
// their places, or die with it. What is too much for one transaction follows by
// a timer, so that a stop in between loses nothing.
func (t *txn) tellWaiting(b *Bot, id int64) {
	name := strconv.FormatInt(id, 10)
	list := t.linked(b, linkWaits, name, maxEndings+1)
	if len(list) > maxEndings || t.nested == maxNested && len(list) > 0 {
		t.put(bTimer, timerKey(t.now, timerWaits, b.num, uint64(id)), []byte{})
		if t.nested == maxNested {
			return
		}
		list = list[:maxEndings]
	}
	t.nested++
	defer func() { t.nested-- }()
	for _, r := range list {
		t.dropLink(b, linkWaits, name, r.ID)
		if now, err := t.liveJob(b, r.ID); err != nil || now.state != Pending {
			continue // it ended with one that came before it in the list
		}
		if !slices.ContainsFunc(r.refs(), func(ref refRec) bool { return ref.With == "" && ref.Job == id }) {
			continue // a stale link
		}
		t.unwait(b, r)
		t.unlinkEdits(b, r)
		r.Updated = t.now
		t.await(b, r)
		t.tell(r.ID)
	}
}
