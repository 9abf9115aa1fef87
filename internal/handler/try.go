package handler

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/tgspool/tgspool/internal/botapi"
	"github.com/tgspool/tgspool/internal/spool"
	"github.com/tgspool/tgspool/internal/wire"
)

// Trial is one run of a route's program that changes nothing.
type Trial struct {
	Bot    string
	Route  RouteConfig
	Update []byte // as Telegram would hand it over
	Home   string // as in Config
	Unit   string // as in Config
	Line   func([]byte)

	Pusher     *wire.Pusher                 // as in Config
	ReadSecret func(string) (string, error) // as in Config
}

// Tried is what came of a Trial, and what would have come of it.
type Tried struct {
	State  spool.UpdateState // that the update would have now
	Reason string            // why; empty when it would be handled
	Jobs   []spool.NewJob    // the calls that would be queued
	Ran    bool              // the program was started, or the webhook answered
	Code   int               // the exit status or that of HTTP, -1 when there is none
	Stdout []byte
	Took   time.Duration

	Session json.RawMessage // that would be stored; nil: it would stay as it is
}

// Try runs the program of a route, or posts to its webhook, as Run would, and
// queues nothing. Each line of a program's standard error goes to Line. An error
// means that the route or the update isn't one.
func Try(ctx context.Context, t Trial) (Tried, error) {
	if err := t.Route.check(); err != nil {
		return Tried{}, err
	}
	u, err := botapi.ParseUpdate(t.Update)
	if err != nil {
		return Tried{}, fmt.Errorf("reading the update: %w", err)
	}
	if !t.Route.ours() {
		return Tried{}, fmt.Errorf("route %q has neither a program nor a webhook", t.Route.Name)
	}
	r := &route{RouteConfig: t.Route.withDefaults(), reach: newReach()}
	now := time.Now()
	lease := &spool.Lease{
		Update: spool.Update{UpdateID: &u.ID, Kind: u.Kind, Attempts: 1, ReceivedAt: now, Raw: t.Update},
		ChatID: u.ChatID, UserID: u.UserID,
	}
	if d, refused := r.refuse(u, lease, now, true); refused {
		return Tried{State: d.state, Reason: d.failure.Error, Code: -1}, nil
	}
	var tried Tried
	if r.Webhook != "" {
		tried, err = t.push(ctx, r, lease)
	} else {
		tried, err = t.exec(ctx, r, u, lease)
	}
	if tried.Ran {
		tried.Jobs = r.withCourtesy(u, lease, tried.Jobs)
	}
	return tried, err
}

// withCourtesy adds the calls that would be made while the handler works.
func (r *route) withCourtesy(u botapi.Update, lease *spool.Lease, jobs []spool.NewJob) []spool.NewJob {
	var first []spool.NewJob
	if r.AnswerCallbacks && u.QueryID != "" {
		first = r.told(u, "")
	}
	if ack, ok := r.ack(u, lease); ok {
		first = append(first, ack)
		jobs = r.instead(u, ack.DedupeKey, jobs)
	}
	return append(first, jobs...)
}

// push posts the update to the route's webhook.
func (t Trial) push(ctx context.Context, r *route, lease *spool.Lease) (Tried, error) {
	target, err := r.target(t.ReadSecret)
	if err != nil {
		return Tried{}, err
	}
	a := t.Pusher.Push(ctx, target, lease.Raw, sessionHeaders(lease), &wire.Discard{})
	d := r.judgePush(lease, a)
	tried := Tried{State: d.state, Reason: d.failure.Error, Jobs: d.handling.Jobs, Took: time.Since(lease.ReceivedAt), Code: -1}
	tried.Session = d.handling.Session.Wanted()
	if a.Status != 0 {
		tried.Ran, tried.Code = true, a.Status
	}
	return tried, nil
}

// exec runs the route's program.
func (t Trial) exec(ctx context.Context, r *route, u botapi.Update, lease *spool.Lease) (Tried, error) {
	home := t.Home
	if home == "" {
		home = "/"
	}
	tried := Tried{Code: -1}
	p := program{argv: r.Exec, dir: "/", timeout: r.Timeout, unit: t.Unit}
	result := p.run(ctx, environment(t.Bot, home, u, lease), withNewline(lease.Raw), watcher{
		started: func() { tried.Ran = true }, line: t.Line,
	})
	tried.Took, tried.Stdout = time.Since(lease.ReceivedAt), result.stdout
	if result.end == endExit {
		tried.Code = result.code
	}
	if result.end == endUnstarted {
		tried.State, tried.Reason = spool.UpdateOpen, result.err.Error()
		return tried, nil
	}
	d := r.judge(u, lease, result)
	tried.State, tried.Reason = d.state, d.failure.Error
	tried.Jobs, tried.Session = d.handling.Jobs, d.handling.Session.Wanted()
	if d.state != spool.UpdateHandled {
		tried.Jobs = d.failure.Jobs
	}
	return tried, nil
}
