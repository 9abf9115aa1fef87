package manage

import (
	"encoding/json"
	"errors"
	"log/slog"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/tgspool/tgspool/internal/spool"
)

// nameless is a daemon whose only chat is family.
type nameless struct{}

func (nameless) Names() []string          { return nil }
func (nameless) View(string) (View, bool) { return View{}, false }
func (nameless) ResolveChat(_, name string) (string, bool) {
	return "-1001234567890", name == "family"
}

// FuzzJobBody: whatever is posted, it is refused as the caller's mistake or
// makes a job whose parameters are a JSON object, with the chat in it that was
// asked for.
func FuzzJobBody(f *testing.F) {
	for _, seed := range []string{
		`{"method":"sendMessage","params":{"chat_id":-1001234567890,"text":"x"}}`,
		`{"method":"sendMessage","chat":"family","params":{ "text":"\ud83d\ude00"}}`,
		`{"method":"sendDice","chat":-5,"params":{"chat_id":null}}`,
		`{"method":"getMe","params":{},"delay":"10m","ttl":"2d","dedupe_key":"k","dedupe_for":"1h"}`,
		`{"method":"getMe","not_before":"2026-01-02T03:04:05+09:00","lane":"bulk","on_uncertain":"drop","force":true,"max_attempts":3}`,
		`{"method":"sendMessage","params":{"chat_id":"family","chat_id":5}}`,
		`{"method":"sendMessage","chat":"","params":{"":{},"a":[1,{"b":[]}]}}`,
		`{}`, `[]`, `{"method":`, `{"method":"getMe"} {}`, "{\"method\":\"a\x00\"}",
	} {
		f.Add([]byte(seed))
	}
	a := &api{bots: nameless{}, log: slog.New(slog.DiscardHandler)}
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	r := httptest.NewRequest("POST", "/v1/bots/home/jobs", nil)
	f.Fuzz(func(t *testing.T, data []byte) {
		p, err := readJob(data, now)
		var job spool.NewJob
		if err == nil {
			job, err = a.build(r, "home", p)
		}
		if err != nil {
			if status := toProblem(err).Status; status != 400 && status != 422 {
				t.Fatalf("status %d: %v", status, err)
			}
			return
		}
		if job.Method == "" || !job.ExpiresAt.IsZero() && !job.ExpiresAt.After(now) {
			t.Fatalf("job %+v", job)
		}
		var params map[string]json.RawMessage
		if len(job.Params) > 0 {
			if err := json.Unmarshal(job.Params, &params); err != nil {
				t.Fatalf("params %q: %v", job.Params, err)
			}
		}
		if p.chat != nil && len(params["chat_id"]) == 0 {
			t.Fatalf("chat %q is not in %q", *p.chat, job.Params)
		}
	})
}

// FuzzFilter: whatever the query, it is refused, or selects by values that
// exist.
func FuzzFilter(f *testing.F) {
	for _, seed := range []string{
		"state=dead&chat=family&lane=bulk&method=sendmessage&older=10m&origin=cli", "chat=-1001234567890", "chat=%40News",
		"state=", "state=dead&state=done", "stat=dead", "older=-5m", "older=5d", "key=%00", "limit=7&after=5", "a;b", "%",
	} {
		f.Add(seed)
	}
	a := &api{bots: nameless{}, log: slog.New(slog.DiscardHandler)}
	f.Fuzz(func(t *testing.T, query string) {
		r := httptest.NewRequest("GET", "/", nil)
		r.URL.RawQuery = query
		q, err := readQuery(r, append([]string{"limit", "after"}, filterNames...)...)
		var filter spool.JobFilter
		if err == nil {
			filter, err = a.filter("home", q)
		}
		if err == nil {
			_, _, err = q.page()
		}
		if err != nil {
			if _, ours := errors.AsType[*Problem](err); !ours {
				t.Fatalf("%q: %v", query, err)
			}
			return
		}
		if filter.State != "" && !slices.Contains(spool.States(), filter.State) || filter.Older < 0 || q["chat"] != "" && filter.Chat == "" {
			t.Fatalf("%q selects %+v", query, filter)
		}
	})
}

func TestParseDuration(t *testing.T) {
	for _, tt := range []struct {
		in   string
		want time.Duration
		ok   bool
	}{
		{"90s", 90 * time.Second, true},
		{"1h30m", 90 * time.Minute, true},
		{"7d", 168 * time.Hour, true},
		{"0s", 0, true},
		{"-1s", 0, false},
		{"-1d", 0, false},
		{"3650d", 3650 * 24 * time.Hour, true},
		{"3651d", 0, false},
		{"999999999999d", 0, false},
		{"9223372036s", 0, false},
		{"", 0, false},
		{"5", 0, false},
		{"d", 0, false},
		{"1.5d", 0, false},
	} {
		got, err := ParseDuration(tt.in)
		if (err == nil) != tt.ok || tt.ok && got != tt.want {
			t.Errorf("%q: %s, %v", tt.in, got, err)
		}
	}
}

// FuzzClaim: whatever is asked for is refused as the caller's mistake, or within
// its bounds.
func FuzzClaim(f *testing.F) {
	for _, seed := range []string{``, `{}`, `{"max":10,"lease":"60s","wait":"30s"}`, `{"max":1e9}`, `{"lease":"-1s"}`, `{"wait":"7d","max":null}`, `{"max":1,"max":2}`, `[`} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, body string) {
		c, err := readClaim([]byte(body))
		if err != nil {
			if status := toProblem(err).Status; status != 400 && status != 422 {
				t.Fatalf("status %d: %v", status, err)
			}
			return
		}
		if c.max < 1 || c.max > maxClaim || c.lease < minLease || c.lease > maxLease || c.wait < 0 || c.wait > maxWait {
			t.Fatalf("%q asks for %+v", body, c)
		}
	})
}

// FuzzSessionRequest: a key and a condition are refused, or mean one session and
// one version.
func FuzzSessionRequest(f *testing.F) {
	for _, seed := range [][3]string{{"-100:5", `"3"`, ""}, {"family", "*", ""}, {"5", "", "*"}, {"5:", `W/"1"`, `"1"`}, {"5:-1", `"1","2"`, ""}, {"\x00", `"`, ","}} {
		f.Add(seed[0], seed[1], seed[2])
	}
	a := &api{bots: nameless{}, log: slog.New(slog.DiscardHandler)}
	store, err := spool.Open(f.Context(), spool.Options{Path: filepath.Join(f.TempDir(), "spool.db")})
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { _ = store.Close() })
	bot, err := store.Attach(f.Context(), spool.BotConfig{ID: 1, Name: "home"})
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, key, match, none string) {
		k, err := a.sessionKey(bot, key)
		switch {
		case err != nil:
			if status := toProblem(err).Status; status != 400 && status != 404 && status != 422 {
				t.Fatalf("status %d: %v", status, err)
			}
		case k.Chat == 0 || k.User < 0:
			t.Fatalf("%q is %+v", key, k)
		default:
			if again, err := spool.ParseSessionKey(k.String()); err != nil || again != k {
				t.Fatalf("%q is %s, which is %s: %v", key, k, again, err)
			}
		}
		r := httptest.NewRequest("PUT", "/", nil)
		r.Header["If-Match"], r.Header["If-None-Match"] = []string{match}, []string{none}
		version, err := wantedVersion(r)
		if err == nil && version < spool.SomeVersion || err != nil && toProblem(err).Status != 400 {
			t.Fatalf("%q, %q: %d, %v", match, none, version, err)
		}
	})
}
