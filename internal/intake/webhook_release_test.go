package intake_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tgspool/tgspool/internal/intake"
)

// noteFails is an inbox whose n-th note isn't kept, as when we stop before it.
type noteFails struct {
	intake.WebhookInbox
	n *int
}

func (f noteFails) SetNote(ctx context.Context, name string, value []byte) error {
	if *f.n--; *f.n == 0 {
		return errors.New("input/output error")
	}
	return f.WebhookInbox.SetNote(ctx, name, value)
}

// Wherever we stop while we register, the next start registers, and a change to
// polling knows the webhook as ours.
func TestWebhook_StopsWhileRegistering(t *testing.T) {
	const before = "https://hook.invalid/telegram/before/also-secret"
	for n := range 2 {
		for _, next := range []string{"register", "release"} {
			t.Run(fmt.Sprintf("%s after note %d", next, n+1), func(t *testing.T) {
				inHookBubble(t, func(t *testing.T, p *hookPost) {
					p.receive(func(c *intake.WebhookConfig) { c.URL = before })
					synctest.Wait()
					p.stop()
					count := n + 1
					p.receive(func(c *intake.WebhookConfig) { c.Bot = noteFails{c.Bot, &count} })
					synctest.Wait()
					p.wantHook(intake.Full, "input/output error")
					p.stop()
					if next == "release" {
						p.release()
						if got := p.webhook(); got != "" {
							t.Errorf("the webhook stays at %q", got)
						}
						return
					}
					p.receive()
					after(time.Second)
					p.wantHook(intake.OK, "")
					p.text("x")
					after(time.Second)
					p.wantTexts("x")
				})
			})
		}
	}
}

// release gives our webhook up, and waits until that is over.
func (p *hookPost) release() {
	p.t.Helper()
	r := intake.NewRelease(p.config())
	r.Run(p.t.Context())
	if now, done := r.State(); !done || now.State != intake.OK {
		p.t.Errorf("release: %+v, done %t", now, done)
	}
}

// From webhook to polling nothing is dropped, and what was committed while its
// answer got lost is one update.
func TestRelease_ThenPoll(t *testing.T) {
	inHookBubble(t, func(t *testing.T, p *hookPost) {
		p.receive()
		after(time.Second)
		p.text("one")
		after(time.Second)
		p.wire.Lock()
		p.lose = 1 << 30
		p.wire.Unlock()
		p.text("committed, not acknowledged")
		after(time.Second)
		p.stop()
		p.setDown(true)
		p.text("waiting")
		p.release()
		if got := p.webhook(); got != "" {
			t.Errorf("the webhook stays at %q", got)
		}
		if note, err := p.bot.Note(intake.NoteWebhook); note != nil || err != nil {
			t.Errorf("the note stays: %s %v", note, err)
		}
		p.poll()
		after(time.Second)
		p.text("polled")
		after(time.Second)
		p.wantTexts("one", "committed, not acknowledged", "waiting", "polled")
		p.stop()
		// And back: what polling has committed is acknowledged or comes again.
		p.text("waiting again")
		p.setDown(false)
		p.wire.Lock()
		p.lose = 0
		p.wire.Unlock()
		p.receive()
		after(time.Second)
		p.wantTexts("one", "committed, not acknowledged", "waiting", "polled", "waiting again")
	})
}

func TestRelease_LeavesOthersAlone(t *testing.T) {
	inHookBubble(t, func(t *testing.T, p *hookPost) {
		p.release()
		if got := p.called("getWebhookInfo"); got != nil {
			t.Error("Telegram was asked although we never had a webhook")
		}
		p.receive()
		after(time.Second)
		p.stop()
		const other = "https://other.invalid/"
		p.setWebhook(other)
		p.release()
		if got := p.webhook(); got != other {
			t.Errorf("the webhook is at %q", got)
		}
		p.poll()
		after(10 * time.Second)
		p.wantState(intake.Conflict, "a webhook is set")
	})
}

func TestRelease_Offline(t *testing.T) {
	inHookBubble(t, func(t *testing.T, p *hookPost) {
		p.receive()
		after(time.Second)
		p.stop()
		p.sim.SetOffline(true)
		r := intake.NewRelease(p.config())
		ended := make(chan struct{})
		go func() { defer close(ended); r.Run(t.Context()) }()
		after(time.Hour)
		if now, done := r.State(); done || now.State != intake.Offline {
			t.Errorf("release: %+v, done %t", now, done)
		}
		p.sim.SetOffline(false)
		after(2 * time.Minute)
		<-ended
		if got := p.webhook(); got != "" {
			t.Errorf("the webhook stays at %q", got)
		}
	})
}
