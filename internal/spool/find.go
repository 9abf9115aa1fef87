package spool

import "fmt"

// full fills in the parameters of a record whose payload stands elsewhere.
func (t *txn) full(r *jobRec) *jobRec {
	if !r.InBody {
		return r
	}
	c := *r
	k := bodyKey(r.ID)
	v, err := unseal(k, t.get(bBody, k))
	if err != nil || !c.unpackBody(v) {
		c.Error = &JobError{Class: "damaged", Description: "the parameters are damaged on disk", At: t.s.clock.at(t.now)}
		return &c
	}
	return &c
}

// liveJob reads a job that is pending or running.
func (t *txn) liveJob(b *Bot, id int64) (*jobRec, error) {
	k := liveKey(b.num, id)
	v := t.get(bLive, k)
	if v == nil {
		return nil, ErrNotFound
	}
	r, err := decode[jobRec](k, v)
	if err != nil {
		return nil, err
	}
	r.state = Pending
	if rk := liveKey(b.num, id); t.get(bRun, rk) != nil {
		r.state = Running
	}
	return r, nil
}

// job finds a job by its id, whatever its bot and state.
func (t *txn) job(id int64) (*jobRec, error) {
	_, r, err := t.jobAndBot(id)
	return r, err
}

func (t *txn) jobAndBot(id int64) (*Bot, *jobRec, error) {
	if id <= 0 {
		return nil, nil, fmt.Errorf("job %d: %w", id, ErrNotFound)
	}
	for _, b := range t.s.Bots() {
		if r, err := t.liveJob(b, id); err == nil {
			t.fillRun(b, r)
			return b, r, nil
		}
		for _, st := range States() {
			k := stateKey(b.num, st.code(), id)
			if st.Open() || t.get(standOf(st), k) == nil {
				continue
			}
			r, err := decode[jobRec](k, t.get(standOf(st), k))
			if err != nil {
				return nil, nil, fmt.Errorf("job %d: %w", id, err)
			}
			r.state = st
			return b, r, nil
		}
	}
	return nil, nil, fmt.Errorf("job %d: %w", id, ErrNotFound)
}

// fillRun shows the attempt under way in a running job's record.
func (t *txn) fillRun(b *Bot, r *jobRec) *runRec {
	k := liveKey(b.num, r.ID)
	v := t.get(bRun, k)
	if v == nil {
		return nil
	}
	run, err := decode[runRec](k, v)
	if err != nil {
		return nil
	}
	r.Attempts, r.SentChat, r.Updated = run.Attempt, run.Chat, run.Started
	return run
}
