package handler

import (
	"context"
	"fmt"
	"time"

	"github.com/tgspool/tgspool/internal/botapi"
	"github.com/tgspool/tgspool/internal/spool"
)

// Trial is one run of a route's program that changes nothing.
type Trial struct {
	Bot    string
	Route  RouteConfig
	Update []byte // as Telegram would hand it over
	Home   string // as in Config
	Unit   string // as in Config
	Line   func([]byte)
}

// Tried is what came of a Trial, and what would have come of it.
type Tried struct {
	State  spool.UpdateState // that the update would have now
	Reason string            // why; empty when it would be handled
	Jobs   []spool.NewJob    // the calls that would be queued
	Ran    bool              // the program was started
	Code   int               // its exit status, -1 when it has none
	Stdout []byte
	Took   time.Duration
}

// Try runs the program of a route as Run would, and queues nothing. Each line
// of its standard error goes to Line. An error means that the route or the
// update isn't one.
func Try(ctx context.Context, t Trial) (Tried, error) {
	if err := t.Route.check(); err != nil {
		return Tried{}, err
	}
	u, err := botapi.ParseUpdate(t.Update)
	if err != nil {
		return Tried{}, fmt.Errorf("reading the update: %w", err)
	}
	if !t.Route.runs() {
		return Tried{}, fmt.Errorf("route %q has no program", t.Route.Name)
	}
	r := &route{RouteConfig: t.Route.withDefaults(), reach: newReach()}
	now := time.Now()
	lease := &spool.Lease{
		Update: spool.Update{UpdateID: &u.ID, Kind: u.Kind, Attempts: 1, ReceivedAt: now, Raw: t.Update},
		ChatID: u.ChatID, UserID: u.UserID,
	}
	if d, refused := r.refuse(u, lease, now); refused {
		return Tried{State: d.state, Reason: d.failure.Error, Code: -1}, nil
	}
	home := t.Home
	if home == "" {
		home = "/"
	}
	tried := Tried{Code: -1}
	p := program{argv: r.Exec, dir: "/", timeout: r.Timeout, unit: t.Unit}
	result := p.run(ctx, environment(t.Bot, home, u, lease), withNewline(t.Update), watcher{
		started: func() { tried.Ran = true }, line: t.Line,
	})
	tried.Took, tried.Stdout = time.Since(now), result.stdout
	if result.end == endExit {
		tried.Code = result.code
	}
	if result.end == endUnstarted {
		tried.State, tried.Reason = spool.UpdateOpen, result.err.Error()
		return tried, nil
	}
	d := r.judge(u, lease, result)
	tried.State, tried.Reason = d.state, d.failure.Error
	tried.Jobs = d.handling.Jobs
	if d.state != spool.UpdateHandled {
		tried.Jobs = d.failure.Jobs
	}
	return tried, nil
}
