package botserver

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/tgspool/tgspool/internal/botapi"
	"github.com/tgspool/tgspool/internal/outbox"
	"github.com/tgspool/tgspool/internal/spool"
	"github.com/tgspool/tgspool/internal/wire"
)

const (
	// recently is how long after a chat has written a person may wait for an answer.
	recently = 60 * time.Second
	// commitTime bounds how long a call waits to be on disk.
	commitTime = 30 * time.Second
	// waitPause is what a caller is told who has waited for max_wait.
	waitPause = 5 * time.Second
	// stopGrace is how long a call in flight may still end while the daemon stops.
	stopGrace = 3 * time.Second
)

// hold makes a call a job, waits for its end, and answers with it. The call is
// on disk before the wait begins: if we stop, or the caller goes away, the job
// stays, and the same call joins it.
func (s *Server) hold(c *call) {
	job, err := s.newJob(c)
	if err != nil {
		s.refuse(c, err)
		return
	}
	async := wantsAsync(c.r)
	var t *ticket
	if async || job.DedupeKey != "" {
		t, err = s.accept(c, job)
	} else {
		t, err = s.join(c, job)
	}
	if err != nil {
		s.refuse(c, err)
		return
	}
	defer t.release()
	c.w.Header().Set("Tgspool-Job", strconv.FormatInt(t.id, 10))
	if async {
		succeedWith(c.w, http.StatusAccepted, marshal(map[string]any{"job_id": t.id, "state": t.state}))
		return
	}
	// Nothing of the call is needed any more, and hundreds may wait here. Files
	// that are still its own came once more with a call that is known.
	c.upload.Drop()
	bot, w, r, most := c.Bot, c.w, c.r, s.waitOf(c)
	c.params, c.upload, job = nil, &wire.Upload{}, spool.NewJob{}
	done, err := s.await(r.Context(), t.id, most)
	switch {
	case err == nil && done.State.Open():
		fail(w, s.notYet(bot, done.ID))
	case err == nil:
		// A stop ends the request's context, too, and yet the answer gets through.
		heard := r.Context().Err() == nil || s.stopping.Err() != nil
		if final := answerJob(w, bot, &done); final && heard {
			t.read()
		}
	case errors.Is(err, spool.ErrNotFound): // ended, and removed to make room
		fail(w, errorf(http.StatusConflict, "tgspool: job %d has ended, its result is gone", t.id))
	case r.Context().Err() != nil && s.stopping.Err() == nil:
		// The caller has hung up. Nobody reads this.
	default:
		fail(w, later(stopPause, "tgspool: it is stopping, job %d stays queued", t.id))
	}
}

// newJob makes the job of a call and of the headers that go with it.
func (s *Server) newJob(c *call) (spool.NewJob, error) {
	o := outbox.Options{
		Origin: "botapi", Verbatim: true, Lane: c.Lane, OnUncertain: c.OnUncertain, Files: c.upload.Files(),
	}
	if c.Client != "" {
		o.Origin += ":" + c.Client
	}
	if c.TTL > 0 {
		o.ExpiresAt = time.Now().Add(c.TTL)
	}
	if err := readHeaders(c.r.Header, &o, time.Now()); err != nil {
		return spool.NewJob{}, err
	}
	if c.limited() && c.Lane != "" {
		o.Lane = c.Lane // a limit, not a wish
	}
	job, err := outbox.New(c.method.Name, c.params.Raw(), o)
	if err != nil {
		return spool.NewJob{}, err
	}
	if job.Lane == "" {
		job.Lane = laneOf(c.Bot.Spool, job.Chat)
	}
	job.ID = c.upload.Job()
	return job, c.upload.Finish()
}

// readHeaders reads what may be said about a call beside its parameters.
func readHeaders(h http.Header, o *outbox.Options, now time.Time) error {
	o.DedupeKey = h.Get("Tgspool-Key")
	if lane := h.Get("Tgspool-Lane"); lane != "" {
		o.Lane = spool.Lane(strings.ToLower(lane))
	}
	if policy := h.Get("Tgspool-On-Uncertain"); policy != "" {
		o.OnUncertain = spool.Policy(strings.ToLower(policy))
	}
	if text := h.Get("Tgspool-Not-Before"); text != "" {
		at, err := readMoment(text)
		if err != nil {
			return errorf(http.StatusBadRequest, "tgspool: Tgspool-Not-Before must be a time of RFC 3339 or Unix seconds")
		}
		o.NotBefore = at
	}
	if text := h.Get("Tgspool-TTL"); text != "" {
		ttl, err := readSpan(text)
		if err != nil || ttl <= 0 {
			return errorf(http.StatusBadRequest, "tgspool: Tgspool-TTL must be a span of time like 90s or 2h")
		}
		from := now
		if o.NotBefore.After(now) {
			from = o.NotBefore
		}
		o.ExpiresAt = from.Add(ttl)
	}
	return nil
}

func readMoment(text string) (time.Time, error) {
	if seconds, err := strconv.ParseInt(text, 10, 64); err == nil {
		return time.Unix(seconds, 0), nil
	}
	return time.Parse(time.RFC3339, text)
}

func readSpan(text string) (time.Duration, error) {
	if seconds, err := strconv.ParseInt(text, 10, 32); err == nil {
		return time.Duration(seconds) * time.Second, nil
	}
	return time.ParseDuration(text)
}

// wantsAsync reads Prefer: respond-async (RFC 7240).
func wantsAsync(r *http.Request) bool {
	for _, line := range r.Header.Values("Prefer") {
		for preference := range strings.SplitSeq(line, ",") {
			name, _, _ := strings.Cut(preference, ";")
			if strings.EqualFold(strings.TrimSpace(name), "respond-async") {
				return true
			}
		}
	}
	return false
}

// laneOf puts an answer to a person who has just written before everything else.
func laneOf(b *spool.Bot, chat string) spool.Lane {
	if chat == "" {
		return spool.Normal
	}
	c, err := b.Chat(chat)
	if err == nil && c.LastSeenAt != nil && time.Since(*c.LastSeenAt) <= recently {
		return spool.Interactive
	}
	return spool.Normal // also for a chat that nobody has met
}

func (s *Server) waitOf(c *call) time.Duration {
	if c.MaxWait > 0 {
		return c.MaxWait
	}
	return s.settings.Load().MaxWait
}

// accept puts a job on disk that no repeat is to join.
func (s *Server) accept(c *call, job spool.NewJob) (*ticket, error) {
	made, err := enqueue(c, job)
	if err != nil {
		return nil, err
	}
	if c.limited() && made.Origin != job.Origin {
		// The result of others' jobs is none of its business.
		return nil, errorf(http.StatusConflict, "tgspool: the key is held by a job of somebody else's")
	}
	return &ticket{id: made.ID, state: made.State}, nil
}

// enqueue puts a job on disk. Whether it got there is always known: a caller who
// goes away meanwhile changes nothing.
func enqueue(c *call, job spool.NewJob) (spool.Job, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(c.r.Context()), commitTime)
	defer cancel()
	made, err := c.Bot.Spool.Enqueue(ctx, job)
	if err != nil {
		return spool.Job{}, err
	}
	if !made[0].Duplicate {
		c.upload = &wire.Upload{} // the files are the job's now
	}
	return made[0].Job, nil
}

// await returns the job when it has left the queue, or as it is when the longest
// wait is over. While the daemon stops, a call in flight gets a moment more.
func (s *Server) await(ctx context.Context, id int64, most time.Duration) (spool.Job, error) {
	waiting, cancel := context.WithTimeout(ctx, most)
	defer cancel()
	job, err := s.store.WaitAnswer(waiting, id)
	switch {
	case err == nil:
		return job, nil
	case ctx.Err() == nil && waiting.Err() != nil:
		return job, nil
	case s.stopping.Err() == nil || job.State != spool.Running:
		return job, err
	}
	last, cancelLast := context.WithTimeout(context.WithoutCancel(ctx), stopGrace)
	defer cancelLast()
	// Given back it stays queued: the sender takes nothing any more.
	if job, err = s.store.WaitAttempt(last, id); err == nil && job.State.Open() {
		err = ctx.Err()
	}
	return job, err
}

// notYet is the answer to a caller who has waited as long as may be.
func (s *Server) notYet(b *Bot, id int64) *apiError {
	return later(pauseOf(b), "tgspool: job %d is still queued; the same call finds it again", id)
}

// pauseOf is when the bot may send again, as far as that is known, and at least
// a moment. Callers sleep as long as they are told.
func pauseOf(b *Bot) time.Duration {
	if until := b.Spool.Cooldown(); !until.IsZero() {
		return max(time.Until(until)+time.Second, waitPause) // when it is over, not just before
	}
	return waitPause
}

// answerJob answers with what became of a job, and reports whether that is its
// end for good.
func answerJob(w http.ResponseWriter, b *Bot, j *spool.Job) (final bool) {
	switch j.State {
	case spool.Done:
		if e := j.LastError; e != nil && e.Class == string(botapi.ClassNoOp) {
			fail(w, jobError(j))
			return true
		}
		result := j.Result
		if len(result) == 0 {
			result = json.RawMessage("true") // Telegram had none to give
		}
		succeed(w, result)
		return true
	case spool.Uncertain:
		fail(w, errorf(http.StatusConflict, "tgspool: outcome unknown, job %d is uncertain", j.ID))
	case spool.Held:
		if j.HeldBy != nil && *j.HeldBy == spool.HeldByFlood {
			fail(w, later(pauseOf(b), "tgspool: job %d is held for a flood", j.ID))
			return false
		}
		fail(w, errorf(http.StatusConflict, "tgspool: job %d is held", j.ID))
	case spool.Cancelled, spool.Expired, spool.Dead:
		fail(w, jobError(j))
		return true
	case spool.Pending, spool.Running:
		fail(w, later(pauseOf(b), "tgspool: job %d is still queued", j.ID))
	}
	return false
}

// jobError is the error that a job ended with: Telegram's own words where they
// are Telegram's.
func jobError(j *spool.Job) *apiError {
	e := j.LastError
	switch {
	case e == nil:
		return errorf(http.StatusBadRequest, "tgspool: job %d is %s", j.ID, j.State)
	case e.Code >= 400 && e.Code <= 599:
		return &apiError{code: e.Code, description: e.Description}
	case e.Class == "chat_gone":
		return &apiError{code: codeOf(e.Description), description: e.Description}
	}
	return errorf(http.StatusBadRequest, "tgspool: job %d is %s: %s", j.ID, j.State, e.Description)
}
