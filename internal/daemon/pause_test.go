package daemon_test

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/tgspool/tgspool/internal/localapi"
	"github.com/tgspool/tgspool/internal/manage"
)

// ask speaks to the daemon of a house.
func (h *house) ask(method, path, body string, out any) {
	h.t.Helper()
	c := localapi.Dial(h.dir + "/s")
	defer c.Close()
	if err := c.Do(h.t.Context(), localapi.Request{Method: method, Path: path, Body: []byte(body)}, out); err != nil {
		h.t.Fatalf("%s %s: %v", method, path, err)
	}
}

// wantIntake looks at the state of both bots.
func (h *house) wantIntake(state string) {
	h.t.Helper()
	var s manage.Status
	h.ask("GET", "/v1/status", "", &s)
	for name, b := range s.Bots.ByName {
		if b.Intake.State != state {
			h.t.Errorf("intake of %s is %s, want %s", name, b.Intake.State, state)
		}
	}
}

// TestPause_WholeWay: a poller and a webhook stand still, through a restart, and
// nothing of what came meanwhile is lost; so does the sender.
func TestPause_WholeWay(t *testing.T) {
	h := newHouse(t)
	h.settings(map[string]string{"first": h.byWebhook("first")})
	h.start()
	h.feed("one")
	h.wantReplies("one")
	for _, bot := range []string{"first", "second"} {
		h.ask("POST", "/v1/bots/"+bot+"/pause", `{"part":"intake"}`, nil)
	}
	h.wantIntake("paused")
	h.feed("two")
	h.end()
	h.start()
	h.feed("three")
	h.ready()
	h.wantIntake("paused")
	if n := h.sim.CountText(7, "two") + h.sim.CountText(7, "three"); n != 0 {
		t.Errorf("%d replies while intake was paused", n)
	}
	for _, bot := range []string{"first", "second"} {
		h.ask("POST", "/v1/bots/"+bot+"/pause", `{"part":"sender"}`, nil)
		h.ask("POST", "/v1/bots/"+bot+"/resume", `{"part":"intake"}`, nil)
	}
	h.waitJobs()
	if n := h.sim.CountText(7, "two") + h.sim.CountText(7, "three"); n != 0 {
		t.Errorf("%d replies while the sender was paused", n)
	}
	for _, bot := range []string{"first", "second"} {
		h.ask("POST", "/v1/bots/"+bot+"/resume", "", nil)
	}
	h.wantReplies("two")
	h.wantReplies("three")
	h.wantIntake("ok")
	h.end()
}

// ready waits until the daemon answers.
func (h *house) ready() {
	h.t.Helper()
	if err := h.until(func(ctx context.Context) string {
		c := localapi.Dial(h.dir + "/s")
		defer c.Close()
		var s json.RawMessage
		if err := c.Do(ctx, localapi.Request{Method: "GET", Path: "/v1/status"}, &s); err != nil {
			return err.Error()
		}
		return ""
	}); err != nil {
		h.t.Fatal(err)
	}
}

// waitJobs waits until each bot has two jobs that wait.
func (h *house) waitJobs() {
	h.t.Helper()
	if err := h.until(func(ctx context.Context) string {
		c := localapi.Dial(h.dir + "/s")
		defer c.Close()
		var s manage.Status
		if err := c.Do(ctx, localapi.Request{Method: "GET", Path: "/v1/status"}, &s); err != nil {
			return err.Error()
		}
		for name, b := range s.Bots.ByName {
			if b.QueueDepth < 2 {
				return name + " has fewer jobs"
			}
		}
		return ""
	}); err != nil {
		h.t.Fatal(err)
	}
}
