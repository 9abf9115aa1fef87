package sender

import (
	"context"
	"log/slog"
	"time"

	"github.com/tgspool/tgspool/internal/botapi"
	"github.com/tgspool/tgspool/internal/spool"
)

// EventKind is what an Event tells.
type EventKind string

// The kinds of events.
const (
	EventOffline      EventKind = "offline"      // Telegram can't be reached
	EventOnline       EventKind = "online"       // it can again
	EventUnauthorized EventKind = "unauthorized" // Telegram refuses the token: nothing is sent
	EventAuthorized   EventKind = "authorized"   // it no longer does
	EventFrozen       EventKind = "frozen"       // Telegram has frozen the account
	EventFlood        EventKind = "flood"        // the bot has to wait
	EventChatGone     EventKind = "chat_gone"    // a chat can't be written to any more
	EventDead         EventKind = "dead"         // a job has been given up
	EventUncertain    EventKind = "uncertain"    // a job waits for a decision
)

// Event is something that people should know of.
type Event struct {
	Kind   EventKind
	At     time.Time
	Since  time.Time // of what is over now
	Until  time.Time // when it is expected to end, zero when nobody knows
	JobID  int64     // 0 when it isn't about one job
	Chat   string    // empty when it isn't about one chat
	Detail string    // in words; may hold Telegram's own, never a message's text
}

// report logs one attempt and tells what people should know of it. The calls
// that were in flight when the bot already began to wait say nothing new.
func (s *Sender) report(ctx context.Context, c *spool.Claim, o botapi.Outcome, seen botapi.Seen, v spool.Verdict) {
	event := Event{
		At: time.Now(), JobID: c.ID, Chat: chatOf(c), Detail: string(o.Class),
		Until: later(v.BotCooldown, v.ChatCooldown),
	}
	attrs := []slog.Attr{
		slog.Int64("job_id", c.ID), slog.String("method", c.Method), slog.String("chat_id", c.Chat),
		slog.String("state", string(v.State)), slog.String("error_class", string(o.Class)),
		slog.Int("attempt", c.Attempts), slog.Int("code", o.Code), slog.Duration("duration", seen.Duration),
	}
	if !event.Until.IsZero() {
		attrs = append(attrs, slog.Time("due", event.Until))
	}
	switch {
	case !v.BotCooldown.IsZero() && !s.floods.begins(event.At, v.BotCooldown):
		s.log.LogAttrs(ctx, slog.LevelDebug, "the bot waits already", attrs...)
	case o.Class == botapi.ClassFrozen:
		s.log.LogAttrs(ctx, slog.LevelError, "Telegram has frozen the account: the bot pauses", attrs...)
		event.Kind, event.Detail = EventFrozen, v.Error.Description
	case !event.Until.IsZero():
		s.log.LogAttrs(ctx, slog.LevelWarn, "Telegram asks to wait", attrs...)
		event.Kind = EventFlood
	case v.ChatGone != "":
		s.log.LogAttrs(ctx, slog.LevelWarn, "a chat can't be written to any more", attrs...)
		event.Kind, event.Detail = EventChatGone, v.ChatGone
	case v.State == spool.Dead:
		s.log.LogAttrs(ctx, slog.LevelWarn, "a job is dead", attrs...)
		event.Kind = EventDead
	case v.State == spool.Uncertain:
		s.log.LogAttrs(ctx, slog.LevelWarn, "a job is uncertain and waits for a decision", attrs...)
		event.Kind = EventUncertain
	case v.FallBack:
		s.log.LogAttrs(ctx, slog.LevelInfo, "a call was rejected, the job's fallback is next", attrs...)
	case v.MigrateTo != 0:
		s.log.LogAttrs(ctx, slog.LevelInfo, "a chat has a new id", attrs...)
	default:
		s.log.LogAttrs(ctx, slog.LevelDebug, "a call was made", attrs...)
	}
	if event.Kind != "" {
		s.notify(event)
	}
}
