package intake

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/tgspool/tgspool/internal/botapi"
	"github.com/tgspool/tgspool/internal/gate"
	"github.com/tgspool/tgspool/internal/spool"
)

const (
	// DefaultPollTimeout is how long Telegram holds a poll open; its own limit.
	DefaultPollTimeout = 50 * time.Second
	// answerSlack is how much longer than the poll we wait for the answer: a
	// connection that died behind a NAT box is noticed after that.
	answerSlack = 10 * time.Second
	// maxBatch is the most updates of one answer; Telegram's own limit.
	maxBatch = 100
	// maxAnswer is the longest answer that is read, in bytes. Telegram cuts its
	// answers at about 4 MiB.
	maxAnswer = 16 << 20
	// quickAnswer is an empty answer that came too soon to have been a long poll.
	quickAnswer = time.Second
	// maxIdle bounds the wait after polls that move nothing.
	maxIdle = time.Minute
)

// NoteAllowedUpdates names the note of a bot's spool that holds the kinds which
// local clients last asked for, as a JSON array of names.
const NoteAllowedUpdates = "allowed_updates"

// Inbox is the part of a bot's spool that intake works with.
type Inbox interface {
	Name() string
	Offset() int64
	Intake(ctx context.Context, batch spool.Batch) (spool.Taken, error)
	Note(name string) ([]byte, error)
}

// Caller makes one call of the Bot API.
type Caller interface {
	Call(ctx context.Context, r botapi.Request) botapi.Seen
}

// Gate is what the bot's callers tell each other.
type Gate interface {
	Success()
	OpenLanes(reasons ...gate.Reason) (changed bool)
	CloseLanes(reason gate.Reason, detail string) (changed bool)
	AwaitOpen(ctx context.Context, least, most time.Duration) (early bool)
}

// Config is what a Poller needs.
type Config struct {
	Bot    Inbox  // required; a *spool.Bot
	Client Caller // required; a *botapi.Client
	Gate   Gate   // required; a *gate.Gate

	Route func(botapi.Update) spool.Route // required

	PollTimeout time.Duration // whole seconds; default DefaultPollTimeout
	// AllowedUpdates are the kinds to ask for; empty but not nil: Telegram's
	// default. nil: what the note NoteAllowedUpdates holds, else Telegram keeps
	// what it was last told.
	AllowedUpdates []string
	TakeOver       bool // remove a webhook that somebody has set

	Logger *slog.Logger // nil: no log
	Notify func(Alert)  // nil: nobody is told; must not block
}

// Poller is the long poll of one bot. Its fields below status belong to the
// goroutine in Run.
type Poller struct {
	bot      Inbox
	client   Caller
	gate     Gate
	route    func(botapi.Update) spool.Route
	timeout  time.Duration
	allowed  []string
	takeOver bool
	logger   *slog.Logger
	notify   func(Alert)
	status   status

	limit    int // updates to ask for; less after an answer that was too long
	failures backoff
	idle     backoff // after polls that move nothing
	misled   bool    // another call's success didn't help us
	refusal  refusal
	conflict conflict

	mu  sync.Mutex
	cut context.CancelFunc // of the poll under way, nil between two
}

// New returns a poller, which does nothing before Run.
func New(c Config) *Poller {
	p := &Poller{
		bot: c.Bot, client: c.Client, gate: c.Gate, route: c.Route,
		timeout: c.PollTimeout, allowed: c.AllowedUpdates, takeOver: c.TakeOver,
		logger: c.Logger, notify: c.Notify,
		limit: maxBatch,
	}
	if p.timeout < time.Second {
		p.timeout = DefaultPollTimeout
	}
	if p.logger == nil {
		p.logger = slog.New(slog.DiscardHandler)
	}
	p.status.set(OK, "")
	return p
}

// State returns how intake is doing. It may be called from any goroutine.
func (p *Poller) State() Snapshot { return p.status.get() }

// Run polls until ctx ends, which cuts a poll under way: nothing of it was
// acknowledged, and Telegram hands it over again. The error is nil, or
// spool.ErrClosed when the spool was closed first.
func (p *Poller) Run(ctx context.Context) error {
	for ctx.Err() == nil {
		if err := p.turn(ctx); err != nil {
			return fmt.Errorf("polling for updates: %w", err)
		}
	}
	return nil
}

// turn makes one call and does what its answer asks for, waits included.
func (p *Poller) turn(ctx context.Context) error {
	poll, begun := p.begin(ctx)
	request := p.request(ctx)
	seen := p.client.Call(poll, request)
	cut := cutShort(poll, seen)
	begun()
	if stopped(ctx) || cut {
		return nil
	}
	outcome := botapi.Classify(botapi.MethodFor("getUpdates"), request.Params, seen)
	var batch []json.RawMessage
	if outcome.Class == botapi.ClassOK {
		var err error
		if batch, err = botapi.SplitUpdates(outcome.Result); err != nil {
			outcome = botapi.Outcome{Class: botapi.ClassNotTelegram, Description: "the answer holds no list of updates"}
		}
	}
	if outcome.Class == botapi.ClassOK {
		return p.take(ctx, batch, seen)
	}
	p.failed(ctx, outcome, seen)
	return nil
}

// Kick has Telegram asked anew at once, as after a change of the note
// NoteAllowedUpdates: a poll under way is cut, of which nothing is acknowledged.
func (p *Poller) Kick() {
	if p.allowed != nil {
		return // the note doesn't count
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.cut != nil {
		p.cut()
	}
}

// begin makes the context of one poll, which Kick ends.
func (p *Poller) begin(ctx context.Context) (poll context.Context, end func()) {
	poll, cut := context.WithCancel(ctx)
	p.mu.Lock()
	p.cut = cut
	p.mu.Unlock()
	return poll, func() {
		p.mu.Lock()
		p.cut = nil
		p.mu.Unlock()
		cut()
	}
}

// cutShort reports whether a poll has ended by Kick or a stop, without an answer.
func cutShort(poll context.Context, seen botapi.Seen) bool { return stopped(poll) && seen.Err != nil }

// stopped reports whether we are to end, which is no error.
func stopped(ctx context.Context) bool { return ctx.Err() != nil }

// request is the next call of getUpdates. Its offset is the committed one.
func (p *Poller) request(ctx context.Context) botapi.Request {
	params := struct {
		Offset  int64           `json:"offset,omitempty"`
		Limit   int             `json:"limit"`
		Timeout int64           `json:"timeout"`
		Allowed json.RawMessage `json:"allowed_updates,omitempty"`
	}{p.bot.Offset(), p.limit, int64(p.patience() / time.Second), p.kinds(ctx)}
	raw, err := json.Marshal(params)
	if err != nil {
		raw = nil // can't be: kinds are valid JSON; Telegram's defaults would do
	}
	return botapi.Request{Method: "getUpdates", Params: raw, Timeout: p.timeout + answerSlack, MaxBody: maxAnswer}
}

// patience is how long the next poll may wait for an update. After an outage or
// a refusal it doesn't: that it is over shows at once, not at the end of a long
// poll. With a conflict only a long poll shows whether somebody else polls.
func (p *Poller) patience() time.Duration {
	if st := p.State().State; st == Offline || st == Unauthorized {
		return 0
	}
	return p.timeout
}

// kinds is the list of kinds to ask for as JSON, nil to leave it to Telegram.
func (p *Poller) kinds(ctx context.Context) json.RawMessage {
	if p.allowed != nil {
		raw, err := json.Marshal(p.allowed)
		if err != nil {
			return nil // can't be: they are strings
		}
		return raw
	}
	note, err := p.bot.Note(NoteAllowedUpdates)
	if err != nil {
		p.logger.LogAttrs(ctx, slog.LevelWarn, "the kinds of updates to ask for can't be read", slog.String("err", err.Error()))
		return nil
	}
	var kinds []string
	if json.Unmarshal(note, &kinds) != nil {
		return nil
	}
	return note
}

// take commits a batch with its offset, and waits where the poll moved nothing.
func (p *Poller) take(ctx context.Context, elements []json.RawMessage, seen botapi.Seen) error {
	p.reached(ctx)
	if len(elements) == 0 {
		if seen.Duration >= quickAnswer {
			p.idle.reset()
			return nil
		}
		// Not a long poll; asking again at once would never end.
		sleep(ctx, p.idle.next(maxIdle))
		return nil
	}
	updates := make([]spool.NewUpdate, 0, len(elements))
	for _, raw := range elements {
		updates = append(updates, NewUpdate(raw, p.route))
	}
	before := p.bot.Offset()
	batch := spool.Batch{Updates: updates, Offset: nextOffset(before, updates), SetOffset: true}
	taken, err := p.store(ctx, batch)
	if err != nil || ctx.Err() != nil {
		return err
	}
	if taken.Malformed > 0 {
		p.logger.LogAttrs(ctx, slog.LevelWarn, "malformed updates are kept as dead", slog.Int("count", taken.Malformed))
	}
	if taken.Stored == 0 && batch.Offset == before {
		// The same again would come back at once.
		sleep(ctx, p.idle.next(maxIdle))
		return nil
	}
	p.idle.reset()
	return nil
}

// store commits a batch. While the spool can't take it, it is offered again:
// nothing has been acknowledged, so waiting loses nothing.
func (p *Poller) store(ctx context.Context, batch spool.Batch) (spool.Taken, error) {
	var wait backoff
	told := false
	for {
		// What has come is stored also when we are about to stop: closing the
		// spool waits for this commit anyway.
		taken, err := p.bot.Intake(context.WithoutCancel(ctx), batch)
		switch {
		case err == nil:
			if told {
				p.enter(ctx, OK, "")
			}
			return taken, nil
		case errors.Is(err, spool.ErrClosed):
			return taken, err
		case stopped(ctx):
			return taken, nil
		}
		p.enter(ctx, Full, err.Error())
		if !told {
			told = true
			p.alert(Full, fmt.Sprintf("Bot %s takes in no updates: %v. Telegram keeps them for a day; intake goes on by itself.", p.bot.Name(), err))
		}
		sleep(ctx, wait.next(maxFullWait))
	}
}

// maxFullWait bounds the wait until the spool is tried again.
const maxFullWait = 15 * time.Second
