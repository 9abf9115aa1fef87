package demo

import (
	"context"
	"fmt"
	"time"

	"github.com/tgspool/tgspool/internal/telegramsim"
)

const (
	kills       = 3
	lostAnswers = 2
	floodWait   = 2 // seconds
	silence     = 6 // seconds of the flood in which the outage begins
	outage      = 3 * time.Second

	groupPerMinute = 20
	// callTime is how long a call takes, so that some are in flight at any time.
	callTime = 40 * time.Millisecond
	// settleTime is how long the calls in flight get to end in the silence before
	// the outage. It is shorter than the silence.
	settleTime = 4 * time.Second
)

// step is something that goes wrong.
type step struct {
	after float64 // when this part of all messages has arrived
	do    func(*run, context.Context) error
}

// script is the bad night. The kills meet calls that haven't taken effect yet
// and calls that have, so that both ends of an uncertain job are seen.
var script = []step{
	{0.10, (*run).kill},
	{0.25, (*run).flood},
	{0.35, (*run).answersLate},
	{0.42, (*run).kill},
	{0.52, (*run).loseAnswers},
	{0.62, (*run).cutOff},
	{0.80, (*run).kill},
}

// play plays the script.
func (r *run) play(ctx context.Context) error {
	if err := r.setLag(ctx, false); err != nil {
		return err
	}
	all := len(feeders())*(2*minReplies+1)/2 + outsideJobs // more or less
	for _, step := range script {
		if err := r.arrived(ctx, int(step.after*float64(all)), 0); err != nil {
			return err
		}
		if err := step.do(r, ctx); err != nil {
			return err
		}
	}
	return nil
}

// arrived waits until so many messages, and so many floods, have arrived.
func (r *run) arrived(ctx context.Context, messages, floods int) error {
	for {
		enough, more := r.seen.reached(messages, floods)
		if enough {
			return nil
		}
		select {
		case <-more:
		case <-r.site.daemon.ended:
			return r.daemonEnded()
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// kill kills the daemon, looks at what it was about, and starts it again.
func (r *run) kill(ctx context.Context) error {
	r.site.daemon.kill()
	running, err := InFlight(ctx, r.site.path("spool.db"))
	if err != nil {
		return err
	}
	r.mu.Lock()
	r.record.Kills = append(r.record.Kills, Kill{Running: running})
	n := len(r.record.Kills)
	r.mu.Unlock()
	r.show.say("kill -9 number %d of the daemon, with %s in flight; it starts again", n, plural(len(running), "call"))
	return r.site.startDaemon()
}

// flood has one call answered 429.
func (r *run) flood(ctx context.Context) error { return r.floodFor(ctx, floodWait) }

func (r *run) floodFor(ctx context.Context, seconds int) error {
	r.show.say("a flood: Telegram asks for %d s of silence", seconds)
	r.mu.Lock()
	r.record.Floods++
	r.mu.Unlock()
	return r.inject(ctx, telegramsim.Fault{Method: "send*", Kind: telegramsim.FaultFlood, RetryAfter: seconds, Times: 1}, false)
}

// answersLate lets calls take effect at once and their answers take time.
func (r *run) answersLate(ctx context.Context) error { return r.setLag(ctx, true) }

// loseAnswers lets calls take effect and resets their connections.
func (r *run) loseAnswers(ctx context.Context) error {
	r.show.say("%s lost: the messages arrive, the connections are reset", plural(lostAnswers, "answer"))
	r.mu.Lock()
	r.record.LostAnswers += lostAnswers
	r.mu.Unlock()
	f := telegramsim.Fault{Method: "send*", Kind: telegramsim.FaultResetAfterRead, Effect: true, Times: lostAnswers}
	return r.inject(ctx, f, true)
}

// cutOff takes the network away for a while. It does so in the silence of a
// flood, when no call is in flight: one that is cut in the middle is in doubt,
// and rightly, but only the kills and the lost answers may put any in doubt here.
func (r *run) cutOff(ctx context.Context) error {
	if err := r.floodFor(ctx, silence); err != nil {
		return err
	}
	if err := r.arrived(ctx, 0, r.floods()); err != nil {
		return err
	}
	if err := pause(ctx, settleTime); err != nil {
		return err
	}
	r.show.say("an outage: no network for %s", outage)
	if err := r.site.control.SetOffline(ctx, true); err != nil {
		return err
	}
	if err := pause(ctx, outage); err != nil {
		return err
	}
	return r.site.control.SetOffline(ctx, false)
}

// floods is how many calls have been made to be answered 429.
func (r *run) floods() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.record.Floods
}

// inject puts a fault in force. Of several faults the oldest acts, so that the
// lag has to make room for a moment.
func (r *run) inject(ctx context.Context, f telegramsim.Fault, effect bool) error {
	if err := r.endLag(ctx); err != nil {
		return err
	}
	if _, err := r.site.control.AddFault(ctx, f); err != nil {
		return err
	}
	return r.setLag(ctx, effect)
}

// setLag makes calls take time, before or after they take effect.
func (r *run) setLag(ctx context.Context, effect bool) error {
	if err := r.endLag(ctx); err != nil {
		return err
	}
	id, err := r.site.control.AddFault(ctx, telegramsim.Fault{
		Method: "send*", Kind: telegramsim.FaultSlow, Delay: callTime, Effect: effect,
	})
	r.lag = id
	return err
}

func (r *run) endLag(ctx context.Context) error {
	if r.lag == 0 {
		return nil
	}
	err := r.site.control.RemoveFault(ctx, r.lag)
	r.lag = 0
	return err
}

// pause is part of the script: something is to last that long.
func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
