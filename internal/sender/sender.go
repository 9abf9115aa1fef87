// Package sender brings one bot's jobs from the spool to Telegram.
//
// Each worker claims a job, makes its one call, and settles it by what was seen,
// taking the next job in the same commit. All that a call can come to is decided
// by one pure function (decide); what else follows from it for the bot as a
// whole, such as a cooldown or closed lanes, is told to the gate before the job
// is settled, so that no other worker runs into the same wall.
//
// The sender guarantees that a job whose call may have taken effect is never
// sent again unless it is safe or its policy says so, and that whatever was seen
// is on disk before the worker goes on. It waits for nothing between a claim and
// the first byte: rates, gaps, order and cooldowns all stand before the claim.
//
// After any answer that makes Telegram or the token doubtful the lanes close and
// one prober asks getMe until it is answered. So an outage costs at most the
// calls that were in flight when it began.
package sender

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tgspool/tgspool/internal/botapi"
	"github.com/tgspool/tgspool/internal/gate"
	"github.com/tgspool/tgspool/internal/spool"
)

const defaultWorkers = 16

// Caller makes one call of the Bot API. *botapi.Client is one.
type Caller interface {
	Call(ctx context.Context, r botapi.Request) botapi.Seen
}

// FloodScope says what waits after a flood.
type FloodScope string

// The flood scopes.
const (
	FloodAuto FloodScope = "auto" // the bot for short ones, the chat for long ones
	FloodBot  FloodScope = "bot"  // always the bot
	FloodChat FloodScope = "chat" // the chat, if the call has one
)

// Config is what a Sender needs. Bot, Client and Gate are required.
type Config struct {
	Bot     *spool.Bot
	Client  Caller
	Gate    *gate.Gate
	Workers int // calls at once; 0 is 16
	Options Options
	Logger  *slog.Logger // nil: silent
	Notify  func(Event)  // is told what people should know; must not wait; may be nil
	// Attempted is told the class of each call's outcome; must not wait; may be nil.
	Attempted func(botapi.Class)
}

// Options are the settings of a sender.
type Options struct {
	FloodScope     FloodScope    // empty is FloodAuto
	RequestTimeout time.Duration // from the last byte written to the answer; 0 is the client's
	LateNote       time.Duration // texts that go out later say when they were written; 0: never
	Dir            string        // the store's folder, in which the jobs' files lie
}

// Sender sends the jobs of one bot.
type Sender struct {
	bot     *spool.Bot
	client  Caller
	gate    *gate.Gate
	workers int
	options Options
	log     *slog.Logger
	notify  func(Event)
	counted func(botapi.Class)
	floods  floods
	prober  prober
	trouble atomic.Bool // the store can't be written, and that has been logged
}

// New returns a sender that does nothing yet. The gate takes over the cooldown
// that the store kept, so that a 429 outlives the process.
func New(c Config) *Sender {
	if c.Workers <= 0 {
		c.Workers = defaultWorkers
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if c.Notify == nil {
		c.Notify = func(Event) {}
	}
	if c.Attempted == nil {
		c.Attempted = func(botapi.Class) {}
	}
	c.Gate.ExtendCooldown(c.Bot.Cooldown(), "cooldown from before the start")
	return &Sender{
		bot:     c.Bot,
		client:  c.Client,
		gate:    c.Gate,
		workers: c.Workers,
		options: c.Options,
		log:     c.Logger,
		notify:  c.Notify,
		counted: c.Attempted,
		floods:  floods{scope: c.Options.FloodScope, until: map[string]time.Time{}},
		prober:  prober{bot: c.Bot, client: c.Client, gate: c.Gate, log: c.Logger, notify: c.Notify},
	}
}

// Run sends until take ends, and then returns when the calls in flight have
// been settled. Those that still run when work ends are cut off and become
// unknown outcomes. Take must end no later than work. The error is that of a
// store which was closed under its feet.
func (s *Sender) Run(take, work context.Context) error {
	probing, stopProbing := context.WithCancel(take)
	defer stopProbing()
	var workers, prober sync.WaitGroup
	failed := make(chan error, s.workers)
	for range s.workers {
		workers.Go(func() {
			if err := s.worker(take, work); err != nil {
				failed <- err
			}
		})
	}
	prober.Go(func() { s.prober.run(probing) })
	workers.Wait()
	stopProbing()
	prober.Wait()
	select {
	case err := <-failed:
		return err
	default:
		return nil
	}
}
