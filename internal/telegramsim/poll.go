package telegramsim

import (
	"bytes"
	"context"
	"encoding/json"
	"math"
	"strings"
	"time"
)

const (
	longPollCap     = 50 * time.Second
	longPollBatch   = 2 * time.Millisecond // how long an answer waits for a second update
	spinWindow      = 3 * time.Second      // the same offset again within this waits at least this long
	spinShort       = 500 * time.Millisecond
	conflictSpacing = 3 * time.Second // a 409 inside this after the last one is held back as long
)

const (
	textOtherPoll = "terminated by other getUpdates request; make sure that only one bot instance is running"
	textHookSet   = "can't use getUpdates method while webhook is active; use deleteWebhook to delete the webhook first"
	textSetHook   = "terminated by setWebhook request"
)

// Poll is one getUpdates call that came to its end.
type Poll struct {
	At      time.Time     `json:"at"` // when it came
	Took    time.Duration `json:"took"`
	Bot     int64         `json:"bot"`
	Offset  int64         `json:"offset"`
	Limit   int           `json:"limit"`   // after clamping
	Timeout int           `json:"timeout"` // seconds, after clamping
	Status  int           `json:"status"`  // 0 when the caller went away
	Count   int           `json:"count"`   // updates in the answer
}

// keptPolls bounds the list of polls; the oldest half goes when it is full.
const keptPolls = 10_000

// Polls are the getUpdates calls that came to their end, oldest first. They do
// not stand in the journal, because they have no effect that a user could see.
func (s *Sim) Polls() []Poll {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]Poll(nil), s.polls...)
}

// parkedPoll is a getUpdates call that waits. Both channels hold one value and
// are written under Sim.mu.
type parkedPoll struct {
	wake  chan struct{}
	abort chan pollAbort
}

// pollAbort ends a parked poll with an error, or, with a nil error, with an
// empty answer.
type pollAbort struct {
	err   *apiError
	after time.Duration
}

// updatesResult is the result of getUpdates: updates as they were fed, which
// need not be well-formed JSON.
type updatesResult []*event

// MarshalJSON is for the journal's sake only; the answer is put together by raw.
func (u updatesResult) MarshalJSON() ([]byte, error) { return json.Marshal(len(u)) }

// raw is the whole answer of getUpdates.
func (u updatesResult) raw() []byte {
	var buf bytes.Buffer
	buf.WriteString(`{"ok":true,"result":[`)
	for i, e := range u {
		if i > 0 {
			buf.WriteByte(',')
		}
		buf.Write(e.raw)
	}
	buf.WriteString(`]}`)
	return buf.Bytes()
}

// getUpdates answers one poll. It is the one method that waits, so it takes the
// lock itself. The last result tells whether the caller is still there.
func (s *Sim) getUpdates(ctx context.Context, c *call) (updatesResult, *apiError, bool) {
	offset := min(max(c.params.integer("offset"), math.MinInt32), math.MaxInt32)
	limit := 100
	if c.params.has("limit") {
		limit = int(min(max(c.params.integer("limit"), 1), 100))
	}
	wait := time.Duration(min(max(c.params.integer("timeout"), 0), 50)) * time.Second
	start := time.Now()

	s.mu.Lock()
	b := c.bot
	b.allowLocked(c.params)
	if b.hook != nil {
		delay := b.conflictDelayLocked(start)
		s.mu.Unlock()
		return nil, conflict(textHookSet), s.pause(ctx, delay)
	}
	if offset == b.lastOffset {
		if wait < spinWindow && start.Sub(b.lastPoll) < spinWindow {
			wait = spinWindow
		}
		if start.Sub(b.lastPoll) < spinShort {
			limit = 1
		}
	}
	b.lastOffset, b.lastPoll = offset, start
	s.mu.Unlock()

	updates, failed, there := s.longPoll(ctx, b, offset, limit, wait)
	s.notePoll(Poll{
		At: start, Took: time.Since(start), Bot: b.id, Offset: offset, Limit: limit,
		Timeout: int(wait / time.Second), Count: len(updates),
	}, failed, there)
	return updates, failed, there
}

// longPoll waits for updates. A call that has to wait pushes out the one that
// waits already; a call that finds updates leaves it alone.
func (s *Sim) longPoll(ctx context.Context, b *bot, offset int64, limit int, wait time.Duration) (updatesResult, *apiError, bool) {
	me := &parkedPoll{wake: make(chan struct{}, 1), abort: make(chan pollAbort, 1)}
	defer s.unpark(b, me)
	timeout := time.NewTimer(wait)
	defer timeout.Stop()
	cut := s.cutOff()
	for {
		updates, parked := s.takeOrPark(b, me, offset, limit, wait > 0)
		if !parked {
			return updates, nil, true
		}
		select {
		case <-me.wake:
			if !s.pause(ctx, longPollBatch) {
				return nil, nil, false
			}
		case stop := <-me.abort:
			return nil, stop.err, s.pause(ctx, stop.after)
		case <-timeout.C:
			return nil, nil, true
		case <-s.closed:
			return nil, nil, true
		case <-cut:
			return nil, nil, false
		case <-ctx.Done():
			return nil, nil, false
		}
	}
}

// takeOrPark returns what there is, or parks the call when there is nothing and
// it may wait.
func (s *Sim) takeOrPark(b *bot, me *parkedPoll, offset int64, limit int, mayWait bool) (updatesResult, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	updates := b.queue.get(offset, limit, time.Now())
	if len(updates) > 0 || !mayWait || s.shutDown {
		return updates, false
	}
	if b.parked != me {
		if b.parked != nil {
			b.abortPollLocked(conflict(textOtherPoll), b.conflictDelayLocked(time.Now()))
		}
		b.parked = me
		s.changedLocked()
	}
	return nil, true
}

// unpark forgets a call that is over, unless another has taken its place.
func (s *Sim) unpark(b *bot, me *parkedPoll) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if b.parked == me {
		b.parked = nil
	}
}

// notePoll keeps a finished poll for Polls.
func (s *Sim) notePoll(p Poll, failed *apiError, there bool) {
	switch {
	case !there:
	case failed != nil:
		p.Status = failed.code
	default:
		p.Status = 200
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.polls) >= keptPolls {
		s.polls = append([]Poll(nil), s.polls[keptPolls/2:]...)
	}
	s.polls = append(s.polls, p)
	s.changedLocked()
}

// wakeLocked tells whoever takes this bot's updates that there is one.
func (b *bot) wakeLocked() {
	if b.parked != nil {
		select {
		case b.parked.wake <- struct{}{}:
		default: // it is awake already and will look
		}
	}
	if b.hook != nil {
		b.hook.kickLocked()
	}
}

// abortPollLocked ends the parked poll, if there is one. A nil error gives it a
// normal empty answer.
func (b *bot) abortPollLocked(err *apiError, after time.Duration) {
	if b.parked == nil {
		return
	}
	b.parked.abort <- pollAbort{err, after} // never blocks: one abort per parked poll
	b.parked = nil
}

// conflictDelayLocked is how long a 409 is held back: the first in three
// seconds comes at once, the others three seconds later.
func (b *bot) conflictDelayLocked(now time.Time) time.Duration {
	if now.Before(b.nextConflict) {
		return conflictSpacing
	}
	b.nextConflict = now.Add(conflictSpacing)
	return 0
}

// allowLocked takes over allowed_updates: absent or unreadable changes nothing,
// an empty list or one with unknown names only is the default set.
func (b *bot) allowLocked(p *params) {
	var names []string
	if !p.has("allowed_updates") || json.Unmarshal([]byte(p.get("allowed_updates")), &names) != nil || names == nil {
		return
	}
	table := kindTable()
	allowed := make(map[string]bool)
	for _, name := range names {
		name = strings.ToLower(name)
		if _, ok := table[name]; ok {
			allowed[name] = true
		}
	}
	if len(allowed) == 0 {
		allowed = nil
	}
	b.allowed = allowed
}

// pause waits. It returns false when the caller went away, or the network with
// it, before the time was over; a simulator that closes ends the wait early.
func (s *Sim) pause(ctx context.Context, d time.Duration) bool {
	if d <= 0 {
		return true
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-s.closed:
		return true
	case <-s.cutOff():
		return false
	case <-ctx.Done():
		return false
	}
}

// cutOff is closed when the network goes away.
func (s *Sim) cutOff() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.cut
}

// WaitParked waits until a getUpdates call of the bot (0: the first bot) is
// parked, and returns ctx's error when that takes too long.
func (s *Sim) WaitParked(ctx context.Context, bot int64) error {
	for {
		s.mu.Lock()
		b, next := s.botLocked(bot), s.arrived
		parked := b != nil && b.parked != nil
		s.mu.Unlock()
		if parked {
			return nil
		}
		select {
		case <-next:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
