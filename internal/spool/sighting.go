package spool

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"slices"
	"strconv"
	"time"
)

// An uncertain job settles itself when an update shows the message: somebody
// replies to it, quotes it or presses its button. That happens in the commit that
// takes the update in, so that no crash comes in between.

// Sighting is a message of the bot's that an update shows.
type Sighting struct {
	Chat    int64
	ID      int64
	Date    time.Time       // by Telegram's clock
	Message json.RawMessage // the message as it was shown; the result of the job that made it
	// Is reports whether a call would have made this message.
	Is func(method string, params json.RawMessage) bool
}

// dateSlack is how far Telegram's date of a message may lie outside of the
// attempt that made it: dates are whole seconds, and no two clocks are the same.
const dateSlack = 5 * time.Second

// settleBySight makes the uncertain job done whose message an update shows.
// While no job is uncertain it costs nothing.
func (t *txn) settleBySight(b *Bot, raw []byte) {
	if b.cfg.Sight == nil || b.rec.Jobs[Uncertain.code()] == 0 || !t.s.clock.ok.Load() {
		return
	}
	s := b.cfg.Sight(raw)
	if s == nil {
		return
	}
	chat := t.lookupChat(b, strconv.FormatInt(s.Chat, 10))
	if r := t.seenJob(b, chat, s); r != nil && !t.owned(b, chat, s.ID) {
		t.decide(b, r, Done, func(r *jobRec) {
			r.Result, r.Error = slices.Clone(s.Message), r.lastError(nil)
		})
		id := r.ID
		t.after = append(t.after, func() {
			t.s.log.Info("an uncertain job has arrived: Telegram shows its message", slog.Int64("job_id", id))
		})
	}
}

// seenJob finds the uncertain job of a chat that would have made a message within
// its attempt; of several the one whose attempt lies nearest.
func (t *txn) seenJob(b *Bot, chat uint32, s *Sighting) (found *jobRec) {
	nearest := dateSlack + 1
	p := stateKey(b.num, Uncertain.code(), 0)[:3]
	t.each(bParked, p, p, func(k, v []byte) bool {
		r, err := decode[jobRec](k, v)
		if err != nil || chat == 0 || t.follow(b, r.ChatNo) != chat {
			return true
		}
		r.state = Uncertain
		off := t.outside(r, s.Date)
		if off >= nearest || len(r.refs()) > 0 && r.waiting() {
			return true
		}
		full := *t.full(r)
		if method, params := full.call(); s.Is(method, params) {
			found, nearest = r, off
		}
		return true
	})
	return found
}

// outside is how far a date lies outside of a job's last attempt, 0 within it.
func (t *txn) outside(r *jobRec, date time.Time) time.Duration {
	began := r.Tried
	if began == 0 { // from before that was kept
		began = max(r.Created, r.NotBefore)
	}
	start, end := t.s.clock.at(began).Truncate(time.Second), t.s.clock.at(r.Updated)
	return max(start.Sub(date), date.Sub(end), 0)
}

// message is one of a chat, by the chat's internal number.
type message struct {
	chat uint32
	id   int64
}

// maxOwned is how many messages are remembered that were found to be owned.
const maxOwned = 1000

// owned reports whether a message of a chat is the result of another job. It
// reads over all that is done, which only happens when a job was found; the
// answer is remembered, since the same button may be pressed often.
func (t *txn) owned(b *Bot, chat uint32, id int64) bool {
	m := message{chat, id}
	if b.owned[m] {
		return true
	}
	if !t.isResult(b, chat, id) {
		return false
	}
	if len(b.owned) >= maxOwned || b.owned == nil {
		b.owned = map[message]bool{}
	}
	b.owned[m] = true
	return true
}

func (t *txn) isResult(b *Bot, chat uint32, id int64) (owned bool) {
	number := []byte(strconv.FormatInt(id, 10))
	p := stateKey(b.num, Done.code(), 0)[:3]
	t.each(bEnded, p, p, func(k, v []byte) bool {
		if bytes.Contains(v, number) {
			r, err := decode[jobRec](k, v)
			owned = err == nil && r.Edits == "" && t.follow(b, r.ChatNo) == chat && slices.Contains(messageIDs(r.Result), id)
		}
		return !owned
	})
	return owned
}
