package manage_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/tgspool/tgspool/internal/gate"
	"github.com/tgspool/tgspool/internal/manage"
	"github.com/tgspool/tgspool/internal/spool"
)

// ear is a client of /v1/events.
type ear struct {
	t   *testing.T
	in  *bufio.Reader
	res *http.Response
}

// listen connects, and hears the hello.
func listen(t *testing.T, w *world, query string) *ear {
	t.Helper()
	server := httptest.NewServer(w.api)
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, server.URL+"/v1/events"+query, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = res.Body.Close()
		cancel()
		server.Close() // waits for the handler
	})
	return &ear{t: t, in: bufio.NewReader(res.Body), res: res}
}

// next is the next event.
func (e *ear) next() (name string, data map[string]any) {
	e.t.Helper()
	for {
		line, err := e.in.ReadString('\n')
		if err != nil {
			e.t.Fatalf("no event: %v", err)
		}
		line = strings.TrimSuffix(line, "\n")
		if n, ok := strings.CutPrefix(line, "event: "); ok {
			name = n
		}
		if d, ok := strings.CutPrefix(line, "data: "); ok {
			if err := json.Unmarshal([]byte(d), &data); err != nil {
				e.t.Fatalf("%s: %v", d, err)
			}
			return name, data
		}
	}
}

// heard skips events until one of a name.
func (e *ear) heard(name string) map[string]any {
	e.t.Helper()
	for {
		if n, data := e.next(); n == name {
			return data
		}
	}
}

func TestEvents(t *testing.T) {
	w := newWorld(t)
	e := listen(t, w, "")
	if kind := e.res.Header.Get("Content-Type"); kind != "text/event-stream" {
		t.Errorf("content type %s", kind)
	}
	name, data := e.next()
	if name != "hello" || data["version"] != "v0" || data["missed"] != 0.0 || data["bots"].(map[string]any)["home"] == nil {
		t.Fatalf("first %s %v", name, data)
	}
	if got := w.post("/v1/bots/home/jobs", `{"method":"sendMessage","params":{"chat_id":12345,"text":"secret words"}}`); got.status != 201 {
		t.Fatalf("%d %s", got.status, got.body)
	}
	if data := e.heard("chat"); data["chat_id"] != 12345.0 || data["bot"] != "home" || data["active"] != true {
		t.Errorf("chat %v", data)
	}
	data = e.heard("job")
	if data["id"] != 1.0 || data["state"] != "pending" || data["bot"] != "home" || data["method"] != "sendMessage" {
		t.Errorf("job %v", data)
	}
	if _, there := data["params"]; there || strings.Contains(fmt.Sprint(data), "secret") {
		t.Errorf("its text is told: %v", data)
	}
	if data := e.heard("bot"); data["bot"] != "home" || data["queue_depth"] != 1.0 {
		t.Errorf("bot %v", data)
	}
	u := spool.NewUpdate{ID: 1, HasID: true, Kind: "message", Raw: []byte(`{"update_id":1}`), OrderKey: "chat:1"}
	if _, err := w.bot.Intake(t.Context(), spool.Batch{Updates: []spool.NewUpdate{u}}); err != nil {
		t.Fatal(err)
	}
	data = e.heard("update")
	if _, there := data["update"]; there || data["seq"] != 1.0 || data["state"] != "open" || data["bot"] != "home" {
		t.Errorf("update %v", data)
	}
	w.bots.set("home", manage.View{Sender: gate.Snapshot{State: gate.StateOffline, Detail: "no route"}})
	for {
		if s := e.heard("bot")["sender"].(map[string]any); s["state"] == "offline" {
			break
		}
	}
}

func TestEvents_Chosen(t *testing.T) {
	w := newWorld(t)
	e := listen(t, w, "?bot=home&event=job")
	if _, data := e.next(); len(data["bots"].(map[string]any)) != 1 {
		t.Errorf("hello %v", data)
	}
	for range 2 {
		w.post("/v1/bots/home/jobs", `{"method":"sendMessage","params":{"chat_id":12345,"text":"x"}}`)
		if name, data := e.next(); name != "job" {
			t.Errorf("%s %v", name, data)
		}
	}
	for query, status := range map[string]int{"?bot=nobody": 404, "?event=jobs": 400, "?event=": 400, "?limit=1": 400} {
		if got := w.get("/v1/events" + query); got.status != status {
			t.Errorf("%s: %d %s", query, got.status, got.body)
		}
	}
}

// TestEvents_Slow: who doesn't read holds nobody up, and is told that it missed
// something.
func TestEvents_Slow(t *testing.T) {
	w := newWorld(t)
	e := listen(t, w, "?event=job")
	e.next()
	line := `{"method":"sendMessage","params":{"chat_id":12345,"text":"x"},"dedupe_key":"` + strings.Repeat("k", 240)
	var lines strings.Builder
	for i := range 5000 { // far more than the sockets between us hold
		fmt.Fprintf(&lines, "%s%d\"}\n", line[:len(line)-4], i)
	}
	if got := w.do("POST", "/v1/bots/home/jobs", "application/x-ndjson", lines.String()); got.status != 201 {
		t.Fatalf("%d %s", got.status, got.body)
	}
	if data := e.heard("hello"); data["missed"].(float64) < 1 {
		t.Errorf("hello %v", data)
	}
	w.post("/v1/bots/home/jobs", `{"method":"sendMessage","params":{"chat_id":12345,"text":"after"}}`)
	for e.heard("job")["id"] != 5001.0 {
		continue
	}
}
