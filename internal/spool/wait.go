package spool

import "context"

// Job reads a job by its id.
func (s *Store) Job(id int64) (job Job, err error) {
	err = s.view(func(t *txn) error {
		b, r, err := t.jobAndBot(id)
		if err == nil {
			job = t.full(r).view(b.Name(), t.s.clock)
		}
		return err
	})
	return job, err
}

// Outcome reads a job, or the one that has taken its place.
func (s *Store) Outcome(id int64) (job Job, err error) {
	err = s.view(func(t *txn) error {
		b, r, err := t.jobAndBot(id)
		if err == nil {
			b, r = t.successor(b, r)
			job = t.full(r).view(b.Name(), t.s.clock)
		}
		return err
	})
	return job, err
}

// Wait returns the job when its state is neither pending nor running, or as it
// is when ctx ends, with ctx's error. Of a job whose place another has taken it
// is the other that is waited for.
func (s *Store) Wait(ctx context.Context, id int64) (Job, error) {
	return s.waitWhile(ctx, id, s.Outcome, State.Open)
}

// WaitAttempt returns the job when no attempt is under way, be it that it has
// ended or that it is back in the queue, or as it is when ctx ends, with ctx's
// error.
func (s *Store) WaitAttempt(ctx context.Context, id int64) (Job, error) {
	return s.waitWhile(ctx, id, s.Outcome, func(state State) bool { return state == Running })
}

func (s *Store) waitWhile(ctx context.Context, id int64, look func(int64) (Job, error), waits func(State) bool) (Job, error) {
	for {
		job, moved, err := s.waitFor(ctx, id, look, waits)
		if !moved {
			return job, err
		}
		id = job.ID
	}
}

// waitFor waits for one job, until it gives way to another that waits on.
func (s *Store) waitFor(ctx context.Context, id int64, look func(int64) (Job, error), waits func(State) bool) (job Job, moved bool, err error) {
	ch := make(chan struct{}, 1)
	s.watch(id, ch)
	defer s.unwatch(id, ch)
	for {
		job, err := look(id)
		if err != nil || !waits(job.State) {
			return job, false, err
		}
		if job.ID != id {
			return job, true, nil
		}
		select {
		case <-ch:
		case <-ctx.Done():
			return job, false, ctx.Err()
		case <-s.stop:
			return job, false, ErrClosed
		}
	}
}

func (s *Store) watch(id int64, ch chan struct{}) {
	s.mu.Lock()
	s.watches[id] = append(s.watches[id], ch)
	s.mu.Unlock()
}

func (s *Store) unwatch(id int64, ch chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	rest := s.watches[id][:0]
	for _, c := range s.watches[id] {
		if c != ch {
			rest = append(rest, c)
		}
	}
	if s.watches[id] = rest; len(rest) == 0 {
		delete(s.watches, id)
	}
}

// tell wakes those who wait for a job, after the commit.
func (t *txn) tell(id int64) {
	t.after = append(t.after, func() { t.s.wake(id) })
}

func (s *Store) wake(id int64) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	for _, ch := range s.watches[id] {
		select {
		case ch <- struct{}{}:
		default:
		}
	}
}
