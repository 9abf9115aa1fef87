package spool

import "context"

// A caller who waits for the answer to a call needs no second commit for it. The
// call is on disk, with its attempt marked, before its first byte; what Telegram
// has answered is true whether we keep it or not. So a good end is told while its
// commit is under way. If we stop before that commit, the job is an unknown
// outcome at the next start, as it would be had the answer been lost: held for a
// decision, or repeated where that does no harm. Where the bot's policy would
// send it again, or drop it, nothing is told before it is on disk.

// foretold is an end that is on its way to disk.
type foretold struct {
	job  Job
	done chan struct{} // closed when its commit has succeeded or failed
}

// mayForetell reports whether an end may be told before it is on disk: the next
// start must not call dead what was told as done.
func mayForetell(c *Claim, v Verdict) bool {
	last := c.MaxAttempts > 0 && c.Attempts >= c.MaxAttempts // no attempt is left to repeat it
	return v.State == Done && (c.SafeToRepeat && !last || !c.SafeToRepeat && c.OnUncertain == PolicyHold)
}

// foretell tells those who wait for an answer what it is; end takes that back
// when the commit is over.
func (s *Store) foretell(c *Claim, v Verdict) (end func()) {
	f := &foretold{job: c.Job, done: make(chan struct{})}
	f.job.State, f.job.Result, f.job.LastError = Done, v.Result, v.Error
	s.mu.Lock()
	s.foretold[c.ID] = f
	s.mu.Unlock()
	s.wake(c.ID)
	return func() {
		s.mu.Lock()
		delete(s.foretold, c.ID)
		s.mu.Unlock()
		close(f.done)
	}
}

// WaitAnswer is Wait for a caller who wants Telegram's answer and nothing else of
// the job: a good one comes while it is written, with State Done, Result and
// LastError.
func (s *Store) WaitAnswer(ctx context.Context, id int64) (Job, error) {
	s.await(id, 1)
	defer s.await(id, -1)
	return s.waitWhile(ctx, id, func(id int64) (Job, error) {
		s.mu.RLock()
		f := s.foretold[id]
		s.mu.RUnlock()
		if f != nil {
			return f.job, nil
		}
		return s.Outcome(id)
	}, State.Open)
}

func (s *Store) await(id int64, n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.callers[id] += n; s.callers[id] == 0 {
		delete(s.callers, id)
	}
}

// awaited reports whether somebody waits for the answer to a job's call.
func (s *Store) awaited(id int64) bool {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.callers[id] > 0
}

// Settled waits until the ends are on disk that have been told so far, or ctx
// ends: whoever has heard of one finds it then.
func (s *Store) Settled(ctx context.Context) {
	s.mu.RLock()
	var under []*foretold
	for _, f := range s.foretold {
		under = append(under, f)
	}
	s.mu.RUnlock()
	for _, f := range under {
		select {
		case <-f.done:
		case <-ctx.Done():
			return
		}
	}
}
