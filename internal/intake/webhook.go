package intake

import (
	"context"
	"crypto/sha256"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tgspool/tgspool/internal/botapi"
	"github.com/tgspool/tgspool/internal/spool"
)

// maxSecret is the longest secret, in bytes, that Telegram sends along.
const maxSecret = 256

// WebhookInbox is the part of a bot's spool that a webhook works with.
type WebhookInbox interface {
	Inbox
	SetNote(ctx context.Context, name string, value []byte) error
}

// WebhookConfig is what a Webhook and a Release need.
type WebhookConfig struct {
	Bot    WebhookInbox // required; a *spool.Bot
	Client Caller       // required with URL; a *botapi.Client
	Gate   Gate         // required with URL; a *gate.Gate

	Route func(botapi.Update) spool.Route // required

	// Secret is what Telegram must send along; see CheckSecret.
	Secret string
	// URL is registered with Telegram. Empty: whoever runs the bot does that.
	URL string
	// AllowedUpdates has the meaning of Config.AllowedUpdates.
	AllowedUpdates []string

	Logger *slog.Logger // nil: no log
	Notify func(Alert)  // nil: nobody is told; must not block
	// Served is told how long a request that proved itself took; nil: nobody is.
	Served func(time.Duration)
}

// CheckSecret says why Telegram wouldn't take a text as the secret of a
// webhook. The error doesn't repeat it.
func CheckSecret(secret string) error {
	const allowed = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-"
	switch {
	case secret == "":
		return errors.New("the webhook's secret is empty")
	case len(secret) > maxSecret:
		return errors.New("the webhook's secret is longer than 256 characters")
	case strings.Trim(secret, allowed) != "":
		return errors.New("the webhook's secret has characters other than A-Z, a-z, 0-9, _ and -")
	}
	return nil
}

// Webhook takes in the updates that Telegram posts for one bot, and keeps the
// webhook registered. It serves requests from the start; Run registers.
type Webhook struct {
	bot    WebhookInbox
	route  func(botapi.Update) spool.Route
	url    string
	link   *link // its fields belong to the goroutine in Run
	logger *slog.Logger
	notify func(Alert)
	served func(time.Duration)

	secret   atomic.Pointer[[sha256.Size]byte] // hash of what must be sent along
	received atomic.Int64                      // when an update was last committed, Unix nanoseconds; 0: never
	refused  throttle
	paused   atomic.Bool

	listening status // whether requests can come at all
	storing   status // whether the spool takes what comes

	mu     sync.Mutex // guards wanted
	wanted wanted
	kick   chan struct{} // holds one: wanted has changed

	// The goroutine in Run alone uses these.
	settled    bool      // registered as wanted, since the start or the last change
	registered time.Time // when Telegram last took it
	contested  bool      // somebody else has changed the registration
}

// wanted is what Telegram is to be told.
type wanted struct {
	secret  string
	allowed []string
}

// NewWebhook returns a webhook that takes requests. Without Run nothing is
// registered.
func NewWebhook(c WebhookConfig) (*Webhook, error) {
	w := &Webhook{
		bot: c.Bot, route: c.Route, url: c.URL, link: newLink(c), logger: c.Logger, notify: c.Notify, served: c.Served,
		kick: make(chan struct{}, 1),
	}
	if w.logger == nil {
		w.logger = slog.New(slog.DiscardHandler)
	}
	if w.served == nil {
		w.served = func(time.Duration) {}
	}
	w.listening.set(OK, "")
	w.storing.set(OK, "")
	return w, w.Configure(c.Secret, c.AllowedUpdates)
}

// Configure takes over a changed secret and changed kinds, as a reload of the
// settings does. The old secret is refused from here on: what Telegram posts
// with it comes again once the new one is registered.
func (w *Webhook) Configure(secret string, allowedUpdates []string) error {
	if err := CheckSecret(secret); err != nil {
		return err
	}
	hash := sha256.Sum256([]byte(secret))
	w.secret.Store(&hash)
	w.mu.Lock()
	w.wanted = wanted{secret: secret, allowed: allowedUpdates}
	w.mu.Unlock()
	w.Kick()
	return nil
}

// Kick has the registration looked at again, as after a change of the note
// NoteAllowedUpdates.
func (w *Webhook) Kick() {
	select {
	case w.kick <- struct{}{}:
	default: // it will be looked at anyway
	}
}

func (w *Webhook) want() wanted {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.wanted
}

// Pause has Telegram told to come again later, as long as it is true.
func (w *Webhook) Pause(paused bool) { w.paused.Store(paused) }

// Listening tells whether requests can come, nil when they can. Whoever runs
// the server calls it.
func (w *Webhook) Listening(ctx context.Context, err error) {
	if err != nil {
		w.enter(ctx, &w.listening, Offline, err.Error())
		return
	}
	w.enter(ctx, &w.listening, OK, "")
}

// State returns how intake is doing. It may be called from any goroutine.
func (w *Webhook) State() Snapshot {
	for _, s := range []*status{&w.listening, &w.storing} {
		if now := s.get(); now.State != OK {
			return now
		}
	}
	return w.link.status.get()
}

// enter changes one of the states and says so once.
func (w *Webhook) enter(ctx context.Context, s *status, state State, detail string) {
	enter(ctx, w.logger, s, state, detail)
}

func (w *Webhook) lastReceived() time.Time {
	if at := w.received.Load(); at != 0 {
		return time.Unix(0, at)
	}
	return time.Time{}
}

// enter changes a state and logs it when it is another one.
func enter(ctx context.Context, logger *slog.Logger, s *status, state State, detail string) {
	before, changed := s.set(state, detail)
	if !changed {
		return
	}
	level := slog.LevelWarn
	switch state {
	case OK, Paused:
		level = slog.LevelInfo
	case Unauthorized, Full:
		level = slog.LevelError
	case Offline, Conflict:
	}
	logger.LogAttrs(ctx, level, "intake has changed its state", slog.String("state", string(state)),
		slog.String("from_state", string(before)), slog.String("reason", detail))
}
