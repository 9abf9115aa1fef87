package manage

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net/http"
	"time"

	"github.com/tgspool/tgspool/internal/spool"
)

// queued is a job in an answer, with the mark of one that was there before.
type queued struct {
	spool.Job
	Duplicate bool `json:"duplicate,omitempty"`
	// Parts are the ids of all messages that a long text has become.
	Parts []int64 `json:"parts,omitempty"`
}

// items is the body of every answer that holds more than one record.
type items struct {
	Items any     `json:"items"`
	Next  *string `json:"next,omitempty"`
}

// postJobs queues one job, which may bring files in a form, or many at once, all
// or none.
func (a *api) postJobs(r *http.Request) (int, any, error) {
	bot, err := a.bot(r)
	if err != nil {
		return 0, nil, err
	}
	q, err := readQuery(r, "wait")
	if err != nil {
		return 0, nil, err
	}
	wait, err := q.wait()
	if err != nil {
		return 0, nil, err
	}
	if boundary, ok := formOf(r); ok {
		return a.postForm(r, bot, boundary, wait)
	}
	body, many, err := readBody(r)
	if err != nil {
		return 0, nil, err
	}
	if many && wait > 0 {
		return 0, nil, problemf(http.StatusBadRequest, "only one job can be waited for")
	}
	jobs, err := a.readJobs(r, bot.Name(), body, many)
	if err != nil {
		return 0, nil, err
	}
	ctx, cancel := change(r.Context())
	defer cancel()
	made, err := bot.Enqueue(ctx, jobs...)
	if err != nil {
		return 0, nil, err
	}
	return a.answerQueued(r, made, many, wait)
}

// answerQueued is the answer to queued jobs: 201 when at least one is new.
func (a *api) answerQueued(r *http.Request, made []spool.Queued, many bool, wait time.Duration) (int, any, error) {
	who := callerOf(r)
	status := http.StatusOK
	out := make([]queued, len(made))
	for i, m := range made {
		out[i] = queued{Job: who.hide(m.Job), Duplicate: m.Duplicate, Parts: m.Parts}
		if !m.Duplicate {
			status = http.StatusCreated
		}
	}
	if many {
		return status, items{Items: out}, nil
	}
	if wait > 0 {
		job, err := a.awaitAll(r.Context(), made[0], wait)
		if err != nil {
			return 0, nil, err
		}
		out[0].Job = who.hide(job)
	}
	return status, out[0], nil
}

// readJobs reads the jobs of a body. An error of one of many names its line.
func (a *api) readJobs(r *http.Request, bot string, body []byte, many bool) ([]spool.NewJob, error) {
	now := time.Now()
	one := func(data []byte) (spool.NewJob, error) {
		p, err := readJob(data, now)
		if err != nil {
			return spool.NewJob{}, err
		}
		return a.build(r, bot, p)
	}
	if !many {
		job, err := one(body)
		return []spool.NewJob{job}, err
	}
	var jobs []spool.NewJob
	line := 0
	for data := range bytes.Lines(body) {
		line++
		if len(bytes.TrimSpace(data)) == 0 {
			continue
		}
		if len(jobs) == maxJobs {
			return nil, problemf(http.StatusRequestEntityTooLarge, "more than %d jobs at once", maxJobs)
		}
		job, err := one(data)
		if err != nil {
			p := *toProblem(err)
			p.Detail = problemf(0, "line %d: %s", line, p.Detail).Detail
			return nil, &p
		}
		jobs = append(jobs, job)
	}
	if len(jobs) == 0 {
		return nil, problemf(http.StatusUnprocessableEntity, "the body holds no job")
	}
	return jobs, nil
}

// OriginHeader names who asks, for the job's origin.
const OriginHeader = "Tgspool-Origin"

// listJobs lists the jobs that a filter selects.
func (a *api) listJobs(r *http.Request) (int, any, error) {
	bot, err := a.bot(r)
	if err != nil {
		return 0, nil, err
	}
	q, err := readQuery(r, append([]string{"limit", "after"}, filterNames...)...)
	if err != nil {
		return 0, nil, err
	}
	f, err := a.filter(bot.Name(), q)
	if err != nil {
		return 0, nil, err
	}
	if err := callerOf(r).narrow(&f); err != nil {
		return 0, nil, err
	}
	limit, after, err := q.page()
	if err != nil {
		return 0, nil, err
	}
	return list(limit, after, func(after int64, limit int) ([]spool.Job, int64, error) {
		f.After, f.Limit = after, limit
		page, err := bot.Jobs(f)
		return page.Items, page.Next, err
	}, func(j spool.Job) (int64, int) { return j.ID, len(j.Params) + len(j.Result) })
}

// showJob answers with one job, after waiting for its end if so asked.
func (a *api) showJob(r *http.Request) (int, any, error) {
	n, err := id(r, "id")
	if err != nil {
		return 0, nil, err
	}
	q, err := readQuery(r, "wait")
	if err != nil {
		return 0, nil, err
	}
	wait, err := q.wait()
	if err != nil {
		return 0, nil, err
	}
	if err := a.own(r, n); err != nil {
		return 0, nil, err
	}
	job, err := a.await(r.Context(), n, wait)
	return http.StatusOK, callerOf(r).hide(job), err
}

// await returns the job when it is neither pending nor running, or as it is
// when the time is over or the daemon stops. Who waits for a job whose place
// another has taken gets that one.
func (a *api) await(ctx context.Context, n int64, wait time.Duration) (spool.Job, error) {
	if wait > 0 {
		ctx, cancel := context.WithTimeout(ctx, wait)
		defer cancel()
		job, err := a.store.Wait(ctx, n)
		if err == nil || ctx.Err() == nil {
			return job, err
		}
	}
	if wait > 0 {
		return a.store.Outcome(n)
	}
	return a.store.Job(n)
}

// awaitAll waits for a job, or for the last part of its text, and returns the job
// as it is then.
func (a *api) awaitAll(ctx context.Context, q spool.Queued, wait time.Duration) (spool.Job, error) {
	if n := len(q.Parts); n > 1 {
		if _, err := a.await(ctx, q.Parts[n-1], wait); err != nil {
			return spool.Job{}, err
		}
		wait = 0
	}
	return a.await(ctx, q.Job.ID, wait)
}

// decisions are the verbs on jobs, and the states from which each can be taken.
var decisions = map[string]struct {
	from []spool.State
	do   func(*spool.Store, context.Context, int64) (spool.Job, error)
}{
	"cancel":  {[]spool.State{spool.Pending, spool.Held, spool.Uncertain}, (*spool.Store).Cancel},
	"hold":    {[]spool.State{spool.Pending}, (*spool.Store).Hold},
	"release": {[]spool.State{spool.Held}, (*spool.Store).Release},
	"retry":   {[]spool.State{spool.Dead, spool.Cancelled, spool.Expired}, (*spool.Store).Retry},
}

// decideJob carries out a decision about one job.
func (a *api) decideJob(r *http.Request) (int, any, error) {
	verb, known := decisions[r.PathValue("verb")]
	if !known {
		return 0, nil, problemf(http.StatusNotFound, "there is no decision %q", r.PathValue("verb"))
	}
	n, err := id(r, "id")
	if err != nil {
		return 0, nil, err
	}
	if _, err := readQuery(r); err != nil {
		return 0, nil, err
	}
	if err := noBody(r); err != nil {
		return 0, nil, err
	}
	ctx, cancel := change(r.Context())
	defer cancel()
	job, err := verb.do(a.store, ctx, n)
	if err != nil {
		return 0, nil, err
	}
	a.decided(ctx, job)
	return http.StatusOK, job, nil
}

// resolveJob settles an uncertain job as a person says.
func (a *api) resolveJob(r *http.Request) (int, any, error) {
	n, err := id(r, "id")
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
	how, err := readResolution(body)
	if err != nil {
		return 0, nil, err
	}
	ctx, cancel := change(r.Context())
	defer cancel()
	job, err := a.store.Resolve(ctx, n, how)
	if err != nil {
		return 0, nil, err
	}
	a.decided(ctx, job)
	return http.StatusOK, job, nil
}

// readResolution reads {"outcome":…, "message_id":…}.
func readResolution(body []byte) (spool.Resolution, error) {
	var how spool.Resolution
	all, err := readObject(body)
	if err != nil {
		return how, err
	}
	for _, m := range all {
		switch {
		case m.name == "outcome":
			how.Outcome, err = decode[string](m, "one of sent, resend, drop")
		case m.name == "message_id" && m.null():
		case m.name == "message_id":
			how.MessageID, err = decode[int64](m, "a whole number")
			if err == nil && how.MessageID < 1 {
				err = problemf(http.StatusUnprocessableEntity, `"message_id" must be above 0`)
			}
		default:
			err = unknownMember(m.name, []string{"outcome", "message_id"})
		}
		if err != nil {
			return how, err
		}
	}
	switch {
	case how.Outcome != "sent" && how.Outcome != "resend" && how.Outcome != "drop":
		return how, problemf(http.StatusUnprocessableEntity, `"outcome" must be one of sent, resend, drop`)
	case how.MessageID != 0 && how.Outcome != "sent":
		return how, problemf(http.StatusUnprocessableEntity, `"message_id" goes with the outcome "sent" only`)
	}
	return how, nil
}

// decided logs a person's decision: who looks for a missing message later
// should find it.
func (a *api) decided(ctx context.Context, job spool.Job) {
	a.log.LogAttrs(ctx, slog.LevelInfo, "job decided by a person",
		slog.String("bot", job.Bot),
		slog.Int64("job_id", job.ID), slog.String("state", string(job.State)))
}

// moved reports whether a decision failed because the job had moved on, or had
// gone, meanwhile.
func moved(err error) bool {
	return errors.Is(err, spool.ErrConflict) || errors.Is(err, spool.ErrNotFound)
}
