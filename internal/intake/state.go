package intake

import (
	"context"
	"log/slog"
	"sync"
	"time"
)

// State is how intake is doing, in one word. The words are part of the contract.
type State string

// The states.
const (
	OK           State = "ok"
	Offline      State = "offline"      // Telegram can't be reached, or somebody else answers
	Conflict     State = "conflict"     // another process polls, or a webhook is set
	Paused       State = "paused"       // a person has stopped it
	Unauthorized State = "unauthorized" // Telegram refuses the token
	Full         State = "full"         // the spool can't store what came
)

// Snapshot is the state at one moment, as status shows it.
type Snapshot struct {
	State  State     `json:"state"`
	Since  time.Time `json:"since"`
	Detail string    `json:"detail"` // why, in words; empty when all is well
}

// Alert is something that a person should hear of, once.
type Alert struct {
	State State
	Text  string // what has happened and what to do, without secrets
}

// status is the state, shared between the poller and whoever asks.
type status struct {
	mu  sync.Mutex // guards now
	now Snapshot
}

func (s *status) get() Snapshot {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.now
}

// set takes over a state and reports whether it is another one.
func (s *status) set(state State, detail string) (before State, changed bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	before = s.now.State
	if changed = before != state; changed {
		s.now = Snapshot{State: state, Since: time.Now()}
	}
	s.now.Detail = detail
	return before, changed
}

// enter changes the state and says so once, not at each failure of a series.
func (p *Poller) enter(ctx context.Context, state State, detail string) {
	before, changed := p.status.set(state, detail)
	if !changed {
		return
	}
	level := slog.LevelWarn
	switch state {
	case OK, Paused:
		level = slog.LevelInfo
	case Unauthorized, Full:
		level = slog.LevelError
	case Offline, Conflict:
	}
	attrs := []slog.Attr{slog.String("state", string(state)), slog.String("from_state", string(before))}
	if detail != "" {
		attrs = append(attrs, slog.String("reason", detail))
	}
	p.logger.LogAttrs(ctx, level, "intake has changed its state", attrs...)
}

// alert tells a person, where somebody listens.
func (p *Poller) alert(state State, text string) {
	if p.notify != nil {
		p.notify(Alert{State: state, Text: text})
	}
}
