package botserver_test

import (
	"strings"
	"testing"
	"time"

	"github.com/tgspool/tgspool/internal/telegramsim"
)

func TestGetMe_IsAnsweredOffline(t *testing.T) {
	bubble(t, func(k *kit) {
		if a := k.call("getMe", ``); a.status != 200 || !strings.Contains(a.body, `"is_bot":true`) {
			t.Errorf("answer %d %s", a.status, a.body)
		}
		k.me = []byte(`{"id":4200,"is_bot":true,"first_name":"Kept"}`)
		k.sim.SetOffline(true)
		for _, r := range []string{"getMe", "GETME"} {
			if a := k.call(r, `{"suppress":true}`); a.status != 200 || string(a.json.Result) != string(k.me) {
				t.Errorf("answer %d %s", a.status, a.body)
			}
		}
	})
}

func TestReads_PassThrough(t *testing.T) {
	bubble(t, func(k *kit) {
		k.call("sendMessage", hello)
		if a := k.call("getChat", `{"chat_id":7}`); a.status != 200 || !strings.Contains(a.body, `"id":7`) {
			t.Errorf("answer %d %s", a.status, a.body)
		}
		if a := k.call("getChat", `{"chat_id":"@nobody"}`); a.status != 400 || a.json.Description != "Bad Request: chat not found" {
			t.Errorf("answer %d %s", a.status, a.body)
		}
		if a := k.call("getSomethingNew", `{}`); a.status != 404 {
			t.Errorf("answer %d %s", a.status, a.body)
		}
		if n := len(k.jobs()); n != 1 {
			t.Errorf("reads made %d jobs", n-1)
		}
		k.sim.SetOffline(true)
		if a := k.call("getChat", `{"chat_id":7}`); a.status != 502 {
			t.Errorf("offline: answer %d %s", a.status, a.body)
		}
	})
}

func TestEphemeral_AtOnceOrNotAtAll(t *testing.T) {
	const typing = `{"chat_id":7,"action":"typing"}`
	bubble(t, func(k *kit) {
		if a := k.call("sendChatAction", typing); a.status != 200 || string(a.json.Result) != "true" {
			t.Errorf("answer %d %s", a.status, a.body)
		}
		k.sim.AddFault(telegramsim.Fault{Kind: telegramsim.FaultFlood, RetryAfter: 20, Times: 1})
		if a := k.call("sendChatAction", typing); a.status != 429 || a.json.Parameters.RetryAfter != 20 {
			t.Errorf("a flood: answer %d %s", a.status, a.body)
		}
		if until := k.bot.Cooldown(); time.Until(until) < 19*time.Second {
			t.Errorf("the cooldown wasn't kept: %v", until)
		}
		before := len(k.sim.Journal())
		for _, method := range []string{"sendChatAction", "getChat"} {
			if a := k.call(method, typing); a.status != 429 || a.json.Parameters.RetryAfter < 1 || a.header.Get("Retry-After") == "" {
				t.Errorf("in the cooldown: answer %d %s", a.status, a.body)
			}
		}
		if n := len(k.sim.Journal()); n != before {
			t.Errorf("%d calls went out in the cooldown", n-before)
		}
		k.pass(21 * time.Second)
		if a := k.call("answerCallbackQuery", `{"callback_query_id":"1"}`); a.status != 400 || !strings.Contains(a.json.Description, "query is too old") {
			t.Errorf("answer %d %s", a.status, a.body)
		}
		if n := len(k.jobs()); n != 0 {
			t.Errorf("%d jobs", n)
		}
	})
}

func TestHold_CooldownOfTheBotDelaysSends(t *testing.T) {
	bubble(t, func(k *kit) {
		k.sim.AddFault(telegramsim.Fault{Kind: telegramsim.FaultFlood, RetryAfter: 20, Times: 1})
		k.call("sendChatAction", `{"chat_id":7,"action":"typing"}`)
		start := time.Now()
		if a := k.call("sendMessage", hello); a.status != 200 || time.Since(start) < 19*time.Second {
			t.Errorf("answer %d after %v", a.status, time.Since(start))
		}
	})
}
