package intake

import (
	"context"
	"encoding/json"
	"log/slog"
	"slices"
	"sync/atomic"

	"github.com/tgspool/tgspool/internal/botapi"
)

// Release gives up the webhook that we registered earlier, so that polling can
// start. A webhook that isn't ours stays.
type Release struct {
	link *link
	done atomic.Bool
}

// NewRelease returns a Release, which does nothing before Run. Of the
// configuration it needs Bot, Client and Gate.
func NewRelease(c WebhookConfig) *Release { return &Release{link: newLink(c)} }

// State returns how that is going, and whether it is over. It may be called
// from any goroutine.
func (r *Release) State() (now Snapshot, done bool) { return r.link.status.get(), r.done.Load() }

// Run removes our webhook, without dropping updates, and returns when there is
// none of ours or ctx ends. It goes on until Telegram has answered.
func (r *Release) Run(ctx context.Context) {
	defer r.done.Store(true)
	note, ok := r.link.note(ctx)
	if !ok {
		return
	}
	for ctx.Err() == nil {
		o := r.remove(ctx, note)
		if ctx.Err() != nil {
			return
		}
		if o.Class == botapi.ClassOK {
			// If we stop before this, the next start finds nothing to remove.
			if err := r.link.bot.SetNote(ctx, NoteWebhook, nil); err != nil {
				r.link.logger.LogAttrs(ctx, slog.LevelWarn, "the note of our webhook stays", slog.Any("err", err))
			}
			return
		}
		wait, wake := r.link.failed(ctx, o)
		if wake {
			r.link.sleep(ctx, wait)
			continue
		}
		sleep(ctx, wait)
	}
}

func (r *Release) remove(ctx context.Context, note webhookNote) botapi.Outcome {
	info, o := r.link.info(ctx)
	if o.Class != botapi.ClassOK || !slices.Contains(note.URLs, info.URL) {
		return o
	}
	o = r.link.call(ctx, "deleteWebhook", json.RawMessage(`{"drop_pending_updates":false}`))
	if o.Class == botapi.ClassOK {
		r.link.logger.LogAttrs(ctx, slog.LevelInfo, "our webhook was removed; updates are polled for now", slog.String("addr", hostOf(info.URL)))
	}
	return o
}
