package botserver

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/tgspool/tgspool/internal/botapi"
	"github.com/tgspool/tgspool/internal/outbox"
	"github.com/tgspool/tgspool/internal/spool"
	"github.com/tgspool/tgspool/internal/wire"
)

// accepted ends a delivery that the webhook has accepted. The call that its
// answer may hold is queued in the same commit; one that can't be made is told
// in the log and kept with the update, but confirms it all the same, as at
// Telegram. An answer that is cut is none.
func (h *hook) accepted(work context.Context, lease *spool.Lease, who Identity, a wire.Answer, up *wire.Upload) {
	job, err := replyJob(a, who, up)
	done := spool.Handling{}
	switch {
	case err != nil:
		done.Output = "the call in the answer was refused: " + err.Error()
		h.s.log.LogAttrs(work, slog.LevelWarn, "a call in a webhook's answer is refused", slog.String("bot", h.bot.Name()),
			slog.Int64("seq", lease.Seq), slog.String("client", h.note.Client), slog.String("err", err.Error()))
	case job != nil:
		done.Jobs = []spool.NewJob{*job}
	}
	if job == nil {
		up.Drop()
	}
	h.commit(work, lease, func(ctx context.Context) error {
		made, err := h.bot.Handled(ctx, lease, done)
		if errors.Is(err, spool.ErrInvalid) && len(done.Jobs) > 0 {
			done = spool.Handling{Output: "the call in the answer was refused: " + err.Error()}
			made, err = h.bot.Handled(ctx, lease, done)
		}
		if err == nil && (len(made) == 0 || made[0].Duplicate) {
			up.Drop() // nobody's
		}
		return err
	})
}

// replyJob makes the job of the call that an answer holds; nil when it holds
// none.
func replyJob(a wire.Answer, who Identity, up *wire.Upload) (*spool.NewJob, error) {
	switch {
	case a.Bad != nil:
		return nil, bodyError(a.Bad)
	case a.Call == nil:
		return nil, nil
	}
	if who.Check != nil {
		if err := who.Check(botapi.MethodFor(a.Call.Method), a.Call.Params); err != nil {
			return nil, err
		}
	}
	o := outbox.Options{Origin: "webhook", Verbatim: true, Lane: who.Lane, OnUncertain: who.OnUncertain, Files: up.Files()}
	if who.Client != "" {
		o.Origin += ":" + who.Client
	}
	if who.TTL > 0 {
		o.ExpiresAt = time.Now().Add(who.TTL)
	}
	job, err := outbox.New(a.Call.Method, a.Call.Params.Raw(), o)
	if err != nil {
		return nil, err
	}
	job.ID = up.Job()
	return &job, nil
}
