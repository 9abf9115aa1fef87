package daemon

import (
	"context"
	"errors"
	"log/slog"

	"github.com/tgspool/tgspool/internal/config"
	"github.com/tgspool/tgspool/internal/manage"
)

// reloadRequest is one wish to read the settings again.
type reloadRequest struct {
	answer chan reloadAnswer // buffered: the daemon never waits for who asked
}

type reloadAnswer struct {
	done manage.Reload
	err  error
}

var errStopping = errors.New("the daemon is stopping")

// requestReload has the settings read again and returns what that has changed.
// The work is done where signals are handled, so that two never run at once.
func (d *daemon) requestReload(ctx context.Context) (manage.Reload, error) {
	q := reloadRequest{answer: make(chan reloadAnswer, 1)}
	select {
	case d.reloads <- q:
	case <-d.take.Done():
		return manage.Reload{}, errStopping
	case <-ctx.Done():
		return manage.Reload{}, ctx.Err()
	}
	a := <-q.answer
	return a.done, a.err
}

// reload reads the settings again and applies what can change without a
// restart. Bad settings are refused as a whole: the running ones stay.
func (d *daemon) reload(ctx context.Context) (manage.Reload, error) {
	d.notify.reloading()
	defer func() { d.notify.ready(d.statusLine()) }()
	path, _ := config.Resolve(d.o.Config, d.o.Getenv)
	cfg, err := config.Load(path, d.o.Getenv)
	if err != nil {
		d.log.LogAttrs(ctx, slog.LevelError, "the new settings are refused, the running ones stay", slog.Any("err", err))
		return manage.Reload{}, err
	}
	done := manage.Reload{}
	done.Applied, _ = config.Diff(d.cfg, cfg)
	_, done.Restart = config.Diff(d.started, cfg)
	d.cfg = cfg
	ctx = context.WithoutCancel(ctx) // begun is done, also when a stop is asked for meanwhile
	for _, c := range cfg.Bots {
		d.bots.apply(ctx, c)
	}
	d.bots.reloadTLS(ctx)
	d.pusher.Use(cfg.API.WebhookHosts)
	d.backups.use(cfg)
	d.useMonitor(cfg.Monitor)
	d.useClients(cfg)
	d.botapi.Use(botSettings(cfg))
	d.useAccess(ctx, cfg)
	d.level.Set(logLevel(cfg.Log.Level))
	d.log.LogAttrs(ctx, slog.LevelInfo, "settings reloaded", slog.Any("reason", done.Applied))
	d.warn(ctx, cfg)
	if len(done.Restart) > 0 {
		d.log.LogAttrs(ctx, slog.LevelWarn, "these settings count after a restart", slog.Any("reason", done.Restart))
	}
	return done, nil
}

// apply gives a running bot its new settings. The handlers change over without
// a gap: the new ones take updates while the old ones finish theirs.
func (r *directory) apply(ctx context.Context, c config.Bot) {
	r.mu.RLock()
	b := r.bots[c.Name]
	r.mu.RUnlock()
	if b == nil {
		return // new bots count after a restart
	}
	if b.broken != "" { // they count when it gets a token
		b.mu.Lock()
		b.cfg = c
		b.mu.Unlock()
		return
	}
	if err := b.setRouter(c); err != nil {
		b.log.LogAttrs(ctx, slog.LevelError, "the new handlers are refused", slog.Any("err", err))
		return
	}
	b.mu.Lock()
	b.cfg = c
	b.mu.Unlock()
	b.gate.SetRate(c.Sender.Rate)
	b.applyWebhook(ctx, c)
	if err := b.spool.Configure(ctx, b.spoolConfig(c)); err != nil {
		b.log.LogAttrs(ctx, slog.LevelError, "the new limits aren't in use", slog.Any("err", err))
	}
	old := b.handling
	b.startHandlers(r.d)
	if old != nil {
		old.stop()
	}
}
