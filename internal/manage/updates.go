package manage

import (
	"log/slog"
	"net/http"
	"slices"

	"github.com/tgspool/tgspool/internal/spool"
)

// listUpdates lists the inbox.
func (a *api) listUpdates(r *http.Request) (int, any, error) {
	bot, err := a.bot(r)
	if err != nil {
		return 0, nil, err
	}
	q, err := readQuery(r, "state", "limit", "after")
	if err != nil {
		return 0, nil, err
	}
	state := spool.UpdateState(q["state"])
	if state != "" && !slices.Contains(spool.UpdateStates(), state) {
		return 0, nil, problemf(http.StatusBadRequest, "unknown state %q; known: %s", state, join(spool.UpdateStates()))
	}
	limit, after, err := q.page()
	if err != nil {
		return 0, nil, err
	}
	return list(limit, after, func(after int64, limit int) ([]spool.Update, int64, error) {
		page, err := bot.Updates(spool.UpdateFilter{State: state, After: after, Limit: limit})
		return page.Items, page.Next, err
	}, func(u spool.Update) (int64, int) { return u.Seq, len(u.Raw) })
}

// update finds the bot and the number of the path.
func (a *api) update(r *http.Request, known ...string) (*spool.Bot, int64, params, error) {
	bot, err := a.bot(r)
	if err != nil {
		return nil, 0, nil, err
	}
	seq, err := id(r, "seq")
	if err != nil {
		return nil, 0, nil, err
	}
	q, err := readQuery(r, known...)
	return bot, seq, q, err
}

// showUpdate answers with one update.
func (a *api) showUpdate(r *http.Request) (int, any, error) {
	bot, seq, _, err := a.update(r)
	if err != nil {
		return 0, nil, err
	}
	u, err := bot.Update(seq)
	return http.StatusOK, u, err
}

// replayUpdate opens an update that has ended for its handler once more; with
// fresh=true as if it had never been handled, so that its jobs are made anew.
func (a *api) replayUpdate(r *http.Request) (int, any, error) {
	bot, seq, q, err := a.update(r, "fresh")
	if err != nil {
		return 0, nil, err
	}
	fresh, err := q.flag("fresh")
	if err != nil {
		return 0, nil, err
	}
	if err := noBody(r); err != nil {
		return 0, nil, err
	}
	ctx, cancel := change(r.Context())
	defer cancel()
	u, err := bot.Replay(ctx, seq, fresh)
	if err != nil {
		return 0, nil, err
	}
	a.updateDecided(r, bot, u)
	return http.StatusOK, u, nil
}

// dropUpdate gives up on an update.
func (a *api) dropUpdate(r *http.Request) (int, any, error) {
	bot, seq, _, err := a.update(r)
	if err != nil {
		return 0, nil, err
	}
	if err := noBody(r); err != nil {
		return 0, nil, err
	}
	ctx, cancel := change(r.Context())
	defer cancel()
	u, err := bot.Drop(ctx, seq)
	if err != nil {
		return 0, nil, err
	}
	a.updateDecided(r, bot, u)
	return http.StatusOK, u, nil
}

func (a *api) updateDecided(r *http.Request, bot *spool.Bot, u spool.Update) {
	a.log.LogAttrs(r.Context(), slog.LevelInfo, "update decided by a person",
		slog.String("bot", bot.Name()),
		slog.Int64("seq", u.Seq), slog.String("state", string(u.State)))
}
