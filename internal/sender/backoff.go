package sender

import (
	"context"
	"time"
)

const (
	minBackoff = 2 * time.Second
	maxBackoff = 600 * time.Second
	minPause   = time.Second
	maxPause   = 15 * time.Second
)

// backoff is how long a job waits after its n-th attempt: anything between 2 s
// and a bound that doubles from 4 s to 600 s, so that what failed together
// doesn't come back together.
func backoff(attempt int, random float64) time.Duration {
	bound := maxBackoff
	if shift := min(max(attempt, 1), 16); minBackoff<<shift < maxBackoff {
		bound = minBackoff << shift
	}
	return minBackoff + time.Duration(random*float64(bound-minBackoff))
}

// pause is the wait of something that is tried for as long as it takes: 1 s
// doubling to 15 s.
type pause struct{ last time.Duration }

func (p *pause) next() time.Duration {
	p.last = min(max(2*p.last, minPause), maxPause)
	return p.last
}

func (p *pause) reset() { p.last = 0 }

// sleep waits for d and reports whether it did; it doesn't when ctx ends first.
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
