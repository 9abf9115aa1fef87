package handler

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/tgspool/tgspool/internal/botapi"
	"github.com/tgspool/tgspool/internal/outbox"
	"github.com/tgspool/tgspool/internal/spool"
	"github.com/tgspool/tgspool/internal/wire"
)

// push hands an update to the route's webhook.
func (h *Handlers) push(work context.Context, r *route, u botapi.Update, lease *spool.Lease, probe bool) decision {
	target, err := r.target(h.readSecret)
	if err != nil {
		h.unreached(work, r, probe, err, 0)
		return giveBack(err.Error())
	}
	done := h.expect("handler "+r.Name, r.Timeout)
	defer done()
	up := h.uploads(work)
	d := r.apologize(u, h.pushed(work, r, lease, probe, h.pusher.Push(work, target, lease.Raw, sessionHeaders(lease), up)))
	d.files = up
	for i := range d.handling.Jobs { // there is one at most
		d.handling.Jobs[i].Files, d.handling.Jobs[i].ID = up.Files(), up.Job()
	}
	return d
}

// target is where a route's updates go. The secret is read each time: its file
// may be another's by now.
func (r *route) target(readSecret func(string) (string, error)) (wire.Target, error) {
	t := wire.Target{URL: r.Webhook, Timeout: r.Timeout}
	if r.SecretFile == "" {
		return t, nil
	}
	var err error
	if t.Secret, err = readSecret(r.SecretFile); err != nil {
		return t, fmt.Errorf("reading the webhook's secret: %w", err)
	}
	return t, nil
}

// pushed notes whether the webhook was there, and decides.
func (h *Handlers) pushed(work context.Context, r *route, lease *spool.Lease, probe bool, a wire.Answer) decision {
	switch a.Verdict {
	case wire.Accepted, wire.Refused:
		h.reached(work, r, probe)
	case wire.Stopped:
		r.reach.left(probe)
	case wire.Unreached:
		h.unreached(work, r, probe, errors.New(a.Text), a.RetryAfter)
	}
	return r.judgePush(lease, a)
}

// judgePush decides what a push means for its update.
func (r *route) judgePush(lease *spool.Lease, a wire.Answer) decision {
	switch {
	case a.Verdict == wire.Accepted:
		return r.accepted(lease, a)
	case r.Once && mayHaveRun(a):
		return failed(spool.UpdateDead, "may have run: "+a.Text+", and once = true")
	case a.Verdict != wire.Refused:
		return giveBack(a.Text)
	case a.RetryAfter > 0:
		d := giveBack(a.Text)
		d.failure.RetryAt = time.Now().Add(a.RetryAfter)
		return d
	case lease.Attempts >= r.Attempts:
		return failed(spool.UpdateDead, fmt.Sprintf("given up after %d attempts: %s", lease.Attempts, a.Text))
	}
	d := failed(spool.UpdateOpen, a.Text)
	d.failure.RetryAt = time.Now().Add(retryWait(lease.Attempts))
	return d
}

// mayHaveRun reports whether a push that wasn't accepted may have done something
// all the same: all but those that nobody took, and those whose taker has asked
// to have them later.
func mayHaveRun(a wire.Answer) bool {
	switch a.Verdict {
	case wire.Accepted, wire.Stopped:
		return true
	case wire.Refused:
		return a.RetryAfter == 0
	case wire.Unreached: // behind a proxy it may have been there, and gone since
		return a.Status != 0 && a.Status != http.StatusServiceUnavailable
	}
	return true
}

// accepted queues the call that the webhook's answer holds, if any, and takes over
// the session. What can't be taken would be refused again.
func (r *route) accepted(lease *spool.Lease, a wire.Answer) decision {
	if a.Bad != nil {
		return failed(spool.UpdateDead, "the call in the webhook's answer: "+a.Bad.Error())
	}
	session, err := answeredSession(lease, a.Header)
	if err != nil {
		return failed(spool.UpdateDead, "the session in the webhook's answer: "+err.Error())
	}
	if a.Call == nil {
		return decision{state: spool.UpdateHandled, handling: spool.Handling{Session: session}}
	}
	job, err := outbox.New(a.Call.Method, a.Call.Params.Raw(), r.options())
	if err != nil {
		return failed(spool.UpdateDead, "the call in the webhook's answer: "+err.Error())
	}
	return decision{state: spool.UpdateHandled, handling: spool.Handling{Jobs: []spool.NewJob{job}, Session: session}}
}
