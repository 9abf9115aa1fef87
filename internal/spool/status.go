package spool

import (
	"os"
	"slices"
	"strings"
)

// Status is the store at one moment.
type Status struct {
	Path      string
	SizeBytes int64
	FreeBytes int64 // of the file system
	Full      bool  // the last commit failed for want of space
	Bots      []BotStatus
}

// BotStatus is one bot's part of the store at one moment.
type BotStatus struct {
	ID                int64
	Name              string
	Attached          bool // it is in the settings
	Jobs              map[State]int64
	Updates           map[UpdateState]int64
	QueueDepth        int64 // pending + running
	OldestPendingAgeS float64
	DeadLast24h       int64
	InboxUnhandled    int64 // open + leased
	Offset            int64
	CooldownUntil     int64 // Unix nanoseconds, 0 when none is running
	Paused            []Pause
}

// Status counts what is there. It reads counters, never the queue.
func (s *Store) Status() Status {
	st := Status{Path: s.path, Full: s.health.full.Load(), Bots: []BotStatus{}}
	if fi, err := os.Stat(s.path); err == nil {
		st.SizeBytes = fi.Size()
	}
	st.FreeBytes = s.freeBytes()
	now := s.clock.now()
	for _, b := range s.Bots() {
		rec := b.public.Load()
		bs := BotStatus{
			ID: rec.ID, Name: rec.Name, Attached: b.attached.Load(),
			Jobs: map[State]int64{}, Updates: map[UpdateState]int64{},
			DeadLast24h: rec.deadLastDay(now), Offset: rec.Offset, Paused: rec.pausesOf(s.clock),
		}
		for _, state := range States() {
			bs.Jobs[state] = rec.Jobs[state.code()]
		}
		for _, state := range UpdateStates() {
			bs.Updates[state] = rec.Updates[state.code()]
		}
		bs.QueueDepth = bs.Jobs[Pending] + bs.Jobs[Running]
		bs.InboxUnhandled = bs.Updates[UpdateOpen] + bs.Updates[UpdateLeased]
		if rec.Cooldown > now {
			bs.CooldownUntil = s.clock.at(rec.Cooldown).UnixNano()
		}
		_ = s.view(func(t *txn) error {
			bs.OldestPendingAgeS = age(now, t.oldestPending(b))
			return nil
		})
		st.Bots = append(st.Bots, bs)
	}
	slices.SortFunc(st.Bots, func(a, b BotStatus) int { return strings.Compare(a.Name, b.Name) })
	return st
}
