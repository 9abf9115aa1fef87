package botserver

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/tgspool/tgspool/internal/spool"
	"github.com/tgspool/tgspool/internal/wire"
)

const (
	// pushFor is how long an update is tried; then it is dead.
	pushFor = 24 * time.Hour
	// The waits of a webhook that can't be reached.
	firstReach = time.Second
	maxReach   = 15 * time.Second
	// pushTime bounds one delivery, as Telegram does.
	pushTime = 60 * time.Second
)

// loop is what RunWebhooks starts: take ends when nothing new is to be begun,
// work when what is in flight has to end.
type loop func(take, work context.Context)

// RunWebhooks pushes updates to the webhooks that local clients have set, those
// of before a restart included. When take ends nothing new is begun; it returns
// when what was in flight has ended, which work's end makes happen.
func (s *Server) RunWebhooks(take, work context.Context) {
	var loops sync.WaitGroup
	u := &s.updates
	u.mu.Lock()
	u.launch = func(l loop) { loops.Go(func() { l(take, work) }) }
	u.mu.Unlock()
	for _, b := range s.store.Bots() {
		if b.Attached() {
			s.ResumeWebhook(b)
		}
	}
	<-take.Done()
	u.mu.Lock()
	u.launch = nil
	u.mu.Unlock()
	loops.Wait()
	s.pushing.Close()
}

// ResumeWebhook begins to push to the webhook that was set for a bot, if there
// is one, where RunWebhooks runs: a bot may get its token long after a start.
func (s *Server) ResumeWebhook(b *spool.Bot) {
	t := s.updates.taker(b)
	t.mu.Lock()
	defer t.mu.Unlock()
	s.loadHookLocked(b, t)
	s.startHookLocked(t)
}

// hook pushes one bot's updates to where a client wants them.
type hook struct {
	s    *Server
	bot  *spool.Bot
	note hookNote
	stop chan struct{} // closed when it is replaced

	started bool // under the taker's lock

	mu      sync.Mutex // guards all below
	loops   int        // workers
	idle    int        // of them: those that wait for an update
	wait    time.Duration
	until   time.Time // while it can't be reached: when to try again
	errorAt time.Time
	error   string
	failing bool // the last answer was none
}

func newHook(s *Server, b *spool.Bot, n hookNote) *hook {
	return &hook{s: s, bot: b, note: n, stop: make(chan struct{})}
}

// replaceHookLocked puts another webhook, or none, in the place of this one.
func (t *taker) replaceHookLocked(next *hook) {
	if t.hook != nil {
		close(t.hook.stop)
	}
	t.hook = next
}

// startHookLocked begins the pushing, once there is somebody to do it.
func (s *Server) startHookLocked(t *taker) {
	h := t.hook
	if h == nil || h.started {
		return
	}
	s.updates.mu.Lock()
	defer s.updates.mu.Unlock()
	if s.updates.launch != nil {
		h.started, h.loops = true, 1
		s.updates.launch(h.run)
	}
}

func (h *hook) lastError() (at int64, text string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return unixOrZero(h.errorAt), h.error
}

// run is the first worker and the end of all others.
func (h *hook) run(take, work context.Context) {
	take, cancel := context.WithCancel(take)
	defer cancel()
	var others sync.WaitGroup
	defer others.Wait()
	if done, err := h.bot.TakenBy(spool.ByWebhook); err == nil {
		defer done()
	}
	others.Go(func() {
		select {
		case <-h.stop:
			cancel()
		case <-take.Done():
		}
	})
	h.worker(take, work, &others)
	<-take.Done() // the last one may be another
}

// worker pushes one update after the other. There are as many as there is work
// for: one that takes an update while nobody else waits begets another, and one
// that is done while another waits goes.
func (h *hook) worker(take, work context.Context, others *sync.WaitGroup) {
	for h.enter(take) {
		lease, err := h.bot.ClaimUpdate(take, spool.PullRoute)
		if more := h.claimed(err == nil); more {
			others.Go(func() { h.worker(take, work, others) })
		}
		switch {
		case err == nil:
			h.push(work, lease)
		case errors.Is(err, spool.ErrClosed) || take.Err() != nil:
			return
		default:
			h.s.log.LogAttrs(take, slog.LevelWarn, "no update can be leased", slog.String("bot", h.bot.Name()), slog.Any("err", err))
			if !sleep(take, storeRetry) {
				return
			}
		}
	}
}

// enter waits until the worker may take an update; false when it is to end. A
// webhook that can't be reached is tried by one worker, after a wait.
func (h *hook) enter(take context.Context) bool {
	for {
		h.mu.Lock()
		wait := time.Until(h.until)
		switch {
		case take.Err() != nil, h.loops > 1 && (h.idle > 0 || h.wait > 0):
			h.loops--
			h.mu.Unlock()
			return false
		case h.wait == 0 || wait <= 0:
			h.idle++
			h.mu.Unlock()
			return true
		}
		h.mu.Unlock()
		sleep(take, wait)
	}
}

// claimed ends a wait for an update and reports whether another worker is
// needed, which is then counted.
func (h *hook) claimed(ok bool) (more bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.idle--
	if ok && h.idle == 0 && h.loops < h.note.MaxConnections && h.wait == 0 {
		h.loops++
		return true
	}
	return false
}

// push hands one update over and puts on disk what came of it.
func (h *hook) push(work context.Context, lease *spool.Lease) {
	who, ok := h.owner()
	if !ok {
		h.unreached(work, lease, "tgspool: whoever has set the webhook isn't in the settings any more", maxReach)
		return
	}
	up := wire.NewUpload(work, h.s.store, h.s.MaxUpload())
	target := wire.Target{URL: h.note.URL, Secret: h.note.Secret, Timeout: pushTime}
	a := h.s.pushing.Push(work, target, lease.Raw, nil, up)
	if a.Verdict != wire.Accepted {
		up.Drop()
	}
	switch a.Verdict {
	case wire.Accepted:
		h.reached("")
		h.accepted(work, lease, who, a, up)
	case wire.Unreached:
		h.unreached(work, lease, a.Text, a.RetryAfter)
	case wire.Stopped:
		h.giveBack(work, lease, spool.Failure{State: spool.UpdateOpen, GiveBack: true, Error: a.Text})
	case wire.Refused:
		h.reached(a.Text)
		h.failed(work, lease, a.Text, a.RetryAfter)
	}
}

// failed has an update tried again later. It blocks those of its own key, until
// it is dead.
func (h *hook) failed(work context.Context, lease *spool.Lease, text string, wait time.Duration) {
	f := spool.Failure{State: spool.UpdateOpen, Error: text}
	if wait == 0 {
		wait = pushBackoff(lease.Attempts)
	}
	f.RetryAt = time.Now().Add(wait)
	if !lease.Replayed && f.RetryAt.Sub(lease.ReceivedAt) > pushFor || lease.Replayed && lease.Attempts >= replayTries {
		f.State, f.RetryAt = spool.UpdateDead, time.Time{}
		h.s.log.LogAttrs(work, slog.LevelError, "an update is given up, its webhook has refused it all the time",
			slog.String("bot", h.bot.Name()), slog.Int64("seq", lease.Seq), slog.String("reason", text))
	}
	h.giveBack(work, lease, f)
}

// replayTries bounds the tries of a replayed update, which may be old already.
const replayTries = 10

// pushBackoff is the wait after a number of failures in a row, as Telegram's.
func pushBackoff(failures int) time.Duration {
	if failures <= 7 {
		return time.Second << max(failures-1, 0)
	}
	return time.Minute + rand.N(time.Minute)
}

// unreached holds the webhook as a whole; the attempt doesn't count.
func (h *hook) unreached(work context.Context, lease *spool.Lease, text string, asked time.Duration) {
	h.mu.Lock()
	news := !h.failing
	h.failing, h.error, h.errorAt = true, text, time.Now()
	h.wait = min(max(2*h.wait, firstReach), maxReach)
	wait := max(h.wait, asked)
	h.until = time.Now().Add(wait)
	h.mu.Unlock()
	if news {
		h.s.log.LogAttrs(work, slog.LevelWarn, "the local webhook can't be reached, its updates wait",
			slog.String("bot", h.bot.Name()), slog.String("addr", hostOf(h.note.URL)), slog.String("reason", text))
	}
	// At once the oldest again, when the wait is over.
	h.giveBack(work, lease, spool.Failure{State: spool.UpdateOpen, GiveBack: true, Error: text})
}

// reached notes that there was an answer; text says what was wrong with it.
func (h *hook) reached(text string) {
	h.mu.Lock()
	news := h.failing && h.wait > 0
	h.failing, h.wait, h.until = false, 0, time.Time{}
	if text != "" {
		h.error, h.errorAt = text, time.Now()
	}
	h.mu.Unlock()
	if news {
		h.s.log.LogAttrs(h.s.stopping, slog.LevelInfo, "the local webhook can be reached again",
			slog.String("bot", h.bot.Name()), slog.String("addr", hostOf(h.note.URL)))
	}
}

// giveBack ends a lease without success.
func (h *hook) giveBack(work context.Context, lease *spool.Lease, f spool.Failure) {
	h.commit(work, lease, func(ctx context.Context) error { return h.bot.FailUpdate(ctx, lease, f) })
}

// commit has the end of a delivery stored. While the store can't take it, it is
// tried again; if we stop here, the update is open again at the next start.
func (h *hook) commit(work context.Context, lease *spool.Lease, end func(context.Context) error) {
	for {
		err := end(context.WithoutCancel(work))
		if err == nil || errors.Is(err, spool.ErrClosed) || errors.Is(err, spool.ErrLeaseLost) || errors.Is(err, spool.ErrNotFound) {
			return
		}
		h.s.log.LogAttrs(work, slog.LevelError, "the end of a delivery can't be stored",
			slog.String("bot", h.bot.Name()), slog.Int64("seq", lease.Seq), slog.Any("err", err))
		if errors.Is(err, spool.ErrInvalid) || errors.Is(err, spool.ErrDamaged) || !sleep(work, storeRetry) {
			return
		}
	}
}

// owner finds in whose name a webhook's answers call. A client that is gone from
// the settings takes its webhook with it.
func (h *hook) owner() (Identity, bool) {
	b, ok := h.s.bots.ByID(h.bot.ID())
	if !ok {
		return Identity{}, false
	}
	if h.note.Client == "" {
		return Identity{Bot: b, Full: true}, true
	}
	if named, ok := h.s.clients.(clientsByName); ok {
		if who, ok := named.ByName(h.bot.ID(), h.note.Client); ok && who.Full {
			return who, true
		}
	}
	return Identity{}, false
}

// clientsByName finds a client of a bot by its name in the settings.
type clientsByName interface {
	ByName(bot int64, name string) (Identity, bool)
}

// sleep waits and reports whether ctx lasted that long.
func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
