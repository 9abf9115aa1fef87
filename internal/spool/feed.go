package spool

import (
	"sync"
	"sync/atomic"
)

// Change is what one commit has made of a record: exactly one of Job, Update and
// Chat is there. Jobs come without parameters and result, updates without their
// bytes and output.
type Change struct {
	Bot    string
	Job    *Job
	Update *Update
	Chat   *Chat
}

// feeds are those who follow the commits.
type feeds struct {
	count atomic.Int32 // how many: without any a commit does nothing more
	mu    sync.RWMutex // guards all
	all   map[*Feed]struct{}
}

// Feed gets every change from its making until Close. It never holds up the
// writer: what doesn't fit is counted and left out.
type Feed struct {
	s      *Store
	ch     chan Change
	missed atomic.Int64
}

// Feed begins to follow the commits, with room for that many changes.
func (s *Store) Feed(room int) *Feed {
	f := &Feed{s: s, ch: make(chan Change, room)}
	s.feeds.mu.Lock()
	defer s.feeds.mu.Unlock()
	if s.feeds.all == nil {
		s.feeds.all = map[*Feed]struct{}{}
	}
	s.feeds.all[f] = struct{}{}
	s.feeds.count.Add(1)
	return f
}

// C is where the changes come, in the order of their commits. It is never closed.
func (f *Feed) C() <-chan Change { return f.ch }

// Missed is how many changes didn't fit since it was last asked.
func (f *Feed) Missed() int64 { return f.missed.Swap(0) }

// Close ends the feed.
func (f *Feed) Close() {
	f.s.feeds.mu.Lock()
	defer f.s.feeds.mu.Unlock()
	if _, open := f.s.feeds.all[f]; open {
		delete(f.s.feeds.all, f)
		f.s.feeds.count.Add(-1)
	}
}

// changed tells a change after the commit; make is called then, when the record
// is as it will stay.
func (t *txn) changed(make func() Change) {
	s := t.s
	if s.feeds.count.Load() == 0 {
		return
	}
	t.after = append(t.after, func() {
		change := make()
		s.feeds.mu.RLock()
		defer s.feeds.mu.RUnlock()
		for f := range s.feeds.all {
			select {
			case f.ch <- change:
			default:
				f.missed.Add(1)
			}
		}
	})
}

func (t *txn) changedJob(b *Bot, r *jobRec) {
	name, state := b.rec.Name, r.state
	t.changed(func() Change {
		c := *r
		c.Params, c.Result, c.Files = nil, nil, nil
		job := c.view(name, t.s.clock)
		if state != "" {
			job.State = state // the record may have moved on in the same transaction
		}
		return Change{Bot: name, Job: &job}
	})
}

func (t *txn) changedUpdate(b *Bot, r *updateRec) {
	name, state := b.rec.Name, r.state
	t.changed(func() Change {
		c := *r
		c.Raw, c.Output, c.state = nil, "", state
		u := c.view(t.s.clock)
		u.Raw = nil
		return Change{Bot: name, Update: &u}
	})
}

func (t *txn) changedChat(b *Bot, c *chatRec) {
	if !isChatName(c.Name) {
		return
	}
	name, now := b.rec.Name, t.now
	t.changed(func() Change {
		chat := c.view(now, t.s.clock)
		return Change{Bot: name, Chat: &chat}
	})
}
