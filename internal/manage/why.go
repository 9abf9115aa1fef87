package manage

import (
	"cmp"
	"net/http"
	"slices"
	"time"

	"github.com/tgspool/tgspool/internal/gate"
	"github.com/tgspool/tgspool/internal/spool"
)

// gateOrder is the order in which gates are shown: the bot's, the chat's, the
// job's.
var gateOrder = []string{
	"unauthorized", "paused", "offline", "bot_cooldown", "bot_rate",
	"chat_cooldown", "chat_gap", "group_window",
	"not_before", "retry", "order", "waits_for_job", "held", "uncertain",
}

// whyJob explains what a job waits for.
func (a *api) whyJob(r *http.Request) (int, any, error) {
	n, err := id(r, "id")
	if err != nil {
		return 0, nil, err
	}
	if _, err := readQuery(r); err != nil {
		return 0, nil, err
	}
	if err := a.own(r, n); err != nil {
		return 0, nil, err
	}
	why, err := a.store.Why(n)
	if err != nil {
		return 0, nil, err
	}
	if view, ok := a.bots.View(why.Job.Bot); ok && why.Job.State == spool.Pending {
		gates := botGates(view, time.Now())
		if bot, open := a.store.Bot(why.Job.Bot); open {
			pauseGate(gates, bot)
		}
		addGates(&why, gates)
	}
	if why.Gates == nil {
		why.Gates = []spool.Gate{}
	}
	return http.StatusOK, why, nil
}

// botGates are the gates that all jobs of a bot share.
func botGates(v View, now time.Time) []spool.Gate {
	s := v.Sender
	closed := func(name string, state gate.State) spool.Gate {
		g := spool.Gate{Name: name, Open: s.State != state}
		if !g.Open {
			g.Detail = s.Detail
		}
		return g
	}
	cooldown := spool.Gate{Name: "bot_cooldown", Open: true}
	if s.CooldownUntil.After(now) {
		cooldown.Open, cooldown.OpensAt = false, utc(s.CooldownUntil)
	}
	rate := spool.Gate{Name: "bot_rate", Open: true}
	if v.RateOpensAt.After(now) {
		rate.Open, rate.OpensAt = false, utc(v.RateOpensAt)
	}
	gates := []spool.Gate{
		closed("unauthorized", gate.StateUnauthorized), closed("paused", gate.StatePaused),
		closed("offline", gate.StateOffline), cooldown, rate,
	}
	if v.Unconfigured != "" {
		gates[0] = spool.Gate{Name: "unauthorized", Detail: v.Unconfigured}
	}
	return gates
}

// pauseGate says when the sender's pause ends, whatever else keeps it shut.
func pauseGate(gates []spool.Gate, bot *spool.Bot) {
	p, paused := bot.Paused(spool.PartSender)
	if !paused {
		return
	}
	for i := range gates {
		if gates[i].Name == "paused" {
			gates[i].Open, gates[i].OpensAt, gates[i].Detail = false, p.Until, "the sender is paused by a person: tgspool resume"
		}
	}
}

// addGates adds the bot's gates to the store's. A gate that both know is shut
// when either says so, until the later time.
func addGates(why *spool.Why, gates []spool.Gate) {
	for _, g := range gates {
		i := slices.IndexFunc(why.Gates, func(o spool.Gate) bool { return o.Name == g.Name })
		switch {
		case i < 0:
			why.Gates = append(why.Gates, g)
		case !g.Open && (why.Gates[i].Open || later(g.OpensAt, why.Gates[i].OpensAt)):
			why.Gates[i] = g
		}
	}
	slices.SortStableFunc(why.Gates, func(x, y spool.Gate) int {
		return cmp.Compare(slices.Index(gateOrder, x.Name), slices.Index(gateOrder, y.Name))
	})
	why.NextAttemptAt = nil
	for _, g := range why.Gates {
		switch {
		case g.Open:
		case g.OpensAt == nil: // nobody knows when: all other times are worthless
			why.NextAttemptAt = nil
			return
		case why.NextAttemptAt == nil || g.OpensAt.After(*why.NextAttemptAt):
			why.NextAttemptAt = g.OpensAt
		}
	}
}

// later reports whether a is after b; nil is later than any time.
func later(a, b *time.Time) bool {
	switch {
	case b == nil:
		return false
	case a == nil:
		return true
	}
	return a.After(*b)
}

// utc is a time for an answer, nil for none.
func utc(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	t = t.UTC()
	return &t
}
