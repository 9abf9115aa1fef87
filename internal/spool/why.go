package spool

import (
	"fmt"
	"time"
)

// Why names every condition of the store's that a job waits for, open or
// closed. The bot's own gates are not the store's; the caller adds them.
func (s *Store) Why(id int64) (why Why, err error) {
	err = s.view(func(t *txn) error {
		b, r, err := t.jobAndBot(id)
		if err != nil {
			return err
		}
		why.Job = t.full(r).view(b.Name(), t.s.clock)
		why.Gates = t.gates(b, r)
		var latest time.Time
		for _, g := range why.Gates {
			if !g.Open && g.OpensAt != nil && g.OpensAt.After(latest) {
				latest = *g.OpensAt
			}
		}
		if r.state == Pending && !latest.IsZero() {
			why.NextAttemptAt = &latest
		}
		return nil
	})
	return why, err
}

func (t *txn) gates(b *Bot, r *jobRec) []Gate {
	gates := []Gate{
		t.timeGate("not_before", r.NotBefore),
		t.timeGate("retry", r.RetryAt),
		t.orderGate(b, r),
		t.waitsGate(r),
	}
	gates = append(gates, t.chatGates(b, r)...)
	return append(gates,
		t.stateGate("held", r.state != Held, "held by "+r.HeldBy+", until it is released", r.DecideBy),
		t.stateGate("uncertain", r.state != Uncertain, "waits for a decision: tgspool queue resolve", r.DecideBy))
}

func (t *txn) timeGate(name string, at int64) Gate {
	if at <= t.now {
		return Gate{Name: name, Open: true}
	}
	return Gate{Name: name, OpensAt: t.s.clock.atPtr(at), Detail: "waits for its time"}
}

func (t *txn) stateGate(name string, open bool, detail string, at int64) Gate {
	if open {
		return Gate{Name: name, Open: true}
	}
	return Gate{Name: name, OpensAt: t.s.clock.atPtr(at), Detail: detail}
}

// orderGate says which job of the chat stands before this one.
func (t *txn) orderGate(b *Bot, r *jobRec) Gate {
	if r.state != Pending || r.waiting() {
		return Gate{Name: "order", Open: true}
	}
	first, n := int64(0), 0
	p := queuePrefix(b.num, r.ChatNo, r.Lane)
	t.each(bQueue, p, p, func(k, v []byte) bool {
		if u64at(k, len(p)) >= r.Order || n == maxPage {
			return false
		}
		if q, ok := readQueued(v); ok && n == 0 {
			first = q.id
		}
		n++
		return true
	})
	if running := t.runningIn(b, r.ChatNo); running != 0 {
		return Gate{Name: "order", Detail: fmt.Sprintf("job %d of this chat is in flight", running)}
	}
	if n > 0 {
		return Gate{Name: "order", Detail: fmt.Sprintf("%d jobs of this chat and lane go first, job %d is next", n, first)}
	}
	return Gate{Name: "order", Open: true}
}

// waitsGate says whose result is still to come.
func (t *txn) waitsGate(r *jobRec) Gate {
	if r.state == Pending {
		for _, ref := range r.refs() {
			if ref.With != "" {
				continue
			}
			state := "gone"
			if other, err := t.job(ref.Job); err == nil {
				state = string(other.state)
			}
			return Gate{Name: "waits_for_job", Detail: fmt.Sprintf("waits for the message of job %d (%s), which is %s", ref.Job, ref.Key, state)}
		}
	}
	return Gate{Name: "waits_for_job", Open: true}
}

func (t *txn) runningIn(b *Bot, chat uint32) (id int64) {
	t.each(bRun, botKey(b.num), botKey(b.num), func(k, v []byte) bool {
		if run, err := decode[runRec](k, v); err == nil && t.follow(b, run.ChatNo) == chat {
			id = int64(u64at(k, 2))
		}
		return id == 0
	})
	return id
}

func (t *txn) chatGates(b *Bot, r *jobRec) []Gate {
	c := t.chat(b, r.ChatNo)
	if c == nil {
		return nil
	}
	l := b.limits()
	gap := Limits{ChatGap: l.ChatGap, ChatBurst: max(1, l.ChatBurst)}
	noCooldown := chatRec{Name: c.Name, Type: c.Type, GapFree: c.GapFree, Stamps: c.Stamps}
	gapAt, windowAt := int64(0), int64(0)
	if r.Weight > 0 {
		gapAt, windowAt = noCooldown.opensAt(gap, r.Weight, 0), c.windowOpensAt(l, int(r.Weight))
	}
	gates := []Gate{
		t.timeGate("chat_gap", gapAt),
		t.timeGate("group_window", windowAt),
		t.timeGate("chat_cooldown", c.Cooldown),
	}
	gates[0].Detail, gates[1].Detail = "off", "off"
	if l.ChatGap > 0 {
		gates[0].Detail = fmt.Sprintf("%s between two messages of a chat", l.ChatGap)
	}
	if l.GroupPerMinute > 0 {
		gates[1].Detail = fmt.Sprintf("%d messages in any minute of a group", l.GroupPerMinute)
	}
	gates[2].Detail = detail(gates[2], "Telegram asked this chat to wait")
	return gates
}

func detail(g Gate, text string) string {
	if g.Open {
		return ""
	}
	return text
}
