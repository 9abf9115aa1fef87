package handler

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/tgspool/tgspool/internal/botapi"
	"github.com/tgspool/tgspool/internal/spool"
	"github.com/tgspool/tgspool/internal/wire"
)

// The waits between two attempts with one update.
const (
	firstRetry = time.Second
	maxRetry   = 5 * time.Minute
)

// exitPermanent is EX_DATAERR of sysexits.h: another attempt would change nothing.
const exitPermanent = 65

// decision is how a lease ends. State UpdateHandled takes handling, every other
// state takes failure.
type decision struct {
	state    spool.UpdateState
	handling spool.Handling
	failure  spool.Failure
	files    *wire.Upload // of the calls; nil: none
}

// drop removes files that no job has come of.
func (d decision) drop() {
	if d.files != nil {
		d.files.Drop()
	}
}

func failed(state spool.UpdateState, reason string) decision {
	return decision{state: state, failure: spool.Failure{State: state, Error: reason}}
}

// giveBack opens the update again as if it had never been leased.
func giveBack(reason string) decision {
	d := failed(spool.UpdateOpen, reason)
	d.failure.GiveBack = true
	return d
}

// refuse tells, before a run, why there must not be one.
func (r *route) refuse(u botapi.Update, lease *spool.Lease, now time.Time) (decision, bool) {
	switch {
	case r.denies(u): // the settings have changed since it came, or it is replayed
		return failed(spool.UpdateIgnored, IgnoredNotAllowed), true
	case r.Once && lease.Attempts > 1:
		return failed(spool.UpdateDead, "may have run: a start has no end, and once = true"), true
	case lease.Attempts > r.Attempts:
		// The last attempts have no end: we were killed each time, perhaps by it.
		return failed(spool.UpdateDead, fmt.Sprintf("given up after %d attempts without an end", lease.Attempts-1)), true
	case r.MaxAge > 0 && !lease.Replayed && age(u, lease, now) > r.MaxAge:
		return failed(spool.UpdateExpired, fmt.Sprintf("older than %s", r.MaxAge)), true
	}
	return decision{}, false
}

// judge decides what a run that was started means for its update.
func (r *route) judge(u botapi.Update, lease *spool.Lease, run run) decision {
	output := evidence(run.stdout, run.stderr)
	switch {
	case run.end == endExit && run.code == 0:
		jobs, err := r.answer(u, lease.Raw, run.stdout)
		if err != nil {
			d := failed(spool.UpdateDead, err.Error())
			d.failure.Output = output
			if errors.Is(err, errNoChat) {
				d.failure.Jobs = jobs // the pressed button is answered all the same
			}
			return d
		}
		return decision{
			state:    spool.UpdateHandled,
			handling: spool.Handling{Jobs: jobs, Output: evidence(nil, run.stderr)},
		}
	case run.end == endStopped && !r.Once:
		return giveBack(run.err.Error())
	}
	d := r.afterFailure(lease.Attempts, run)
	d.failure.Output = output
	return d
}

// afterFailure decides between another attempt and the end.
func (r *route) afterFailure(attempts int, run run) decision {
	reason := run.err.Error()
	switch {
	case run.end == endOverflow, run.end == endExit && run.code == exitPermanent:
		return failed(spool.UpdateDead, reason)
	case r.Once:
		return failed(spool.UpdateDead, "may have run: "+reason+", and once = true")
	case attempts >= r.Attempts:
		return failed(spool.UpdateDead, fmt.Sprintf("given up after %d attempts: %s", attempts, reason))
	}
	d := failed(spool.UpdateOpen, reason)
	d.failure.RetryAt = time.Now().Add(retryWait(attempts))
	return d
}

// retryWait doubles from attempt to attempt; the jitter only adds, a quarter at
// most, so that updates that failed together don't come back together.
func retryWait(attempts int) time.Duration {
	d := firstRetry
	for range attempts - 1 {
		if d *= 2; d >= maxRetry {
			return maxRetry
		}
	}
	return min(d+rand.N(d/4), maxRetry)
}
