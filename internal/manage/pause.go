package manage

import (
	"log/slog"
	"net/http"
	"slices"
	"time"

	"github.com/tgspool/tgspool/internal/spool"
)

// paused is the answer: what stands still now.
type paused struct {
	Paused []spool.Pause `json:"paused"`
}

// pauseBot stops parts of a bot, for a span or until they are resumed.
func (a *api) pauseBot(r *http.Request) (int, any, error) {
	return a.changePauses(r, []string{"part", "for"}, func(r *http.Request, bot *spool.Bot, part spool.Part, span time.Duration) error {
		return bot.Pause(r.Context(), part, span)
	})
}

// resumeBot lets parts of a bot go on. The sender then also asks Telegram again
// about a token that was refused.
func (a *api) resumeBot(r *http.Request) (int, any, error) {
	return a.changePauses(r, []string{"part"}, func(r *http.Request, bot *spool.Bot, part spool.Part, _ time.Duration) error {
		if err := bot.Resume(r.Context(), part); err != nil {
			return err
		}
		if a.resumed != nil {
			a.resumed(bot.Name(), string(part))
		}
		return nil
	})
}

func (a *api) changePauses(r *http.Request, known []string, do func(*http.Request, *spool.Bot, spool.Part, time.Duration) error) (int, any, error) {
	bot, err := a.bot(r)
	if err != nil {
		return 0, nil, err
	}
	if _, err := readQuery(r); err != nil {
		return 0, nil, err
	}
	parts, span, err := readPause(r, known)
	if err != nil {
		return 0, nil, err
	}
	ctx, cancel := change(r.Context())
	defer cancel()
	for _, part := range parts {
		if err := do(r.WithContext(ctx), bot, part, span); err != nil {
			return 0, nil, err
		}
		a.log.LogAttrs(ctx, slog.LevelInfo, "paused or resumed by a person", slog.String("bot", bot.Name()),
			slog.String("component", string(part)), slog.String("path", r.URL.Path), slog.Duration("duration", span))
	}
	out := paused{Paused: []spool.Pause{}}
	for _, part := range spool.Parts() {
		if p, is := bot.Paused(part); is {
			out.Paused = append(out.Paused, p)
		}
	}
	return http.StatusOK, out, nil
}

// readPause reads {"part":…, "for":…}. Without a part it is about all, without a
// span for ever.
func readPause(r *http.Request, known []string) (parts []spool.Part, span time.Duration, err error) {
	body, _, err := readBody(r)
	if err != nil || len(body) == 0 {
		return spool.Parts(), 0, err
	}
	all, err := readObject(body)
	if err != nil {
		return nil, 0, err
	}
	parts = spool.Parts()
	for _, m := range all {
		var text string
		switch {
		case !slices.Contains(known, m.name):
			return nil, 0, unknownMember(m.name, known)
		case m.null():
			continue
		}
		if text, err = decode[string](m, "a string"); err != nil {
			return nil, 0, err
		}
		if m.name == "part" {
			if !slices.Contains(spool.Parts(), spool.Part(text)) {
				return nil, 0, problemf(http.StatusUnprocessableEntity, `"part" must be one of %s`, join(spool.Parts()))
			}
			parts = []spool.Part{spool.Part(text)}
			continue
		}
		if span, err = ParseDuration(text); err != nil {
			return nil, 0, problemf(http.StatusUnprocessableEntity, `"for": %s`, err)
		}
		if span == 0 {
			return nil, 0, problemf(http.StatusUnprocessableEntity, `"for" must be more than nothing`)
		}
	}
	return parts, span, nil
}
