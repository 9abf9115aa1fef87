package daemon_test

import (
	"bytes"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/tgspool/tgspool/internal/localapi"
)

// TestPush_WholeWay is a bot behind a local URL: it is down at first, then
// answers with calls, and loses nothing; a reload sends updates elsewhere.
func TestPush_WholeWay(t *testing.T) {
	h := newHouse(t)
	addr := freeAddr(t)
	settings := func(path string) {
		h.file("conf.d/60-clients.toml", "[[bots.first.handlers]]\nname = \"app\"\nwebhook = \"http://"+addr+path+"\"\nsecret_file = \""+h.file("push", "pushed-1")+"\"\n")
	}
	h.clients("")
	settings("/secret-path")
	h.start()
	client := h.reach()
	h.sim.FeedText(7, 7, "one")
	h.sim.FeedText(7, 7, "two")
	deadline := time.After(30 * time.Second)
	for tick := time.NewTicker(20 * time.Millisecond); !strings.Contains(h.logText(), "handler can't be reached"); {
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("nobody missed the bot:\n%s", h.logText())
		}
	}
	l, err := net.Listen("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{ReadHeaderTimeout: time.Minute, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil || r.Header.Get("X-Telegram-Bot-Api-Secret-Token") != "pushed-1" {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		_, text, _ := bytes.Cut(body, []byte(`"text":"`))
		text, _, _ = bytes.Cut(text, []byte(`"`))
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"method":"sendMessage","chat_id":7,"text":"answer to `+string(text)+` at `+r.URL.Path+`"}`) //nolint:gosec // a call as JSON, and no page
	})}
	go func() { _ = server.Serve(l) }()
	defer func() { _ = server.Close() }()
	h.wantSent("answer to one at /secret-path")
	h.wantSent("answer to two at /secret-path")
	settings("/other-path")
	if err := client.Do(t.Context(), localapi.Request{Method: http.MethodPost, Path: "/v1/reload"}, nil); err != nil {
		t.Fatal(err)
	}
	h.sim.FeedText(7, 7, "three")
	h.wantSent("answer to three at /other-path")
	h.end()
	if log := h.logText(); strings.Contains(log, "pushed-1") || strings.Contains(log, "/secret-path") {
		t.Errorf("a secret was logged:\n%s", log)
	}
}

func (h *house) logText() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.log.String()
}
