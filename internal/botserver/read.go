package botserver

import (
	"context"
	"log/slog"
	"net/http"
	"path/filepath"
	"time"

	"github.com/tgspool/tgspool/internal/botapi"
	"github.com/tgspool/tgspool/internal/gate"
	"github.com/tgspool/tgspool/internal/wire"
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

// readThrough makes a call that changes nothing, and hands its result on as it
// comes. It takes its turn in the bot's rate without waiting.
func (s *Server) readThrough(c *call) {
	q, ok := s.take(c)
	if !ok {
		return
	}
	ctx, cancel := context.WithCancel(c.r.Context())
	defer cancel()
	answer, seen := c.Bot.Client.Stream(ctx, q)
	if answer == nil {
		s.answer(c, q, seen)
		return
	}
	defer func() { _ = answer.Body.Close() }() // it was read as far as it was wanted
	c.Bot.Gate.Success()
	handOn(c.w, answer, cancel, "Content-Type", "Content-Length")
}

// atOnce makes a call that is worthless later: now or not at all.
func (s *Server) atOnce(c *call) {
	if paused, _, _ := c.Bot.Gate.Held(gate.Paused); paused {
		fail(c.w, later(waitPause, "tgspool: sending is paused"))
		return
	}
	if q, ok := s.take(c); ok {
		s.answer(c, q, c.Bot.Client.Call(c.r.Context(), q))
	}
}

// take makes the request of a call that isn't queued. While the bot's cooldown
// runs Telegram isn't asked.
func (s *Server) take(c *call) (q botapi.Request, ok bool) {
	if ok, wait := c.Bot.Gate.TakeEphemeral(time.Now()); !ok {
		fail(c.w, later(wait, "retry after %d", seconds(wait)))
		return q, false
	}
	q = botapi.Request{Method: c.method.Name, Params: c.params.Raw()}
	for _, f := range c.upload.Files() {
		q.Files = append(q.Files, botapi.File{Field: f.Field, Name: f.Name, Path: filepath.Join(s.store.Dir(), f.Path)})
	}
	return q, true
}

// answer hands what was seen of a call through as it came.
func (s *Server) answer(c *call, q botapi.Request, seen botapi.Seen) {
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
	fields, err := wire.ReadObject(body)
	if err != nil {
		return false
	}
	for _, f := range fields {
		if f.Name == "ok" {
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
