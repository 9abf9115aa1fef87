package intake

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/tgspool/tgspool/internal/botapi"
)

const (
	// checkQuiet is how long nothing is asked while all is well. A webhook that
	// somebody removes makes no noise, so that some question must be left.
	checkQuiet = 10 * time.Minute
	// checkSoon is how long after a registration, and while updates wait at
	// Telegram, it is asked how deliveries go.
	checkSoon = time.Minute
)

// Run keeps the webhook registered until ctx ends. Without a URL there is
// nothing to do. It never gives up; the error is always nil.
func (w *Webhook) Run(ctx context.Context) error {
	if w.url == "" {
		<-ctx.Done()
		return nil
	}
	for ctx.Err() == nil {
		select {
		case <-w.kick: // what is wanted now is read below
			w.settled = false
		default:
		}
		w.turn(ctx)
	}
	return nil
}

// turn looks at the registration once, and waits until that is due again.
func (w *Webhook) turn(ctx context.Context) {
	asked := time.Now()
	info, o, err := w.register(ctx)
	switch {
	case ctx.Err() != nil:
	case err != nil: // our own disk; the webhook as such stands
		w.link.enter(ctx, Full, err.Error())
		w.rest(ctx, w.link.failures.next(maxBackoff))
	case o.Class != botapi.ClassOK:
		wait, wake := w.link.failed(ctx, o)
		if wake {
			w.link.sleep(ctx, wait)
			return
		}
		w.rest(ctx, wait)
	case w.show(ctx, info), !w.registered.Before(asked):
		w.rest(ctx, checkSoon+rand.N(checkSoon/10))
	default:
		// A delivery says more than a question would.
		for w.rest(ctx, checkQuiet+rand.N(checkQuiet/10)) && w.lastReceived().After(asked) {
			asked = time.Now()
		}
	}
}

// rest waits, and reports false when it was cut short: by the end, or by a change.
func (w *Webhook) rest(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-w.kick:
		w.settled = false
		return false
	case <-timer.C:
		return true
	}
}

// register asks what Telegram has and sets what differs. It returns what
// Telegram says of it; err is of the spool.
func (w *Webhook) register(ctx context.Context) (webhookInfo, botapi.Outcome, error) {
	info, o := w.link.info(ctx)
	if o.Class != botapi.ClassOK {
		return info, o, nil
	}
	want, kinds := w.want(), w.kinds(ctx)
	hash := sha256.Sum256([]byte(want.secret))
	note, _ := w.link.note(ctx)
	final := webhookNote{URLs: []string{w.url}, Hash: hash[:]}
	if info.URL == w.url && note.same(final) && !w.doubtful(info, kinds) {
		w.settled, w.contested = true, false
		w.link.failures.reset()
		return info, o, nil
	}
	w.tellMoved(ctx, info, note)
	// If we stop before the last note, the next start registers again. Until
	// then both webhooks are known as ours.
	between := webhookNote{URLs: final.URLs}
	if info.URL != w.url && slices.Contains(note.URLs, info.URL) {
		between.URLs = []string{w.url, info.URL}
	}
	if !slices.Equal(between.URLs, note.URLs) {
		if err := w.link.setNote(ctx, between); err != nil {
			return info, o, err
		}
		note = between
	}
	if o = w.set(ctx, want.secret, kinds); o.Class != botapi.ClassOK {
		return info, o, nil
	}
	if !w.settled {
		info.ErrorDate = 0 // of before; whether it lasts shows soon
	}
	w.settled, w.registered = true, time.Now()
	w.link.failures.reset()
	w.link.rejected = false
	if note.same(final) {
		return info, o, nil
	}
	return info, o, w.link.setNote(ctx, final)
}

// doubtful reports whether a webhook with our URL is to be set again: to be
// sure of the kinds and after failures, once; and whenever Telegram posts with
// another secret, which can't be asked for. The same again costs Telegram and
// us nothing.
func (w *Webhook) doubtful(info webhookInfo, kinds []string) bool {
	if !w.settled && (info.ErrorDate != 0 || !sameKinds(kinds, info.Allowed)) {
		return true
	}
	return info.ErrorDate > w.registered.Unix() && strings.Contains(info.ErrorText, "401")
}

// set registers the webhook. No update is dropped.
func (w *Webhook) set(ctx context.Context, secret string, kinds []string) botapi.Outcome {
	params := struct {
		URL     string    `json:"url"`
		Secret  string    `json:"secret_token"`
		Allowed *[]string `json:"allowed_updates,omitempty"`
	}{URL: w.url, Secret: secret}
	if kinds != nil {
		params.Allowed = &kinds
	}
	o := w.link.call(ctx, "setWebhook", params)
	if o.Class == botapi.ClassOK {
		w.logger.LogAttrs(ctx, slog.LevelInfo, "the webhook is registered", slog.String("addr", hostOf(w.url)))
	}
	return o
}

// tellMoved says whose webhook is replaced. Before the first registration that
// is expected; later somebody else works with this token.
func (w *Webhook) tellMoved(ctx context.Context, info webhookInfo, note webhookNote) {
	if info.URL == w.url {
		return
	}
	what := "the webhook was removed by somebody else"
	if info.URL != "" {
		what = "a webhook of " + hostOf(info.URL) + " was set by somebody else"
	}
	if !w.settled {
		if info.URL != "" && !slices.Contains(note.URLs, info.URL) {
			w.logger.LogAttrs(ctx, slog.LevelWarn, "a webhook that isn't ours is replaced", slog.String("addr", hostOf(info.URL)))
		}
		return
	}
	w.link.enter(ctx, Conflict, what+"; ours is set again")
	if w.contested {
		return // it has been told
	}
	w.contested = true
	name := w.bot.Name()
	w.link.alert(Conflict, fmt.Sprintf("Bot %s: %s; ours is set again. If that wasn't you, the token was stolen: revoke it "+
		"with @BotFather (/revoke) and set the new one with: tgspool token set %s. Messages are still being sent.", name, what, name))
}

// show puts what Telegram says into the state, and reports whether that should
// be looked at again soon.
func (w *Webhook) show(ctx context.Context, info webhookInfo) (soon bool) {
	if w.contested {
		return true // the state says so until a look finds ours in place
	}
	received := w.lastReceived().Unix()
	if w.lastReceived().IsZero() {
		received = 0
	}
	failed := info.ErrorDate != 0 && (info.Pending > 0 || received < info.ErrorDate)
	if !failed {
		w.link.enter(ctx, OK, "")
		return info.Pending > 0
	}
	detail := fmt.Sprintf("Telegram's last delivery failed at %s: %s; %d waiting there",
		time.Unix(info.ErrorDate, 0).UTC().Format("2006-01-02 15:04:05 UTC"), clean(info.ErrorText), info.Pending)
	if info.Pending > 0 && received <= info.ErrorDate {
		w.link.enter(ctx, Offline, detail)
		return true
	}
	w.link.enter(ctx, OK, detail)
	return info.Pending > 0
}

// kinds are the kinds to ask for; nil leaves them to Telegram.
func (w *Webhook) kinds(ctx context.Context) []string {
	if allowed := w.want().allowed; allowed != nil {
		return allowed
	}
	raw, err := w.bot.Note(NoteAllowedUpdates)
	if err != nil {
		w.logger.LogAttrs(ctx, slog.LevelWarn, "the kinds of updates to ask for can't be read", slog.Any("err", err))
		return nil
	}
	var kinds []string
	if raw == nil || json.Unmarshal(raw, &kinds) != nil {
		return nil
	}
	return kinds
}

// sameKinds compares what is wanted with what Telegram has, in which the default
// and an empty list are the same. Nothing wanted is always the same.
func sameKinds(want, have []string) bool {
	if want == nil {
		return true
	}
	tidy := func(list []string) []string {
		out := make([]string, 0, len(list))
		for _, kind := range list {
			out = append(out, strings.ToLower(kind))
		}
		slices.Sort(out)
		return slices.Compact(out)
	}
	return slices.Equal(tidy(want), tidy(have))
}
