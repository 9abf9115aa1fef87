package daemon_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tgspool/tgspool/internal/localapi"
	"github.com/tgspool/tgspool/internal/manage"
	"github.com/tgspool/tgspool/internal/setup"
)

// tokenOfClient is a whole bot's, of the house's first bot.
const tokenOfClient = "111:client_client_client_client_client_"

// clients has one bot, whose updates wait for a client, and that client.
func (h *house) clients(handlers string) {
	h.t.Helper()
	h.file("tgspool.toml", fmt.Sprintf("[store]\npath = %q\n[api]\nlisten = [\"unix:%s/s\", \"tcp:%s\"]\n[daemon]\ndrain = \"5s\"\n"+
		"[bots.first]\ntoken_file = %q\napi_base = %q\n%s", h.dir+"/spool.db", h.dir, h.addr, h.dir+"/first", h.base, handlers))
	if err := os.MkdirAll(filepath.Join(h.dir, "conf.d"), 0o700); err != nil {
		h.t.Fatal(err)
	}
	h.file("conf.d/60-clients.toml", fmt.Sprintf("[[bots.first.clients]]\nname = \"whole\"\ntoken_sha256 = %q\nmethods = [\"*\"]\nchats = [\"*\"]\nfull = true\n",
		setup.HashClientToken(tokenOfClient)))
}

// reach waits for the daemon and returns the way to its socket.
func (h *house) reach() *localapi.Client {
	h.t.Helper()
	client := localapi.Dial(h.dir + "/s")
	h.t.Cleanup(client.Close)
	ctx, cancel := context.WithTimeout(h.t.Context(), 30*time.Second)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		var status manage.Status
		if client.Do(ctx, localapi.Request{Method: http.MethodGet, Path: "/v1/status"}, &status) == nil {
			return client
		}
		select {
		case <-tick.C:
		case err := <-h.ended:
			h.t.Fatalf("the daemon has ended: %v\n%s", err, &h.log)
		case <-ctx.Done():
			h.t.Fatalf("the daemon isn't there:\n%s", &h.log)
		}
	}
}

// asClient makes a call as a bot library does.
func (h *house) asClient(method, body string, result any) int {
	h.t.Helper()
	r, err := http.NewRequestWithContext(h.t.Context(), http.MethodPost, "http://"+h.addr+"/bot"+tokenOfClient+"/"+method, strings.NewReader(body))
	if err != nil {
		h.t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	a, err := http.DefaultClient.Do(r)
	if err != nil {
		h.t.Fatal(err)
	}
	defer func() { _ = a.Body.Close() }()
	text, err := io.ReadAll(a.Body)
	if err != nil {
		h.t.Fatal(err)
	}
	var envelope struct {
		Result json.RawMessage `json:"result"`
	}
	if err := json.Unmarshal(text, &envelope); err != nil {
		h.t.Fatalf("%s: %d %s", method, a.StatusCode, text)
	}
	if result != nil && json.Unmarshal(envelope.Result, result) != nil {
		h.t.Fatalf("%s: %d %s", method, a.StatusCode, text)
	}
	return a.StatusCode
}

// wantSent waits until a text has reached Telegram.
func (h *house) wantSent(text string) {
	h.t.Helper()
	ctx, cancel := context.WithTimeout(h.t.Context(), 30*time.Second)
	defer cancel()
	for {
		next := h.sim.Arrived()
		if h.sim.CountText(7, text) == 1 {
			return
		}
		select {
		case <-next:
		case <-ctx.Done():
			h.t.Fatalf("%q hasn't arrived:\n%s", text, &h.log)
		}
	}
}

// TestClients_WholeWay is a bot on the client's token alone: it polls, answers,
// asks for other kinds of updates, has them pushed, over a restart, and is out
// when it is taken from the settings.
func TestClients_WholeWay(t *testing.T) {
	h := newHouse(t)
	h.clients("")
	h.start()
	h.reach()
	poll := func(body string) (ids []int64) {
		var list []struct {
			ID int64 `json:"update_id"`
		}
		if status := h.asClient("getUpdates", body, &list); status != http.StatusOK {
			t.Fatalf("getUpdates: %d\n%s", status, &h.log)
		}
		for _, u := range list {
			ids = append(ids, u.ID)
		}
		return ids
	}
	id := h.sim.FeedText(7, 7, "hello")
	got := poll(`{"offset":0,"timeout":30}`)
	if len(got) != 1 || got[0] != id {
		t.Fatalf("got %v, want %d", got, id)
	}
	if status := h.asClient("sendMessage", `{"chat_id":7,"text":"polled"}`, nil); status != http.StatusOK {
		t.Fatalf("sendMessage: %d", status)
	}
	h.wantSent("polled")

	// A kind that Telegram sends only when it is asked for.
	h.asClient("getUpdates", fmt.Sprintf(`{"offset":%d,"allowed_updates":["message","message_reaction"]}`, id+1), nil)
	reaction := []byte(`{"message_reaction":{"chat":{"id":7,"type":"private"},"message_id":1,"user":{"id":7,"is_bot":false,"first_name":"x"},"date":1796050939,"old_reaction":[],"new_reaction":[]}}`)
	deadline, tick := time.After(30*time.Second), time.NewTicker(20*time.Millisecond)
	defer tick.Stop()
	for fed := int64(0); fed == 0; fed = h.sim.Feed(111, reaction) {
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("Telegram was never asked for reactions:\n%s", &h.log)
		}
	}
	if got := poll(fmt.Sprintf(`{"offset":%d,"timeout":30}`, id+1)); len(got) != 1 {
		t.Fatalf("the reaction: %v", got)
	}

	h.asWebhook(t)
	h.file("conf.d/60-clients.toml", "")
	if err := h.reach().Do(t.Context(), localapi.Request{Method: http.MethodPost, Path: "/v1/reload"}, nil); err != nil {
		t.Fatal(err)
	}
	if status := h.asClient("getMe", `{}`, nil); status != http.StatusUnauthorized {
		t.Errorf("without its entry the client hears %d", status)
	}
	h.end()
	if log := h.log.String(); strings.Contains(log, tokenOfClient) || strings.Contains(log, "/secret-path") {
		t.Errorf("a secret was logged:\n%s", log)
	}
}

// asWebhook goes over to a webhook, whose answers are calls.
func (h *house) asWebhook(t *testing.T) {
	app := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil || !bytes.Contains(body, []byte(`"text":"push`)) {
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"method":"sendMessage","chat_id":7,"text":"answer to `+
			map[bool]string{true: "one", false: "two"}[bytes.Contains(body, []byte("push one"))]+`"}`)
	}))
	defer app.Close()
	if status := h.asClient("setWebhook", `{"url":"`+app.URL+`/secret-path"}`, nil); status != http.StatusOK {
		t.Fatalf("setWebhook: %d", status)
	}
	h.sim.FeedText(7, 7, "push one")
	h.wantSent("answer to one")
	h.end()
	h.start()
	h.reach()
	h.sim.FeedText(7, 7, "push two")
	h.wantSent("answer to two")
}

// TestClients_Hint: a client that polls for what no handler leaves is told of.
func TestClients_Hint(t *testing.T) {
	h := newHouse(t)
	h.clients("unmatched = \"ignore\"\n")
	h.start()
	client := h.reach()
	hint := func() string {
		var status manage.Status
		if err := client.Do(t.Context(), localapi.Request{Method: http.MethodGet, Path: "/v1/status"}, &status); err != nil {
			t.Fatal(err)
		}
		return status.Bots.ByName["first"].Hint
	}
	if got := hint(); got != "" {
		t.Errorf("before anybody polls: %s", got)
	}
	h.asClient("getUpdates", `{}`, nil)
	if got := hint(); !strings.Contains(got, "a client polls for updates, and the handlers leave none") {
		t.Errorf("the hint is %q", got)
	}
	h.end()
}
