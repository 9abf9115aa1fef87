package botserver

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/tgspool/tgspool/internal/spool"
	"github.com/tgspool/tgspool/internal/wire"
)

// The limits of getUpdates are Telegram's own.
const (
	maxPollUpdates = 100
	maxPollWait    = 50 * time.Second
	spinWindow     = 3 * time.Second        // the same offset again within this waits at least as long
	spinShort      = 500 * time.Millisecond // and within this gets one update
)

// The words of Telegram's 409s, which libraries look for.
const (
	textOtherPoll = "terminated by other getUpdates request; make sure that only one bot instance is running"
	textHookSet   = "can't use getUpdates method while webhook is active; use deleteWebhook to delete the webhook first"
	textSetHook   = "terminated by setWebhook request"
)

// storeRetry is when a caller may come again while the spool can't be written.
const storeRetry = 5 * time.Second

// poll is one getUpdates call.
type poll struct {
	offset int64
	limit  int
	wait   time.Duration
}

// getUpdates hands out what waits for a client. Trouble with Telegram is none
// of the caller's: there just is nothing new.
func (s *Server) getUpdates(c *call) {
	ctx, t := c.r.Context(), s.updates.taker(c.Bot.Spool)
	p := readPoll(c.params)
	s.noteAllowed(c, t)
	done, refused := s.begin(c.Bot, t, &p)
	if refused.err != nil {
		if s.holdBack(ctx, refused.after) {
			fail(c.w, refused.err)
		}
		return
	}
	defer done()
	if _, err := c.Bot.Spool.Acknowledge(ctx, p.offset); err != nil {
		s.pollFailed(c, err)
		return
	}
	list, ended, err := s.awaitUpdates(ctx, c.Bot.Spool, t, p)
	switch {
	case ctx.Err() != nil: // nobody is there any more
	case err != nil:
		s.pollFailed(c, err)
	case ended.err != nil:
		if s.holdBack(ctx, ended.after) {
			fail(c.w, ended.err)
		}
	default:
		succeed(c.w, joinUpdates(list))
	}
}

// pollFailed answers a poll that the spool refuses. While we stop there is
// nothing new: what was sent before is handed out after the start.
func (s *Server) pollFailed(c *call, err error) {
	switch {
	case c.r.Context().Err() != nil:
	case errors.Is(err, spool.ErrClosed):
		succeed(c.w, json.RawMessage("[]"))
	default:
		s.log.LogAttrs(c.r.Context(), slog.LevelWarn, "updates can't be handed out", slog.String("bot", c.Bot.Name), slog.Any("err", err))
		fail(c.w, later(storeRetry, "tgspool: the spool can't be used at the moment"))
	}
}

// readPoll reads the parameters as Telegram does: what is out of range is
// clamped, what is no number counts as absent.
func readPoll(params *wire.Params) poll {
	p := poll{limit: maxPollUpdates}
	p.offset, _ = params.Int("offset")
	if text, _ := params.Text("limit"); text != "" {
		n, _ := params.Int("limit")
		p.limit = int(min(max(n, 1), maxPollUpdates))
	}
	seconds, _ := params.Int("timeout")
	p.wait = time.Duration(min(max(seconds, 0), int64(maxPollWait/time.Second))) * time.Second
	return p
}

// begin refuses a poll while a webhook is set or leases are used, and slows one
// down that comes again at once with the same offset. done ends the poll.
func (s *Server) begin(b *Bot, t *taker, p *poll) (done func(), refused conflict) {
	t.mu.Lock()
	defer t.mu.Unlock()
	s.loadHookLocked(b.Spool, t)
	if t.hook != nil {
		return nil, t.conflictLocked(textHookSet)
	}
	done, err := b.Spool.TakenBy(spool.ByPolls)
	if err != nil {
		return nil, t.conflictLocked("tgspool: " + err.Error())
	}
	now := time.Now()
	if p.offset == t.lastOffset && !t.lastPoll.IsZero() {
		since := now.Sub(t.lastPoll)
		if p.wait < spinWindow && since < spinWindow {
			p.wait = spinWindow
		}
		if since < spinShort {
			p.limit = 1
		}
	}
	t.lastOffset, t.lastPoll = p.offset, now
	return done, conflict{}
}

// awaitUpdates returns what there is, waiting for it as long as the poll may. A poll
// that has to wait ends the one that waits already; one that finds updates
// leaves it alone.
func (s *Server) awaitUpdates(ctx context.Context, b *spool.Bot, t *taker, p poll) ([]spool.Update, conflict, error) {
	arrived, stop := b.WatchPull()
	defer stop()
	me := &parked{abort: make(chan conflict, 1)}
	defer t.unpark(me)
	timer := time.NewTimer(p.wait)
	defer timer.Stop()
	for {
		// A replayed update is handed out once: not to somebody who has gone.
		if ctx.Err() != nil {
			return nil, conflict{}, ctx.Err()
		}
		list, err := b.Pull(ctx, p.limit)
		if err != nil || len(list) > 0 || p.wait <= 0 {
			return list, conflict{}, err
		}
		t.park(me)
		select {
		case <-arrived:
		case ended := <-me.abort:
			return nil, ended, nil
		case <-timer.C:
			return nil, conflict{}, nil
		case <-s.stopping.Done():
			return nil, conflict{}, nil
		case <-ctx.Done():
			return nil, conflict{}, ctx.Err()
		}
	}
}

// joinUpdates is the result of getUpdates: the updates' own bytes.
func joinUpdates(list []spool.Update) json.RawMessage {
	size := 2
	for i := range list {
		size += len(list[i].Raw) + 1
	}
	out := append(make([]byte, 0, size), '[')
	for i := range list {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(out, list[i].Raw...)
	}
	return append(out, ']')
}

// noteAllowedUpdates is the note of a bot's spool from which intake reads what
// kinds of updates to ask for.
const noteAllowedUpdates = "allowed_updates"

// Bounds of what a client may ask for, so that the note stays small.
const (
	maxKinds   = 100
	maxKindLen = 64
)

// noteAllowed keeps the kinds of updates that a client asks for. Absent, or
// unreadable, is: as before; an empty list is Telegram's default.
func (s *Server) noteAllowed(c *call, t *taker) {
	text, given := c.params.Text("allowed_updates")
	var kinds []string
	if !given || json.Unmarshal([]byte(text), &kinds) != nil || kinds == nil {
		return
	}
	for i, kind := range kinds {
		kinds[i] = strings.ToLower(kind)
	}
	slices.Sort(kinds)
	kinds = slices.Compact(kinds)
	kinds = slices.DeleteFunc(kinds, func(kind string) bool { return kind == "" || len(kind) > maxKindLen })
	kinds = kinds[:min(len(kinds), maxKinds)]
	if !t.asks(c.Client, kinds) {
		return
	}
	note := marshal(kinds)
	before, err := c.Bot.Spool.Note(noteAllowedUpdates)
	if err == nil && string(before) == string(note) {
		return
	}
	if err := c.Bot.Spool.SetNote(c.r.Context(), noteAllowedUpdates, note); err != nil {
		s.log.LogAttrs(c.r.Context(), slog.LevelWarn, "the kinds of updates that a client asks for weren't kept",
			slog.String("bot", c.Bot.Name), slog.Any("err", err))
		return
	}
	s.log.LogAttrs(c.r.Context(), slog.LevelInfo, "a client asks for other kinds of updates",
		slog.String("bot", c.Bot.Name), slog.String("client", c.Client), slog.Any("reason", kinds))
	if c.Bot.AllowedChanged != nil {
		c.Bot.AllowedChanged()
	}
}
