package daemon

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/tgspool/tgspool/internal/botapi"
	"github.com/tgspool/tgspool/internal/spool"
)

// figures is what has happened with one bot since the last line.
type figures struct {
	calls, ok, floods int
	runs, failed      int // of handlers
}

// stats logs a line of figures a bot, an interval after something happened.
// While nothing happens it sleeps.
type stats struct {
	log     *slog.Logger
	status  func() spool.Status
	changed chan time.Duration
	woken   chan struct{} // holds one: there is something to tell

	mu   sync.Mutex // guards bots
	bots map[string]*figures
}

func newStats(d *daemon) *stats {
	return &stats{
		log: d.log, status: func() spool.Status { return d.store.Status() },
		changed: make(chan time.Duration, 1), woken: make(chan struct{}, 1), bots: map[string]*figures{},
	}
}

// use takes over the interval; 0: no lines. Only one goroutine may call it.
func (s *stats) use(interval time.Duration) {
	select {
	case <-s.changed:
	default:
	}
	s.changed <- interval
}

// count adds to a bot's figures.
func (s *stats) count(bot string, add func(*figures)) {
	s.mu.Lock()
	f := s.bots[bot]
	if f == nil {
		f = &figures{}
		s.bots[bot] = f
	}
	add(f)
	s.mu.Unlock()
	select {
	case s.woken <- struct{}{}:
	default:
	}
}

// attempted counts a call of a job.
func (s *stats) attempted(bot string, c botapi.Class) {
	s.count(bot, func(f *figures) {
		f.calls++
		switch c { //nolint:exhaustive // the others are neither
		case botapi.ClassOK, botapi.ClassNoOp:
			f.ok++
		case botapi.ClassFlood, botapi.ClassFloodUndated:
			f.floods++
		}
	})
}

// ran counts a run of a handler.
func (s *stats) ran(bot string, result spool.UpdateState) {
	s.count(bot, func(f *figures) {
		f.runs++
		if result == spool.UpdateDead || result == spool.UpdateOpen {
			f.failed++
		}
	})
}

// run logs until ctx ends.
func (s *stats) run(ctx context.Context) {
	var interval time.Duration
	var due <-chan time.Time
	for {
		select {
		case <-ctx.Done():
			return
		case interval = <-s.changed:
			due = nil
		case <-s.woken:
			if due == nil && interval > 0 {
				due = time.After(interval)
			}
		case <-due:
			due = nil
			s.tell(ctx)
		}
	}
}

// tell logs a line for each bot with which something happened.
func (s *stats) tell(ctx context.Context) {
	s.mu.Lock()
	bots := s.bots
	s.bots = map[string]*figures{}
	s.mu.Unlock()
	for _, b := range s.status().Bots {
		if f := bots[b.Name]; f != nil {
			s.log.LogAttrs(ctx, slog.LevelInfo, "figures", slog.String("bot", b.Name), slog.String("reason", f.line(b)))
		}
	}
}

// line says it in words that people can read and programs can cut.
func (f *figures) line(b spool.BotStatus) string {
	parts := []string{fmt.Sprintf("calls %d, ok %d", f.calls, f.ok)}
	if f.floods > 0 {
		parts = append(parts, fmt.Sprintf("floods %d", f.floods))
	}
	if f.runs > 0 {
		parts = append(parts, fmt.Sprintf("handlers %d, failed %d", f.runs, f.failed))
	}
	parts = append(parts, fmt.Sprintf("queued %d", b.QueueDepth))
	if b.OldestPendingAgeS >= 1 {
		parts = append(parts, "oldest "+(time.Duration(b.OldestPendingAgeS)*time.Second).String())
	}
	for _, state := range []spool.State{spool.Uncertain, spool.Held} {
		if n := b.Jobs[state]; n > 0 {
			parts = append(parts, fmt.Sprintf("%s %d", state, n))
		}
	}
	if b.DeadLast24h > 0 {
		parts = append(parts, fmt.Sprintf("dead in 24h %d", b.DeadLast24h))
	}
	if b.InboxUnhandled > 0 {
		parts = append(parts, fmt.Sprintf("unhandled %d", b.InboxUnhandled))
	}
	return strings.Join(parts, ", ")
}

// observer is told by the store's writer; it hands on to the figures of both kinds.
type observer struct{ d *daemon }

// Committed implements spool.Observer.
func (o observer) Committed(took time.Duration, bytes int64) { o.d.metrics.Committed(took, bytes) }

// Handled implements spool.Observer.
func (o observer) Handled(bot, handler string, result spool.UpdateState, took time.Duration) {
	o.d.metrics.Handled(bot, handler, result, took)
	o.d.stats.ran(bot, result)
}

// Replied implements spool.Observer.
func (o observer) Replied(bot string, took time.Duration) { o.d.metrics.Replied(bot, took) }
