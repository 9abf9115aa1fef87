package gate

import "time"

// State is a gate's state in one word. The words are part of the contract.
type State string

// The states, the gravest first: a gate closed for several reasons shows the
// first of them.
const (
	StateUnauthorized State = "unauthorized"
	StatePaused       State = "paused"
	StateOffline      State = "offline"
	StateCooldown     State = "cooldown"
	StateOK           State = "ok"
)

// Snapshot is a gate as status shows it.
type Snapshot struct {
	State         State
	Since         time.Time // since when it is in that state
	CooldownUntil time.Time // zero when no cooldown runs
	Detail        string    // more in words, may be empty
}

// Snapshot returns the gate's present state.
func (g *Gate) Snapshot() Snapshot {
	now := time.Now()
	g.mu.Lock()
	defer g.mu.Unlock()
	var s Snapshot
	if now.Before(g.cooldown.until) {
		s.CooldownUntil = g.cooldown.until
	}
	for _, closed := range []struct {
		reason Reason
		state  State
	}{
		{Unauthorized, StateUnauthorized},
		{Paused, StatePaused},
		{Offline, StateOffline},
	} {
		if c, held := g.closed[closed.reason]; held {
			s.State, s.Since, s.Detail = closed.state, c.since, c.detail
			return s
		}
	}
	if !s.CooldownUntil.IsZero() {
		s.State, s.Since, s.Detail = StateCooldown, g.cooldown.since, g.cooldown.detail
		return s
	}
	s.State, s.Since = StateOK, g.okSince
	if g.cooldown.until.After(s.Since) {
		s.Since = g.cooldown.until
	}
	// A doubt of a moment isn't a state of its own.
	s.Detail = g.closed[Probing].detail
	return s
}
