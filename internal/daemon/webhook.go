package daemon

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/tgspool/tgspool/internal/config"
	"github.com/tgspool/tgspool/internal/intake"
)

const (
	// longestListenPause bounds the wait until an address is tried again.
	longestListenPause = time.Minute
)

// source is where a bot's updates come from.
type source interface {
	Run(ctx context.Context) error
	State() intake.Snapshot
}

// pollSource polls, once a webhook that this bot had before is given up.
type pollSource struct {
	release *intake.Release
	poller  *intake.Poller
}

// Run ends with ctx.
func (p pollSource) Run(ctx context.Context) error {
	p.release.Run(ctx)
	return p.poller.Run(ctx)
}

// Kick has Telegram asked for other kinds of updates.
func (p pollSource) Kick() { p.poller.Kick() }

// State is that of the part at work.
func (p pollSource) State() intake.Snapshot {
	if now, done := p.release.State(); !done && now.State != intake.OK {
		return now
	}
	return p.poller.State()
}

// webhookConfig is what the settings say of a bot's webhook.
func (b *bot) webhookConfig(in config.Intake, secret string) intake.WebhookConfig {
	return intake.WebhookConfig{
		Bot: b.spool, Client: b.client, Gate: b.gate, Route: b.route,
		Secret: secret, URL: in.URL, AllowedUpdates: in.AllowedUpdates,
		Logger: b.log.With(slog.String("component", "intake")), Notify: b.alert,
		Served: func(took time.Duration) { b.metrics.Webhook(b.name, took) },
	}
}

// readHookSecret reads the secret that a bot's webhook asks for.
func readHookSecret(c config.Bot) (string, error) {
	secret, err := config.ReadSecret(c.Intake.SecretFile)
	if err != nil {
		return "", fmt.Errorf("reading the webhook's secret: %w", err)
	}
	if err := intake.CheckSecret(secret); err != nil {
		return "", fmt.Errorf("reading %s: %w", c.Intake.SecretFile, err)
	}
	return secret, nil
}

// applyWebhook gives a running webhook its new settings.
func (b *bot) applyWebhook(ctx context.Context, c config.Bot) {
	if b.hook == nil || c.Intake.Mode != "webhook" {
		return // another mode counts after a restart
	}
	secret, err := readHookSecret(c)
	if err == nil {
		err = b.hook.Configure(secret, c.Intake.AllowedUpdates)
	}
	if err != nil {
		b.log.LogAttrs(ctx, slog.LevelError, "the webhook keeps its secret", slog.Any("err", err))
	}
}

// hookEnd is an address that the webhooks of one or several bots come in at.
type hookEnd struct {
	config intake.ServerConfig
	owner  string // the first bot of the settings that uses it
	log    *slog.Logger

	mu     sync.Mutex     // guards server
	server *intake.Server // nil while the address can't be opened
}

// join adds a bot's webhook to the address that its settings name.
func (r *directory) join(b *bot, in config.Intake) error {
	addr := in.Listen
	e := r.ends[addr]
	if e == nil {
		e = &hookEnd{owner: b.name, log: r.d.log.With(slog.String("component", "intake")), config: intake.ServerConfig{
			Addr: addr, TLSCert: in.TLSCert, TLSKey: in.TLSKey, Hooks: map[string]*intake.Webhook{},
		}}
		e.config.Logger = e.log
		r.ends[addr] = e
	}
	if e.config.TLSCert != in.TLSCert || e.config.TLSKey != in.TLSKey {
		return fmt.Errorf("listens on %s with other TLS files than [bots.%s.intake]: use the same ones or another address", addr, e.owner)
	}
	e.config.Hooks[b.name] = b.hook
	return nil
}

// open opens the address and tells the bots how that went.
func (e *hookEnd) open(ctx context.Context) (*intake.Server, error) {
	s, err := intake.Listen(ctx, e.config)
	e.mu.Lock()
	e.server = s
	e.mu.Unlock()
	for _, hook := range e.config.Hooks {
		hook.Listening(ctx, err)
	}
	return s, err
}

// serve answers until ctx ends. An address that can't be opened, or breaks, is
// tried again: the bots send meanwhile, and those that poll do so.
func (e *hookEnd) serve(ctx context.Context, s *intake.Server) {
	pause := time.Second
	for ctx.Err() == nil {
		if s != nil {
			pause = time.Second
			err := s.Serve(ctx)
			if ctx.Err() != nil {
				return
			}
			e.log.LogAttrs(ctx, slog.LevelError, "webhooks can't be received", slog.String("addr", e.config.Addr), slog.Any("err", err))
		}
		timer := time.NewTimer(pause)
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-timer.C:
		}
		pause = min(2*pause, longestListenPause)
		s, _ = e.open(ctx) // its error shows in the bots' states
	}
}

// startHooks listens for webhooks. Whoever waits for the start finds the
// addresses open, where they can be.
func (r *directory) startHooks() {
	for _, e := range r.ends {
		s, err := e.open(r.d.take)
		if err != nil {
			e.log.LogAttrs(r.d.take, slog.LevelError, "webhooks can't be received", slog.String("addr", e.config.Addr), slog.Any("err", err))
		}
		r.loops.Go(func() { e.serve(r.d.take, s) })
	}
}

// reloadTLS reads the certificates again.
func (r *directory) reloadTLS(ctx context.Context) {
	for _, e := range r.ends {
		e.mu.Lock()
		s := e.server
		e.mu.Unlock()
		if s == nil {
			continue // it reads them when it is opened
		}
		if err := s.ReloadTLS(); err != nil {
			e.log.LogAttrs(ctx, slog.LevelError, "the certificate in use stays", slog.String("addr", e.config.Addr), slog.Any("err", err))
		}
	}
}
