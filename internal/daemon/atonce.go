package daemon

import (
	"context"
	"encoding/json"
	"log/slog"
	"time"

	"github.com/tgspool/tgspool/internal/botapi"
	"github.com/tgspool/tgspool/internal/gate"
)

// atOnce makes a call that is worthless later: it takes its turn in the bot's
// rate without waiting, or isn't made at all.
func (b *bot) atOnce(ctx context.Context, method string, params json.RawMessage) {
	for _, why := range []gate.Reason{gate.Paused, gate.Offline, gate.Unauthorized} {
		if held, _, _ := b.gate.Held(why); held {
			return
		}
	}
	if ok, _ := b.gate.TakeEphemeral(time.Now()); !ok {
		return
	}
	m := botapi.MethodFor(method)
	out := botapi.Classify(m, params, b.client.Call(ctx, botapi.Request{Method: m.Name, Params: params}))
	switch out.Class { //nolint:exhaustive // all others are answers like any
	case botapi.ClassFlood:
		b.cool(ctx, time.Now().Add(out.RetryAfter))
	case botapi.ClassFloodUndated:
		b.gate.ExtendCooldown(b.gate.UndatedFlood(time.Now()), string(out.Class))
	case botapi.ClassUnauthorized:
		b.gate.CloseLanes(gate.Probing, "the token was refused")
	case botapi.ClassOffline, botapi.ClassNotTelegram, botapi.ClassUnknownOutcome, botapi.ClassTransient:
		// Our own end looks the same; the sender finds out by itself.
	default:
		b.gate.Success()
	}
	if out.Class != botapi.ClassOK {
		b.log.LogAttrs(ctx, slog.LevelDebug, "a call at once came to nothing",
			slog.String("method", m.Name), slog.String("error_class", string(out.Class)), slog.String("reason", out.Description))
	}
}
