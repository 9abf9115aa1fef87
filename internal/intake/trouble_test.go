package intake_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/tgspool/tgspool/internal/botapi"
	"github.com/tgspool/tgspool/internal/gate"
	"github.com/tgspool/tgspool/internal/intake"
	"github.com/tgspool/tgspool/internal/telegramsim"
)

// Case 41: the resolver fails for 15 minutes.
func TestPoller_OutageEndsByItself(t *testing.T) {
	inBubble(t, func(t *testing.T, p *post) {
		p.poll()
		after(time.Minute)
		p.sim.SetOffline(true)
		after(15 * time.Minute)
		p.wantState(intake.Offline, "")
		p.sim.SetOffline(false)
		p.text("hello")
		after(61 * time.Second)
		p.wantTexts("hello")
		p.wantState(intake.OK, "")
		if p.changes() != 2 || len(p.alerted()) != 0 {
			t.Errorf("an outage made these lines:\n%s", p.logged())
		}
	})
}

// Case 70: started before the network is there.
func TestPoller_StartsOffline(t *testing.T) {
	inBubble(t, func(_ *testing.T, p *post) {
		p.sim.SetOffline(true)
		p.poll()
		after(time.Hour)
		p.wantState(intake.Offline, "")
		p.sim.SetOffline(false)
		p.text("hello")
		after(time.Minute)
		p.wantTexts("hello")
	})
}

func TestPoller_AnotherCallsSuccessEndsTheBackoff(t *testing.T) {
	inBubble(t, func(t *testing.T, p *post) {
		p.sim.SetOffline(true)
		p.poll()
		after(24 * time.Hour)
		p.sim.SetOffline(false)
		p.text("hello")
		p.gate.Success()
		after(600 * time.Millisecond)
		p.wantTexts("hello")
	})
}

// What works for other calls may still not work for polls.
func TestPoller_OthersSuccessesMakeNoBusyLoop(t *testing.T) {
	inBubble(t, func(t *testing.T, p *post) {
		tries := 0
		p.poll(func(c *intake.Config) {
			c.Client = caller(func(context.Context, botapi.Request) botapi.Seen {
				tries++
				return answer(500, `{"ok":false,"error_code":500,"description":"Internal Server Error: no"}`)
			})
		})
		for range 3600 {
			<-time.After(time.Second)
			p.gate.Success()
		}
		p.stop()
		if tries > 400 {
			t.Errorf("%d polls in an hour", tries)
		}
	})
}

func TestPoller_TellsTheBotsOtherCallersOfItsSuccess(t *testing.T) {
	inBubble(t, func(t *testing.T, p *post) {
		p.gate.CloseLanes(gate.Offline, "no route to host")
		p.poll()
		p.text("hello")
		after(time.Second)
		if held, _, _ := p.gate.Held(gate.Offline); held {
			t.Error("a poll was answered, and the sender still waits")
		}
	})
}

// Cases 49 and 52, and an answer without a list: nothing is acknowledged, and
// it goes on when the real answers come.
func TestPoller_AnswersThatAreNoBatch(t *testing.T) {
	faults := map[string]telegramsim.Fault{
		"login page":       {Kind: telegramsim.FaultHTML200},
		"redirect":         {Kind: telegramsim.FaultRedirect},
		"empty":            {Kind: telegramsim.FaultEmpty},
		"truncated":        {Kind: telegramsim.FaultTruncatedJSON},
		"half a body":      {Kind: telegramsim.FaultHalfBody},
		"closed":           {Kind: telegramsim.FaultAcceptClose},
		"reset":            {Kind: telegramsim.FaultResetAfterRead},
		"never answered":   {Kind: telegramsim.FaultHang},
		"result an object": {Kind: telegramsim.FaultCode, Code: 200, Body: `{"ok":true,"result":{"update_id":5}}`},
		"result a number":  {Kind: telegramsim.FaultCode, Code: 200, Body: `{"ok":true,"result":5}`},
		"result null":      {Kind: telegramsim.FaultCode, Code: 200, Body: `{"ok":true,"result":null}`},
		"no result":        {Kind: telegramsim.FaultCode, Code: 200, Body: `{"ok":true}`},
		"ok is no boolean": {Kind: telegramsim.FaultCode, Code: 200, Body: `{"ok":"true","result":[{"update_id":5}]}`},
		"server trouble":   {Kind: telegramsim.FaultCode, Code: 500},
		"bad gateway":      {Kind: telegramsim.FaultCode, Code: 502, Body: "<html>Bad Gateway</html>"},
		"bad request":      {Kind: telegramsim.FaultCode, Code: 400},
	}
	for name, fault := range faults {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, p *post) {
				id := p.fault(fault)
				want := p.text("hello")
				p.poll()
				after(10 * time.Minute)
				p.wantState(intake.Offline, "")
				if p.poller.State().Detail == "" {
					t.Error("no detail")
				}
				if len(p.updates()) != 0 || p.bot.Offset() != 0 || p.sim.Pending(0) != 1 {
					t.Errorf("taken in: %q, offset %d", p.texts(), p.bot.Offset())
				}
				p.sim.RemoveFault(id)
				after(2 * time.Minute)
				p.wantTexts("hello")
				if got := p.bot.Offset(); got != want+1 {
					t.Errorf("offset is %d", got)
				}
				if p.changes() != 2 {
					t.Errorf("log:\n%s", p.logged())
				}
			})
		})
	}
}

// A connection that died silently is noticed 10 s after the poll should have ended.
func TestPoller_HalfOpenConnection(t *testing.T) {
	inBubble(t, func(_ *testing.T, p *post) {
		p.fault(telegramsim.Fault{Kind: telegramsim.FaultHang, Times: 1})
		p.poll()
		after(59 * time.Second)
		p.wantState(intake.OK, "")
		p.text("hello")
		after(2500 * time.Millisecond)
		p.wantTexts("hello")
	})
}

func TestPoller_FloodWaitsAsLongAsAsked(t *testing.T) {
	for name, tt := range map[string]struct {
		fault telegramsim.Fault
		least time.Duration
		most  time.Duration
	}{
		"dated":   {telegramsim.Fault{Kind: telegramsim.FaultFlood, RetryAfter: 90, Times: 1}, 90 * time.Second, 92 * time.Second},
		"undated": {telegramsim.Fault{Kind: telegramsim.FaultFloodUndated, Times: 1}, 500 * time.Millisecond, 2 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, p *post) {
				p.fault(tt.fault)
				p.text("hello")
				start := time.Now()
				p.poll()
				after(tt.most)
				p.wantTexts("hello")
				u := p.updates()[0]
				if waited := u.ReceivedAt.Sub(start); waited < tt.least {
					t.Errorf("it asked again after %s", waited)
				}
				p.wantState(intake.OK, "")
			})
		})
	}
}

// Case 98: one refusal is not believed.
func TestPoller_OneRefusalIsNotBelieved(t *testing.T) {
	for _, code := range []int{401, 404} {
		inBubble(t, func(t *testing.T, p *post) {
			p.fault(telegramsim.Fault{Kind: telegramsim.FaultCode, Code: code, Times: 1})
			p.text("hello")
			p.poll()
			after(4 * time.Second)
			p.wantTexts("hello")
			if p.changes() != 0 || len(p.alerted()) != 0 {
				t.Errorf("%d: log:\n%s", code, p.logged())
			}
		})
	}
}

func TestPoller_RevokedToken(t *testing.T) {
	inBubble(t, func(t *testing.T, p *post) {
		p.poll()
		after(time.Minute)
		p.sim.RevokeToken(token)
		before := len(p.sim.Polls())
		after(24 * time.Hour)
		p.wantState(intake.Unauthorized, "Unauthorized")
		if alerts := p.alerted(); len(alerts) != 1 || alerts[0].State != intake.Unauthorized || !strings.Contains(alerts[0].Text, "tgspool token set home") {
			t.Errorf("alerts: %+v", alerts)
		}
		if n := len(p.sim.Polls()) - before; n > 24*12+5 {
			t.Errorf("%d polls in a day with a refused token", n)
		}
		p.gate.CloseLanes(gate.Unauthorized, "401")
		p.sim.RestoreToken(token)
		p.text("hello")
		after(316 * time.Second)
		p.wantTexts("hello")
		p.wantState(intake.OK, "")
		if held, _, _ := p.gate.Held(gate.Unauthorized); held {
			t.Error("the token is accepted, and the sender still waits")
		}
	})
}

// Case 43: after a restart Telegram may still see our own last poll.
func TestPoller_ConflictAfterAStartIsQuiet(t *testing.T) {
	inBubble(t, func(t *testing.T, p *post) {
		p.fault(telegramsim.Fault{Kind: telegramsim.FaultCode, Code: 409, Times: 3})
		p.text("hello")
		p.poll()
		after(6 * time.Second)
		p.wantTexts("hello")
		p.wantState(intake.OK, "")
		if p.changes() != 0 || len(p.alerted()) != 0 {
			t.Errorf("log:\n%s", p.logged())
		}
	})
}

// Case 44: a second program polls all the time.
func TestPoller_LastingConflict(t *testing.T) {
	inBubble(t, func(t *testing.T, p *post) {
		tries := 0
		p.poll(func(c *intake.Config) {
			c.Client = caller(func(context.Context, botapi.Request) botapi.Seen {
				tries++
				return answer(409, `{"ok":false,"error_code":409,"description":"Conflict: terminated by other getUpdates request; make sure that only one bot instance is running"}`)
			})
		})
		after(4 * time.Minute)
		p.wantState(intake.Conflict, "another process polls with this token")
		if p.changes() != 1 || len(p.alerted()) != 0 {
			t.Errorf("log:\n%s", p.logged())
		}
		after(56 * time.Minute)
		alerts := p.alerted()
		if len(alerts) != 1 || !strings.Contains(alerts[0].Text, "/revoke") || !strings.Contains(alerts[0].Text, "another process") {
			t.Errorf("alerts: %+v", alerts)
		}
		p.stop()
		if tries > 250 || p.changes() != 1 {
			t.Errorf("%d polls in an hour; log:\n%s", tries, p.logged())
		}
	})
}

// Case 44, too: both pollers win in turn. Nothing is lost, nothing is doubled,
// and the state doesn't flap.
func TestPoller_TwoPollersTakeTurns(t *testing.T) {
	inBubble(t, func(t *testing.T, p *post) {
		p.poll()
		after(time.Minute)
		// The other one keeps what it gets; its offset acknowledges it.
		var theirs []string
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() {
			defer close(done)
			offset := int64(0)
			for ctx.Err() == nil {
				seen := p.client.Call(ctx, botapi.Request{Method: "getUpdates", Params: fmt.Appendf(nil, `{"offset":%d,"timeout":10}`, offset)})
				if seen.Status == 409 {
					<-time.After(2 * time.Second)
				}
				batch, _ := botapi.SplitUpdates(seen.Body)
				for _, raw := range batch {
					if u, err := botapi.ParseUpdate(raw); err == nil {
						theirs = append(theirs, u.Text)
						offset = u.ID + 1
					}
				}
			}
		}()
		var want []string
		for i := range 120 {
			s := fmt.Sprint("text ", i)
			want = append(want, s)
			p.text(s)
			after(10 * time.Second)
		}
		p.wantState(intake.Conflict, "another process")
		if n := p.changes(); n > 3 {
			t.Errorf("%d changes of state in 20 minutes of turns:\n%s", n, p.logged())
		}
		cancel()
		<-done
		after(5 * time.Minute)
		p.wantState(intake.OK, "")
		ours := p.texts()
		if len(ours) == 0 {
			t.Error("we never won")
		}
		seen := map[string]int{}
		for _, s := range ours {
			if seen[s]++; seen[s] > 1 {
				t.Errorf("%q was taken in twice", s)
			}
		}
		for _, s := range theirs {
			seen[s]++
		}
		for _, s := range want {
			if seen[s] == 0 {
				t.Errorf("%q is lost", s)
			}
		}
	})
}

// setWebhook makes the simulator post updates elsewhere, where nobody answers.
func (p *post) setWebhook() {
	p.t.Helper()
	seen := p.client.Call(p.t.Context(), botapi.Request{Method: "setWebhook", Params: []byte(`{"url":"https://evil.example:8443/hook/SECRETPATH"}`)})
	if seen.Status != 200 {
		p.t.Fatalf("setWebhook: %d %s %v", seen.Status, seen.Body, seen.Err)
	}
}

func TestPoller_ForeignWebhookIsNamed(t *testing.T) {
	inBubble(t, func(t *testing.T, p *post) {
		p.setWebhook()
		p.poll()
		after(10 * time.Second)
		p.wantState(intake.Conflict, "a webhook is set")
		after(10 * time.Minute)
		if alerts := p.alerted(); len(alerts) != 1 || !strings.Contains(alerts[0].Text, "take_over") || !strings.Contains(alerts[0].Text, "/revoke") {
			t.Errorf("alerts: %+v", alerts)
		}
	})
}

func TestPoller_TakeOverRemovesAWebhookAndDropsNothing(t *testing.T) {
	inBubble(t, func(t *testing.T, p *post) {
		p.text("one")
		p.setWebhook()
		p.text("two")
		p.poll(func(c *intake.Config) { c.TakeOver = true })
		after(10 * time.Second)
		p.wantTexts("one", "two")
		p.wantState(intake.OK, "")
		alerts := p.alerted()
		if len(alerts) != 1 || !strings.Contains(alerts[0].Text, "evil.example") || !strings.Contains(p.logged(), "evil.example") {
			t.Errorf("alerts: %+v; log:\n%s", alerts, p.logged())
		}
		if strings.Contains(p.logged()+fmt.Sprint(alerts), "SECRETPATH") {
			t.Error("the webhook's path was told")
		}
	})
}

func TestPoller_TakeOverAgainAndAgain(t *testing.T) {
	inBubble(t, func(t *testing.T, p *post) {
		p.poll(func(c *intake.Config) { c.TakeOver = true })
		for range 60 {
			p.setWebhook()
			after(time.Minute)
		}
		if n := len(p.alerted()); n > 2 {
			t.Errorf("%d alerts in an hour: %+v", n, p.alerted())
		}
		p.text("hello")
		after(5 * time.Minute)
		p.wantTexts("hello")
		p.wantState(intake.OK, "")
	})
}
