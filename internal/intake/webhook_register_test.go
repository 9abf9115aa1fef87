package intake_test

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tgspool/tgspool/internal/intake"
	"github.com/tgspool/tgspool/internal/telegramsim"
)

const setAsWanted = `{"url":"` + hookURL + `","secret_token":"` + hookSecret + `"}`

func TestWebhook_RegistersAndReceives(t *testing.T) {
	inHookBubble(t, func(t *testing.T, p *hookPost) {
		p.text("waiting since before")
		p.receive()
		synctest.Wait()
		if got := p.called("setWebhook"); !slices.Equal(got, []string{setAsWanted}) {
			t.Errorf("setWebhook %q", got)
		}
		p.text("one")
		p.text("two")
		after(time.Second)
		p.wantTexts("waiting since before", "one", "two")
		p.wantHook(intake.OK, "")
		if n := p.sim.Pending(0); n != 0 {
			t.Errorf("%d updates are still at Telegram", n)
		}
	})
}

func TestWebhook_WithoutURLAsksNobody(t *testing.T) {
	inHookBubble(t, func(t *testing.T, p *hookPost) {
		p.receive(func(c *intake.WebhookConfig) { c.URL, c.Client, c.Gate = "", nil, nil })
		after(24 * time.Hour)
		p.wantHook(intake.OK, "")
		if w := p.request(`{"update_id":5,"message":{}}`); w.Code != http.StatusOK {
			t.Errorf("answer %d", w.Code)
		}
	})
}

// A start that finds everything in order asks once and writes nothing.
func TestWebhook_RegisteredAlready(t *testing.T) {
	inHookBubble(t, func(t *testing.T, p *hookPost) {
		p.receive()
		synctest.Wait()
		p.stop()
		p.close()
		p.open()
		before := p.store.Commits()
		p.called("")
		p.receive()
		after(time.Second)
		if got := p.called("setWebhook"); got != nil {
			t.Errorf("setWebhook %q", got)
		}
		if n := p.store.Commits() - before; n != 0 {
			t.Errorf("%d commits", n)
		}
	})
}

func TestWebhook_KindsOfUpdates(t *testing.T) {
	for _, tt := range []struct {
		name    string
		setting []string
		note    string
		want    string // allowed_updates as set; empty: not mentioned
	}{
		{"nothing said", nil, "", ""},
		{"setting", []string{"message", "poll"}, `["chat_member"]`, `,"allowed_updates":["message","poll"]`},
		{"Telegram's default", []string{}, "", `,"allowed_updates":[]`},
		{"what a client asked for", nil, `["poll"]`, `,"allowed_updates":["poll"]`},
		{"an odd note", nil, `7`, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			inHookBubble(t, func(t *testing.T, p *hookPost) {
				if tt.note != "" {
					if err := p.bot.SetNote(t.Context(), intake.NoteAllowedUpdates, []byte(tt.note)); err != nil {
						t.Fatal(err)
					}
				}
				p.receive(func(c *intake.WebhookConfig) { c.AllowedUpdates = tt.setting })
				synctest.Wait()
				want := strings.TrimSuffix(setAsWanted, "}") + tt.want + "}"
				if got := p.called("setWebhook"); !slices.Equal(got, []string{want}) {
					t.Errorf("setWebhook %q, want %s", got, want)
				}
				p.stop()
				p.receive(func(c *intake.WebhookConfig) { c.AllowedUpdates = tt.setting })
				synctest.Wait()
				if got := p.called("setWebhook"); got != nil {
					t.Errorf("at the next start: setWebhook %q", got)
				}
			})
		})
	}
}

func TestWebhook_Reload(t *testing.T) {
	inHookBubble(t, func(t *testing.T, p *hookPost) {
		p.receive()
		after(time.Minute)
		p.called("")
		if err := p.hook.Configure("another_secret", []string{"message"}); err != nil {
			t.Fatal(err)
		}
		if w := p.request(`{"update_id":5,"message":{}}`); w.Code != http.StatusUnauthorized {
			t.Errorf("the old secret: answer %d", w.Code)
		}
		after(time.Second)
		want := `{"url":"` + hookURL + `","secret_token":"another_secret","allowed_updates":["message"]}`
		if got := p.called("setWebhook"); !slices.Equal(got, []string{want}) {
			t.Errorf("setWebhook %q, want %s", got, want)
		}
		p.text("with the new secret")
		after(time.Second)
		p.wantTexts("with the new secret")
		if err := p.hook.Configure("not a secret", nil); err == nil {
			t.Error("an impossible secret was taken")
		}
		// What local clients ask for changes without a reload.
		if err := p.hook.Configure("another_secret", nil); err != nil {
			t.Fatal(err)
		}
		after(time.Second)
		p.called("")
		if err := p.bot.SetNote(t.Context(), intake.NoteAllowedUpdates, []byte(`["poll"]`)); err != nil {
			t.Fatal(err)
		}
		p.hook.Kick()
		after(time.Second)
		if got := p.called("setWebhook"); len(got) != 1 || !strings.Contains(got[0], `["poll"]`) {
			t.Errorf("setWebhook %q", got)
		}
	})
}

func TestWebhook_OfflineAtTheStart(t *testing.T) {
	inHookBubble(t, func(t *testing.T, p *hookPost) {
		p.sim.SetOffline(true)
		p.receive()
		after(time.Hour)
		p.wantHook(intake.Offline, "refused")
		if n := len(p.called("getWebhookInfo")); n < 60 || n > 200 {
			t.Errorf("%d calls in an hour offline", n)
		}
		p.sim.SetOffline(false)
		for range 2 { // other calls are answered; the first half second is waited in any case
			p.gate.Success()
			after(time.Second)
		}
		p.wantHook(intake.OK, "")
		p.text("hello")
		after(time.Second)
		p.wantTexts("hello")
		if n := p.changes(); n != 2 {
			t.Errorf("%d changes of state were logged, want 2:\n%s", n, p.logged())
		}
	})
}

// The success of others, again and again, doesn't make us ask in a loop.
func TestWebhook_OthersSucceed(t *testing.T) {
	inHookBubble(t, func(t *testing.T, p *hookPost) {
		p.sim.AddFault(telegramsim.Fault{Method: "getWebhookInfo", Kind: telegramsim.FaultOffline})
		p.receive()
		for range 600 {
			after(time.Second)
			p.gate.Success()
		}
		if n := len(p.called("getWebhookInfo")); n > 60 {
			t.Errorf("%d calls in ten minutes", n)
		}
	})
}

func TestWebhook_ShowsWhatTelegramSays(t *testing.T) {
	inHookBubble(t, func(t *testing.T, p *hookPost) {
		p.receive()
		after(10 * time.Second)
		p.setDown(true)
		p.text("late")
		after(25 * time.Minute)
		p.wantHook(intake.Offline, "Telegram's last delivery failed at ")
		p.wantHook(intake.Offline, ": Webhook connection closed; 1 waiting there")
		p.setDown(false)
		after(5 * time.Minute)
		p.wantTexts("late")
		p.wantHook(intake.OK, "")
		if s := p.hook.State(); s.Detail != "" {
			t.Errorf("detail %q after the trouble", s.Detail)
		}
	})
}

// Telegram doesn't tell which secret it has; that it is another one shows.
func TestWebhook_SecretIsAnotherOne(t *testing.T) {
	inHookBubble(t, func(t *testing.T, p *hookPost) {
		p.receive()
		after(time.Second)
		p.setWebhook(hookURL) // without a secret
		p.text("hello")
		after(12 * time.Minute)
		p.wantTexts("hello")
		p.wantHook(intake.OK, "")

		p.stop()
		p.setWebhook(hookURL)
		p.text("again")
		after(time.Minute)
		p.receive()
		after(5 * time.Minute)
		p.wantTexts("hello", "again")
		p.wantHook(intake.OK, "")
	})
}

// Where our 401 comes from a proxy, registering again and again writes nothing.
func TestWebhook_ProxyRefuses(t *testing.T) {
	inHookBubble(t, func(t *testing.T, p *hookPost) {
		p.receive()
		after(10 * time.Second)
		before := p.store.Commits()
		p.wire.Lock()
		p.proxy = http.StatusUnauthorized
		p.wire.Unlock()
		p.text("hello")
		after(2 * time.Hour)
		p.wantHook(intake.Offline, "401 Unauthorized")
		if n := len(p.called("setWebhook")); n > 130 {
			t.Errorf("%d registrations in two hours", n)
		}
		if n := p.store.Commits() - before; n > 2 {
			t.Errorf("%d commits", n)
		}
		if n := p.changes(); n > 1 {
			t.Errorf("%d changes of state were logged:\n%s", n, p.logged())
		}
	})
}

func TestWebhook_AnswersGetLost(t *testing.T) {
	inHookBubble(t, func(_ *testing.T, p *hookPost) {
		p.receive()
		synctest.Wait()
		p.wire.Lock()
		p.lose = 3
		p.wire.Unlock()
		p.text("one")
		p.text("two")
		after(time.Minute)
		p.wantTexts("one", "two")
	})
}

func TestWebhook_MovedBySomebodyElse(t *testing.T) {
	for _, other := range []string{"https://thief.invalid/path-that-is-also-secret", ""} {
		t.Run(other, func(t *testing.T) {
			inHookBubble(t, func(t *testing.T, p *hookPost) {
				p.receive()
				after(5 * time.Minute)
				p.setWebhook(other)
				for range 12 * 6 { // until the next look
					if after(10 * time.Second); p.hook.State().State != intake.OK {
						break
					}
				}
				p.wantHook(intake.Conflict, "by somebody else; ours is set again")
				if got := p.webhook(); got != hookURL {
					t.Errorf("the webhook is at %q", got)
				}
				alerts := p.alerted()
				if len(alerts) != 1 || !strings.Contains(alerts[0].Text, "/revoke") || (other != "" && !strings.Contains(alerts[0].Text, "thief.invalid")) {
					t.Errorf("alerts %q", alerts)
				}
				after(2 * time.Minute)
				p.wantHook(intake.OK, "")
			})
		})
	}
}

// A webhook that was there before us is what registering is for.
func TestWebhook_ReplacesAnotherAtTheStart(t *testing.T) {
	inHookBubble(t, func(t *testing.T, p *hookPost) {
		p.setWebhook("https://old.invalid/also-secret")
		p.receive()
		after(time.Second)
		p.wantHook(intake.OK, "")
		if got := p.webhook(); got != hookURL {
			t.Errorf("the webhook is at %q", got)
		}
		if !strings.Contains(p.logged(), "old.invalid") || len(p.alerted()) != 0 {
			t.Errorf("alerts %q, log:\n%s", p.alerted(), p.logged())
		}
	})
}

// Idle, Telegram is asked six times an hour; while updates come, not even that.
func TestWebhook_AsksSeldom(t *testing.T) {
	for _, tt := range []struct {
		name  string
		every time.Duration
		most  int
	}{
		{"idle", 0, 24 * 6},
		{"busy", 5 * time.Minute, 2},
	} {
		t.Run(tt.name, func(t *testing.T) {
			inHookBubble(t, func(t *testing.T, p *hookPost) {
				p.receive()
				after(2 * time.Minute)
				p.called("")
				before := p.store.Commits()
				if tt.every == 0 {
					after(24 * time.Hour)
					if n := p.store.Commits() - before; n > 24 { // the store's own housekeeping
						t.Errorf("%d commits in an idle day", n)
					}
				} else {
					for range 24 * time.Hour / tt.every {
						p.text("x")
						after(tt.every)
					}
				}
				if n := len(p.called("getWebhookInfo")); n > tt.most {
					t.Errorf("%d questions in a day", n)
				}
			})
		})
	}
}

func TestWebhook_TelegramDoesNotTakeIt(t *testing.T) {
	inHookBubble(t, func(t *testing.T, p *hookPost) {
		id := p.sim.AddFault(telegramsim.Fault{
			Method: "setWebhook", Kind: telegramsim.FaultCode, Code: 400,
			Body: "Bad Request: bad webhook: Failed to resolve host: Name or service not known",
		})
		p.receive()
		after(24 * time.Hour)
		p.wantHook(intake.Offline, "Telegram doesn't take the webhook: Bad Request: bad webhook: Failed to resolve host")
		if n := len(p.called("setWebhook")); n < 100 || n > 600 {
			t.Errorf("%d tries in a day", n)
		}
		if n := len(p.alerted()); n != 1 {
			t.Errorf("%d alerts", n)
		}
		p.sim.RemoveFault(id)
		after(11 * time.Minute)
		p.wantHook(intake.OK, "")
	})
}

func TestWebhook_TokenRefused(t *testing.T) {
	inHookBubble(t, func(t *testing.T, p *hookPost) {
		p.sim.RevokeToken(token)
		p.receive()
		after(time.Second)
		p.wantHook(intake.OK, "") // one refusal alone isn't believed
		after(time.Minute)
		p.wantHook(intake.Unauthorized, "")
		if n := len(p.alerted()); n != 1 {
			t.Errorf("%d alerts", n)
		}
		p.sim.RestoreToken(token)
		after(6 * time.Minute)
		p.wantHook(intake.OK, "")
	})
}

func TestWebhook_Flood(t *testing.T) {
	inHookBubble(t, func(t *testing.T, p *hookPost) {
		p.sim.AddFault(telegramsim.Fault{Method: "setWebhook", Kind: telegramsim.FaultFlood, RetryAfter: 77, Times: 1})
		p.receive()
		after(70 * time.Second)
		if n := len(p.called("setWebhook")); n != 1 {
			t.Errorf("%d calls before the wait is over", n)
		}
		after(10 * time.Second)
		if got := p.webhook(); got != hookURL {
			t.Errorf("the webhook is at %q", got)
		}
	})
}

func TestWebhook_ListeningFails(t *testing.T) {
	inHookBubble(t, func(t *testing.T, p *hookPost) {
		p.receive()
		after(time.Second)
		p.hook.Listening(t.Context(), errors.New("address already in use"))
		p.wantHook(intake.Offline, "address already in use")
		p.hook.Listening(t.Context(), nil)
		p.wantHook(intake.OK, "")
	})
}

func TestWebhook_RestartsLoseAndDoubleNothing(t *testing.T) {
	inHookBubble(t, func(_ *testing.T, p *hookPost) {
		var want []string
		p.receive()
		for i := range 20 {
			s := fmt.Sprint("text ", i)
			p.text(s)
			want = append(want, s)
			if i%2 == 0 {
				synctest.Wait()
			}
			p.setDown(true)
			p.stop()
			p.close()
			after(time.Duration(i) * time.Second)
			p.open()
			p.setDown(false)
			p.receive()
		}
		after(5 * time.Minute)
		p.wantTexts(want...)
	})
}
