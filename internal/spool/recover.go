package spool

import "fmt"

// recover puts right what the end of the last process left behind: attempts
// under way are unknown outcomes, leased updates are open again. In one
// transaction with the attaching of the bot, so that it happens exactly once.
func (t *txn) recover(b *Bot) {
	t.armPauses(b)
	var ids, seqs []int64
	t.each(bRun, botKey(b.num), botKey(b.num), func(k, _ []byte) bool {
		ids = append(ids, int64(u64at(k, 2)))
		return true
	})
	for _, id := range ids {
		t.recoverJob(b, id)
	}
	t.each(bInLease, botKey(b.num), botKey(b.num), func(k, _ []byte) bool {
		seqs = append(seqs, int64(u64at(k, 2)))
		return true
	})
	for _, seq := range seqs {
		t.recoverUpdate(b, seq)
	}
}

// recoverJob decides about one job that was running: calls that are safe to
// repeat go again, the others by their on_uncertain.
func (t *txn) recoverJob(b *Bot, id int64) {
	k := liveKey(b.num, id)
	r, err := t.liveJob(b, id)
	if err != nil {
		run, _ := decode[runRec](k, t.get(bRun, k))
		t.del(bRun, k)
		if t.get(bLive, k) != nil {
			t.setAside(bLive, k, err)
			t.count(b, Running, "")
		}
		if run != nil { // those behind it don't wait for it any more
			t.rearm(b, t.follow(b, run.ChatNo))
		}
		return
	}
	shown := *r
	run := t.fillRun(b, &shown)
	t.del(bRun, k)
	if run == nil { // the attempt's own record is damaged: the job isn't
		run = &runRec{Attempt: r.Attempts + 1}
	}
	v := Verdict{
		State: Uncertain, Reached: true, MaybeSent: true,
		Error: &JobError{
			Class: "unknown_outcome", At: t.s.clock.at(t.now),
			Description: fmt.Sprintf("tgspool ended during attempt %d", run.Attempt),
		},
	}
	switch {
	case r.Safe, r.OnUncertain == PolicyResend, r.OnUncertain == PolicyResendMarked:
		v.State = Pending
		if r.MaxAttempts > 0 && run.Attempt >= r.MaxAttempts {
			v.State = Dead
		}
	case r.OnUncertain == PolicyDrop:
		v.State = Cancelled
	}
	r.record(run, v, t.now)
	t.learn(b, r, v)
	if v.State == Pending {
		t.requeue(b, r, v)
	} else {
		t.leave(b, r, Running, v)
	}
	t.rearm(b, r.ChatNo) // also for those behind it, which its attempt has held back
}

// recoverUpdate opens an update again whose handler was at work. Its attempt
// stays counted: an update that ends the process each time must end as dead.
// Who has a lease over the API may be alive; it holds until it runs out.
func (t *txn) recoverUpdate(b *Bot, seq int64) {
	k := inboxKey(b.num, seq)
	r, err := t.update(b, seq)
	if err != nil {
		t.del(bInLease, k)
		if t.get(bInbox, k) != nil {
			t.setAside(bInbox, k, err)
			t.countUpdate(b, UpdateLeased, "")
		}
		return
	}
	if lease, _ := t.lease(b, seq); lease != nil && lease.Until != 0 {
		return
	}
	t.endLease(b, r)
	r.NextAt = 0
	t.open(b, r, UpdateLeased)
}

// reroute finds the handlers of all open updates again, after the routes of
// the settings have changed.
func (t *txn) reroute(b *Bot) {
	b.rec.Routes = b.cfg.Routes
	t.touchBot(b)
	var seqs []int64
	t.each(bInQueue, botKey(b.num), botKey(b.num), func(k, _ []byte) bool {
		seqs = append(seqs, int64(u64at(k, 10)))
		return true
	})
	for _, seq := range seqs {
		r, err := t.update(b, seq)
		if err != nil || r.state != UpdateOpen {
			continue // its claim will set it aside
		}
		route := b.cfg.Route(t.fullUpdate(b, r).Raw)
		route.Also = nil // that was done when it came in
		if route == r.route() {
			continue
		}
		t.unlineIn(b, r)
		if route.Ignore != "" {
			r.Error = route.Ignore
			t.shelve(b, r, UpdateOpen, UpdateIgnored)
			continue
		}
		r.follow(route)
		t.putOpen(b, r)
		t.lineIn(b, r)
	}
}
