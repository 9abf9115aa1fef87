package handler

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/tgspool/tgspool/internal/botapi"
	"github.com/tgspool/tgspool/internal/outbox"
	"github.com/tgspool/tgspool/internal/spool"
)

// TestInstead_LongText: only the beginning of a long text takes the place of the
// ack; the rest follows it.
func TestInstead_LongText(t *testing.T) {
	r := &route{RouteConfig: RouteConfig{Name: "it"}}
	u := botapi.Update{ChatID: 7}
	jobs, err := r.say(u, strings.Repeat("x", 4096)+"\n"+strings.Repeat("y", 100))
	if err != nil || len(jobs) != 1 {
		t.Fatalf("%d jobs, %v", len(jobs), err)
	}
	jobs = r.instead(u, "ack:1", jobs)
	if j := jobs[0]; j.Method != "editMessageText" || len(j.Refs) != 1 || j.Fallback == nil || j.Fallback.Method != "sendMessage" {
		t.Errorf("first %s, refs %v, fallback %+v", j.Method, j.Refs, j.Fallback)
	}
	if p := jobs[0].Parts; len(p) != 1 || p[0].Method != "sendMessage" || !strings.Contains(string(p[0].Params), "yyy") {
		t.Errorf("parts %+v", p)
	}
}

// TestInstead_Elsewhere: a text for another topic doesn't take the place of the
// ack, which would show it in the wrong one; the first for the same topic does.
func TestInstead_Elsewhere(t *testing.T) {
	r := &route{RouteConfig: RouteConfig{Name: "it"}}
	for _, tt := range []struct {
		u     botapi.Update
		calls string
		want  string
	}{
		{botapi.Update{ChatID: -7, Thread: 5}, `{"chat_id":-7,"message_thread_id":9,"text":"a"} {"chat_id":-7,"message_thread_id":5,"text":"b"}`, "sendMessage editMessageText"},
		{botapi.Update{ChatID: -7, Thread: 5}, `{"chat_id":-7,"message_thread_id":"5","text":"a"}`, "editMessageText"},
		{botapi.Update{ChatID: -7, Thread: 5}, `{"chat_id":-7,"text":"a"}`, "editMessageText"},
		{botapi.Update{ChatID: -7}, `{"chat_id":-7,"message_thread_id":9,"text":"a"}`, "sendMessage"},
		{botapi.Update{ChatID: 7}, `{"chat_id":7,"business_connection_id":"b","text":"a"}`, "sendMessage"},
		{botapi.Update{ChatID: 7, Business: "b"}, `{"chat_id":7,"business_connection_id":"b","text":"a"}`, "editMessageText"},
		{botapi.Update{ChatID: 7}, "{\"chat_id\":7\n, \"text\":\"a\"\n}", "editMessageText"},
	} {
		dec := json.NewDecoder(strings.NewReader(tt.calls))
		var jobs []spool.NewJob
		for dec.More() {
			var raw json.RawMessage
			if err := dec.Decode(&raw); err != nil {
				t.Fatal(err)
			}
			job, err := outbox.New("sendMessage", raw, outbox.Options{})
			if err != nil {
				t.Fatal(err)
			}
			jobs = append(jobs, job)
		}
		var got []string
		for _, j := range r.instead(tt.u, "ack:1", jobs) {
			got = append(got, j.Method)
		}
		if fmt.Sprint(got) != "["+tt.want+"]" {
			t.Errorf("%s: %v, want %s", tt.calls, got, tt.want)
		}
	}
}
