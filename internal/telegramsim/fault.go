package telegramsim

import (
	"encoding/json"
	"path"
	"slices"
	"strings"
	"time"
)

// FaultKind is what goes wrong.
type FaultKind string

// The kinds of faults. Those marked "no effect possible" strike before the
// request is read, so Fault.Effect means nothing to them.
const (
	// FaultCode answers with Code and Body.
	FaultCode FaultKind = "code"
	// FaultFlood answers 429 with RetryAfter in the body and in the header.
	FaultFlood FaultKind = "flood"
	// FaultFloodUndated answers 429 without saying how long.
	FaultFloodUndated FaultKind = "flood_undated"
	// FaultHang reads the request and never answers.
	FaultHang FaultKind = "hang"
	// FaultAcceptClose closes the connection without reading (no effect possible).
	FaultAcceptClose FaultKind = "accept_close"
	// FaultResetAfterRead reads the whole request and resets the connection.
	FaultResetAfterRead FaultKind = "reset_after_read"
	// FaultHalfBody sends the header, half of the body, and closes.
	FaultHalfBody FaultKind = "half_body"
	// FaultEmpty answers 200 (or Code) without a body.
	FaultEmpty FaultKind = "empty"
	// FaultHTML200 answers 200 (or Code) with a web page.
	FaultHTML200 FaultKind = "html200"
	// FaultTruncatedJSON answers with JSON that stops in the middle, as a
	// whole HTTP answer.
	FaultTruncatedJSON FaultKind = "truncated_json"
	// FaultSlow answers as usual, after Delay. With Effect the call is carried
	// out before the delay; without it after the delay, and not at all when
	// the caller has gone by then.
	FaultSlow FaultKind = "slow"
	// FaultRedirect answers 302 to a login page (or to Body).
	FaultRedirect FaultKind = "redirect"
	// FaultOffline refuses the connection (no effect possible). On a real
	// socket a fault that meets only some calls can but reset the connection
	// after the request has come; see SetOffline for a whole outage.
	FaultOffline FaultKind = "offline"
)

// Fault is a script: which calls it meets and what happens to them. Of several
// faults that meet a call the first added acts.
type Fault struct {
	// Method is what it meets: a method's name or a pattern like "send*" in
	// any case; empty meets every method.
	Method string `json:"method,omitempty"`
	// Chat restricts it to one chat; 0 means any.
	Chat int64 `json:"chat,omitempty"`
	// After is how many calls pass before the first is met.
	After int `json:"after,omitempty"`
	// Times is how many calls are met; 0 means until it is removed.
	Times int `json:"times,omitempty"`
	// Kind is what happens.
	Kind FaultKind `json:"kind"`
	// Code is the status of FaultCode, FaultEmpty and FaultHTML200.
	Code int `json:"code,omitempty"`
	// Body is the body of FaultCode: sent as it is when it starts with { or <,
	// else it is the description. Empty means the usual text for the code.
	Body string `json:"body,omitempty"`
	// RetryAfter is the wait of FaultFlood in seconds; 0 means 1.
	RetryAfter int `json:"retry_after,omitempty"`
	// Delay passes before the fault shows. In JSON it is text, "1.5s".
	Delay time.Duration `json:"-"`
	// Effect carries the call out before the fault shows: the answer is what
	// gets lost.
	Effect bool `json:"effect,omitempty"`
}

// plainFault is Fault without its methods, to build its JSON form on.
type plainFault Fault

// faultJSON is the JSON form of a fault.
type faultJSON struct {
	plainFault
	ID    int    `json:"id,omitempty"`
	Delay string `json:"delay,omitempty"`
}

// MarshalJSON writes the delay as text.
func (f Fault) MarshalJSON() ([]byte, error) {
	return json.Marshal(f.shaped(0))
}

// shaped is the JSON form with an id.
func (f Fault) shaped(id int) faultJSON {
	out := faultJSON{plainFault: plainFault(f), ID: id}
	if f.Delay > 0 {
		out.Delay = f.Delay.String()
	}
	return out
}

// UnmarshalJSON reads the delay as text.
func (f *Fault) UnmarshalJSON(text []byte) error {
	var in faultJSON
	if err := json.Unmarshal(text, &in); err != nil {
		return err
	}
	*f = Fault(in.plainFault)
	if in.Delay == "" {
		return nil
	}
	delay, err := time.ParseDuration(in.Delay)
	f.Delay = delay
	return err
}

// script is a fault that is in force. Sim.mu guards it.
type script struct {
	id    int
	fault Fault
	seen  int // calls that matched
}

// AddFault puts a fault in force and returns its id.
func (s *Sim) AddFault(f Fault) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faultID++
	s.faults = append(s.faults, &script{id: s.faultID, fault: f})
	return s.faultID
}

// RemoveFault ends a fault. Calls that it holds stay held; an unknown id is no
// error.
func (s *Sim) RemoveFault(id int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults = slices.DeleteFunc(s.faults, func(x *script) bool { return x.id == id })
}

// Faults are the faults in force, by id.
func (s *Sim) Faults() map[int]Fault {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := make(map[int]Fault, len(s.faults))
	for _, x := range s.faults {
		list[x.id] = x.fault
	}
	return list
}

// takeFault finds the fault that meets a call and counts it.
func (s *Sim) takeFault(c *call) (Fault, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, x := range s.faults {
		if !s.meets(&x.fault, c) {
			continue
		}
		x.seen++
		if x.seen <= x.fault.After {
			continue
		}
		if x.fault.Times > 0 && x.seen == x.fault.After+x.fault.Times {
			s.faults = slices.DeleteFunc(s.faults, func(y *script) bool { return y == x })
		}
		return x.fault, true
	}
	return Fault{}, false
}

// meets tells whether a fault is about a call.
func (s *Sim) meets(f *Fault, c *call) bool {
	if f.Method != "" {
		if ok, err := path.Match(strings.ToLower(f.Method), strings.ToLower(c.name)); err != nil || !ok {
			return false
		}
	}
	if f.Chat == 0 {
		return true
	}
	value := strings.TrimSpace(c.params.get("chat_id"))
	if name, ok := strings.CutPrefix(value, "@"); ok {
		return s.names[strings.ToLower(name)] == f.Chat
	}
	id, _ := looseInt(value)
	return id == f.Chat
}

// unread tells whether a fault strikes before the request is read.
func (k FaultKind) unread() bool { return k == FaultAcceptClose || k == FaultOffline }
