package daemon

import (
	"context"
	"encoding/json"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tgspool/tgspool/internal/botapi"
	"github.com/tgspool/tgspool/internal/config"
	"github.com/tgspool/tgspool/internal/gate"
	"github.com/tgspool/tgspool/internal/handler"
	"github.com/tgspool/tgspool/internal/intake"
	"github.com/tgspool/tgspool/internal/manage"
	"github.com/tgspool/tgspool/internal/outbox"
	"github.com/tgspool/tgspool/internal/sender"
	"github.com/tgspool/tgspool/internal/spool"
	"github.com/tgspool/tgspool/internal/wire"
)

// noteMe is the note under which getMe's last answer is kept.
const noteMe = "get_me"

// bot is one bot of the settings with its loops.
type bot struct {
	name    string
	log     *slog.Logger
	metrics *manage.Metrics

	mu  sync.Mutex
	cfg config.Bot // the settings in use

	// broken says why the bot can't work at all; the fields below are nil then.
	broken string

	gate     *gate.Gate
	client   *line
	spool    *spool.Bot
	intake   source          // nil when no updates are to come
	hook     *intake.Webhook // nil when they don't come by webhook
	poll     *pausable       // nil when they don't come by polling
	router   atomic.Pointer[handler.Router]
	username atomic.Pointer[string]

	loops    sync.WaitGroup
	handling *generation                      // the handlers now running, replaced by a reload
	running  atomic.Pointer[handler.Handlers] // the same, for status
}

// newBot makes the parts of a bot that has a token, and the secret of its
// webhook where it has one.
func newBot(ctx context.Context, d *daemon, cfg config.Bot, token botapi.Token, secret string) (*bot, error) {
	b := &bot{name: cfg.Name, cfg: cfg, metrics: d.metrics, log: d.log.With(slog.String("bot", cfg.Name))}
	client, err := d.client(cfg, token)
	if err != nil {
		return nil, err
	}
	b.client = newLine(client, d, cfg)
	b.gate = gate.New(gate.Config{Rate: cfg.Sender.Rate, Burst: gate.MaxBurst, PaidRate: cfg.Sender.PaidRate})
	if err := b.setRouter(cfg); err != nil {
		return nil, err
	}
	if b.spool, err = d.store.Attach(ctx, b.spoolConfig(cfg)); err != nil {
		return nil, err
	}
	b.gate.OnOpen(b.spool.Kick)
	if until := b.spool.Cooldown(); until.After(time.Now()) {
		b.gate.ExtendCooldown(until, "kept from before the restart")
	}
	if me, err := b.spool.Note(noteMe); err == nil {
		b.learnMe(me)
	}
	return b, b.setIntake(cfg.Intake, secret)
}

// setIntake makes the part that brings updates in.
func (b *bot) setIntake(in config.Intake, secret string) (err error) {
	switch in.Mode {
	case "poll":
		poller := intake.New(intake.Config{
			Bot: b.spool, Client: b.client, Gate: b.gate, Route: b.route,
			PollTimeout: in.PollTimeout, AllowedUpdates: in.AllowedUpdates, TakeOver: in.TakeOver,
			Logger: b.log.With(slog.String("component", "intake")), Notify: b.alert,
		})
		b.poll = newPausable(pollSource{intake.NewRelease(b.webhookConfig(in, "")), poller})
		b.intake = b.poll
	case "webhook":
		if b.hook, err = intake.NewWebhook(b.webhookConfig(in, secret)); err == nil {
			b.intake = b.hook
		}
	}
	return err
}

func (b *bot) setRouter(cfg config.Bot) error {
	r, err := handler.NewRouter(Routes(cfg.Handlers), handler.RouterOptions{Username: b.knownAs, Now: b.client.telegramTime, Unmatched: cfg.Unmatched})
	if err == nil {
		b.router.Store(r)
	}
	return err
}

// knownAs is the bot's username as far as it is known.
func (b *bot) knownAs() string {
	if p := b.username.Load(); p != nil {
		return *p
	}
	return ""
}

func (b *bot) route(u botapi.Update) spool.Route { return b.router.Load().Route(u) }

func (b *bot) spoolConfig(cfg config.Bot) spool.BotConfig {
	return spool.BotConfig{
		ID: b.client.BotID(), Name: cfg.Name, Limits: limitsOf(cfg.Sender),
		Admit:  func(now time.Time, lane spool.Lane) (bool, time.Time) { return b.gate.Admit(now, string(lane)) },
		Refund: b.gate.Refund, PauseChanged: b.pauseChanged,
		Sight:  outbox.Sight(b.client.BotID()),
		Routes: b.router.Load().Fingerprint(),
		Route: func(raw []byte) spool.Route {
			u, err := botapi.ParseUpdate(raw)
			if err != nil {
				return spool.Route{} // malformed ones are never open
			}
			return b.route(u)
		},
	}
}

// start begins the bot's loops. They end with take and work.
func (b *bot) start(d *daemon) {
	b.pauseChanged() // before anything goes out
	s := sender.New(sender.Config{
		Bot: b.spool, Client: b.client, Gate: b.gate, Workers: b.cfg.Sender.Workers,
		Options: senderOptions(b.cfg.Sender, d.store.Dir()), Logger: b.log.With(slog.String("component", "sender")),
		Attempted: func(c botapi.Class) {
			d.metrics.Attempt(b.name, string(c))
			d.stats.attempted(b.name, c)
		},
	})
	b.loops.Go(func() { b.ended(d, "sender", s.Run(d.take, d.work)) })
	if b.intake != nil {
		b.loops.Go(func() { b.ended(d, "intake", b.intake.Run(d.take)) })
	}
	b.loops.Go(func() { b.identify(d.take) })
	b.startHandlers(d)
}

// loopHandler ends at each reload, when another takes its place.
const loopHandler = "handler"

// ended reports a loop that has ended although nobody asked it to.
func (b *bot) ended(d *daemon, loop string, err error) {
	if d.take.Err() == nil && loop != loopHandler {
		d.pulse.lost(loop + " of bot " + b.name)
	}
	if err != nil && d.take.Err() == nil {
		b.log.LogAttrs(d.work, slog.LevelError, "a loop has ended", slog.String("component", loop), slog.Any("err", err))
	}
}

// generation is one set of handler loops, from start or reload to the next.
type generation struct {
	stop  context.CancelFunc
	ended chan struct{}
}

func (b *bot) startHandlers(d *daemon) {
	h, err := handler.New(handler.Config{
		Bot: b.spool, Routes: Routes(b.cfg.Handlers), Logger: b.log.With(slog.String("component", "handler")),
		Home: d.home(), Unit: d.o.Getenv(UnitVariable), Expect: d.pulse.expect,
		Now: b.client.telegramTime, AtOnce: b.atOnce, Pusher: d.pusher, ReadSecret: config.ReadSecret, Uploads: uploads(d.store, d.cfg.Store.MaxUpload),
	})
	if err != nil { // the router has accepted the same routes before
		b.log.LogAttrs(d.work, slog.LevelError, "the handlers can't run", slog.Any("err", err))
		return
	}
	take, stop := context.WithCancel(d.take)
	g := &generation{stop: stop, ended: make(chan struct{})}
	b.handling = g
	b.running.Store(h)
	b.loops.Go(func() {
		defer close(g.ended)
		b.ended(d, loopHandler, h.Run(take, d.work))
	})
}

// uploads makes the place for the files of webhooks' answers.
func uploads(store *spool.Store, limit int64) func(context.Context) *wire.Upload {
	return func(ctx context.Context) *wire.Upload { return wire.NewUpload(ctx, store, limit) }
}

// identify asks Telegram once who the bot is, and keeps the answer: commands
// for /x@ourname are told from others' by it.
func (b *bot) identify(ctx context.Context) {
	m := botapi.MethodFor("getMe")
	for pause := identifyPause; ; pause = min(2*pause, 5*time.Minute) {
		wait := pause
		if ok, after := b.gate.TakeEphemeral(time.Now()); ok {
			out := botapi.Classify(m, nil, b.client.Call(ctx, botapi.Request{Method: m.Name}))
			if out.Class == botapi.ClassOK {
				b.keepMe(ctx, out.Result)
				return
			}
			if out.Class == botapi.ClassFlood {
				b.cool(ctx, time.Now().Add(out.RetryAfter))
			}
		} else {
			wait = max(wait, after)
		}
		// Whatever else succeeds, never again at once: others' calls count, too.
		b.gate.AwaitOpen(ctx, min(wait, identifyPause), wait)
		if ctx.Err() != nil {
			return
		}
	}
}

// identifyPause is the least time between two getMe of identify.
const identifyPause = 5 * time.Second

// cool extends the bot's cooldown, in the gate and on disk.
func (b *bot) cool(ctx context.Context, until time.Time) {
	b.gate.ExtendCooldown(until, string(botapi.ClassFlood))
	if err := b.spool.ExtendCooldown(ctx, until); err != nil {
		b.log.LogAttrs(ctx, slog.LevelWarn, "a cooldown wasn't stored", slog.Any("err", err))
	}
}

func (b *bot) keepMe(ctx context.Context, me json.RawMessage) {
	b.gate.Success()
	b.learnMe(me)
	if err := b.spool.SetNote(ctx, noteMe, me); err != nil {
		b.log.LogAttrs(ctx, slog.LevelWarn, "getMe's answer wasn't kept", slog.Any("err", err))
	}
}

// alert says what a person should do something about.
func (b *bot) alert(a intake.Alert) {
	b.log.Error("this needs a person", slog.String("state", string(a.State)), slog.String("reason", a.Text))
}

func (b *bot) learnMe(raw []byte) {
	var me struct {
		Username string `json:"username"`
	}
	if json.Unmarshal(raw, &me) == nil && me.Username != "" {
		b.username.Store(&me.Username)
	}
}

// view is the bot as the API shows it.
func (b *bot) view() manage.View {
	if b.broken != "" {
		return manage.View{Unconfigured: b.broken}
	}
	v := manage.View{ID: b.client.BotID(), Username: b.knownAs(), Sender: b.gate.Snapshot(), RateOpensAt: b.gate.RateOpensAt(time.Now())}
	if h := b.running.Load(); h != nil {
		for _, r := range h.Routes() {
			v.Handlers = append(v.Handlers, manage.Handler{Name: r.Name, Trouble: r.Reason})
		}
	}
	if b.intake == nil {
		v.Intake = manage.Intake{State: string(intake.Paused), Detail: "intake is off in the settings"}
		return v
	}
	s := b.intake.State()
	v.Intake = manage.Intake{State: string(s.State), Since: s.Since, Detail: s.Detail}
	b.showPauses(&v)
	return v
}
