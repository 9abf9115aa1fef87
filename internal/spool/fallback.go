package spool

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"slices"
)

// A fallback is a second call that a job makes once, in its place, when the
// first was rejected. Both stand in the job's record from the beginning, so that
// a restart in between changes nothing. While the second is the one to make,
// its weight and safety have changed places with those of the first.

// NewFallback is the second call of a job, to the same chat as the first.
type NewFallback struct {
	Method       string
	Params       json.RawMessage // as NewJob.Params
	Weight       int             // as NewJob.Weight
	SafeToRepeat bool
	Refs         []Ref // as NewJob.Refs
	// ForMarkup: only for a rejection that is about the text's markup.
	ForMarkup bool
}

// Fallback is the second call of a job as callers see it.
type Fallback struct {
	Method string          `json:"method"`
	Params json.RawMessage `json:"params"`
	Used   bool            `json:"used"` // the first was rejected: this is the call that counts
}

// fallbackRec is a fallback on disk. Long parameters stand in body, behind those
// of the first call.
type fallbackRec struct {
	Method string    `cbor:"1,keyasint"`
	Params []byte    `cbor:"2,keyasint,omitempty"`
	Weight byte      `cbor:"3,keyasint,omitempty"`
	Safe   bool      `cbor:"4,keyasint,omitempty"`
	Used   bool      `cbor:"5,keyasint,omitempty"`
	Said   *JobError `cbor:"6,keyasint,omitempty"` // what became of the first call
	Refs   []refRec  `cbor:"7,keyasint,omitempty"`
	Markup bool      `cbor:"8,keyasint,omitempty"` // only where the markup was refused
}

func (f *NewFallback) record() *fallbackRec {
	if f == nil {
		return nil
	}
	return &fallbackRec{Method: f.Method, Params: f.Params, Weight: byte(f.Weight), Safe: f.SafeToRepeat, Markup: f.ForMarkup}
}

func (f *fallbackRec) view() *Fallback {
	if f == nil {
		return nil
	}
	return &Fallback{Method: f.Method, Params: raw(f.Params), Used: f.Used}
}

// canFallBack reports whether a rejection leads to the second call. It never
// does where an attempt may have reached Telegram: that would be a second message.
func (r *jobRec) canFallBack() bool {
	return r.Fallback != nil && !r.Fallback.Used && !r.MaybeSent
}

// fallBack makes the second call the one to be made.
func (r *jobRec) fallBack(said *JobError) {
	r.swapFallback()
	r.Fallback.Used, r.Fallback.Said = true, said
}

// startOver makes the first call the one to be made again.
func (r *jobRec) startOver() {
	if r.Fallback != nil && r.Fallback.Used {
		r.swapFallback()
		r.Fallback.Used, r.Fallback.Said = false, nil
	}
}

func (r *jobRec) swapFallback() {
	f := *r.Fallback // records that share it must not change
	r.Weight, f.Weight = f.Weight, r.Weight
	r.Safe, f.Safe = f.Safe, r.Safe
	r.Fallback = &f
}

// lastError is what a job that ends keeps as its error: what its last call met,
// and what the first said where that was another one.
func (r *jobRec) lastError(met *JobError) *JobError {
	if r.Fallback == nil || !r.Fallback.Used || r.Fallback.Said == nil {
		return met
	}
	said := r.Fallback.Said
	if met == nil {
		return said
	}
	both := *met
	both.Description = fmt.Sprintf("%s (the fallback; the first call was %s: %s)", met.Description, said.Class, said.Description)
	return &both
}

// call is what is to be sent now: the job's own call, or its fallback, with the
// results of other jobs filled in.
func (r *jobRec) call() (method string, params []byte) {
	method, params = r.Method, r.Params
	if r.Fallback != nil && r.Fallback.Used {
		method, params = r.Fallback.Method, r.Fallback.Params
	}
	return method, fillIn(params, r.refs())
}

// payload is the number of bytes of all parameters.
func (r *jobRec) payload() int {
	n := len(r.Params)
	if r.Fallback != nil {
		n += len(r.Fallback.Params)
	}
	return n
}

// packBody takes the parameters out of the record, as the value for body.
func (r *jobRec) packBody() (body []byte) {
	body = r.Params
	if r.Fallback != nil {
		head := binary.BigEndian.AppendUint32(nil, uint32(len(r.Params)))
		body = slices.Concat(head, r.Params, r.Fallback.Params)
		f := *r.Fallback
		f.Params, r.Fallback = nil, &f
	}
	r.Params, r.InBody = nil, true
	return body
}

// unpackBody puts the parameters back; false when the value can't be one.
func (r *jobRec) unpackBody(body []byte) bool {
	if r.Fallback == nil {
		r.Params = slices.Clone(body)
		return true
	}
	if len(body) < 4 || uint64(len(body)-4) < uint64(binary.BigEndian.Uint32(body)) {
		return false
	}
	n := binary.BigEndian.Uint32(body)
	f := *r.Fallback
	f.Params, r.Fallback = slices.Clone(body[4+n:]), &f
	r.Params = slices.Clone(body[4 : 4+n])
	return true
}
