package handler

import (
	"strings"
	"testing"

	"github.com/tgspool/tgspool/internal/botapi"
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
