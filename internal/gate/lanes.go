package gate

import (
	"context"
	"time"
)

// Reason is why nothing of a bot may go out. Several may hold at once.
type Reason string

// The reasons. Whoever meets one closes the lanes for it; the bot's prober, in
// the sender, then asks Telegram until it may lift all but the last.
const (
	// Probing: an answer made Telegram or the token doubtful; it is being asked.
	Probing Reason = "probing"
	// Offline: Telegram can't be reached.
	Offline Reason = "offline"
	// Unauthorized: Telegram refuses the token, and that is believed.
	Unauthorized Reason = "unauthorized"
	// Paused: a person has stopped the sender.
	Paused Reason = "paused"
)

type closure struct {
	since  time.Time
	detail string
}

// OnOpen sets the function that is called, outside of any lock, each time the
// gate opens after Admit had no time to offer. It is set once, before use.
func (g *Gate) OnOpen(f func()) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.onOpen = f
}

// CloseLanes holds everything back for a reason, with a detail for people. It
// reports whether the reason is a new one; if it isn't, only the detail changes.
func (g *Gate) CloseLanes(reason Reason, detail string) (changed bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	c, known := g.closed[reason]
	if !known {
		c.since = time.Now()
	}
	c.detail = detail
	g.closed[reason] = c
	if !known {
		close(g.shut)
		g.shut = make(chan struct{})
	}
	return !known
}

// AwaitHeld waits until one of the reasons holds, at once when one does. The
// error is that of ctx, which counts before any reason: a loop over AwaitHeld
// ends with its ctx although the reason stays.
func (g *Gate) AwaitHeld(ctx context.Context, reasons ...Reason) error {
	for ctx.Err() == nil {
		g.mu.Lock()
		shut, held := g.shut, false
		for _, reason := range reasons {
			_, is := g.closed[reason]
			held = held || is
		}
		g.mu.Unlock()
		if held {
			return nil
		}
		select {
		case <-ctx.Done():
		case <-shut:
		}
	}
	return ctx.Err()
}

// OpenLanes lifts reasons and reports whether any of them held. Whoever sleeps
// in SleepBackoff wakes up, also when other reasons remain.
func (g *Gate) OpenLanes(reasons ...Reason) (changed bool) {
	return g.open(false, reasons)
}

// Success says that Telegram has answered a call of this bot: it ends the
// back-off of all its callers and what held them back for want of an answer.
func (g *Gate) Success() { g.open(true, []Reason{Offline, Probing}) }

func (g *Gate) open(wake bool, reasons []Reason) (changed bool) {
	g.mu.Lock()
	for _, reason := range reasons {
		if _, held := g.closed[reason]; held {
			delete(g.closed, reason)
			changed = true
		}
	}
	if changed || wake {
		close(g.changed)
		g.changed = make(chan struct{})
	}
	var opened func()
	if changed && len(g.closed) == 0 {
		g.okSince = time.Now()
		opened = g.onOpen
	}
	g.mu.Unlock()
	if opened != nil {
		opened()
	}
	return changed
}

// Held reports whether a reason holds everything back, since when, and what
// CloseLanes was told last.
func (g *Gate) Held(reason Reason) (held bool, since time.Time, detail string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	c, held := g.closed[reason]
	return held, c.since, c.detail
}

// SleepBackoff waits for d, or less when a call of the bot succeeds or a reason
// is lifted meanwhile. The error is that of ctx.
func (g *Gate) SleepBackoff(ctx context.Context, d time.Duration) error {
	g.mu.Lock()
	changed := g.changed
	g.mu.Unlock()
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-changed:
		return nil
	case <-timer.C:
		return nil
	}
}

// AwaitOpen is the back-off of a caller that isn't the prober: it waits for at
// least the one span and at most the other, and ends early when a call of the
// bot has succeeded, or a reason was lifted, since it began, unless Telegram or
// the token is still in doubt. It reports whether it ended early.
func (g *Gate) AwaitOpen(ctx context.Context, least, most time.Duration) (early bool) {
	_, changed := g.doubt()
	first, last := time.NewTimer(least), time.NewTimer(most)
	defer first.Stop()
	defer last.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-first.C:
	}
	for {
		select {
		case <-ctx.Done():
			return false
		case <-last.C:
			return false
		case <-changed:
		}
		var doubted bool
		if doubted, changed = g.doubt(); !doubted {
			return least < most
		}
	}
}

// doubt reports whether Telegram or the token is being asked about, and what is
// closed at the next sign that this may be over.
func (g *Gate) doubt() (doubted bool, changed <-chan struct{}) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, r := range []Reason{Probing, Unauthorized} {
		if _, held := g.closed[r]; held {
			doubted = true
		}
	}
	return doubted, g.changed
}
