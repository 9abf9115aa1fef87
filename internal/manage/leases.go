package manage

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/tgspool/tgspool/internal/spool"
)

const (
	// maxClaim is the most updates that one claim takes.
	maxClaim = 100
	// The bounds of a lease, and what it is when nobody says.
	minLease     = time.Second
	maxLease     = 24 * time.Hour
	defaultLease = time.Minute
	// maxReason is the longest error that is kept with an update, in bytes.
	maxReason = 4 << 10
)

// claim is what is asked for by {"max","lease","wait"}.
type claim struct {
	max   int
	lease time.Duration
	wait  time.Duration
}

// claimed is an update in the answer to a claim.
type claimed struct {
	spool.Update
	Lease      string    `json:"lease"`
	LeaseUntil time.Time `json:"lease_until"`
	// Whose session it is, null when the update has no chat; and the session as
	// the update was leased, version 0 when there is none.
	SessionKey     *string         `json:"session_key"`
	Session        json.RawMessage `json:"session"`
	SessionVersion int64           `json:"session_version"`
}

// claimUpdates leases updates of the pull route, waiting for the first of them if
// so asked. An update that comes after it is for the next claim.
func (a *api) claimUpdates(r *http.Request) (int, any, error) {
	bot, err := a.bot(r)
	if err != nil {
		return 0, nil, err
	}
	if _, err := readQuery(r); err != nil {
		return 0, nil, err
	}
	body, _, err := readBody(r)
	if err != nil {
		return 0, nil, err
	}
	c, err := readClaim(body)
	if err != nil {
		return 0, nil, err
	}
	done, err := bot.TakenBy(spool.ByLeases)
	if err != nil {
		return 0, nil, err
	}
	defer done()
	got, err := a.claim(r.Context(), bot, c)
	if err != nil {
		return 0, nil, err
	}
	out := make([]claimed, len(got))
	for i, l := range got {
		out[i] = claimed{Update: l.Update, Lease: l.Token(), LeaseUntil: l.Until, Session: l.Session.Data, SessionVersion: l.Session.Version}
		if out[i].Session == nil {
			out[i].Session = json.RawMessage("{}")
		}
		if l.Session.Key != "" {
			out[i].SessionKey = &l.Session.Key
		}
	}
	return http.StatusOK, items{Items: out}, nil
}

// claim leases what there is. Who has hung up meanwhile gets nothing: the updates
// go back at once, their attempts too.
func (a *api) claim(ctx context.Context, bot *spool.Bot, c claim) ([]*spool.Lease, error) {
	got, err := bot.ClaimUpdates(ctx, spool.PullRoute, c.max, c.lease, c.wait)
	switch {
	case err != nil && ctx.Err() != nil:
		return nil, nil // we stop
	case err != nil || ctx.Err() == nil:
		return got, err
	}
	back, cancel := change(ctx)
	defer cancel()
	for _, l := range got {
		if err := bot.FailUpdate(back, l, spool.Failure{State: spool.UpdateOpen, GiveBack: true}); err != nil {
			a.log.LogAttrs(back, slog.LevelWarn, "a lease that nobody has got can't be given back; it runs out",
				slog.String("bot", bot.Name()), slog.Int64("seq", l.Seq), slog.Any("err", err))
		}
	}
	return nil, nil
}

// readClaim reads {"max","lease","wait"}, each of which may be left out.
func readClaim(body []byte) (claim, error) {
	c := claim{max: 1, lease: defaultLease}
	all, err := readMembers(body, "max", "lease", "wait")
	if err != nil {
		return c, err
	}
	for _, m := range all {
		switch m.name {
		case "max":
			c.max, err = decode[int](m, "a whole number")
			if err == nil && (c.max < 1 || c.max > maxClaim) {
				err = problemf(http.StatusUnprocessableEntity, `"max" must be from 1 to %d`, maxClaim)
			}
		case "lease":
			c.lease, err = leaseSpan(m)
		case "wait":
			c.wait, err = duration(m)
			c.wait = min(c.wait, maxWait)
		}
		if err != nil {
			return c, err
		}
	}
	return c, nil
}

// readMembers reads an object, or nothing at all, that has none but the known
// members. Those that are null are left out.
func readMembers(body []byte, known ...string) ([]member, error) {
	if len(body) == 0 {
		return nil, nil
	}
	all, err := readObject(body)
	if err != nil {
		return nil, err
	}
	given := all[:0]
	for _, m := range all {
		if !slices.Contains(known, m.name) {
			return nil, unknownMember(m.name, known)
		}
		if !m.null() {
			given = append(given, m)
		}
	}
	return given, nil
}

func leaseSpan(m member) (time.Duration, error) {
	d, err := duration(m)
	if err == nil && (d < minLease || d > maxLease) {
		err = problemf(http.StatusUnprocessableEntity, "%q must be from %s to %s", m.name, minLease, maxLease)
	}
	return d, err
}

// held finds the lease that a request is about, and the other members of its
// body.
func (a *api) held(r *http.Request, known ...string) (*spool.Bot, *spool.Lease, []member, error) {
	bot, seq, _, err := a.update(r)
	if err != nil {
		return nil, nil, nil, err
	}
	body, _, err := readBody(r)
	if err != nil {
		return nil, nil, nil, err
	}
	all, err := readMembers(body, append([]string{"lease"}, known...)...)
	if err != nil {
		return nil, nil, nil, err
	}
	token, rest := "", all[:0]
	for _, m := range all {
		if m.name != "lease" {
			rest = append(rest, m)
		} else if token, err = decode[string](m, "the text that the claim has given"); err != nil {
			return nil, nil, nil, err
		}
	}
	if token == "" {
		return nil, nil, nil, problemf(http.StatusUnprocessableEntity, `"lease" is missing`)
	}
	return bot, bot.HeldLease(seq, token), rest, nil
}

// completeUpdate marks an update as handled, with its jobs and its session, in
// one transaction.
func (a *api) completeUpdate(r *http.Request) (int, any, error) {
	bot, lease, all, err := a.held(r, "jobs", "session", "session_version")
	if err != nil {
		return 0, nil, err
	}
	h, err := a.readHandling(r, bot.Name(), all)
	if err != nil {
		return 0, nil, err
	}
	ctx, cancel := change(r.Context())
	defer cancel()
	if _, err := bot.Handled(ctx, lease, h); err != nil {
		return 0, nil, err
	}
	return ended(bot, lease)
}

// ended answers with an update after its lease has ended.
func ended(bot *spool.Bot, lease *spool.Lease) (int, any, error) {
	u, err := bot.Update(lease.Seq)
	return http.StatusOK, u, err
}

// readHandling reads what a run has come to.
func (a *api) readHandling(r *http.Request, bot string, all []member) (h spool.Handling, err error) {
	var change spool.SessionChange
	for _, m := range all {
		switch m.name {
		case "jobs":
			h.Jobs, err = a.readReplies(r, bot, m)
		case "session":
			change.Data, h.Session = m.value, &change
		case "session_version":
			change.Version, err = decode[int64](m, "a whole number")
			if err == nil && change.Version < 0 {
				err = problemf(http.StatusUnprocessableEntity, `"session_version" must be 0 for a new session, or the version that was read`)
			}
		}
		if err != nil {
			return h, err
		}
	}
	if h.Session != nil {
		change.Data, err = spool.CompactSession(change.Data)
	}
	return h, err
}

// readReplies reads the jobs of an update. They are posted as elsewhere, but for
// their keys: these follow from the update, so that a second run makes no second
// ones.
func (a *api) readReplies(r *http.Request, bot string, m member) ([]spool.NewJob, error) {
	list, err := decode[[]json.RawMessage](m, "a list of jobs")
	if err != nil {
		return nil, err
	}
	if len(list) > maxReplies {
		return nil, problemf(http.StatusRequestEntityTooLarge, "more than %d jobs for one update", maxReplies)
	}
	jobs, now := make([]spool.NewJob, len(list)), time.Now()
	for i, data := range list {
		p, err := readJob(data, now)
		if err == nil && p.options.DedupeKey != "" {
			err = problemf(http.StatusUnprocessableEntity, `"dedupe_key" is given to the jobs of an update by itself: reply:<update_id>:%d`, i+1)
		}
		if err == nil {
			jobs[i], err = a.build(r, bot, p)
			jobs[i].Origin = "lease"
		}
		if err != nil {
			p := *toProblem(err)
			p.Detail = problemf(0, "job %d: %s", i+1, p.Detail).Detail
			return nil, &p
		}
	}
	return jobs, nil
}

// maxReplies is the most jobs of one update.
const maxReplies = 1000

// cutText keeps the beginning of a text.
func cutText(s string, most int) string {
	if len(s) > most {
		s = strings.ToValidUTF8(s[:most], "")
	}
	return s
}

// failUpdate has an update handed out again after a while, or gives it up.
func (a *api) failUpdate(r *http.Request) (int, any, error) {
	bot, lease, all, err := a.held(r, "error", "permanent")
	if err != nil {
		return 0, nil, err
	}
	reason, permanent := "the worker has failed", false
	for _, m := range all {
		if m.name == "error" {
			reason, err = decode[string](m, "a string")
			reason = cutText(reason, maxReason)
		} else {
			permanent, err = decode[bool](m, "true or false")
		}
		if err != nil {
			return 0, nil, err
		}
	}
	ctx, cancel := change(r.Context())
	defer cancel()
	if err := bot.FailLease(ctx, lease, reason, permanent); err != nil {
		return 0, nil, err
	}
	status, body, err := ended(bot, lease)
	if u, ok := body.(spool.Update); ok && u.State == spool.UpdateDead {
		a.log.LogAttrs(r.Context(), slog.LevelError, "an update is given up by a worker",
			slog.String("bot", bot.Name()), slog.Int64("seq", u.Seq), slog.Int("attempt", u.Attempts))
	}
	return status, body, err
}

// extendUpdate lets a lease hold for longer, counted from now.
func (a *api) extendUpdate(r *http.Request) (int, any, error) {
	bot, lease, all, err := a.held(r, "for")
	if err != nil {
		return 0, nil, err
	}
	span := defaultLease
	for _, m := range all {
		if span, err = leaseSpan(m); err != nil {
			return 0, nil, err
		}
	}
	ctx, cancel := change(r.Context())
	defer cancel()
	until, err := bot.ExtendLease(ctx, lease, span)
	if err != nil {
		return 0, nil, err
	}
	u, err := bot.Update(lease.Seq)
	if err != nil && !errors.Is(err, spool.ErrNotFound) {
		return 0, nil, err
	}
	return http.StatusOK, struct {
		spool.Update
		Lease      string    `json:"lease"`
		LeaseUntil time.Time `json:"lease_until"`
	}{u, lease.Token(), until}, nil
}
