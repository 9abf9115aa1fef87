package manage

import (
	"cmp"
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"time"

	"github.com/tgspool/tgspool/internal/outbox"
	"github.com/tgspool/tgspool/internal/spool"
	"github.com/tgspool/tgspool/internal/wire"
)

// Caller is somebody who may post jobs, see those, and do nothing else. A request
// without one may do everything: that was decided where it came in.
type Caller struct {
	// Name is what is said of it in refusals, like `client "doorbell"`.
	Name string
	// Origins are those of its jobs; the first is given to what it posts here.
	Origins []string
	// Bot is the only bot that it may name; empty: any.
	Bot string
	// Check refuses a call that is outside of its limits, in words that it may
	// read. Nil: it may make any but those that name the server's own files.
	Check func(method string, params json.RawMessage) error
	// Take asks for one call of its own rate and says when to come again if there
	// is none. May be nil.
	Take func() (wait time.Duration)

	Lane        spool.Lane    // a limit, not a wish; empty: none
	OnUncertain spool.Policy  // where the job says nothing; empty: the bot's
	TTL         time.Duration // where the job says nothing; 0: the bot's
}

// callerKey finds the Caller in a request's context.
type callerKey struct{}

// As is the request in the name of a caller.
func As(r *http.Request, c *Caller) *http.Request {
	return r.WithContext(context.WithValue(r.Context(), callerKey{}, c))
}

// callerOf is nil for those who may do everything.
func callerOf(r *http.Request) *Caller {
	c, _ := r.Context().Value(callerKey{}).(*Caller)
	return c
}

// forCallers are the endpoints that a Caller may use.
var forCallers = map[string]bool{
	"POST /v1/bots/{bot}/jobs":   true,
	"POST /v1/bots/{bot}/notify": true,
	"GET /v1/bots/{bot}/jobs":    true,
	"GET /v1/jobs/{id}":          true,
	"GET /v1/jobs/{id}/why":      true,

	"GET /healthz": true,
	"GET /readyz":  true,
}

// refusal of an endpoint names the bots that can be posted to: a command that is
// given none would ask for the status.
func (a *api) refusal(c *Caller) *Problem {
	p := problemf(http.StatusForbidden, "%s serves posting jobs and notify, and looking at one's own ones, nothing else", c.Name)
	for _, name := range a.bots.Names() {
		if c.Bot == "" || c.Bot == name {
			p.Bots = append(p.Bots, name)
		}
	}
	return p
}

// mayName refuses bots of others.
func (c *Caller) mayName(bot string) error {
	if c != nil && c.Bot != "" && c.Bot != bot {
		return problemf(http.StatusForbidden, "%s belongs to bot %q and may not use %q", c.Name, c.Bot, bot)
	}
	return nil
}

// origin is that of the jobs of a request. Only our own commands set the header;
// what else it holds is not believed.
func origin(r *http.Request) string {
	if c := callerOf(r); c != nil {
		return c.Origins[0]
	}
	if r.Header.Get(OriginHeader) == "cli" {
		return "cli"
	}
	return "api"
}

// owns reports whether a job is one of the caller's.
func (c *Caller) owns(bot, origin string) bool {
	return c == nil || (c.Bot == "" || c.Bot == bot) && slices.Contains(c.Origins, origin)
}

// own refuses jobs that aren't the caller's as if there were none.
func (a *api) own(r *http.Request, id int64) error {
	c := callerOf(r)
	if c == nil {
		return nil
	}
	job, err := a.store.Job(id)
	if err == nil && !c.owns(job.Bot, job.Origin) {
		return problemf(http.StatusNotFound, "%s has no job %d", c.Name, id)
	}
	return err
}

// narrow lets a caller select among its own jobs only.
func (c *Caller) narrow(f *spool.JobFilter) error {
	if c == nil {
		return nil
	}
	if f.Origin = cmp.Or(f.Origin, c.Origins[0]); !slices.Contains(c.Origins, f.Origin) {
		return problemf(http.StatusForbidden, "%s sees the jobs of origin %s only", c.Name, listed(c.Origins))
	}
	return nil
}

// apply gives a job what the caller's settings say.
func (c *Caller) apply(o *outbox.Options, now time.Time) {
	if c == nil {
		return
	}
	o.Lane = cmp.Or(c.Lane, o.Lane)
	o.OnUncertain = cmp.Or(o.OnUncertain, c.OnUncertain)
	if c.TTL > 0 && o.ExpiresAt.IsZero() {
		from := now
		if o.NotBefore.After(now) {
			from = o.NotBefore
		}
		o.ExpiresAt = from.Add(c.TTL)
	}
}

// everyChat is the chats of a caller who has no limits of its own.
var everyChat = map[string]bool{"*": true}

// check refuses a call outside of the caller's limits.
func (c *Caller) check(method string, params json.RawMessage) error {
	if c == nil {
		return nil
	}
	if c.Check != nil {
		if err := c.Check(method, params); err != nil {
			return problemf(http.StatusForbidden, "%s", err)
		}
	} else if err := wire.CheckChats(method, params, everyChat, false); err != nil {
		return problemf(http.StatusForbidden, "%s doesn't take %s with this %s", c.Name, method, err)
	}
	if c.Take != nil {
		if wait := c.Take(); wait > 0 {
			p := problemf(http.StatusTooManyRequests, "%s calls more often than its rate allows", c.Name)
			p.retryAfter = wait
			return p
		}
	}
	return nil
}

// hide takes out of a duplicate what is none of the caller's business: its key
// may be held by a job of somebody else's.
func (c *Caller) hide(j spool.Job) spool.Job {
	if c.owns(j.Bot, j.Origin) {
		return j
	}
	return spool.Job{ID: j.ID, Bot: j.Bot, State: j.State, DedupeKey: j.DedupeKey}
}
