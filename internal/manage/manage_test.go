package manage_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tgspool/tgspool/internal/gate"
	"github.com/tgspool/tgspool/internal/manage"
	"github.com/tgspool/tgspool/internal/spool"
)

var started = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// bots stands in for the daemon.
type bots struct {
	names []string
	chats map[string]string

	mu    sync.Mutex // guards views
	views map[string]manage.View
}

// set changes how a bot looks.
func (b *bots) set(name string, v manage.View) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.views[name] = v
}

func (b *bots) Names() []string { return b.names }

func (b *bots) View(name string) (manage.View, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	v, ok := b.views[name]
	return v, ok
}

func (b *bots) ResolveChat(_, name string) (string, bool) {
	chat, ok := b.chats[name]
	return chat, ok
}

// world is the API over a real store with one bot, and one that can't work.
type world struct {
	t     *testing.T
	store *spool.Store
	bot   *spool.Bot
	bots  *bots
	api   http.Handler
	logs  bytes.Buffer

	metrics *manage.Metrics
	stuck   string // what the daemon says of its loops
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{t: t}
	metrics := manage.NewMetrics()
	store, err := spool.Open(t.Context(), spool.Options{Path: filepath.Join(t.TempDir(), "spool.db"), Observer: metrics})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	})
	w.store, w.metrics = store, metrics
	if w.bot, err = store.Attach(t.Context(), spool.BotConfig{ID: 7_000_000_001, Name: "home", Limits: spool.Limits{MaxAttempts: 8}}); err != nil {
		t.Fatal(err)
	}
	w.bots = &bots{
		names: []string{"home", "away"},
		views: map[string]manage.View{
			"home": {
				ID: 7_000_000_001, Username: "home_bot",
				Intake: manage.Intake{State: "ok", Since: started},
				Sender: gate.Snapshot{State: gate.StateOK, Since: started},
			},
			"away": {Unconfigured: "no usable token"},
		},
		chats: map[string]string{"": "12345", "me": "12345", "family": "-1001234567890", "news": "@TheNews"},
	}
	w.api = manage.New(manage.Config{
		Store: store, Bots: w.bots, Version: "v0", StartedAt: started,
		Metrics: metrics, Stuck: func() string { return w.stuck },
		Logger: slog.New(slog.NewTextHandler(&w.logs, nil)),
	})
	return w
}

// answer is what came back.
type answer struct {
	status int
	header http.Header
	body   []byte
}

// do sends a request; kind is the content type, "" for none.
func (w *world) do(method, path, kind, body string) answer {
	w.t.Helper()
	r := httptest.NewRequestWithContext(w.t.Context(), method, path, strings.NewReader(body))
	if kind != "" {
		r.Header.Set("Content-Type", kind)
	}
	rec := httptest.NewRecorder()
	w.api.ServeHTTP(rec, r)
	return answer{rec.Code, rec.Header(), rec.Body.Bytes()}
}

func (w *world) get(path string) answer { w.t.Helper(); return w.do("GET", path, "", "") }
func (w *world) post(path, body string) answer {
	w.t.Helper()
	return w.do("POST", path, "application/json", body)
}

func (w *world) lines(path, body string) answer {
	w.t.Helper()
	return w.do("POST", path, "application/x-ndjson", body)
}

// into decodes an answer that must have the status.
func into[T any](t *testing.T, a answer, status int) T {
	t.Helper()
	var v T
	if a.status != status {
		t.Fatalf("status %d, want %d: %s", a.status, status, a.body)
	}
	if err := json.Unmarshal(a.body, &v); err != nil {
		t.Fatalf("answer %s: %v", a.body, err)
	}
	return v
}

// queue posts a text and returns its job.
func (w *world) queue(chat int64) spool.Job {
	w.t.Helper()
	return into[spool.Job](w.t, w.post("/v1/bots/home/jobs",
		fmt.Sprintf(`{"method":"sendMessage","params":{"chat_id":%d,"text":"x"}}`, chat)), http.StatusCreated)
}

// attempt takes the next job and ends the attempt with the verdict.
func (w *world) attempt(v spool.Verdict) spool.Job {
	w.t.Helper()
	claim, err := w.bot.Claim(w.t.Context())
	if err != nil {
		w.t.Fatal(err)
	}
	job, err := w.bot.Settle(w.t.Context(), claim, v)
	if err != nil {
		w.t.Fatal(err)
	}
	return job
}

// end brings a fresh job of the chat into the state.
func (w *world) end(chat int64, state spool.State) spool.Job {
	w.t.Helper()
	w.queue(chat)
	v := spool.Verdict{State: state, Error: &spool.JobError{Class: "rejected", Code: 400, Description: "Bad Request: no"}}
	if state == spool.Done {
		v = spool.Verdict{State: state, Result: json.RawMessage(`{"message_id":5}`)}
	}
	return w.attempt(v)
}

type list struct {
	Items []json.RawMessage `json:"items"`
	Next  *string           `json:"next"`
}

func TestStatus(t *testing.T) {
	w := newWorld(t)
	w.queue(1)
	w.end(2, spool.Dead)
	a := w.get("/v1/status")
	status := into[manage.Status](t, a, http.StatusOK)
	home := status.Bots.ByName["home"]
	if home.QueueDepth != 1 || home.Jobs[spool.Pending]+home.Jobs[spool.Dead] != 2 || home.DeadLast24h != 1 {
		t.Errorf("counts: %s", a.body)
	}
	away := status.Bots.ByName["away"]
	if away.Intake.State != "unconfigured" || away.Sender.Detail != "no usable token" || away.ID != nil {
		t.Errorf("away: %+v", away)
	}

	var raw struct {
		Bots map[string]struct {
			Jobs    map[string]int64 `json:"jobs"`
			Updates map[string]int64 `json:"updates"`
		} `json:"bots"`
	}
	if err := json.Unmarshal(a.body, &raw); err != nil {
		t.Fatal(err)
	}
	for name, bot := range raw.Bots {
		for _, s := range spool.States() {
			if _, ok := bot.Jobs[string(s)]; !ok {
				t.Errorf("%s has no count of %s jobs", name, s)
			}
		}
		for _, s := range spool.UpdateStates() {
			if _, ok := bot.Updates[string(s)]; !ok {
				t.Errorf("%s has no count of %s updates", name, s)
			}
		}
	}
	for _, want := range []string{
		`"version":"v0"`, `"started_at":"2026-01-02T03:04:05Z"`, `"clock":"ok"`, `"size_bytes":`, `"free_bytes":`, `"full":false`,
		`"id":7000000001,"username":"home_bot","intake":{"state":"ok","since":"2026-01-02T03:04:05Z","offset":0}`,
		`"sender":{"state":"ok","since":"2026-01-02T03:04:05Z","cooldown_until":null}`, `"oldest_pending_age_s":`,
		`"inbox_unhandled":0`,
	} {
		if !strings.Contains(string(a.body), want) {
			t.Errorf("status lacks %s: %s", want, a.body)
		}
	}
}

func TestHealth(t *testing.T) {
	w := newWorld(t)
	for _, path := range []string{"/healthz", "/readyz"} {
		if a := w.get(path); a.status != http.StatusOK || string(a.body) != "ok\n" {
			t.Errorf("%s: %d %s", path, a.status, a.body)
		}
	}
	if err := w.store.Close(); err != nil {
		t.Fatal(err)
	}
	if a := w.get("/readyz"); a.status != http.StatusServiceUnavailable {
		t.Errorf("readyz of a closed store: %d", a.status)
	}
	if a := w.get("/v1/jobs/1"); a.status != http.StatusServiceUnavailable || a.header.Get("Retry-After") == "" {
		t.Errorf("a closed store: %d %s", a.status, a.body)
	}
}

func TestPostJob(t *testing.T) {
	w := newWorld(t)
	a := w.post("/v1/bots/home/jobs", `{"method":"sendmessage","params":{"chat_id":-1001234567890,"text":"<b> & 9007199254740993","n":9007199254740993},
		"dedupe_key":"k","dedupe_for":"1h","lane":"bulk","delay":"10m","ttl":"2d","max_attempts":3,"on_uncertain":"drop","force":true}`)
	job := into[spool.Job](t, a, http.StatusCreated)
	if job.ID < 1 || job.Bot != "home" || job.Method != "sendMessage" || job.State != spool.Pending || job.Lane != spool.Bulk ||
		job.MaxAttempts != 3 || job.OnUncertain != spool.PolicyDrop || *job.DedupeKey != "k" || job.Origin != "api" {
		t.Errorf("job %s", a.body)
	}
	if string(job.ChatID) != "-1001234567890" || !strings.Contains(string(job.Params), `"n":9007199254740993`) {
		t.Errorf("numbers are not exact: %s", a.body)
	}
	if d := time.Until(*job.NotBefore); d < 9*time.Minute || d > 10*time.Minute {
		t.Errorf("not_before in %s", d)
	}
	if d := time.Until(*job.ExpiresAt); d < 47*time.Hour || d > 48*time.Hour {
		t.Errorf("expires_at in %s", d)
	}

	again := into[struct {
		ID        int64
		Duplicate bool
	}](t, w.post("/v1/bots/home/jobs", `{"method":"getMe","dedupe_key":"k"}`), http.StatusOK)
	if !again.Duplicate || again.ID != job.ID {
		t.Errorf("duplicate: %+v", again)
	}
	if strings.Contains(string(a.body), "duplicate") {
		t.Errorf("a new job is marked a duplicate: %s", a.body)
	}
}

func TestPostJob_Fallback(t *testing.T) {
	for body, want := range map[string]string{
		`{"method":"sendMessage","chat":"family","params":{"text":"<b>x"},"fallback":{"params":{"text":"x"}}}`:                                  `{"chat_id":-1001234567890,"text":"x"}`,
		`{"method":"sendMessage","params":{"chat_id":"family","text":"<b>x"},"fallback":{"method":"sendmessage","params":{"text":"x"}}}`:        `{"chat_id":-1001234567890,"text":"x"}`,
		`{"method":"sendMessage","params":{"chat_id":"@News","text":"<b>x"},"fallback":{"params":{"text":"x"}}}`:                                `{"chat_id":"@news","text":"x"}`,
		`{"method":"sendMessage","chat":"family","params":{"text":"<b>x"},"fallback":{"params":{"chat_id":"family","text":"x"}}}`:               `{"chat_id":-1001234567890,"text":"x"}`,
		`{"method":"editMessageText","params":{"inline_message_id":"q","text":"1"},"fallback":{"params":{"inline_message_id":"q","text":"2"}}}`: `{"inline_message_id":"q","text":"2"}`,
	} {
		w := newWorld(t)
		id := into[spool.Job](t, w.post("/v1/bots/home/jobs", body), http.StatusCreated).ID
		f := into[spool.Job](t, w.get("/v1/jobs/"+strconv.FormatInt(id, 10)), http.StatusOK).Fallback
		if f == nil || string(f.Params) != want || f.Used {
			t.Errorf("%s made the fallback %+v, want %s", body, f, want)
		}
	}
}

// TestPostJob_EveryField: members are always there, null when empty.
func TestPostJob_EveryField(t *testing.T) {
	w := newWorld(t)
	a := w.post("/v1/bots/home/jobs", `{"method":"getMe","lane":null,"dedupe_key":null}`)
	got := into[map[string]json.RawMessage](t, a, http.StatusCreated)
	for name := range strings.FieldsSeq(`id bot method chat_id sent_chat_id lane state params files dedupe_key not_before retry_at
		expires_at attempts max_attempts on_uncertain held_by origin created_at updated_at last_error evidence result`) {
		if _, ok := got[name]; !ok {
			t.Errorf("%s is missing: %s", name, a.body)
		}
	}
}

func TestPostJob_Chats(t *testing.T) {
	tests := []struct{ name, body, chat, params string }{
		{"a name in chat", `{"method":"sendMessage","chat":"family","params":{"text":"x"}}`, "-1001234567890", `{"chat_id":-1001234567890,"text":"x"}`},
		{"an id in chat", `{"method":"sendMessage","chat":"-5","params":{ "text":"x"}}`, "-5", `{"chat_id":-5, "text":"x"}`},
		{"a number in chat", `{"method":"sendMessage","chat":-1001234567890,"params":{"text":"x"}}`, "-1001234567890", `{"chat_id":-1001234567890,"text":"x"}`},
		{"the default chat", `{"method":"sendMessage","chat":"","params":{"text":"x"}}`, "12345", `{"chat_id":12345,"text":"x"}`},
		{"no parameters", `{"method":"sendDice","chat":"me"}`, "12345", `{"chat_id":12345}`},
		{"empty parameters", `{"method":"sendDice","chat":"me","params":{}}`, "12345", `{"chat_id":12345}`},
		{"an @name behind a name", `{"method":"sendDice","chat":"news"}`, `"@TheNews"`, `{"chat_id":"@TheNews"}`},
		{"chat_id null", `{"method":"sendDice","chat":"me","params":{"chat_id":null,"emoji":"x"}}`, "12345", `{"chat_id":12345,"emoji":"x"}`},
		{"a name in chat_id", `{"method":"sendMessage","params":{"text":"x", "chat_id" : "family" ,"a":1}}`, "-1001234567890", `{"text":"x", "chat_id" : -1001234567890 ,"a":1}`},
		{"an id in chat_id", `{"method":"sendMessage","params":{"chat_id":"-1001234567890","text":"x"}}`, `"-1001234567890"`, `{"chat_id":"-1001234567890","text":"x"}`},
		{"an @name in chat_id", `{"method":"sendMessage","params":{"chat_id":"@Some","text":"x"}}`, `"@Some"`, `{"chat_id":"@Some","text":"x"}`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld(t)
			id := into[spool.Job](t, w.post("/v1/bots/home/jobs", tt.body), http.StatusCreated).ID
			job, err := w.store.Job(id)
			if err != nil {
				t.Fatal(err)
			}
			if string(job.ChatID) != tt.chat || string(job.Params) != tt.params {
				t.Errorf("chat_id %s, params %s; want %s, %s", job.ChatID, job.Params, tt.chat, tt.params)
			}
		})
	}
}

func TestPostJobs_Many(t *testing.T) {
	w := newWorld(t)
	a := w.lines("/v1/bots/home/jobs", `{"method":"sendMessage","params":{"chat_id":1,"text":"a"},"dedupe_key":"a"}

{"method":"sendMessage","params":{"chat_id":2,"text":"b"}}
{"method":"sendMessage","params":{"chat_id":1,"text":"a"},"dedupe_key":"a"}`)
	got := into[struct {
		Items []struct {
			ID        int64
			Duplicate bool
		}
	}](t, a, http.StatusCreated).Items
	if len(got) != 3 || got[0].ID == got[1].ID || got[0].Duplicate || !got[2].Duplicate || got[2].ID != got[0].ID {
		t.Errorf("items %s", a.body)
	}

	bad := w.lines("/v1/bots/home/jobs", "{\"method\":\"getMe\"}\n{\"method\":\"getMe\",\"lan\":\"bulk\"}\n")
	if p := into[manage.Problem](t, bad, http.StatusUnprocessableEntity); !strings.HasPrefix(p.Detail, `line 2: unknown member "lan"`) {
		t.Errorf("detail %q", p.Detail)
	}
	if all := into[list](t, w.get("/v1/bots/home/jobs"), http.StatusOK); len(all.Items) != 2 {
		t.Errorf("%d jobs after a refused batch, want 2", len(all.Items))
	}

	many := strings.Repeat(`{"method":"getMe"}`+"\n", 10_001)
	if a := w.lines("/v1/bots/home/jobs", many); a.status != http.StatusRequestEntityTooLarge {
		t.Errorf("10,001 jobs: %d %s", a.status, a.body)
	}
}

func TestPostJob_Wait(t *testing.T) {
	w := newWorld(t)
	settled := make(chan error, 1)
	go func() {
		claim, err := w.bot.Claim(context.Background())
		if err == nil {
			_, err = w.bot.Settle(context.Background(), claim, spool.Verdict{State: spool.Done, Result: json.RawMessage(`true`)})
		}
		settled <- err
	}()
	job := into[spool.Job](t, w.post("/v1/bots/home/jobs?wait=1m", `{"method":"getMe"}`), http.StatusCreated)
	if err := <-settled; err != nil {
		t.Fatal(err)
	}
	if job.State != spool.Done || string(job.Result) != "true" {
		t.Errorf("job %+v", job)
	}

	open := w.queue(5)
	got := into[spool.Job](t, w.get(fmt.Sprintf("/v1/jobs/%d?wait=1ms", open.ID)), http.StatusOK)
	if got.State != spool.Pending {
		t.Errorf("after the wait: %s", got.State)
	}
}

// TestPostJob_CallerGone: a caller that hangs up changes nothing about what is
// committed.
func TestPostJob_CallerGone(t *testing.T) {
	w := newWorld(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	r := httptest.NewRequestWithContext(ctx, "POST", "/v1/bots/home/jobs?wait=1m", strings.NewReader(`{"method":"getMe"}`))
	rec := httptest.NewRecorder()
	w.api.ServeHTTP(rec, r)
	if rec.Code != http.StatusCreated {
		t.Errorf("status %d: %s", rec.Code, rec.Body)
	}
}
