// Package gate is what all callers of one bot share on their way to Telegram:
// the rate of calls, the cooldown after a flood, the reasons why nothing may go
// out at all, and whether Telegram has been reached lately.
//
// There is one Gate a bot. The spool's writer asks it inside its transaction,
// before a job is claimed; the sender asks once more just before the call; the
// poller and the local endpoint use the same health and the same rate. For that
// no method but [Gate.SleepBackoff] and [Gate.AwaitHeld] waits for anything but
// a short mutex.
//
// A Gate keeps nothing on disk: whoever extends a cooldown also stores it, and
// hands it in again at the next start.
package gate

import (
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// MaxBurst is the largest burst that a Gate lets through, and the default.
const MaxBurst = 5

// LanePaid is the lane of paid broadcasts, which have a rate of their own.
const LanePaid = "paid"

// maxDebt is how far calls that can't wait may run ahead of the rate. Beyond it
// they are refused, so that they never starve those that do wait.
const maxDebt = time.Second

// Config is the rate of a bot.
type Config struct {
	Rate     float64 // calls a second; 0 switches the limit off
	Burst    int     // calls at once after a pause, at most MaxBurst; 0 is MaxBurst
	PaidRate float64 // calls a second of LanePaid; 0: they share Rate
}

// Gate is the shared state of one bot's calls. All methods may be called from
// any goroutine.
type Gate struct {
	limiter *rate.Limiter
	paid    *rate.Limiter // nil: paid calls take from limiter

	mu       sync.Mutex
	onOpen   func()
	closed   map[Reason]closure
	okSince  time.Time // when the gate last became open
	cooldown cooldown
	undated  streak
	frozen   streak
	changed  chan struct{} // closed and replaced by every sign that waiting may be over
	shut     chan struct{} // closed and replaced whenever a new reason holds
}

type cooldown struct {
	since, until time.Time
	detail       string
}

// New returns an open gate.
func New(c Config) *Gate {
	g := &Gate{
		limiter: newLimiter(c.Rate, c.Burst),
		closed:  map[Reason]closure{},
		okSince: time.Now(),
		undated: streak{first: 5 * time.Second, max: 5 * time.Minute},
		frozen:  streak{first: time.Hour, max: 24 * time.Hour},
		changed: make(chan struct{}),
		shut:    make(chan struct{}),
	}
	if c.PaidRate > 0 {
		g.paid = newLimiter(c.PaidRate, c.Burst)
	}
	return g
}

func newLimiter(perSecond float64, burst int) *rate.Limiter {
	if burst <= 0 || burst > MaxBurst {
		burst = MaxBurst
	}
	return rate.NewLimiter(limit(perSecond), burst)
}

func limit(perSecond float64) rate.Limit {
	if perSecond <= 0 {
		return rate.Inf
	}
	return rate.Limit(perSecond)
}

// SetRate changes the rate, as a reload of the settings does. 0 switches it off.
func (g *Gate) SetRate(perSecond float64) { g.limiter.SetLimit(limit(perSecond)) }

// RateOpensAt is when the rate has the next call to give; zero for now.
func (g *Gate) RateOpensAt(now time.Time) time.Time {
	lacks := 1 - g.limiter.TokensAt(now)
	if limit := g.limiter.Limit(); lacks > 0 && limit > 0 && limit != rate.Inf {
		return now.Add(time.Duration(lacks / float64(limit) * float64(time.Second)))
	}
	return time.Time{}
}

// Admit takes one token for a call of a lane. When it can't, at is when to ask
// again; a zero at means that the function given to OnOpen will be called.
func (g *Gate) Admit(now time.Time, lane string) (ok bool, at time.Time) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.closed) > 0 {
		return false, time.Time{}
	}
	if now.Before(g.cooldown.until) {
		return false, g.cooldown.until
	}
	limiter := g.limiter
	if lane == LanePaid && g.paid != nil {
		limiter = g.paid
	}
	r := limiter.ReserveN(now, 1)
	if wait := r.DelayFrom(now); wait > 0 {
		r.CancelAt(now)
		return false, now.Add(wait)
	}
	return true, time.Time{}
}

// Refund gives back the token of a call that didn't come about.
func (g *Gate) Refund() {
	// Taking minus one is the only way to give a token back after the moment
	// at which it was taken; the limiter itself cuts the sum to the burst.
	g.limiter.AllowN(time.Now(), -1)
}

// Recheck tells whether a call that was admitted may still go out: cooldowns
// and closures may have come since. The reason is empty when it may.
func (g *Gate) Recheck(now time.Time) (ok bool, reason string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for r := range g.closed {
		return false, string(r)
	}
	if now.Before(g.cooldown.until) {
		return false, "cooldown"
	}
	return true, ""
}

// TakeEphemeral takes a token for a call that goes at once or not at all: an
// ephemeral one, a read, a probe. It may run a little ahead of the rate, which
// those that wait make up for. When it is refused, retryAfter is what to tell
// the caller.
func (g *Gate) TakeEphemeral(now time.Time) (ok bool, retryAfter time.Duration) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if now.Before(g.cooldown.until) {
		return false, g.cooldown.until.Sub(now)
	}
	r := g.limiter.ReserveN(now, 1)
	if wait := r.DelayFrom(now); wait > maxDebt {
		r.CancelAt(now)
		return false, wait
	}
	return true, 0
}

// ExtendCooldown moves the bot's deadline to until if that is later, never
// earlier, and reports whether it moved. The detail says in a few words what
// the bot waits for.
func (g *Gate) ExtendCooldown(until time.Time, detail string) (moved bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !until.After(g.cooldown.until) {
		return false
	}
	if now := time.Now(); !now.Before(g.cooldown.until) {
		g.cooldown.since = now
	}
	g.cooldown.until, g.cooldown.detail = until, detail
	return true
}

// Cooldown is the bot's deadline, zero when there has been none.
func (g *Gate) Cooldown() time.Time {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.cooldown.until
}
