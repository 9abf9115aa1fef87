package sender

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/tgspool/tgspool/internal/botapi"
	"github.com/tgspool/tgspool/internal/gate"
	"github.com/tgspool/tgspool/internal/spool"
)

const (
	probeTimeout = 15 * time.Second
	// believeAfter is how far apart two refusals of the token must be.
	believeAfter = 2 * time.Second
	minSlowProbe = 5 * time.Minute
	maxSlowProbe = time.Hour
)

// prober asks getMe while something makes Telegram or the token doubtful, and
// lifts what it disproves. There is one a bot, whoever has the doubt.
type prober struct {
	bot    *spool.Bot
	client Caller
	gate   *gate.Gate
	log    *slog.Logger
	notify func(Event)

	accepted atomic.Int64 // when the token was last accepted, Unix nanoseconds
}

// accept notes that Telegram has taken a call for one of this bot's.
func (p *prober) accept(now time.Time) { p.accepted.Store(now.UnixNano()) }

// lastAccepted is when it last did, zero for never.
func (p *prober) lastAccepted() time.Time {
	if ns := p.accepted.Load(); ns != 0 {
		return time.Unix(0, ns)
	}
	return time.Time{}
}

// run waits for doubts and clears them up until ctx ends.
func (p *prober) run(ctx context.Context) {
	for p.gate.AwaitHeld(ctx, gate.Probing, gate.Offline, gate.Unauthorized) == nil {
		(&doubt{prober: p}).resolve(ctx)
	}
}

// doubt is one stretch of time in which the lanes are closed.
type doubt struct {
	*prober
	backoff   pause         // while Telegram can't be reached
	slow      time.Duration // while it refuses the token
	refusedAt time.Time     // by the first of two getMe

	offlineSince, refusedSince time.Time // zero unless logged
}

// resolve asks until the lanes are open, whoever opens them.
func (d *doubt) resolve(ctx context.Context) {
	var wait time.Duration
	if held, _, _ := d.gate.Held(gate.Offline); held {
		wait = d.backoff.next()
	}
	for d.held(ctx) {
		if wait > 0 && d.gate.SleepBackoff(ctx, wait) != nil {
			return
		}
		if !d.held(ctx) {
			break
		}
		wait = d.ask(ctx)
		if ctx.Err() != nil {
			return
		}
	}
	d.over(ctx)
}

// held reports whether there is anything to ask for. It logs what has become of
// the doubt, once.
func (d *doubt) held(ctx context.Context) bool {
	offline, since, why := d.gate.Held(gate.Offline)
	if offline && d.offlineSince.IsZero() {
		d.offlineSince = since
		d.log.LogAttrs(ctx, slog.LevelWarn, "Telegram can't be reached", slog.String("reason", why))
		d.notify(Event{Kind: EventOffline, At: since, Detail: why})
	}
	refused, since, why := d.gate.Held(gate.Unauthorized)
	if refused && d.refusedSince.IsZero() {
		d.refusedSince = since
		d.log.LogAttrs(ctx, slog.LevelError, "Telegram refuses the token: nothing is sent until it is replaced",
			slog.String("reason", why))
		d.notify(Event{Kind: EventUnauthorized, At: since, Detail: why})
	}
	probing, _, _ := d.gate.Held(gate.Probing)
	return offline || refused || probing
}

// over tells that the lanes are open again.
func (d *doubt) over(ctx context.Context) {
	now := time.Now()
	if !d.offlineSince.IsZero() {
		d.log.LogAttrs(ctx, slog.LevelInfo, "Telegram can be reached again",
			slog.Duration("duration", now.Sub(d.offlineSince)))
		d.notify(Event{Kind: EventOnline, At: now, Since: d.offlineSince})
	}
	if !d.refusedSince.IsZero() {
		d.log.LogAttrs(ctx, slog.LevelInfo, "the token is no longer refused",
			slog.Duration("duration", now.Sub(d.refusedSince)))
		d.notify(Event{Kind: EventAuthorized, At: now, Since: d.refusedSince})
	}
}

// ask makes one probe, tells the gate what it means, and returns how long to
// wait before the next.
func (d *doubt) ask(ctx context.Context) time.Duration {
	if ok, after := d.gate.TakeEphemeral(time.Now()); !ok {
		return after
	}
	seen := d.client.Call(ctx, botapi.Request{Method: "getMe", Timeout: probeTimeout, Fresh: true})
	if ctx.Err() != nil {
		return 0
	}
	o := botapi.Classify(botapi.MethodFor("getMe"), nil, seen)
	switch o.Class {
	case botapi.ClassUnauthorized:
		return d.refused(o)
	case botapi.ClassOffline, botapi.ClassUnknownOutcome, botapi.ClassTransient:
		return d.unreachable(o.Description)
	case botapi.ClassNotTelegram:
		return d.unreachable("captive portal? " + o.Description)
	case botapi.ClassFlood, botapi.ClassFloodUndated:
		return d.flooded(ctx, o)
	case botapi.ClassOK, botapi.ClassNoOp, botapi.ClassRejected, botapi.ClassChatGone,
		botapi.ClassMigrated, botapi.ClassTooLate, botapi.ClassFrozen:
		d.accept(time.Now())
		d.gate.OpenLanes(gate.Unauthorized)
		d.gate.Success()
	}
	return 0
}

func (d *doubt) unreachable(why string) time.Duration {
	d.refusedAt = time.Time{}
	if held, _, _ := d.gate.Held(gate.Unauthorized); held {
		return d.slowly()
	}
	d.gate.CloseLanes(gate.Offline, why)
	d.gate.OpenLanes(gate.Probing)
	return d.backoff.next()
}

// refused believes the second refusal. The first may be a hiccup of the servers.
func (d *doubt) refused(o botapi.Outcome) time.Duration {
	now := time.Now()
	if held, _, _ := d.gate.Held(gate.Unauthorized); held {
		return d.slowly()
	}
	d.gate.CloseLanes(gate.Probing, "the token was refused")
	d.gate.OpenLanes(gate.Offline)
	if d.refusedAt.IsZero() {
		d.refusedAt = now
	}
	if wait := believeAfter - now.Sub(d.refusedAt); wait > 0 {
		return wait
	}
	d.gate.CloseLanes(gate.Unauthorized, o.Description)
	d.gate.OpenLanes(gate.Probing)
	return d.slowly()
}

// slowly is the wait between two probes of a token that is believed to be
// refused: 5 min doubling to 1 h.
func (d *doubt) slowly() time.Duration {
	d.slow = min(max(2*d.slow, minSlowProbe), maxSlowProbe)
	return d.slow
}

// flooded: Telegram answers, and not because of the token. The cooldown holds
// everything back from here on, also after a restart.
func (d *doubt) flooded(ctx context.Context, o botapi.Outcome) time.Duration {
	now := time.Now()
	until := now.Add(o.RetryAfter)
	if o.Class == botapi.ClassFloodUndated {
		until = later(until, d.gate.UndatedFlood(now))
	}
	d.gate.ExtendCooldown(until, string(o.Class))
	if err := d.bot.ExtendCooldown(ctx, until); err != nil && ctx.Err() == nil {
		d.log.LogAttrs(ctx, slog.LevelError, "storing a cooldown failed", slog.Any("err", err))
	}
	d.gate.Success()
	return until.Sub(now)
}
