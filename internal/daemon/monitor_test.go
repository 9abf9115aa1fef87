package daemon

import (
	"bytes"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tgspool/tgspool/internal/botapi"
	"github.com/tgspool/tgspool/internal/config"
	"github.com/tgspool/tgspool/internal/gate"
	"github.com/tgspool/tgspool/internal/manage"
	"github.com/tgspool/tgspool/internal/spool"
)

// answering stands in for whoever watches the heartbeats.
type answering func(*http.Request) (*http.Response, error)

func (f answering) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// TestHeartbeats: a ping an interval while all is well, none else; changes are
// told once, and the URL never.
func TestHeartbeats(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var said bytes.Buffer
		var mu sync.Mutex // guards all below: time alone orders nothing
		why, pings, agent := "", 0, ""
		status, broken := 200, error(nil)
		h := &heartbeats{
			unwell: func(config.Monitor, time.Time) string {
				mu.Lock()
				defer mu.Unlock()
				return why
			},
			log:       slog.New(slog.NewTextHandler(&said, nil)),
			userAgent: "tgspool/v1 (%s)", changed: make(chan config.Monitor, 1),
			client: &http.Client{Transport: answering(func(r *http.Request) (*http.Response, error) {
				mu.Lock()
				defer mu.Unlock()
				pings, agent = pings+1, r.Header.Get("User-Agent")
				if broken != nil {
					return nil, broken
				}
				return &http.Response{StatusCode: status, Body: io.NopCloser(strings.NewReader("OK"))}, nil
			})},
		}
		go h.run(t.Context())
		expect := func(what string, want int) {
			t.Helper()
			time.Sleep(10 * time.Minute)
			synctest.Wait()
			mu.Lock()
			defer mu.Unlock()
			if pings != want {
				t.Errorf("%s: %d pings, want %d", what, pings, want)
			}
			pings = 0
		}
		now := func(reason string, code int, err error) {
			mu.Lock()
			defer mu.Unlock()
			why, status, broken = reason, code, err
		}
		expect("without a URL", 0)
		h.use(config.Monitor{HeartbeatURL: "https://hc.example/secret-path", HeartbeatInterval: time.Minute, Name: "attic (\u00e9)\r\nX: y"})
		expect("well", 11) // the first at once
		if agent != "tgspool/v1 (attic _____X: y)" {
			t.Errorf("user agent %q", agent)
		}
		now("bot home: Telegram refuses the token", 200, nil)
		expect("not well", 0)
		now("", 500, nil)
		expect("refused", 10)
		now("", 200, errors.New("no route to host"))
		expect("unreachable", 10)
		now("", 200, nil)
		expect("well again", 10)
		h.use(config.Monitor{HeartbeatURL: "https://hc.example/secret-path", HeartbeatInterval: 5 * time.Minute})
		expect("slower", 3)
		h.use(config.Monitor{})
		expect("off", 0)
		if strings.Contains(said.String(), "secret") || strings.Contains(said.String(), "hc.example") {
			t.Errorf("the URL is in the log:\n%s", said.String())
		}
		want := []string{"not well: no heartbeat is sent", "well again", "didn't arrive", "arrive again"}
		for _, line := range want {
			if strings.Count(said.String(), line) != 1 {
				t.Errorf("%q isn't told once:\n%s", line, said.String())
			}
		}
	})
}

func TestUnwellBot(t *testing.T) {
	now := time.Now()
	long, short := now.Add(-11*time.Minute), now.Add(-9*time.Minute)
	for _, tt := range []struct {
		name string
		view manage.View
		want string
	}{
		{"ok", manage.View{Intake: manage.Intake{State: "ok", Since: long}, Sender: gate.Snapshot{State: gate.StateOK, Since: long}}, ""},
		{"no token", manage.View{Unconfigured: "no"}, "no usable token"},
		{"sender refused", manage.View{Sender: gate.Snapshot{State: gate.StateUnauthorized}}, "refuses the token"},
		{"intake refused", manage.View{Intake: manage.Intake{State: "unauthorized"}}, "refuses the token"},
		{"offline for long", manage.View{Sender: gate.Snapshot{State: gate.StateOffline, Since: long}}, "longer than 10m0s"},
		{"intake offline for long", manage.View{Intake: manage.Intake{State: "offline", Since: long}}, "longer than 10m0s"},
		{"offline", manage.View{Intake: manage.Intake{State: "offline", Since: short}, Sender: gate.Snapshot{State: gate.StateOffline, Since: short}}, ""},
		{"conflict", manage.View{Intake: manage.Intake{State: "conflict", Since: long}}, ""},
		{"paused", manage.View{Sender: gate.Snapshot{State: gate.StatePaused, Since: long}}, ""},
	} {
		if got := unwellBot(tt.view, 10*time.Minute, now); (got == "") != (tt.want == "") || !strings.Contains(got, tt.want) {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.want)
		}
	}
}

// TestStats: a line an interval after something happened, and none otherwise.
func TestStats(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var said lockedBuffer
		s := &stats{
			log: slog.New(slog.NewTextHandler(&said, nil)), changed: make(chan time.Duration, 1), woken: make(chan struct{}, 1),
			bots: map[string]*figures{}, status: func() spool.Status {
				return spool.Status{Bots: []spool.BotStatus{
					{Name: "away"}, {Name: "home", QueueDepth: 3, OldestPendingAgeS: 90.5, DeadLast24h: 1, Jobs: map[spool.State]int64{spool.Uncertain: 2}},
				}}
			},
		}
		go s.run(t.Context())
		s.use(time.Minute)
		lines := func(what string, after time.Duration, want ...string) {
			t.Helper()
			time.Sleep(after)
			synctest.Wait()
			text := said.take()
			if got := strings.Count(text, "\n"); got != len(want) {
				t.Errorf("%s: %d lines, want %d: %s", what, got, len(want), text)
			}
			for _, w := range want {
				if !strings.Contains(text, w) {
					t.Errorf("%s: no %q in %s", what, w, text)
				}
			}
		}
		lines("nothing happened", time.Hour)
		for _, c := range []botapi.Class{botapi.ClassOK, botapi.ClassOK, botapi.ClassFlood, botapi.ClassRejected} {
			s.attempted("home", c)
		}
		s.ran("home", spool.UpdateHandled)
		s.ran("home", spool.UpdateOpen)
		lines("too early", 59*time.Second)
		lines("an interval later", 2*time.Second,
			`bot=home reason="calls 4, ok 2, floods 1, handlers 2, failed 1, queued 3, oldest 1m30s, uncertain 2, dead in 24h 1"`)
		lines("once", time.Hour)
		s.ran("away", spool.UpdateHandled)
		lines("after the rest", time.Minute, `bot=away reason="calls 0, ok 0, handlers 1, failed 0, queued 0"`)
		s.use(0)
		s.ran("away", spool.UpdateHandled)
		lines("off", time.Hour)
	})
}

// lockedBuffer is a log that is read while it is written.
type lockedBuffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

// take returns what was written since the last time.
func (b *lockedBuffer) take() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	defer b.text.Reset()
	return b.text.String()
}
