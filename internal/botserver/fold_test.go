package botserver_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"
)

// begun makes a call in the background, and gives it time to be queued.
func (k *kit) begun(method, body string) *pendingCall {
	p := k.begin(request(method, "application/json", body))
	k.pass(time.Second)
	return p
}

// sent sends a message and returns its number.
func (k *kit) sent() (id int64) {
	k.t.Helper()
	var m struct {
		ID int64 `json:"message_id"`
	}
	k.must(json.Unmarshal(k.call("sendMessage", hello).json.Result, &m))
	k.pass(2 * time.Second)
	return m.ID
}

// TestFold_EachCallerGetsTheSurvivingEdit: five edits of one message are queued
// in an outage; one goes out, and all five callers hear of it.
func TestFold_EachCallerGetsTheSurvivingEdit(t *testing.T) {
	bubble(t, func(k *kit) {
		message := k.sent()
		k.sim.SetOffline(true)
		var calls []*pendingCall
		for i := range 5 {
			calls = append(calls, k.begun("editMessageText", fmt.Sprintf(`{"chat_id":7,"message_id":%d,"text":"%d"}`, message, i)))
		}
		other := k.begun("editMessageReplyMarkup", fmt.Sprintf(`{"chat_id":7,"message_id":"%d"}`, message))
		k.sim.SetOffline(false)
		for i, c := range calls {
			if a := <-c.done; a.status != 200 || !strings.Contains(string(a.json.Result), `"text":"4"`) {
				k.t.Errorf("caller %d hears %d %s", i, a.status, a.body)
			} else if got, want := a.header.Get("Tgspool-Job"), fmt.Sprint(i+2); got != want {
				k.t.Errorf("caller %d has job %s, want %s", i, got, want)
			}
		}
		<-other.done
		k.wantCalls("editMessageText", "4")
	})
}

func (k *kit) wantCalls(method string, want ...string) {
	k.t.Helper()
	var texts []string
	for _, c := range k.sim.Journal() {
		if c.Method == method {
			texts = append(texts, c.Text)
		}
	}
	if fmt.Sprint(texts) != fmt.Sprint(want) {
		k.t.Errorf("%s was called with %q, want %q", method, texts, want)
	}
}

func TestFold_InlineMessages(t *testing.T) {
	bubble(t, func(k *kit) {
		k.sim.SetOffline(true)
		a := k.begun("editMessageText", `{"inline_message_id":"q","text":"a"}`)
		b := k.begun("editMessageText", `{"inline_message_id":"q","text":"b"}`)
		c := k.begun("editMessageText", `{"inline_message_id":"r","text":"c"}`)
		k.sim.SetOffline(false)
		if x, y := <-a.done, <-b.done; x.body != y.body {
			k.t.Errorf("the callers hear %s and %s", x.body, y.body)
		}
		<-c.done
		if states := fmt.Sprintln(k.jobs()[0].State, k.jobs()[1].State != "cancelled", k.jobs()[2].State != "cancelled"); states != "cancelled true true\n" {
			k.t.Error(states)
		}
	})
}

func TestFold_ADeleteRemovesQueuedEdits(t *testing.T) {
	bubble(t, func(k *kit) {
		message := k.sent()
		k.sim.SetOffline(true)
		edit := k.begun("editMessageText", fmt.Sprintf(`{"chat_id":7,"message_id":%d,"text":"a"}`, message))
		kept := k.begun("editMessageText", fmt.Sprintf(`{"chat_id":7,"message_id":%d,"text":"b"}`, message+1))
		del := k.begun("deleteMessages", fmt.Sprintf(`{"chat_id":7,"message_ids":"[%d]"}`, message))
		if a := <-edit.done; a.status != 400 || !strings.Contains(a.json.Description, "job 2 is cancelled: job 4 deletes the message") {
			k.t.Errorf("the edit's caller hears %d %s", a.status, a.body)
		}
		k.sim.SetOffline(false)
		if a := <-del.done; a.status != 200 {
			k.t.Errorf("the delete's caller hears %d %s", a.status, a.body)
		}
		<-kept.done
		k.wantCalls("editMessageText", "b")
	})
}

// TestFold_NothingInTheParametersIsOurs: Telegram itself refuses what tgspool
// would understand elsewhere.
func TestFold_NothingInTheParametersIsOurs(t *testing.T) {
	bubble(t, func(k *kit) {
		k.call("editMessageText", `{"chat_id":7,"message_id":{"$job":"k"},"text":"a"}`)
		if j := k.jobs()[0]; j.State != "dead" || j.LastError.Class != "rejected" {
			k.t.Errorf("%s, %+v", j.State, j.LastError)
		}
	})
}
