package handler

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/tgspool/tgspool/internal/spool"
)

// The waits before a transition is tried again that the store couldn't commit.
const (
	firstCommit = time.Second
	maxCommit   = 15 * time.Second
)

// end commits a decision. While the store can't take it, it is tried again:
// the program has run, and running it once more would do its work twice. If we
// stop here, the update is open again at the next start, its attempt spent.
func (h *Handlers) end(work context.Context, r *route, lease *spool.Lease, d decision, took time.Duration) {
	// What has happened must be recorded also when we are about to stop.
	ctx := context.WithoutCancel(work)
	stale := false
	defer func() {
		if !stale {
			r.outruns.forget(lease.Seq)
		}
	}()
	for wait := firstCommit; ; wait = min(2*wait, maxCommit) {
		err := h.commit(ctx, lease, d)
		switch {
		case err == nil:
			h.logEnd(ctx, r, lease, d, took)
			return
		case errors.Is(err, spool.ErrInvalid) && d.state == spool.UpdateHandled:
			// The store refuses one of the calls, and would refuse it again.
			d = d.instead(failed(spool.UpdateDead, err.Error()))
			continue
		case errors.Is(err, spool.ErrStale):
			stale = true
			d = d.instead(r.outrun(lease, err))
			continue
		case final(err):
			h.logUncommitted(ctx, r, lease, err)
			return
		case wait == firstCommit:
			h.logUncommitted(ctx, r, lease, err)
		}
		if !pause(work, wait) {
			return
		}
	}
}

func (h *Handlers) commit(ctx context.Context, lease *spool.Lease, d decision) error {
	if d.state == spool.UpdateHandled {
		made, err := h.bot.Handled(ctx, lease, d.handling)
		if err == nil && (len(made) == 0 || made[0].Duplicate) {
			d.drop() // the files are nobody's
		}
		return err
	}
	d.drop()
	return h.bot.FailUpdate(ctx, lease, d.failure)
}

// final reports whether trying again can't help: the lease is another's or the
// update has been decided on meanwhile, or the store is gone.
func final(err error) bool {
	for _, target := range []error{
		spool.ErrLeaseLost, spool.ErrConflict, spool.ErrNotFound, spool.ErrClosed, spool.ErrInvalid, spool.ErrDamaged,
	} {
		if errors.Is(err, target) {
			return true
		}
	}
	return false
}

// claimFailed waits before the next lease after the store refused one, longer
// each time. It returns the wait to begin with next time, 0 when there is none.
func (h *Handlers) claimFailed(take context.Context, r *route, last time.Duration, err error) time.Duration {
	if errors.Is(err, spool.ErrClosed) {
		return 0
	}
	if last == 0 {
		h.log.LogAttrs(take, slog.LevelWarn, "no update can be leased",
			slog.String("handler", r.Name), slog.String("err", err.Error()))
	}
	next := min(max(2*last, firstCommit), maxCommit)
	if !pause(take, next) {
		return 0
	}
	return next
}

// pause waits and reports whether ctx lasted that long.
func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}

// reached notes that the program could be started, or the webhook answered.
func (h *Handlers) reached(ctx context.Context, r *route, probe bool) {
	if r.reach.found(probe) {
		h.log.LogAttrs(ctx, slog.LevelInfo, "handler can be reached again",
			slog.String("handler", r.Name))
	}
}

// unreached notes that it couldn't. The route waits as a whole from now on, for
// as long as it was asked to or a time that grows.
func (h *Handlers) unreached(ctx context.Context, r *route, probe bool, err error, asked time.Duration) {
	if r.reach.lost(probe, err.Error(), asked) {
		h.log.LogAttrs(ctx, slog.LevelError, "handler can't be reached, its updates wait",
			slog.String("handler", r.Name), slog.String("err", err.Error()))
	}
}

// logLine passes on a line that a program wrote to standard error.
func (h *Handlers) logLine(ctx context.Context, r *route, lease *spool.Lease, line []byte) {
	h.log.LogAttrs(ctx, slog.LevelInfo, "handler wrote to standard error",
		append(attrs(r, lease), slog.String("err", plain(line)))...)
}

func (h *Handlers) logPanic(ctx context.Context, r *route, lease *spool.Lease, p any) {
	h.log.LogAttrs(ctx, slog.LevelError, "panic while handling an update",
		append(attrs(r, lease), slog.Any("err", p))...)
}

func (h *Handlers) logUncommitted(ctx context.Context, r *route, lease *spool.Lease, err error) {
	h.log.LogAttrs(ctx, slog.LevelError, "the end of a handler's run can't be stored",
		append(attrs(r, lease), slog.String("err", err.Error()))...)
}

// logEnd says what became of an update: once for a series of failures, and
// loudly only for what needs a person.
func (h *Handlers) logEnd(ctx context.Context, r *route, lease *spool.Lease, d decision, took time.Duration) {
	level := slog.LevelDebug
	switch {
	case d.state == spool.UpdateDead:
		level = slog.LevelError
	case d.state == spool.UpdateExpired:
		level = slog.LevelInfo
	case d.state == spool.UpdateOpen && !d.failure.GiveBack && lease.Attempts == 1:
		level = slog.LevelWarn
	}
	list := append(attrs(r, lease), slog.String("state", string(d.state)), slog.Duration("duration", took))
	if d.failure.Error != "" {
		list = append(list, slog.String("reason", d.failure.Error))
	}
	if !d.failure.RetryAt.IsZero() {
		list = append(list, slog.Time("due", d.failure.RetryAt))
	}
	h.log.LogAttrs(ctx, level, "handler has ended", list...)
}

// attrs are the facts that every line about a lease has.
func attrs(r *route, lease *spool.Lease) []slog.Attr {
	list := []slog.Attr{
		slog.String("handler", r.Name), slog.Int64("seq", lease.Seq), slog.Int("attempt", lease.Attempts),
	}
	if lease.UpdateID != nil {
		list = append(list, slog.Int64("update_id", *lease.UpdateID))
	}
	if lease.ChatID != 0 {
		list = append(list, slog.Int64("chat_id", lease.ChatID))
	}
	return list
}
