package intake

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/tgspool/tgspool/internal/botapi"
	"github.com/tgspool/tgspool/internal/gate"
)

// NoteWebhook names the note of a bot's spool that says which webhook we have
// registered, so that only our own is ever removed.
const NoteWebhook = "webhook"

// rejectedRetry bounds the wait after Telegram has refused the webhook: a name
// that can't be resolved now may be later.
const rejectedRetry = 10 * time.Minute

// webhookNote is the content of NoteWebhook.
type webhookNote struct {
	// URLs are what Telegram may have by us: two while a change is under way.
	URLs []string `json:"urls"`
	// Hash is that of the secret which Telegram has taken; empty while that isn't
	// known.
	Hash []byte `json:"sha256,omitempty"`
}

func (n webhookNote) same(other webhookNote) bool {
	return slices.Equal(n.URLs, other.URLs) && bytes.Equal(n.Hash, other.Hash)
}

// webhookInfo is what is read of getWebhookInfo.
type webhookInfo struct {
	URL       string   `json:"url"`
	Pending   int64    `json:"pending_update_count"`
	ErrorDate int64    `json:"last_error_date"`
	ErrorText string   `json:"last_error_message"`
	Allowed   []string `json:"allowed_updates"` // absent: Telegram's default
}

// link is the talk with Telegram about a webhook, with what its troubles come
// to. One goroutine uses it, but for status.
type link struct {
	bot    WebhookInbox
	client Caller
	gate   Gate
	logger *slog.Logger
	notify func(Alert)
	status status

	failures backoff
	misled   bool // another call's success didn't help us
	refusal  refusal
	rejected bool // told that Telegram doesn't take the webhook
}

func newLink(c WebhookConfig) *link {
	l := &link{bot: c.Bot, client: c.Client, gate: c.Gate, logger: c.Logger, notify: c.Notify}
	if l.logger == nil {
		l.logger = slog.New(slog.DiscardHandler)
	}
	l.status.set(OK, "")
	return l
}

func (l *link) enter(ctx context.Context, state State, detail string) {
	enter(ctx, l.logger, &l.status, state, detail)
}

func (l *link) alert(state State, text string) {
	if l.notify != nil {
		l.notify(Alert{State: state, Text: text})
	}
}

// call makes one call. Its parameters may hold the secret: they are never told.
func (l *link) call(ctx context.Context, method string, params any) botapi.Outcome {
	raw, err := json.Marshal(params)
	if err != nil {
		return botapi.Outcome{Class: botapi.ClassRejected, Description: "the parameters can't be written as JSON"}
	}
	seen := l.client.Call(ctx, botapi.Request{Method: method, Params: raw})
	o := botapi.Classify(botapi.MethodFor(method), raw, seen)
	if o.Class == botapi.ClassOK {
		l.reached()
	}
	return o
}

// info asks Telegram which webhook it has.
func (l *link) info(ctx context.Context) (webhookInfo, botapi.Outcome) {
	var info webhookInfo
	o := l.call(ctx, "getWebhookInfo", struct{}{})
	if o.Class == botapi.ClassOK && json.Unmarshal(o.Result, &info) != nil {
		o = botapi.Outcome{Class: botapi.ClassNotTelegram, Description: "the answer tells nothing of a webhook"}
	}
	return info, o
}

// reached ends the troubles that an answer disproves.
func (l *link) reached() {
	l.gate.Success()
	l.misled = false
	if l.refusal.believed {
		// What we have seen holds for the sender, too.
		l.gate.OpenLanes(gate.Unauthorized)
	}
	l.refusal = refusal{}
}

// failed shows what went wrong and returns how long to wait; wake is whether
// another call's success may end the wait.
func (l *link) failed(ctx context.Context, o botapi.Outcome) (wait time.Duration, wake bool) {
	if o.Class == botapi.ClassFlood {
		return o.RetryAfter + rand.N(time.Second), false
	}
	if o.Class == botapi.ClassFloodUndated {
		return max(o.RetryAfter, l.failures.next(maxBackoff)), false
	}
	if o.Class == botapi.ClassUnauthorized {
		return l.refused(ctx, o)
	}
	if o.Class == botapi.ClassRejected {
		return l.declined(ctx, o)
	}
	l.enter(ctx, Offline, reason(o))
	return l.failures.next(maxBackoff), o.Class == botapi.ClassOffline
}

// declined handles a webhook that Telegram doesn't take: a wrong port, a host
// that it can't resolve.
func (l *link) declined(ctx context.Context, o botapi.Outcome) (wait time.Duration, wake bool) {
	why := clean(o.Description)
	l.enter(ctx, Offline, "Telegram doesn't take the webhook: "+why)
	if !l.rejected {
		l.rejected = true
		l.alert(Offline, fmt.Sprintf("Telegram doesn't take the webhook of bot %s: %s. No updates come until it does.", l.bot.Name(), why))
	}
	return l.failures.next(rejectedRetry), false
}

// refused handles a refusal of the token: quiet at first, believed the second time.
func (l *link) refused(ctx context.Context, o botapi.Outcome) (wait time.Duration, wake bool) {
	if l.refusal.first.IsZero() {
		l.refusal.first = time.Now()
	}
	if time.Since(l.refusal.first) < believeRefusal {
		return believeRefusal + rand.N(time.Second), false
	}
	l.enter(ctx, Unauthorized, o.Description)
	if !l.refusal.believed {
		l.refusal.believed = true
		// The sender's prober asks for itself, and stops sends too if it agrees.
		l.gate.CloseLanes(gate.Probing, "the token was refused")
		l.alert(Unauthorized, fmt.Sprintf("Telegram refuses the token of bot %s (%s). It may have been revoked: get the present one from @BotFather and set it with: tgspool token set %s",
			l.bot.Name(), o.Description, l.bot.Name()))
	}
	return refusedRetry + rand.N(15*time.Second), true
}

// sleep waits for d, or less when another call of the bot succeeds. When that
// has just misled us the whole wait is taken.
func (l *link) sleep(ctx context.Context, d time.Duration) {
	if l.misled {
		l.misled = false
		sleep(ctx, d)
		return
	}
	l.misled = l.gate.AwaitOpen(ctx, min(d, leastBackoff), d)
}

// note reads which webhook is ours. One that can't be read is none: nothing is
// removed that may be somebody else's.
func (l *link) note(ctx context.Context) (note webhookNote, ok bool) {
	raw, err := l.bot.Note(NoteWebhook)
	if err != nil {
		l.logger.LogAttrs(ctx, slog.LevelWarn, "the note of our webhook can't be read", slog.Any("err", err))
		return webhookNote{}, false
	}
	if raw == nil || json.Unmarshal(raw, &note) != nil {
		return webhookNote{}, false
	}
	return note, true
}

func (l *link) setNote(ctx context.Context, note webhookNote) error {
	raw, err := json.Marshal(note)
	if err != nil {
		return fmt.Errorf("writing the note of our webhook: %w", err)
	}
	return l.bot.SetNote(ctx, NoteWebhook, raw)
}

// hostOf is the host of a webhook. Path and user are never told: they often hold
// a secret.
func hostOf(address string) string {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" {
		return "an unknown host"
	}
	return u.Host
}

// clean makes a text of Telegram's fit for one line.
func clean(text string) string {
	const longest = 200
	text = strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return ' '
		}
		return r
	}, text)
	if len(text) > longest {
		text = strings.ToValidUTF8(text[:longest], "") + "…"
	}
	return text
}
