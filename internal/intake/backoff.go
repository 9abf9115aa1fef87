package intake

import (
	"context"
	"math/rand/v2"
	"time"
)

const (
	firstBackoff = time.Second
	maxBackoff   = time.Minute
	// leastBackoff is never gone below: Telegram answers a second poll with the
	// same offset within half a second with one update only.
	leastBackoff = 500 * time.Millisecond
)

// backoff is a growing wait with full jitter, so that many bots that lost their
// connection together don't come back together.
type backoff struct{ ceiling time.Duration }

// next returns the next wait, between leastBackoff and a ceiling that doubles
// from firstBackoff to most.
func (b *backoff) next(most time.Duration) time.Duration {
	b.ceiling = min(max(2*b.ceiling, firstBackoff), most)
	return max(leastBackoff, rand.N(b.ceiling)+1)
}

func (b *backoff) reset() { b.ceiling = 0 }

// sleep waits and reports whether ctx lasted that long.
func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}

// sleepOrSuccess waits like sleep, but not longer than until another call of
// the bot succeeds: Telegram can be reached again. When that has just misled
// us, the whole wait is taken: what works for others doesn't work for us.
func (p *Poller) sleepOrSuccess(ctx context.Context, d time.Duration) {
	if p.misled {
		p.misled = false
		sleep(ctx, d)
		return
	}
	p.misled = p.gate.AwaitOpen(ctx, min(d, leastBackoff), d)
}
