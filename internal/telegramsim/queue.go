package telegramsim

import (
	"encoding/json"
	"time"
)

const (
	maxPending      = 100_000   // updates kept for one bot
	maxPendingBytes = 128 << 20 // and their size
	maxAnswerBytes  = 1 << 22   // about where an answer to getUpdates is cut
	aheadOfTail     = 10        // an offset further ahead than this is from another era
	behindHead      = 100_000   // and one further behind too
)

// event is one update that waits to be fetched or pushed.
type event struct {
	id      int64
	raw     json.RawMessage
	kind    string
	key     string // updates of one key are pushed one after the other
	expires time.Time
}

// queue holds a bot's updates. Inside a generation ids never fall; ids that
// start anew further down begin a generation of their own, because one answer
// holds ascending ids only.
type queue struct {
	generations [][]*event
	count       int
	bytes       int
	next        int64     // id of the next update
	soonest     time.Time // no event expires before it; zero when there is none
}

// push appends an event; it is dropped silently when the queue is full, as the
// real one does. The next id follows this one.
func (q *queue) push(e *event) bool {
	if q.count >= maxPending || q.bytes+len(e.raw) > maxPendingBytes {
		return false
	}
	last := len(q.generations) - 1
	if last < 0 || e.id < q.generations[last][len(q.generations[last])-1].id {
		q.generations = append(q.generations, nil)
		last++
	}
	q.generations[last] = append(q.generations[last], e)
	q.count++
	q.bytes += len(e.raw)
	q.next = e.id + 1
	if q.soonest.IsZero() || e.expires.Before(q.soonest) {
		q.soonest = e.expires
	}
	return true
}

// get answers one poll: an offset below zero first drops all but the newest,
// one above zero confirms what is below it, and then the head is returned.
// Confirming is a side effect of asking, before any answer.
func (q *queue) get(offset int64, limit int, now time.Time) []*event {
	q.expire(now)
	switch {
	case offset < 0:
		q.keepNewest(int(min(-offset, maxPending)))
	case offset > 0:
		q.confirm(offset)
	}
	if len(q.generations) == 0 {
		return nil
	}
	head := q.generations[0]
	size := 0
	for i, e := range head[:min(limit, len(head))] {
		size += len(e.raw) + 50
		if i > 0 && size >= maxAnswerBytes {
			return head[:i:i]
		}
	}
	n := min(limit, len(head))
	return head[:n:n]
}

// confirm removes what lies below the offset. An offset far from the queue is
// from another era and removes nothing.
func (q *queue) confirm(offset int64) {
	if len(q.generations) == 0 {
		return
	}
	head := q.generations[0]
	if offset > head[len(head)-1].id+1+aheadOfTail || offset < head[0].id-behindHead {
		return
	}
	q.filter(func(gen int, e *event) bool { return gen > 0 || e.id >= offset })
}

// keepNewest drops all but the last n events.
func (q *queue) keepNewest(n int) {
	drop := q.count - n
	q.filter(func(int, *event) bool {
		drop--
		return drop < 0
	})
}

// expire drops the events whose retention is over.
func (q *queue) expire(now time.Time) {
	if q.soonest.IsZero() || now.Before(q.soonest) {
		return
	}
	q.filter(func(_ int, e *event) bool { return now.Before(e.expires) })
}

// remove takes one event out: it was pushed to a webhook.
func (q *queue) remove(done *event) {
	q.filter(func(_ int, e *event) bool { return e != done })
}

// clear drops everything.
func (q *queue) clear() {
	q.filter(func(int, *event) bool { return false })
}

// filter keeps the events that keep says, in their order, and brings the
// counters up to date. The slices given out by get are never written to.
func (q *queue) filter(keep func(generation int, e *event) bool) {
	var kept [][]*event
	q.count, q.bytes, q.soonest = 0, 0, time.Time{}
	for g, events := range q.generations {
		var rest []*event
		for _, e := range events {
			if !keep(g, e) {
				continue
			}
			rest = append(rest, e)
			q.count++
			q.bytes += len(e.raw)
			if q.soonest.IsZero() || e.expires.Before(q.soonest) {
				q.soonest = e.expires
			}
		}
		if rest != nil {
			kept = append(kept, rest)
		}
	}
	q.generations = kept
}

// each calls f for every event in order until it returns false.
func (q *queue) each(f func(e *event) bool) {
	for _, events := range q.generations {
		for _, e := range events {
			if !f(e) {
				return
			}
		}
	}
}
