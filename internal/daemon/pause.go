package daemon

import (
	"context"
	"log/slog"
	"sync"

	"github.com/tgspool/tgspool/internal/gate"
	"github.com/tgspool/tgspool/internal/intake"
	"github.com/tgspool/tgspool/internal/manage"
	"github.com/tgspool/tgspool/internal/spool"
)

// byPerson is what status says of a part that a person has stopped.
const byPerson = "paused by a person; tgspool resume ends it"

// pauseChanged acts on what the spool says of paused parts. The spool's writer
// calls it, and the start before any loop runs. The handlers need nothing: the
// spool hands no updates out.
func (b *bot) pauseChanged() {
	if _, paused := b.spool.Paused(spool.PartSender); paused {
		b.gate.CloseLanes(gate.Paused, byPerson)
	} else {
		b.gate.OpenLanes(gate.Paused)
	}
	_, paused := b.spool.Paused(spool.PartIntake)
	if b.hook != nil {
		b.hook.Pause(paused)
	} else if b.poll != nil {
		b.poll.pause(paused)
	}
}

// resumed is told that a person wants a part to go on: Telegram is asked again
// about a token that was refused.
func (r *directory) resumed(name, part string) {
	r.mu.RLock()
	b := r.bots[name]
	r.mu.RUnlock()
	if b == nil || b.broken != "" || part != string(spool.PartSender) {
		return
	}
	if held, _, _ := b.gate.Held(gate.Unauthorized); held {
		b.log.LogAttrs(r.d.work, slog.LevelInfo, "a person has the token tried again")
		b.gate.CloseLanes(gate.Probing, "a person has the token tried again")
		b.gate.OpenLanes(gate.Unauthorized)
	}
}

// showPauses puts the pauses into what status shows of a bot.
func (b *bot) showPauses(v *manage.View) {
	if p, paused := b.spool.Paused(spool.PartIntake); paused {
		v.Intake = manage.Intake{State: string(intake.Paused), Since: p.Since, Detail: byPerson}
	}
	if p, paused := b.spool.Paused(spool.PartSender); paused && v.Sender.State == gate.StatePaused {
		v.Sender.Since = p.Since
	}
}

// pausable is a poller that stands still while it is paused: a poll under way is
// cut, of which nothing was acknowledged.
type pausable struct {
	pollSource

	mu      sync.Mutex // guards all below
	paused  bool
	cut     context.CancelFunc // of the run under way
	resumed chan struct{}      // closed when a pause ends
}

func newPausable(s pollSource) *pausable {
	return &pausable{pollSource: s, cut: func() {}, resumed: make(chan struct{})}
}

func (p *pausable) pause(paused bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.paused == paused {
		return
	}
	if p.paused = paused; paused {
		p.cut()
		return
	}
	close(p.resumed)
	p.resumed = make(chan struct{})
}

// begin makes the context of one run, or says what ends the pause.
func (p *pausable) begin(ctx context.Context) (run context.Context, resumed <-chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.paused {
		return nil, p.resumed
	}
	run, p.cut = context.WithCancel(ctx)
	return run, nil
}

// Run ends with ctx.
func (p *pausable) Run(ctx context.Context) error {
	for ctx.Err() == nil {
		run, resumed := p.begin(ctx)
		if run != nil {
			if err := p.pollSource.Run(run); err != nil {
				return err
			}
			continue
		}
		select {
		case <-ctx.Done():
		case <-resumed:
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cut() // gives back what its context holds
	return nil
}
