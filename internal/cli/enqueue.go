package cli

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/tgspool/tgspool/internal/localapi"
	"github.com/tgspool/tgspool/internal/manage"
	"github.com/tgspool/tgspool/internal/spool"
)

// defaultWait is how long --wait waits when it isn't told.
const defaultWait = time.Minute

// pollStep is the longest single wait at the daemon's; a longer one is made of
// several, so that a daemon that was restarted meanwhile is asked again.
const pollStep = 30 * time.Second

// jobFlags are the flags that say when and how a call is to go out.
type jobFlags struct {
	chat, at, in, ttl, key, lane, onUncertain string
	maxAttempts                               int
	every                                     string
	force, split, plainFallback, replace      bool
	wait                                      string
}

// add gives a command the flags.
func (f *jobFlags) add(c *cobra.Command, chatHelp string) {
	flags := c.Flags()
	flags.StringVar(&f.chat, "chat", "", chatHelp)
	flags.StringVar(&f.at, "at", "", "not before this `time`: 15:04, \"2006-01-02 15:04\" or RFC 3339")
	flags.StringVar(&f.in, "in", "", "not before this `duration` has passed, like 10m")
	flags.StringVar(&f.ttl, "ttl", "", "give up when it hasn't gone out after this `duration`")
	flags.StringVar(&f.key, "key", "", "dedupe `key`: a second call with it makes no second job")
	flags.StringVar(&f.every, "every", "", "at most once in this `duration`: the key is free again after it; without --key the same call has the same key")
	flags.BoolVar(&f.replace, "replace", false, "a job of the same --key that is still pending gives way to this one")
	flags.StringVar(&f.lane, "lane", "", "priority `lane`: interactive, normal or bulk (default normal)")
	flags.StringVar(&f.onUncertain, "on-uncertain", "", "what if nobody knows whether it arrived: hold, resend, resend_marked or drop (`policy`)")
	flags.IntVar(&f.maxAttempts, "max-attempts", 0, "give up after this `number` of attempts")
	flags.BoolVar(&f.force, "force", false, "try a chat that is inactive")
	flags.StringVar(&f.wait, "wait", "", "wait for the end: 0 done, 65 dead, cancelled or expired, 75 still open (--wait[=`duration`])")
	flags.Lookup("wait").NoOptDefVal = defaultWait.String()
}

// waitFor reads --wait. A duration that stands apart from it would be taken for
// a text, so that it is refused.
func (f *jobFlags) waitFor(args []string) (time.Duration, error) {
	if f.wait == "" {
		return 0, nil
	}
	if len(args) > 0 && f.wait == defaultWait.String() {
		if _, err := time.ParseDuration(args[0]); err == nil {
			return 0, withHint(usagef("is %q how long to wait, or the text?", args[0]), "write --wait="+args[0]+", or put -- before the text")
		}
	}
	d, err := manage.ParseDuration(f.wait)
	if err != nil {
		return 0, usagef("--wait: %s", err)
	}
	return d, nil
}

// body makes the job to post. Params are left out when nil.
func (f *jobFlags) body(method string, params json.RawMessage, chat *string) ([]byte, error) {
	if f.at != "" && f.in != "" {
		return nil, usagef("--at and --in exclude each other")
	}
	if f.replace && f.key == "" {
		return nil, usagef("--replace needs the --key whose job gives way")
	}
	key := f.key
	if f.every != "" && key == "" {
		key = everyKey(method, params, chat)
	}
	job := struct {
		Method      string          `json:"method"`
		Chat        *string         `json:"chat,omitempty"`
		Params      json.RawMessage `json:"params,omitempty"`
		Key         string          `json:"dedupe_key,omitempty"`
		KeyFor      string          `json:"dedupe_for,omitempty"`
		Replace     bool            `json:"replace,omitempty"`
		Lane        string          `json:"lane,omitempty"`
		NotBefore   *time.Time      `json:"not_before,omitempty"`
		Delay       string          `json:"delay,omitempty"`
		TTL         string          `json:"ttl,omitempty"`
		MaxAttempts int             `json:"max_attempts,omitempty"`
		OnUncertain string          `json:"on_uncertain,omitempty"`
		Force       bool            `json:"force,omitempty"`
		Split       bool            `json:"split,omitempty"`
		Plain       bool            `json:"plain_fallback,omitempty"`
	}{
		Method: method, Chat: chat, Params: params, Key: key, KeyFor: f.every, Replace: f.replace, Lane: f.lane, Delay: f.in, TTL: f.ttl,
		MaxAttempts: f.maxAttempts, OnUncertain: f.onUncertain, Force: f.force,
		Split: f.split, Plain: f.plainFallback,
	}
	if f.at != "" {
		at, err := parseAt(f.at, time.Now())
		if err != nil {
			return nil, err
		}
		job.NotBefore = &at
	}
	return json.Marshal(job)
}

// everyKey names a call by what it says and where.
func everyKey(method string, params json.RawMessage, chat *string) string {
	h := sha256.New()
	_, _ = h.Write([]byte(method + "\x00" + string(params))) // a hash takes everything
	if chat != nil {
		_, _ = h.Write([]byte("\x00" + *chat))
	}
	return "every:" + hex.EncodeToString(h.Sum(nil)[:16])
}

// parseAt reads a point in time; a time of day is the next one of that name.
func parseAt(s string, now time.Time) (time.Time, error) {
	if t, err := time.Parse(time.RFC3339, s); err == nil {
		return t, nil
	}
	for _, layout := range []string{"2006-01-02 15:04", "2006-01-02 15:04:05", "2006-01-02T15:04"} {
		if t, err := time.ParseInLocation(layout, s, now.Location()); err == nil {
			return t, nil
		}
	}
	t, err := time.Parse("15:04", s)
	if err != nil {
		return t, usagef("%q is no time like 15:04, \"2006-01-02 15:04\" or 2006-01-02T15:04:05Z", s)
	}
	at := time.Date(now.Year(), now.Month(), now.Day(), t.Hour(), t.Minute(), 0, 0, now.Location())
	if !at.After(now) {
		at = time.Date(now.Year(), now.Month(), now.Day()+1, t.Hour(), t.Minute(), 0, 0, now.Location())
	}
	return at, nil
}

// posted is a job as the daemon answers with it.
type posted struct {
	spool.Job
	Duplicate bool    `json:"duplicate"`
	Parts     []int64 `json:"parts"` // of a long text
}

// enqueue posts a job, waits for it when asked to, and says what became of it. Of
// the request it needs the body.
func (a *app) enqueue(ctx context.Context, q localapi.Request, wait time.Duration) error {
	s, err := a.connect(ctx)
	if err != nil {
		return err
	}
	defer s.Close()
	var raw json.RawMessage
	q.Method, q.Path, q.Origin = http.MethodPost, s.path("jobs"), "cli"
	if err := s.Do(ctx, q, &raw); err != nil {
		return lostAnswer(ctx, err)
	}
	var job posted
	if err := json.Unmarshal(raw, &job); err != nil {
		return err
	}
	if wait == 0 {
		a.tellPosted(job, raw, false)
		return nil
	}
	code, err := a.awaitAll(ctx, s, job, raw, wait)
	if err == nil && code != exitOK {
		err = silent(code)
	}
	return err
}

// lostAnswer says of a connection that has ended before the answer what it means:
// the job may be queued all the same.
func lostAnswer(ctx context.Context, err error) error {
	lost, ok := errors.AsType[*url.Error](err)
	if _, known := errors.AsType[*exitError](err); !ok || known || ctx.Err() != nil {
		return err
	}
	return &exitError{
		code: exitTempFail, msg: "the daemon has gone before it said that the job is queued: " + lost.Err.Error(),
		hint: "tgspool queue list shows whether it is; sent again with the same --key it is sent once",
	}
}

// awaitAll waits for the end of a job, or of all parts of a long text, says what
// became of each, and returns the exit code: that of the part that fared worst.
func (a *app) awaitAll(ctx context.Context, s *session, job posted, raw json.RawMessage, wait time.Duration) (int, error) {
	ids := job.Parts
	if len(ids) == 0 {
		ids = []int64{job.ID}
	}
	end, code := time.Now().Add(wait), exitOK
	for _, id := range ids {
		var err error
		if raw, err = s.await(ctx, id, max(time.Until(end), time.Millisecond), raw); err != nil {
			return code, err
		}
		part := posted{Duplicate: job.Duplicate}
		if raw == nil { // the daemon stays away
			if code == exitOK {
				code = exitTempFail
			}
			continue
		}
		if err := json.Unmarshal(raw, &part.Job); err != nil {
			return code, err
		}
		a.tellPosted(part, raw, true)
		raw = nil
		if c := endCode(part.State); code != exitData && c != exitOK {
			code = c
		}
	}
	return code, nil
}

// tellPosted says what became of a job, as a line for people or as its JSON.
func (a *app) tellPosted(job posted, raw json.RawMessage, waited bool) {
	if a.json {
		a.out.jsonLine(raw)
	} else {
		a.printPosted(job, waited)
	}
}

// await asks for the job until it is neither pending nor running or the time is
// over. A daemon that is restarted meanwhile is asked again; one that stays away
// leaves the last answer standing.
func (s *session) await(ctx context.Context, id int64, wait time.Duration, last json.RawMessage) (json.RawMessage, error) {
	end := time.Now().Add(wait)
	for {
		left := time.Until(end)
		if left <= 0 {
			return last, nil
		}
		step := min(left, pollStep).Round(time.Millisecond)
		var raw json.RawMessage
		path := "/v1/jobs/" + strconv.FormatInt(id, 10) + "?wait=" + max(step, time.Millisecond).String()
		asked := time.Now()
		err := s.Do(ctx, localapi.Request{Method: http.MethodGet, Path: path}, &raw)
		switch {
		case ctx.Err() != nil:
			return nil, &exitError{code: exitTempFail, msg: "interrupted; the job stays queued"}
		case err == nil:
			var job spool.Job
			if err := json.Unmarshal(raw, &job); err != nil {
				return nil, err
			}
			if last = raw; !job.State.Open() {
				return last, nil
			}
		default:
			if _, ours := errors.AsType[*manage.Problem](err); ours {
				return nil, err
			}
		}
		// An answer before its time means that the daemon stops, or is away.
		if time.Since(asked) < step {
			pause(ctx, min(time.Second, time.Until(end)))
		}
	}
}

// pause waits, but not longer than the command lives.
func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}

// endCode is the exit code for the state in which a wait has ended.
func endCode(s spool.State) int {
	switch s {
	case spool.Done:
		return exitOK
	case spool.Dead, spool.Cancelled, spool.Expired:
		return exitData
	case spool.Pending, spool.Running, spool.Uncertain, spool.Held:
		return exitTempFail
	}
	return exitTempFail
}

// printPosted says in a line what became of a job.
func (a *app) printPosted(job posted, waited bool) {
	a.out.printf("job %d %s", job.ID, job.State)
	switch {
	case job.Duplicate:
		a.out.printf(" (there already: it holds the key)")
	case job.State == spool.Pending && job.NotBefore != nil && time.Until(*job.NotBefore) > 0:
		a.out.printf(" until %s", when(*job.NotBefore))
	case job.State == spool.Done && messageID(job.Result) != 0:
		a.out.printf(" as message %d", messageID(job.Result))
	case waited && job.LastError != nil:
		a.out.printf(": %s", reason(job.LastError))
	}
	if n := len(job.Parts); n > 1 {
		a.out.printf(", in %d parts: jobs %d to %d", n, job.Parts[0], job.Parts[n-1])
	}
	a.out.printf("\n")
}

// messageID finds the message that a call made, 0 when there is none.
func messageID(result json.RawMessage) int64 {
	var m struct {
		MessageID int64 `json:"message_id"`
	}
	if json.Unmarshal(result, &m) != nil {
		return 0
	}
	return m.MessageID
}

// reason is what went wrong with a job, in one line.
func reason(e *spool.JobError) string {
	s := e.Class
	if e.Description != "" {
		s += ": " + e.Description
	}
	return short(s, 200)
}
