package manage_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/tgspool/tgspool/internal/spool"
)

func TestPause(t *testing.T) {
	w := newWorld(t)
	w.post("/v1/bots/home/jobs", `{"method":"sendMessage","params":{"chat_id":12345,"text":"x"}}`)
	for _, tt := range []struct {
		path, body string
		status     int
		want       string // in the answer
	}{
		{"home/pause", `{"part":"sender","for":"10m"}`, 200, `{"paused":[{"part":"sender","since":"`},
		{"home/pause", `{"part":"intake"}`, 200, `"part":"intake"`},
		{"home/pause", `{"part":"all"}`, 422, `must be one of intake, handlers, sender`},
		{"home/pause", `{"part":"sender","for":"soon"}`, 422, `not a duration`},
		{"home/pause", `{"part":"sender","for":"0s"}`, 422, `more than nothing`},
		{"home/pause", `{"until":"tomorrow"}`, 422, `until`},
		{"home/resume", `{"part":"sender","for":"10m"}`, 422, `for`},
		{"nobody/pause", `{}`, 404, `nobody`},
		{"away/pause", `{}`, 409, `no usable token`},
	} {
		got := w.post("/v1/bots/"+tt.path, tt.body)
		if got.status != tt.status || !strings.Contains(string(got.body), tt.want) {
			t.Errorf("%s %s: %d %s", tt.path, tt.body, got.status, got.body)
		}
	}
	var status struct {
		Bots map[string]struct{ Paused []spool.Pause }
	}
	if err := json.Unmarshal(w.get("/v1/status").body, &status); err != nil || len(status.Bots["home"].Paused) != 2 {
		t.Errorf("status %+v, %v", status, err)
	}
	var why spool.Why
	if err := json.Unmarshal(w.get("/v1/jobs/1/why").body, &why); err != nil {
		t.Fatal(err)
	}
	for _, g := range why.Gates {
		if g.Name == "paused" && (g.Open || g.OpensAt == nil || time.Until(*g.OpensAt) > 10*time.Minute) || g.Name != "paused" && !g.Open {
			t.Errorf("gate %+v", g)
		}
	}
	if at := why.NextAttemptAt; at == nil || time.Until(*at) < 9*time.Minute {
		t.Errorf("next attempt at %v", at)
	}
	if got := w.post("/v1/bots/home/resume", ""); got.status != 200 || strings.TrimSpace(string(got.body)) != `{"paused":[]}` {
		t.Errorf("resume: %d %s", got.status, got.body)
	}
}
