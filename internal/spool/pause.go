package spool

import (
	"context"
	"fmt"
	"slices"
	"time"
)

// Part is a part of a bot that a person can pause.
type Part string

// The parts.
const (
	PartIntake   Part = "intake"   // Telegram → inbox
	PartHandlers Part = "handlers" // inbox → the bot's code
	PartSender   Part = "sender"   // outbox → Telegram
)

// Parts lists the parts in the order in which a message passes them.
func Parts() []Part { return []Part{PartIntake, PartHandlers, PartSender} }

// Pause is one part that stands still.
type Pause struct {
	Part  Part       `json:"part"`
	Since time.Time  `json:"since"`
	Until *time.Time `json:"until"` // nil: until it is resumed
}

// pauseRec is a pause on disk. The list of a bot is replaced, never changed.
type pauseRec struct {
	Part  byte  `cbor:"1,keyasint"`
	Since int64 `cbor:"2,keyasint"`
	Until int64 `cbor:"3,keyasint,omitempty"` // 0: until it is resumed; a timer stands there
}

func (p Part) code() int { return slices.Index(Parts(), p) }

// Pause stops a part of the bot for a span, 0 until it is resumed. It holds over
// restarts; a part that is paused already gets the new span.
func (b *Bot) Pause(ctx context.Context, part Part, span time.Duration) error {
	if part.code() < 0 || span < 0 {
		return fmt.Errorf("pausing %q for %s: %w", part, span, ErrInvalid)
	}
	return b.s.do(ctx, 64, func(t *txn) error {
		p := pauseRec{Part: byte(part.code()), Since: t.now}
		if old, ok := b.rec.pauseOf(part); ok {
			p.Since = old.Since
		}
		if span > 0 {
			p.Until = t.now + int64(span)
		}
		t.unpause(b, part)
		b.rec.Pauses = append(slices.Clone(b.rec.Pauses), p)
		if p.Until != 0 {
			t.put(bTimer, timerKey(p.Until, timerPause, b.num, uint64(p.Part)), []byte{})
		}
		t.pauseChanged(b)
		return nil
	})
}

// Resume ends the pause of a part, if there is one.
func (b *Bot) Resume(ctx context.Context, part Part) error {
	if part.code() < 0 {
		return fmt.Errorf("resuming %q: %w", part, ErrInvalid)
	}
	return b.s.do(ctx, 64, func(t *txn) error {
		if _, paused := b.rec.pauseOf(part); paused {
			t.unpause(b, part)
			t.pauseChanged(b)
		}
		return nil
	})
}

func (r *botRec) pauseOf(part Part) (pauseRec, bool) {
	i := slices.IndexFunc(r.Pauses, func(p pauseRec) bool { return int(p.Part) == part.code() })
	if i < 0 {
		return pauseRec{}, false
	}
	return r.Pauses[i], true
}

// unpause takes a part's pause and its timer out.
func (t *txn) unpause(b *Bot, part Part) {
	old, paused := b.rec.pauseOf(part)
	if !paused {
		return
	}
	if old.Until != 0 {
		t.dropTimer(timerKey(old.Until, timerPause, b.num, uint64(old.Part)))
	}
	b.rec.Pauses = slices.DeleteFunc(slices.Clone(b.rec.Pauses), func(p pauseRec) bool { return p.Part == old.Part })
}

// endPause is the timer of a pause.
func (t *txn) endPause(b *Bot, at int64, code uint64) {
	if int(code) >= len(Parts()) {
		return
	}
	part := Parts()[code]
	if p, paused := b.rec.pauseOf(part); paused && p.Until == at {
		t.unpause(b, part)
		t.pauseChanged(b)
	}
}

// pauseChanged tells whoever has to act on it, after the commit.
func (t *txn) pauseChanged(b *Bot) {
	t.touchBot(b)
	told := b.cfg.PauseChanged
	t.after = append(t.after, func() {
		b.pulls.wake()
		if told != nil {
			told()
		}
	})
}

// armPauses puts the timers of a bot's pauses where they are lost.
func (t *txn) armPauses(b *Bot) {
	for _, p := range b.rec.Pauses {
		if k := timerKey(p.Until, timerPause, b.num, uint64(p.Part)); p.Until != 0 && t.get(bTimer, k) == nil {
			t.put(bTimer, k, []byte{})
		}
	}
}

// Paused returns a part's pause; false when it isn't paused.
func (b *Bot) Paused(part Part) (Pause, bool) {
	p, ok := b.public.Load().pauseOf(part)
	if !ok {
		return Pause{}, false
	}
	return p.view(b.s.clock), true
}

func (p pauseRec) view(c *timeline) Pause {
	return Pause{Part: Parts()[p.Part], Since: c.at(p.Since), Until: c.atPtr(p.Until)}
}

// pausesOf lists what stands still, in the order of the parts.
func (r *botRec) pausesOf(c *timeline) (list []Pause) {
	for _, part := range Parts() {
		if p, paused := r.pauseOf(part); paused {
			list = append(list, p.view(c))
		}
	}
	return list
}
