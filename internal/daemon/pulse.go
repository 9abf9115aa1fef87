package daemon

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/tgspool/tgspool/internal/botapi"
	"github.com/tgspool/tgspool/internal/config"
)

const (
	// pulseSlack is how late something may be before it counts as stuck: a small
	// board under load is slow, and a restart costs more than patience.
	pulseSlack = time.Minute
	// uploadBound is the longest that a call with files may take. Its own bound
	// is that it makes progress, at any speed.
	uploadBound = 6 * time.Hour
)

// pulse knows what the loops are waiting for. Each wait that has a bound of its
// own is declared with it; what is idle waits for the spool, whose writer has a
// health of its own. A loop that has ended, and a wait that is over its bound,
// are what only a new start can mend.
type pulse struct {
	mu    sync.Mutex // guards all below
	waits map[*expected]struct{}
	ended string // a loop that has ended although nobody asked it to
}

// expected is one wait.
type expected struct {
	what string
	by   time.Time
}

func newPulse() *pulse { return &pulse{waits: map[*expected]struct{}{}} }

// expect declares that something ends within bound. The function that it returns
// says that it has.
func (p *pulse) expect(what string, bound time.Duration) (done func()) {
	e := &expected{what, time.Now().Add(bound + pulseSlack)}
	p.mu.Lock()
	p.waits[e] = struct{}{}
	p.mu.Unlock()
	return func() {
		p.mu.Lock()
		delete(p.waits, e)
		p.mu.Unlock()
	}
}

// lost notes a loop that has ended.
func (p *pulse) lost(loop string) {
	p.mu.Lock()
	p.ended = loop
	p.mu.Unlock()
}

// stuck tells what doesn't turn any more; empty while all does.
func (p *pulse) stuck(now time.Time) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ended != "" {
		return p.ended + " has ended"
	}
	for e := range p.waits {
		if now.After(e.by) {
			return fmt.Sprintf("%s should have ended %s ago", e.what, now.Sub(e.by.Add(-pulseSlack)).Round(time.Second))
		}
	}
	return ""
}

// callBound is the longest that a call may take by the settings of its bot.
func callBound(c config.Bot, r botapi.Request) time.Duration {
	if len(r.Files) > 0 {
		return uploadBound
	}
	bound := c.Sender.RequestTimeout
	if r.Timeout > 0 {
		bound = r.Timeout
	}
	return bound + c.Sender.StallTimeout + time.Minute // the last for a connection to stand
}

// healthy is what the watchdog is told. What is wrong is logged once.
func (d *daemon) healthy() bool {
	why := d.pulse.stuck(time.Now())
	if why == "" && !d.store.Healthy() {
		why = "the spool's writer makes no progress"
	}
	if why != "" && d.sick != why {
		d.log.LogAttrs(context.Background(), slog.LevelError, "a loop is stuck; the watchdog is to restart us", slog.String("reason", why))
	}
	d.sick = why
	return why == ""
}
