package gate

import "time"

// streak is a pause that doubles each time it proves too short.
type streak struct {
	first, max time.Duration
	pause      time.Duration // the last pause, 0 when the streak is over
	until      time.Time
}

// extend returns the end of the pause that an answer at now asks for. Answers
// that arrive while a pause already runs, of calls that were in flight when it
// began, share its end instead of doubling it once each.
func (s *streak) extend(now time.Time) time.Time {
	if s.pause > 0 && now.Before(s.until) {
		return s.until
	}
	s.pause = min(max(2*s.pause, s.first), s.max)
	s.until = now.Add(s.pause)
	return s.until
}

// UndatedFlood returns until when the bot pauses after a 429 without a usable
// delay: 5 s, doubling to 5 min as long as they keep coming.
func (g *Gate) UndatedFlood(now time.Time) time.Time {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.undated.extend(now)
}

// Frozen returns until when the bot pauses after Telegram has called its
// account frozen: 1 h, doubling to 24 h.
func (g *Gate) Frozen(now time.Time) time.Time {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.frozen.extend(now)
}

// EndStreaks begins the growing pauses anew: a call has been accepted.
func (g *Gate) EndStreaks() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.undated.pause, g.frozen.pause = 0, 0
}
