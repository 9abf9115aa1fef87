package manage_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tgspool/tgspool/internal/gate"
	"github.com/tgspool/tgspool/internal/spool"
)

// named are the figures that users rely on.
var named = []string{
	"tgspool_attempts_total", "tgspool_commit_seconds", "tgspool_cooldown_seconds", "tgspool_floods_total",
	"tgspool_handler_results_total", "tgspool_handler_seconds", "tgspool_jobs", "tgspool_oldest_pending_seconds",
	"tgspool_store_bytes", "tgspool_update_to_reply_seconds", "tgspool_updates", "tgspool_webhook_seconds",
	"tgspool_written_bytes_total",
}

// busy makes one of everything: an update whose handler is run twice and replies,
// a call that is done and one that waits.
func busy(t *testing.T, w *world) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	u := spool.NewUpdate{ID: 1, HasID: true, Kind: "message", Raw: []byte(`{"update_id":1}`), OrderKey: "chat:-1001234567890", Route: spool.Route{Handler: "echo"}}
	_, err := w.bot.Intake(ctx, spool.Batch{Updates: []spool.NewUpdate{u}})
	must(err)
	l, err := w.bot.ClaimUpdate(ctx, "echo")
	must(err)
	must(w.bot.FailUpdate(ctx, l, spool.Failure{State: spool.UpdateOpen, Error: "no"}))
	l, err = w.bot.ClaimUpdate(ctx, "echo")
	must(err)
	reply := spool.NewJob{Method: "sendMessage", Chat: "-1001234567890", ChatRaw: []byte("-1001234567890"), Params: []byte(`{"text":"hi"}`)}
	_, err = w.bot.Handled(ctx, l, spool.Handling{Jobs: []spool.NewJob{reply}})
	must(err)
	c, err := w.bot.Claim(ctx)
	must(err)
	_, err = w.bot.Settle(ctx, c, spool.Verdict{State: spool.Done, Reached: true, Result: json.RawMessage(`{}`)})
	must(err)
	_, err = w.bot.Enqueue(ctx, reply)
	must(err)
	w.metrics.Attempt("home", "ok")
	w.metrics.Flood("home")
	w.metrics.Webhook("home", 3*time.Millisecond)
}

// scraped is a page of figures: the values of the samples, by their whole name.
func scraped(t *testing.T, w *world) (samples map[string]string, families []string) {
	t.Helper()
	got := w.get("/metrics")
	if got.status != http.StatusOK || !strings.HasPrefix(got.header.Get("Content-Type"), "text/plain") {
		t.Fatalf("/metrics: %d %s %s", got.status, got.header.Get("Content-Type"), got.body)
	}
	samples = map[string]string{}
	for in := bufio.NewScanner(bytes.NewReader(got.body)); in.Scan(); {
		if family, ok := strings.CutPrefix(in.Text(), "# TYPE "); ok {
			families = append(families, strings.Fields(family)[0])
		} else if name, value, ok := strings.Cut(in.Text(), " "); ok && !strings.HasPrefix(in.Text(), "#") {
			samples[name] = value
		}
	}
	return samples, families
}

func TestMetrics(t *testing.T) {
	w := newWorld(t)
	v := w.bots.views["home"]
	v.Sender = gate.Snapshot{State: gate.StateCooldown, CooldownUntil: time.Now().Add(time.Hour)}
	w.bots.views["home"] = v
	if samples, _ := scraped(t, w); samples[`tgspool_floods_total{bot="home"}`] != "0" || samples[`tgspool_jobs{bot="away",state="pending"}`] != "0" {
		t.Errorf("at the start: %v", samples)
	}
	busy(t, w)
	samples, families := scraped(t, w)
	for name, want := range map[string]string{
		`tgspool_jobs{bot="home",state="pending"}`:                                  "1",
		`tgspool_jobs{bot="home",state="done"}`:                                     "1",
		`tgspool_updates{bot="home",state="handled"}`:                               "1",
		`tgspool_attempts_total{bot="home",class="ok"}`:                             "1",
		`tgspool_floods_total{bot="home"}`:                                          "1",
		`tgspool_handler_results_total{bot="home",handler="echo",result="handled"}`: "1",
		`tgspool_handler_results_total{bot="home",handler="echo",result="retry"}`:   "1",
		`tgspool_handler_seconds_count`:                                             "2",
		`tgspool_update_to_reply_seconds_count{bot="home"}`:                         "1",
		`tgspool_webhook_seconds_count{bot="home"}`:                                 "1",
		`tgspool_webhook_seconds_bucket{bot="home",le="0.005"}`:                     "1",
	} {
		if samples[name] != want {
			t.Errorf("%s is %q, want %s", name, samples[name], want)
		}
	}
	for _, name := range []string{
		`tgspool_store_bytes`, `tgspool_written_bytes_total`, `tgspool_commit_seconds_count`,
		`tgspool_oldest_pending_seconds{bot="home"}`, `tgspool_cooldown_seconds{bot="home"}`,
	} {
		if n := samples[name]; n == "" || n == "0" {
			t.Errorf("%s is %q", name, n)
		}
	}
	ours := slices.DeleteFunc(families, func(s string) bool { return !strings.HasPrefix(s, "tgspool_") })
	if slices.Sort(ours); !slices.Equal(ours, named) {
		t.Errorf("figures\n%v\nwant\n%v", ours, named)
	}
	for name := range samples {
		if strings.Contains(name, "1234567890") {
			t.Errorf("a chat in %s", name)
		}
	}
}

// TestMetrics_Examples: the rules and the board speak of figures that there are,
// and of labels that they have.
func TestMetrics_Examples(t *testing.T) {
	w := newWorld(t)
	busy(t, w)
	samples, _ := scraped(t, w)
	use := regexp.MustCompile(`(tgspool_[a-z_]+[a-z])(?:\{([^}]*)\})?`)
	label := regexp.MustCompile(`([a-z_]+)=`)
	for _, file := range []string{"tgspool.rules.yml", "tgspool-board.json"} {
		text, err := os.ReadFile(filepath.Join("..", "..", "packaging", "examples", "prometheus", file))
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasSuffix(file, ".json") && !json.Valid(text) {
			t.Errorf("%s is no JSON", file)
		}
		uses := use.FindAllStringSubmatch(string(text), -1)
		if len(uses) < len(named)/2 {
			t.Errorf("%s uses %d figures", file, len(uses))
		}
		for _, u := range uses {
			if !sampled(samples, u[1], "") {
				t.Errorf("%s: there is no %s", file, u[1])
			}
			for _, l := range label.FindAllStringSubmatch(u[2], -1) {
				if !sampled(samples, u[1], l[1]) {
					t.Errorf("%s: %s has no label %s", file, u[1], l[1])
				}
			}
		}
	}
}

// sampled reports whether there is a sample of a name, with a label if one is given.
func sampled(samples map[string]string, name, label string) bool {
	for s := range samples {
		family, labels, _ := strings.Cut(s, "{")
		if family == name && (label == "" || strings.Contains(labels, label+"=")) {
			return true
		}
	}
	return false
}

func TestHealth_Stuck(t *testing.T) {
	w := newWorld(t)
	for _, tt := range []struct {
		path, stuck string
		status      int
	}{
		{"/healthz", "", 200},
		{"/readyz", "", 200},
		{"/healthz", "intake of bot home has ended", 503},
		{"/readyz", "intake of bot home has ended", 200},
	} {
		w.stuck = tt.stuck
		if got := w.get(tt.path); got.status != tt.status {
			t.Errorf("%s with %q: %d", tt.path, tt.stuck, got.status)
		}
	}
}
