package handler

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/tgspool/tgspool/internal/botapi"
	"github.com/tgspool/tgspool/internal/spool"
	"github.com/tgspool/tgspool/internal/wire"
)

// Inbox is the part of a bot's spool that handlers work with.
type Inbox interface {
	Name() string
	ClaimUpdate(ctx context.Context, handler string) (*spool.Lease, error)
	Handled(ctx context.Context, lease *spool.Lease, h spool.Handling) ([]spool.Queued, error)
	FailUpdate(ctx context.Context, lease *spool.Lease, f spool.Failure) error
	Enqueue(ctx context.Context, jobs ...spool.NewJob) ([]spool.Queued, error)
}

// Config is what the handlers of one bot need.
type Config struct {
	Bot    Inbox         // required; a *spool.Bot
	Routes []RouteConfig // those with Pull are left to others
	Logger *slog.Logger  // nil: no log
	Dir    string        // the programs' working folder; default "/"
	Home   string        // their HOME; default Dir
	// Unit is the socket of a service that runs the programs as a user of its
	// own, with the HOME of that user; see ServeUnit. Once it is given, no
	// program is ever run in any other way. Empty: they are children of ours.
	Unit string
	// Pusher is the way to webhooks; nil: to this machine only.
	Pusher *wire.Pusher
	// Uploads makes the place for the files of one answer of a webhook; required
	// with one.
	Uploads func(ctx context.Context) *wire.Upload
	// ReadSecret reads the file of a webhook's secret; required with SecretFile.
	ReadSecret func(path string) (string, error)
	// Expect hears of each run how long it takes at most, and by the function
	// that it returns that the run has ended; nil: nobody wants to know.
	Expect func(what string, bound time.Duration) (done func())
	// AtOnce makes a call of the Bot API that goes at once or not at all; nil:
	// nothing is shown while a handler works.
	AtOnce func(ctx context.Context, method string, params json.RawMessage)
	// Now is the time by Telegram's clock, which ages are measured by, and whether
	// it is known; nil: the local clock.
	Now func() (now time.Time, known bool)
}

// Handlers runs the programs of one bot's routes.
type Handlers struct {
	bot    Inbox
	routes []*route
	log    *slog.Logger
	dir    string
	home   string
	unit   string
	expect func(string, time.Duration) func()
	now    func() (time.Time, bool)
	atOnce func(context.Context, string, json.RawMessage)
	asides sync.WaitGroup // calls at once that are under way

	pusher     *wire.Pusher
	uploads    func(context.Context) *wire.Upload
	readSecret func(string) (string, error)
}

// route is a route that is being run.
type route struct {
	RouteConfig
	reach   *reach
	outruns outruns
}

// RouteState is a route as status shows it.
type RouteState struct {
	Name   string
	Reason string // why its program or webhook can't be reached; empty while it can
}

// New checks the routes and returns their handlers, which do nothing before Run.
func New(c Config) (*Handlers, error) {
	h := &Handlers{
		bot: c.Bot, log: c.Logger, dir: c.Dir, home: c.Home, unit: c.Unit, expect: c.Expect, now: c.Now, atOnce: c.AtOnce,
		pusher: c.Pusher, uploads: c.Uploads, readSecret: c.ReadSecret,
	}
	if h.log == nil {
		h.log = slog.New(slog.DiscardHandler)
	}
	if h.dir == "" {
		h.dir = "/"
	}
	if h.home == "" {
		h.home = h.dir
	}
	if h.expect == nil {
		h.expect = func(string, time.Duration) func() { return func() {} }
	}
	if h.pusher == nil {
		h.pusher = wire.NewPusher(nil, nil)
	}
	for _, rc := range c.Routes {
		if err := rc.check(); err != nil {
			return nil, fmt.Errorf("building the handlers: %w", err)
		}
		if rc.Webhook != "" && (h.uploads == nil || h.readSecret == nil && rc.SecretFile != "") {
			return nil, fmt.Errorf("building the handlers: nobody takes the files of route %q or reads its secret", rc.Name)
		}
		if rc.ours() {
			h.routes = append(h.routes, &route{RouteConfig: rc.withDefaults(), reach: newReach()})
		}
	}
	return h, nil
}

// Run hands out updates until take ends; then it waits for the programs that
// run. When work ends too, they are killed and their updates are open again.
// The caller ends work only after take. It returns nil once nothing runs.
func (h *Handlers) Run(take, work context.Context) error {
	var workers sync.WaitGroup
	for _, r := range h.routes {
		for range r.workers() {
			workers.Go(func() { h.turn(take, work, r) })
		}
	}
	<-take.Done()
	workers.Wait()
	h.asides.Wait()
	return nil
}

// Routes tells the state of each route that we run.
func (h *Handlers) Routes() []RouteState {
	states := make([]RouteState, 0, len(h.routes))
	for _, r := range h.routes {
		states = append(states, RouteState{Name: r.Name, Reason: r.reach.why()})
	}
	return states
}

// turn is one worker: it leases an update, has it handled, and comes again.
func (h *Handlers) turn(take, work context.Context, r *route) {
	for wait := time.Duration(0); ; {
		probe, err := r.reach.enter(take)
		if err != nil {
			return
		}
		// A look at the file costs no write; an update that is leased in vain, two.
		if probe && !h.usable(take, r) {
			if take.Err() != nil {
				r.reach.left(probe)
				return
			}
			continue
		}
		lease, err := h.bot.ClaimUpdate(take, r.Name)
		switch {
		case take.Err() != nil && err != nil:
			r.reach.left(probe)
			return
		case err != nil:
			r.reach.left(probe)
			if wait = h.claimFailed(take, r, wait, err); wait == 0 {
				return
			}
		default:
			wait = 0
			h.handle(work, r, lease, probe)
		}
	}
}

// usable looks at the program of a route that waits for it, before an update
// is leased to try with.
func (h *Handlers) usable(ctx context.Context, r *route) bool {
	if !r.runs() {
		return true // only an update tells whether a webhook is there
	}
	err := h.program(r).look(ctx)
	if err != nil && ctx.Err() == nil {
		h.unreached(ctx, r, true, err, 0)
	}
	return err == nil
}

// program is what a route runs.
func (h *Handlers) program(r *route) program {
	return program{argv: r.Exec, dir: h.dir, timeout: r.Timeout, unit: h.unit}
}

// handle takes one lease to its end.
func (h *Handlers) handle(work context.Context, r *route, lease *spool.Lease, probe bool) {
	start := time.Now()
	d := h.attempt(work, r, lease, probe)
	h.end(work, r, lease, d, time.Since(start))
}

// attempt decides on a lease, in most cases by running the program.
func (h *Handlers) attempt(work context.Context, r *route, lease *spool.Lease, probe bool) (d decision) {
	tried := false
	defer func() {
		if p := recover(); p != nil {
			h.logPanic(work, r, lease, p)
			tried = false
			d = r.afterFailure(lease.Attempts, run{end: endSignal, err: fmt.Errorf("panic: %v", p)})
			u, _ := botapi.ParseUpdate(lease.Raw) // what it isn't is left out
			d = r.apologize(u, d)
		}
		if !tried {
			r.reach.left(probe)
		}
	}()
	u, err := botapi.ParseUpdate(lease.Raw)
	if err != nil { // it could be read when it came in
		return failed(spool.UpdateDead, err.Error())
	}
	now, known := clockOf(h.now)
	if d, refused := r.refuse(u, lease, now, known); refused {
		return d
	}
	if why := r.reach.why(); why != "" && !probe {
		return giveBack(why)
	}
	tried = true
	return h.handOver(work, r, u, lease, probe)
}

// handOver has the program or the webhook do its work, with what the user is to
// see of that.
func (h *Handlers) handOver(work context.Context, r *route, u botapi.Update, lease *spool.Lease, probe bool) (d decision) {
	ack := h.acknowledge(work, r, u, lease)
	end := h.attend(work, r, u, lease)
	defer end()
	if r.Webhook != "" {
		d = h.push(work, r, u, lease, probe)
	} else {
		d = h.exec(work, r, u, lease, probe)
	}
	if ack != "" {
		d.handling.Jobs = r.instead(u, ack, d.handling.Jobs)
		d.failure.Jobs = r.instead(u, ack, d.failure.Jobs)
	}
	return d
}

// exec runs the route's program.
func (h *Handlers) exec(work context.Context, r *route, u botapi.Update, lease *spool.Lease, probe bool) decision {
	done := h.expect("handler "+r.Name, r.Timeout+unitAnswer+unitFarewell)
	defer done()
	result := h.program(r).run(work, environment(h.bot.Name(), h.home, u, lease), withNewline(lease.Raw), watcher{
		started: func() { h.reached(work, r, probe) },
		line:    func(line []byte) { h.logLine(work, r, lease, line) },
	})
	switch {
	case result.end == endUnstarted && work.Err() != nil:
		r.reach.left(probe)
		return giveBack("the daemon stops")
	case result.end == endUnstarted:
		h.unreached(work, r, probe, result.err, 0)
		return giveBack(result.err.Error())
	default:
		return r.judge(u, lease, result)
	}
}

// withNewline ends the update with a newline, for programs that read lines.
func withNewline(raw []byte) []byte {
	return append(raw[:len(raw):len(raw)], '\n')
}
