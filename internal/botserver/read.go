package botserver

import (
	"context"
	"log/slog"
	"net/http"
	"path/filepath"
	"time"

	"github.com/tgspool/tgspool/internal/botapi"
	"github.com/tgspool/tgspool/internal/gate"
)

// getMe is answered from what is stored, so that bots start while Telegram can't
// be reached.
func (s *Server) getMe(c *call) {
	if me := c.Bot.Me(); len(me) > 0 {
		succeed(c.w, me)
		return
	}
	s.readThrough(c)
}

// readThrough makes a call that changes nothing. It takes its turn in the bot's
// rate without waiting.
func (s *Server) readThrough(c *call) { s.pass(c) }

// atOnce makes a call that is worthless later: now or not at all.
func (s *Server) atOnce(c *call) {
	if paused, _, _ := c.Bot.Gate.Held(gate.Paused); paused {
		fail(c.w, later(waitPause, "tgspool: sending is paused"))
		return
	}
	s.pass(c)
}

// pass makes a call by the bot's own client and hands Telegram's answer through
// as it came. While the bot's cooldown runs Telegram isn't asked.
func (s *Server) pass(c *call) {
	if ok, wait := c.Bot.Gate.TakeEphemeral(time.Now()); !ok {
		fail(c.w, later(wait, "retry after %d", seconds(wait)))
		return
	}
	q := botapi.Request{Method: c.method.Name, Params: c.params.Raw()}
	for _, f := range c.upload.files {
		q.Files = append(q.Files, botapi.File{Field: f.Field, Name: f.Name, Path: filepath.Join(s.store.Dir(), f.Path)})
	}
	seen := c.Bot.Client.Call(c.r.Context(), q)
	out := botapi.Classify(c.method, q.Params, seen)
	s.learn(c.r.Context(), c.Bot, out)
	if out.Class == botapi.ClassNotTelegram || !seen.BodyComplete || seen.Status == 0 || !envelope(seen.Body) {
		fail(c.w, errorf(http.StatusBadGateway, "tgspool: Telegram can't be reached"))
		return
	}
	if seen.RetryAfterHeader != "" {
		c.w.Header().Set("Retry-After", seen.RetryAfterHeader)
	}
	write(c.w, seen.Status, seen.Body)
}

func seconds(d time.Duration) int64 {
	return int64((max(d, time.Second) + time.Second - 1) / time.Second)
}

// envelope reports whether a body is an answer of the Bot API.
func envelope(body []byte) bool {
	fields, err := readObject(body)
	if err != nil {
		return false
	}
	for _, f := range fields {
		if f.name == "ok" {
			return true
		}
	}
	return false
}

// learn tells the bot's gate what an answer means for all of its calls.
func (s *Server) learn(ctx context.Context, b *Bot, out botapi.Outcome) {
	switch out.Class { //nolint:exhaustive // all others are answers like any
	case botapi.ClassFlood:
		until := time.Now().Add(out.RetryAfter)
		b.Gate.ExtendCooldown(until, string(out.Class))
		if err := b.Spool.ExtendCooldown(context.WithoutCancel(ctx), until); err != nil {
			s.log.LogAttrs(ctx, slog.LevelWarn, "a cooldown wasn't stored", slog.String("bot", b.Name), slog.Any("err", err))
		}
	case botapi.ClassFloodUndated:
		b.Gate.ExtendCooldown(b.Gate.UndatedFlood(time.Now()), string(out.Class))
	case botapi.ClassUnauthorized:
		b.Gate.CloseLanes(gate.Probing, "the token was refused")
	case botapi.ClassOffline, botapi.ClassNotTelegram, botapi.ClassUnknownOutcome:
		// The caller's own end looks the same; the sender finds out by itself.
	case botapi.ClassTransient:
	default:
		b.Gate.Success()
	}
}
