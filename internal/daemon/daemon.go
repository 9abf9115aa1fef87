// Package daemon puts the rooms together: it reads the settings, opens the
// spool, builds the loops of each bot, listens, and talks to systemd. It owns
// every long-lived goroutine.
//
// A stop has an order. First new work ends: no poll, no lease, no claim, no
// new request. Then calls and handlers in flight get the drain time to end by
// themselves. Then their work is cut short: calls become unknown outcomes,
// handlers give their attempt back. Last the store is closed. If we are killed
// in between, the next start does the same from what is on disk.
package daemon

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/tgspool/tgspool/internal/botserver"
	"github.com/tgspool/tgspool/internal/config"
	"github.com/tgspool/tgspool/internal/localapi"
	"github.com/tgspool/tgspool/internal/manage"
	"github.com/tgspool/tgspool/internal/spool"
	"github.com/tgspool/tgspool/internal/wire"
)

// Options are what the command line says.
type Options struct {
	Config  string // settings file; empty: where they usually are
	Version string
	Getenv  func(string) string
	Stdout  io.Writer
	Stderr  io.Writer
}

// Exit codes of sysexits.h that a start can end with.
const (
	exitStore    = 74 // EX_IOERR
	exitTemp     = 75 // EX_TEMPFAIL
	exitSettings = 78 // EX_CONFIG
)

// exitError is an error that knows the process' exit code.
type exitError struct {
	code int
	err  error
}

func (e *exitError) Error() string { return e.err.Error() }
func (e *exitError) Unwrap() error { return e.err }

// ExitCode is the exit code that goes with the error.
func (e *exitError) ExitCode() int { return e.code }

func exit(code int, err error) error { return &exitError{code, err} }

// daemon is one running process.
type daemon struct {
	o       Options
	cfg     *config.Config // as last read
	started *config.Config // as at the start: what needs a restart is still from there
	log     *slog.Logger
	level   *slog.LevelVar
	notify  *notifier
	store   *spool.Store
	bots    *directory
	backups *backups
	server  *localapi.Server
	botapi  *botserver.Server // the bot endpoint
	clients *botserver.Clients
	pusher  *wire.Pusher // to the webhooks of handlers
	admin   adminToken

	reloads chan reloadRequest
	tokens  chan tokenRequest
	passed  passedSockets
	pulse   *pulse
	metrics *manage.Metrics
	stats   *stats
	beats   *heartbeats
	sick    string // what is stuck, as it was logged; the heartbeat's alone

	volatile string // on what the store lies that keeps nothing; usually empty

	take     context.Context // ends first: no new work
	stopTake context.CancelFunc
	work     context.Context // ends when the drain time is over
	stopWork context.CancelFunc
}

// Run is the daemon. It returns nil after a stop that was asked for by ctx or
// a signal.
func Run(ctx context.Context, o Options) error {
	TuneMemory(o.Getenv)
	passed, err := takeSockets()
	if err != nil {
		return exit(exitSettings, err)
	}
	defer passed.close()
	// From here on a signal ends the start in good order, too.
	signals := make(chan os.Signal, 4)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP)
	defer signal.Stop(signals)

	path, _ := config.Resolve(o.Config, o.Getenv)
	cfg, err := config.Load(path, o.Getenv)
	if err != nil {
		return refuse(ctx, o, passed, signals, err)
	}
	d := &daemon{
		o: o, cfg: cfg, level: new(slog.LevelVar), passed: passed, pulse: newPulse(), metrics: manage.NewMetrics(),
		started: cfg, reloads: make(chan reloadRequest), tokens: make(chan tokenRequest),
	}
	d.log = newLogger(cfg.Log, d.level, o.Stderr, o.Getenv)
	d.warn(ctx, cfg)
	d.notify = newNotifier(o.Getenv)
	d.stats, d.beats = newStats(d), newHeartbeats(d)
	d.take, d.stopTake = context.WithCancel(context.WithoutCancel(ctx))
	d.work, d.stopWork = context.WithCancel(context.WithoutCancel(ctx))
	defer d.stopTake()
	defer d.stopWork()
	err = d.start(ctx)
	switch {
	case err != nil && ctx.Err() != nil:
		return nil // a stop that was asked for before all was up; everything is closed again
	case err != nil:
		return refuse(ctx, o, passed, signals, err)
	}
	return d.serve(ctx, signals)
}

// start opens store and listeners and starts the bots. When a step fails the
// earlier ones are taken back.
func (d *daemon) start(ctx context.Context) error {
	clock, err := spool.SystemClock()
	if err != nil {
		d.log.LogAttrs(ctx, slog.LevelWarn, "time asleep doesn't count", slog.Any("err", err))
	}
	extended := d.notify.extend(ctx, extendEvery)
	store, err := spool.Open(ctx, spool.Options{
		Path: d.cfg.Store.Path, Logger: d.log.With(slog.String("component", "spool")),
		Keep:     spool.Keep{Done: d.cfg.Store.Keep.Done, Handled: d.cfg.Store.Keep.Handled, Dead: d.cfg.Store.Keep.Dead},
		KeepSize: d.cfg.Store.KeepSize, MaxSize: d.cfg.Store.MaxSize, Clock: clock, Built: built,
		Observer: observer{d}, OnDamage: d.cfg.Store.OnDamage, Snapshots: d.cfg.SnapshotDir(),
		Progress: func(what string) { d.notify.send("STATUS=" + what) },
	})
	extended()
	if err != nil {
		return storeError(err)
	}
	d.store = store
	if err := store.TidyFiles(); err != nil {
		d.log.LogAttrs(ctx, slog.LevelWarn, "orphaned uploads are left", slog.Any("err", err))
	}
	d.lookAtDisk()
	d.pusher = wire.NewPusher(d.cfg.API.WebhookHosts, nil)
	d.backups = newBackups(store, d.cfg, d.log.With(slog.String("component", "backup")))
	d.bots = newDirectory(d)
	if err := d.bots.build(ctx, d.cfg); err != nil {
		return errors.Join(exit(exitSettings, err), store.Close())
	}
	if err := d.listen(ctx); err != nil {
		return errors.Join(err, store.Close())
	}
	d.bots.start()
	return nil
}

func storeError(err error) error {
	if errors.Is(err, spool.ErrLocked) {
		return exit(exitTemp, err)
	}
	return exit(exitStore, err)
}

func (d *daemon) listen(ctx context.Context) error {
	api := manage.New(manage.Config{
		Store: d.store, Bots: d.bots, Version: d.o.Version, StartedAt: time.Now(), Clock: d.clockState, Reload: d.requestReload,
		BackupError: d.backups.trouble, Metrics: d.metrics,
		Resumed: d.bots.resumed, MaxUpload: func() int64 { return d.botapi.MaxUpload() }, // as of the last reload
		Stuck:  func() string { return d.pulse.stuck(time.Now()) },
		Logger: d.log.With(slog.String("component", "api")),
	})
	d.botapi = d.newBotAPI()
	var ends []localapi.Endpoint
	for _, l := range d.cfg.API.Listen {
		ends = append(ends, localapi.Endpoint{Addr: l.Addr, Serve: l.Serve, TLSCert: l.TLSCert, TLSKey: l.TLSKey})
	}
	if err := d.admin.read(d.cfg.API.AdminTokenFile); err != nil {
		d.log.LogAttrs(ctx, slog.LevelError, "nobody can manage over TCP", slog.Any("err", err))
	}
	var err error
	d.server, err = localapi.Listen(ctx, localapi.Config{
		Endpoints: ends, Passed: d.passed, Manage: d.withTokens(api), Bot: d.serveBots,
		Bearer: d.login, Hosts: d.cfg.API.Hosts, Logger: d.log.With(slog.String("component", "api")),
	})
	switch {
	case err == nil:
		return nil
	case errors.Is(err, localapi.ErrInUse):
		return exit(exitTemp, err)
	}
	return exit(exitSettings, err)
}

// serve runs until a stop is asked for or something breaks.
func (d *daemon) serve(ctx context.Context, signals <-chan os.Signal) error {
	broken := make(chan error, 1)
	served := make(chan struct{})
	serving, stopServing := context.WithCancel(d.work)
	defer stopServing()
	go func() {
		defer close(served)
		if err := d.server.Serve(serving); err != nil {
			broken <- fmt.Errorf("serving the API: %w", err)
		}
	}()
	d.bots.loops.Go(func() { d.serveUnnamed(d.take) })
	d.bots.loops.Go(func() { d.backups.run(d.take) })
	d.useMonitor(d.cfg.Monitor)
	d.bots.loops.Go(func() { d.stats.run(d.take) })
	d.bots.loops.Go(func() { d.beats.run(d.take) })
	d.bots.loops.Go(func() { d.botapi.RunWebhooks(d.take, d.work) })
	d.sayHow(ctx)
	beat := d.notify.heartbeat(d.work, d.healthy, d.statusLine)
	d.notify.ready(d.statusLine())
	d.log.LogAttrs(ctx, slog.LevelInfo, "ready", slog.String("version", d.o.Version), slog.String("path", d.store.Path()),
		slog.Int("count", len(d.cfg.Bots)))

	cause := d.wait(ctx, signals, broken)
	err := d.stop(stopServing, served)
	<-beat
	return errors.Join(cause, err)
}

// wait returns when the daemon is to stop: nil for a stop that was asked for.
func (d *daemon) wait(ctx context.Context, signals <-chan os.Signal, broken <-chan error) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case err := <-broken:
			return err
		case <-d.store.Broken():
			return exit(exitStore, d.store.Err())
		case q := <-d.reloads:
			done, err := d.reload(ctx)
			q.answer <- reloadAnswer{done, err}
		case q := <-d.tokens:
			q.answer <- d.useToken(ctx, q.bot, q.token)
		case s := <-signals:
			if s == syscall.SIGHUP {
				_, _ = d.reload(ctx) // it has said in the log how it went
				continue
			}
			d.log.LogAttrs(ctx, slog.LevelInfo, "stopping", slog.String("signal", s.String()))
			return nil
		}
	}
}

// stop ends everything in order, each step bounded.
func (d *daemon) stop(stopServing context.CancelFunc, served <-chan struct{}) error {
	d.notify.stopping()
	d.stopTake()
	stopServing()
	drained := make(chan struct{})
	go func() {
		defer close(drained)
		d.bots.wait()
	}()
	limit := time.NewTimer(d.cfg.Daemon.Drain)
	defer limit.Stop()
	select {
	case <-drained:
	case <-limit.C:
		d.log.LogAttrs(d.work, slog.LevelWarn, "the drain time is over; calls in flight become unknown outcomes",
			slog.Duration("duration", d.cfg.Daemon.Drain))
	}
	d.stopWork()
	<-drained
	<-served
	d.botapi.Close()
	d.pusher.Close()
	if err := d.store.Close(); err != nil {
		return exit(exitStore, err)
	}
	d.log.LogAttrs(context.Background(), slog.LevelInfo, "stopped")
	return nil
}

// home is the handlers' HOME: the daemon's own, else the store's folder.
func (d *daemon) home() string {
	if home := d.o.Getenv("HOME"); home != "" {
		return home
	}
	return d.store.Dir()
}

// statusLine is what systemctl status shows.
func (d *daemon) statusLine() string {
	var pending, dead, open int64
	var oldest float64
	for _, b := range d.store.Status().Bots {
		pending += b.QueueDepth
		dead += b.DeadLast24h
		open += b.InboxUnhandled
		oldest = max(oldest, b.OldestPendingAgeS)
	}
	line := fmt.Sprintf("%d queued", pending)
	if pending > 0 {
		line += fmt.Sprintf(", oldest %s", (time.Duration(oldest) * time.Second).String())
	}
	if open > 0 {
		line += fmt.Sprintf("; %d updates unhandled", open)
	}
	if dead > 0 {
		line += fmt.Sprintf("; %d dead in 24h", dead)
	}
	if d.volatile != "" {
		line += "; KEPT ONLY UNTIL THE NEXT BOOT: the spool is on " + d.volatile
	}
	return line + d.bots.trouble()
}
