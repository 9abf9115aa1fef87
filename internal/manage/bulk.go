package manage

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"slices"
	"sync"

	"github.com/tgspool/tgspool/internal/spool"
)

// abreast is how many transitions are handed to the writer at once where their
// order doesn't matter; it commits them together.
const abreast = 64

// tally is the answer to a decision by filter.
type tally struct {
	Matched int `json:"matched"`
	Changed int `json:"changed"`
	Skipped int `json:"skipped"` // moved on meanwhile, or in a state that doesn't allow it
}

// decideJobs carries out a decision about all jobs that a filter selects.
func (a *api) decideJobs(r *http.Request) (int, any, error) {
	name := r.PathValue("verb")
	verb, known := decisions[name]
	if !known {
		return 0, nil, problemf(http.StatusNotFound, "there is no decision %q", name)
	}
	bot, err := a.bot(r)
	if err != nil {
		return 0, nil, err
	}
	q, err := readQuery(r, append([]string{"dry_run", "all"}, filterNames...)...)
	if err != nil {
		return 0, nil, err
	}
	f, err := a.filter(bot.Name(), q)
	if err != nil {
		return 0, nil, err
	}
	dry, err := q.flag("dry_run")
	if err != nil {
		return 0, nil, err
	}
	all, err := q.flag("all")
	if err != nil {
		return 0, nil, err
	}
	if !all && !slices.ContainsFunc(filterNames, func(n string) bool { return q[n] != "" }) {
		return 0, nil, problemf(http.StatusUnprocessableEntity, "name a filter, or all=true")
	}
	if err := noBody(r); err != nil {
		return 0, nil, err
	}
	ids, err := selected(bot, f, verb.from)
	if err != nil {
		return 0, nil, err
	}
	out := tally{Matched: len(ids)}
	if !dry {
		err = a.decideAll(r.Context(), name, ids, &out)
		a.log.LogAttrs(r.Context(), slog.LevelInfo, "jobs decided by a person",
			slog.String("bot", bot.Name()), slog.Int("count", out.Changed))
	}
	return http.StatusOK, out, err
}

// selected returns the ids of the jobs that the filter matches, ascending. A
// filter without a state means the states from which the decision can be taken.
func selected(bot *spool.Bot, f spool.JobFilter, from []spool.State) ([]int64, error) {
	if f.State != "" {
		from = []spool.State{f.State}
	}
	var ids []int64
	for _, state := range from {
		f.State, f.After, f.Limit = state, 0, maxLimit
		for more := true; more; {
			page, err := bot.Jobs(f)
			if err != nil {
				return nil, err
			}
			for _, job := range page.Items {
				ids = append(ids, job.ID)
			}
			f.After, more = page.Next, page.Next != 0
		}
	}
	slices.Sort(ids)
	// A job may have moved from one state to the next while they were listed.
	return slices.Compact(ids), nil
}

// decideAll decides about each job. What is brought back keeps its order, so
// one follows the other; the rest goes abreast. It stops when the caller goes;
// what is done by then stays.
func (a *api) decideAll(ctx context.Context, name string, ids []int64, out *tally) error {
	width := abreast
	if name == "release" || name == "retry" {
		width = 1
	}
	do := decisions[name].do
	for group := range slices.Chunk(ids, width) {
		if err := ctx.Err(); err != nil {
			return err
		}
		errs := make([]error, len(group))
		var wait sync.WaitGroup
		for i, n := range group {
			wait.Go(func() {
				bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), changeTimeout)
				defer cancel()
				_, errs[i] = do(a.store, bounded, n)
			})
		}
		wait.Wait()
		for _, err := range errs {
			switch {
			case err == nil, asWanted(err):
				out.Changed++
			case moved(err):
				out.Skipped++
			default:
				return err
			}
		}
	}
	return nil
}

// asWanted reports whether a job has moved to where it was to go: as a part of a
// text of which an earlier one was called off.
func asWanted(err error) bool {
	at, ok := errors.AsType[*spool.StateError](err)
	return ok && at.Now == at.Want
}
