package botserver_test

import (
	"errors"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/tgspool/tgspool/internal/botapi"
	"github.com/tgspool/tgspool/internal/botserver"
	"github.com/tgspool/tgspool/internal/gate"
	"github.com/tgspool/tgspool/internal/spool"
	"github.com/tgspool/tgspool/internal/wire"
)

const doorbell = "4200:DoorbellDoorbellDoorbellDoorbell-01"

// bell is a client that may write to chat 7, in lane bulk.
type bell struct{ k **kit }

// Authorize knows one token.
func (b bell) Authorize(token string) (botserver.Identity, bool) {
	if token != doorbell {
		return botserver.Identity{}, false
	}
	bot, _ := (*b.k).ByID(botID)
	return botserver.Identity{
		Bot: bot, Client: "doorbell", Lane: spool.Bulk,
		Check: func(m botapi.Method, p *wire.Params) error {
			if chat, _ := p.Text("chat_id"); m.Name != "sendMessage" || chat != "7" {
				return errors.New("client doorbell may not do this")
			}
			return nil
		},
	}, true
}

// withBell serves the client, too.
func withBell(k **kit) func(*botserver.Config) {
	return func(c *botserver.Config) { c.Clients = bell{k} }
}

func TestClient_Limits(t *testing.T) {
	var own *kit
	bubble(t, func(k *kit) {
		own = k
		call := func(method, body string, headers ...string) *answer {
			r := request(method, "application/json", body, headers...)
			r.URL.Path = strings.Replace(r.URL.Path, token, doorbell, 1)
			return k.serve(r)
		}
		a := call("sendMessage", hello, "Tgspool-Lane", "interactive")
		if a.status != 200 {
			t.Fatalf("answer %d %s", a.status, a.body)
		}
		if job := k.jobs()[0]; job.Lane != spool.Bulk || job.Origin != "botapi:doorbell" {
			t.Errorf("lane %s, origin %s", job.Lane, job.Origin)
		}
		for _, c := range [][2]string{
			{"sendMessage", `{"chat_id":8,"text":"x"}`},
			{"sendPhoto", `{"chat_id":7}`},
			{"getUpdates", `{}`},
			{"setWebhook", `{"url":""}`},
			{"getChat", `{"chat_id":7}`},
		} {
			if a := call(c[0], c[1]); a.status != 403 || !strings.Contains(a.json.Description, "doorbell") {
				t.Errorf("%s: answer %d %s", c[0], a.status, a.body)
			}
		}
		k.call("sendMessage", `{"chat_id":7,"text":"secret"}`, "Tgspool-Key", "k")
		if a := call("sendMessage", hello, "Tgspool-Key", "k"); a.status != 409 || strings.Contains(a.body, "secret") {
			t.Errorf("another's key: answer %d %s", a.status, a.body)
		}
		r := httptest.NewRequest("GET", "http://127.0.0.1/file/bot"+doorbell+"/documents/x", nil)
		if a := k.serve(r); a.status != 403 {
			t.Errorf("a file: answer %d %s", a.status, a.body)
		}
	}, withBell(&own))
}

func TestHandler_ClientsOnly(t *testing.T) {
	var own *kit
	bubble(t, func(k *kit) {
		own = k
		k.handler = k.server.Handler(botserver.Access{ClientsOnly: true})
		if a := k.call("sendMessage", hello); a.status != 401 {
			t.Errorf("the bot's own token: answer %d %s", a.status, a.body)
		}
		r := request("sendMessage", "application/json", hello)
		r.URL.Path = strings.Replace(r.URL.Path, token, doorbell, 1)
		if a := k.serve(r); a.status != 200 {
			t.Errorf("a client: answer %d %s", a.status, a.body)
		}
	}, withBell(&own))
}

func TestUse_ChangesWhatComesNext(t *testing.T) {
	bubble(t, func(k *kit) {
		k.server.Use(botserver.Settings{MaxWait: 3 * time.Second, MaxUpload: 10})
		if a := k.serve(photo("12345678901")); a.status != 413 {
			t.Errorf("upload: answer %d %s", a.status, a.body)
		}
		k.sim.SetOffline(true)
		start := time.Now()
		r := request("sendMessage", "application/json", hello)
		if a := k.serve(r); a.status != 429 || time.Since(start) != 3*time.Second {
			t.Errorf("answer %d %s after %v", a.status, a.body, time.Since(start))
		}
	})
}

func TestPaused_HoldsSendsAndRefusesEphemeral(t *testing.T) {
	bubble(t, func(k *kit) {
		k.gate.CloseLanes(gate.Paused, "by a person")
		if a := k.call("sendChatAction", `{"chat_id":7,"action":"typing"}`); a.status != 429 {
			t.Errorf("answer %d %s", a.status, a.body)
		}
		p := k.begin(request("sendMessage", "application/json", hello))
		k.pass(time.Minute)
		if n := len(k.sim.Journal()); n != 0 {
			t.Errorf("%d calls went out", n)
		}
		k.gate.OpenLanes(gate.Paused)
		if a := <-p.done; a.status != 200 {
			t.Errorf("answer %d %s", a.status, a.body)
		}
	})
}
