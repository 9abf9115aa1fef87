package handler

import (
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

// instead takes another decision in the place of one, which has the care of its
// files.
func (d decision) instead(other decision) decision {
	other.files = d.files
	return other
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

// clockPause is until the time is asked for again that an update's age is
// measured by.
const clockPause = 5 * time.Second

// refuse tells, before a run, why there must not be one.
func (r *route) refuse(u botapi.Update, lease *spool.Lease, now time.Time, known bool) (decision, bool) {
	switch {
	case r.denies(u): // the settings have changed since it came, or it is replayed
		return r.telling(u, failed(spool.UpdateIgnored, IgnoredNotAllowed), r.Denied), true
	case r.Once && lease.Attempts > 1:
		return r.apologize(u, failed(spool.UpdateDead, "may have run: a start has no end, and once = true")), true
	case lease.Attempts > r.Attempts:
		// The last attempts have no end: we were killed each time, perhaps by it.
		return r.apologize(u, failed(spool.UpdateDead, fmt.Sprintf("given up after %d attempts without an end", lease.Attempts-1))), true
	case r.MaxAge <= 0 || lease.Replayed:
		return decision{}, false
	case lease.Waited <= r.MaxAge && !known: // nothing says yet how old it is
		d := giveBack("its age can't be told before the time is known")
		d.failure.RetryAt = time.Now().Add(clockPause)
		return d, true
	case max(lease.Waited, age(u, now)) > r.MaxAge:
		return r.telling(u, failed(spool.UpdateExpired, fmt.Sprintf("older than %s", r.MaxAge)), r.Late), true
	}
	return decision{}, false
}

// age is how long ago the event itself was; 0 where Telegram doesn't date it.
func age(u botapi.Update, now time.Time) time.Duration {
	if u.Date.IsZero() {
		return 0
	}
	return now.Sub(u.Date)
}

// telling adds what the user is told of a decision, unless that is nothing.
func (r *route) telling(u botapi.Update, d decision, text string) decision {
	if text != "" {
		d.failure.Jobs = append(d.failure.Jobs, r.told(u, text)...)
	}
	return d
}

// apologize adds what the user is told of an update that is dead.
func (r *route) apologize(u botapi.Update, d decision) decision {
	if d.state != spool.UpdateDead || r.OnError == "" {
		return d
	}
	// The button has been answered, or is the handler's to answer.
	if jobs, err := r.say(u, r.OnError); err == nil {
		d.failure.Jobs = append(d.failure.Jobs, jobs...)
	}
	return d
}

// judge decides what a run that was started means for its update.
func (r *route) judge(u botapi.Update, lease *spool.Lease, run run) decision {
	output := evidence(run.stdout, run.stderr)
	switch {
	case run.end == endExit && run.code == 0:
		h, err := r.answer(u, lease, run.stdout)
		if err != nil {
			d := failed(spool.UpdateDead, err.Error())
			d.failure.Output = output
			return r.apologize(u, d)
		}
		h.Output = evidence(nil, run.stderr)
		return decision{state: spool.UpdateHandled, handling: h}
	case run.end == endStopped && !r.Once:
		return giveBack(run.err.Error())
	}
	d := r.afterFailure(lease.Attempts, run)
	d.failure.Output = output
	return r.apologize(u, d)
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
