package intake

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/url"
	"strings"
	"time"

	"github.com/tgspool/tgspool/internal/botapi"
	"github.com/tgspool/tgspool/internal/gate"
)

const (
	// believeRefusal is how far apart two refusals of the token must be: one
	// alone has been seen from servers in trouble.
	believeRefusal = 2 * time.Second
	// refusedRetry is how often a refused token is tried again.
	refusedRetry = 5 * time.Minute
	// quietConflicts is how many conflicts after a start are taken for Telegram
	// still seeing our own last poll.
	quietConflicts = 3
	// conflictAlert is how long a conflict lasts before a person is told.
	conflictAlert = 5 * time.Minute
	// conflictOver is how long there must be none before it counts as over: two
	// pollers take turns, and the state shouldn't.
	conflictOver = 2 * time.Minute
)

// refusal is a series of refusals of the token.
type refusal struct {
	first    time.Time // zero: none
	believed bool
}

// conflict is a series of conflicts.
type conflict struct {
	settled bool // a poll has been answered since the start
	count   int
	first   time.Time
	last    time.Time
	alerted bool
	backoff backoff
}

// reached ends the troubles that an answer disproves.
func (p *Poller) reached(ctx context.Context) {
	p.gate.Success()
	p.failures.reset()
	p.misled = false
	p.limit = maxBatch
	p.conflict.settled = true
	if p.refusal.believed {
		// What we have seen holds for the sender, too.
		p.gate.OpenLanes(gate.Unauthorized)
	}
	p.refusal = refusal{}
	over := p.conflict.count == 0 || time.Since(p.conflict.last) >= conflictOver
	if over {
		p.conflict = conflict{settled: true}
	}
	if over || p.State().State != Conflict {
		p.enter(ctx, OK, "")
	}
}

// failed waits as the outcome asks for. Nothing was acknowledged.
func (p *Poller) failed(ctx context.Context, o botapi.Outcome, seen botapi.Seen) {
	if !seen.BodyComplete && len(seen.Body) >= maxAnswer {
		p.limit = max(1, p.limit/4)
	}
	switch {
	case o.Class == botapi.ClassFlood:
		p.enter(ctx, p.calm(), fmt.Sprintf("Telegram asks to wait %s", o.RetryAfter))
		sleep(ctx, o.RetryAfter+rand.N(time.Second))
	case o.Class == botapi.ClassFloodUndated:
		p.enter(ctx, p.calm(), "Telegram asks to wait")
		sleep(ctx, max(o.RetryAfter, p.failures.next(maxBackoff)))
	case o.Class == botapi.ClassUnauthorized:
		p.refused(ctx, o)
	case o.Conflict:
		p.conflicting(ctx, o)
	default:
		p.enter(ctx, Offline, reason(o))
		p.sleepOrSuccess(ctx, p.failures.next(maxBackoff))
	}
}

// calm is the state to show while Telegram answers and only makes us wait.
func (p *Poller) calm() State {
	if p.conflict.count > 0 && p.State().State == Conflict {
		return Conflict
	}
	return OK
}

// reason says in words why there are no updates.
func reason(o botapi.Outcome) string {
	text := o.Description
	if o.Class == botapi.ClassNotTelegram {
		text += " (a captive portal or proxy?)"
	}
	if text == "" {
		text = string(o.Class)
	}
	return text
}

// refused handles a refusal of the token: quiet at first, believed the second time.
func (p *Poller) refused(ctx context.Context, o botapi.Outcome) {
	if p.refusal.first.IsZero() {
		p.refusal.first = time.Now()
	}
	if time.Since(p.refusal.first) < believeRefusal {
		sleep(ctx, believeRefusal+rand.N(time.Second))
		return
	}
	p.enter(ctx, Unauthorized, o.Description)
	if !p.refusal.believed {
		p.refusal.believed = true
		// The sender's prober asks for itself, and stops sends too if it agrees.
		p.gate.CloseLanes(gate.Probing, "the token was refused")
		p.alert(Unauthorized, fmt.Sprintf("Telegram refuses the token of bot %s (%s). It may have been revoked: get the present one from @BotFather and set it with: tgspool token set %s",
			p.bot.Name(), o.Description, p.bot.Name()))
	}
	p.sleepOrSuccess(ctx, refusedRetry+rand.N(15*time.Second))
}

// conflicting handles a 409: somebody else takes this bot's updates.
func (p *Poller) conflicting(ctx context.Context, o botapi.Outcome) {
	c := &p.conflict
	c.count++
	c.last = time.Now()
	if c.count == 1 {
		c.first = c.last
	}
	webhook := isWebhook(o.Description)
	if webhook && p.takeOver && p.removeWebhook(ctx) && c.count == 1 {
		return
	}
	if !webhook && !c.settled && c.count <= quietConflicts {
		sleep(ctx, firstBackoff+rand.N(firstBackoff))
		return
	}
	what := "another process polls with this token"
	if webhook {
		what = "a webhook is set"
	}
	p.enter(ctx, Conflict, what)
	if !c.alerted && c.last.Sub(c.first) >= conflictAlert {
		c.alerted = true
		p.logger.LogAttrs(ctx, slog.LevelError, "conflict lasts", slog.String("reason", what), slog.Duration("duration", c.last.Sub(c.first)))
		p.alert(Conflict, p.conflictText(webhook))
	}
	sleep(ctx, c.backoff.next(maxBackoff))
}

// isWebhook tells the two kinds of conflict apart. Both texts are Telegram's:
// "can't use getUpdates method while webhook is active …" and "terminated by
// setWebhook request"; the other one names getUpdates or a long poll.
func isWebhook(description string) bool {
	d := strings.ToLower(description)
	return strings.Contains(d, "webhook is active") || strings.Contains(d, "by setwebhook") || strings.Contains(d, "by other setwebhook")
}

// conflictText is what to tell a person, the stolen token included.
func (p *Poller) conflictText(webhook bool) string {
	name := p.bot.Name()
	what, remedy := "another process polls with its token, so that updates go there or here by chance",
		"Stop the other process."
	if webhook {
		what, remedy = "a webhook is set, so that no updates come here",
			"Remove it, or set take_over = true in [bots."+name+".intake]."
	}
	return fmt.Sprintf("Bot %s: %s. %s If it isn't yours, the token was stolen: revoke it with @BotFather (/revoke) "+
		"and set the new one with: tgspool token set %s. Messages are still being sent.", name, what, remedy, name)
}

// removeWebhook takes the updates back from a webhook, without dropping any,
// and says whose it was. It reports whether Telegram has removed it.
func (p *Poller) removeWebhook(ctx context.Context) bool {
	host := p.webhookHost(ctx)
	seen := p.client.Call(ctx, botapi.Request{Method: "deleteWebhook", Params: json.RawMessage(`{"drop_pending_updates":false}`)})
	o := botapi.Classify(botapi.MethodFor("deleteWebhook"), nil, seen)
	if o.Class != botapi.ClassOK {
		if ctx.Err() == nil {
			p.logger.LogAttrs(ctx, slog.LevelWarn, "the webhook can't be removed", slog.String("addr", host), slog.String("reason", reason(o)))
		}
		return false
	}
	p.logger.LogAttrs(ctx, slog.LevelWarn, "a webhook was removed to take over the updates", slog.String("addr", host))
	if p.conflict.count > 1 {
		return true // somebody sets it again and again; that has been told
	}
	p.alert(Conflict, fmt.Sprintf("Bot %s had a webhook at %s. It was removed (take_over = true); no update was dropped.", p.bot.Name(), host))
	return true
}

// webhookHost is the host that updates were posted to. The path is never told:
// it often holds a secret, and in many bots the token itself.
func (p *Poller) webhookHost(ctx context.Context) string {
	const unknown = "an unknown host"
	seen := p.client.Call(ctx, botapi.Request{Method: "getWebhookInfo"})
	o := botapi.Classify(botapi.MethodFor("getWebhookInfo"), nil, seen)
	var info struct {
		URL string `json:"url"`
	}
	if o.Class != botapi.ClassOK || json.Unmarshal(o.Result, &info) != nil {
		return unknown
	}
	u, err := url.Parse(info.URL)
	if err != nil || u.Host == "" {
		return unknown
	}
	return u.Host
}
