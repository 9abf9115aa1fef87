package daemon_test

import (
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tgspool/tgspool/internal/localapi"
	"github.com/tgspool/tgspool/internal/manage"
	"github.com/tgspool/tgspool/internal/setup"
	"github.com/tgspool/tgspool/internal/spool"
)

const (
	tokenOfBell  = "111:bell_bell_bell_bell_bell_bell_bell_"
	tokenOfAdmin = "administrator"
)

// access has one bot with a client that may do little, on an address with TLS.
func (h *house) access(more string) {
	h.t.Helper()
	h.file("admin", tokenOfAdmin+"\n")
	h.file("tgspool.toml", fmt.Sprintf("[store]\npath = %q\n[api]\nlisten = [\"unix:%s/s\", { addr = \"unix:%s/submit\", serve = [\"submit\"] },\n"+
		"{ addr = \"tcp:%s\", tls_cert = %q, tls_key = %q }]\nadmin_token_file = %q\n%s[daemon]\ndrain = \"5s\"\n"+
		"[bots.first]\ntoken_file = %q\napi_base = %q\ndefault_chat = \"me\"\n[bots.first.chats]\nme = 7\nyou = 8\n"+
		"[[bots.first.clients]]\nname = \"bell\"\ntoken_sha256 = %q\nmethods = [\"sendMessage\"]\nchats = [\"me\"]\nlane = \"bulk\"\n",
		h.dir+"/spool.db", h.dir, h.dir, h.addr, h.dir+"/cert", h.dir+"/key", h.dir+"/admin", more,
		h.dir+"/first", h.base, setup.HashClientToken(tokenOfBell)))
}

// over asks over TLS with a bearer token; host is what the request calls us.
func (h *house) over(bearer, host, method, path, body string) (int, string) {
	h.t.Helper()
	client := &http.Client{Timeout: 30 * time.Second, Transport: &http.Transport{
		TLSClientConfig: &tls.Config{RootCAs: h.roots, ServerName: "hook.test", MinVersion: tls.VersionTLS12}, DisableKeepAlives: true,
	}}
	r, err := http.NewRequestWithContext(h.t.Context(), method, "https://"+h.addr+path, strings.NewReader(body))
	if err != nil {
		h.t.Fatal(err)
	}
	r.Host = host
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Authorization", "Bearer "+bearer)
	a, err := client.Do(r)
	if err != nil {
		h.t.Fatal(err)
	}
	defer func() { _ = a.Body.Close() }()
	text, err := io.ReadAll(a.Body)
	if err != nil {
		h.t.Fatal(err)
	}
	return a.StatusCode, string(text)
}

// TestAccess_WholeWay: what a client's token, the administrator's, wrong ones and
// strange names get over TLS, what submit.sock does, and what a reload changes.
func TestAccess_WholeWay(t *testing.T) {
	h := newHouse(t)
	h.access("")
	h.start()
	h.reach()
	const jobs, notify = "/v1/bots/first/jobs", "/v1/bots/first/notify"
	for _, tt := range []struct {
		bearer, host, method, path, body string
		status                           int
		want                             string
	}{
		{tokenOfBell, "localhost", "POST", jobs, `{"method":"sendMessage","chat":"me","params":{"text":"posted"}}`, 201, `"origin":"api:bell"`},
		{tokenOfBell, "localhost", "POST", notify, `{"text":"noted"}`, 201, `"lane":"bulk"`},
		{tokenOfBell, "localhost", "POST", notify + "?chat=you", `{"text":"x"}`, 403, `client \"bell\" may not call sendMessage with this chat_id: its chats are 7`},
		{tokenOfBell, "localhost", "POST", jobs, `{"method":"sendDice","chat":"me"}`, 403, `its methods are sendMessage`},
		{tokenOfBell, "localhost", "GET", "/v1/status", "", 403, `"bots":["first"]`},
		{tokenOfBell, "localhost", "POST", "/v1/bots/second/notify", `{"text":"x"}`, 403, `bot \"first\"`},
		{tokenOfAdmin, "localhost", "GET", "/v1/status", "", 200, `"first"`},
		{tokenOfAdmin, "evil.example", "GET", "/v1/status", "", 403, "api.hosts"},
		{tokenOfAdmin, "evil.example", "GET", "/bot" + tokenOfBell + "/getMe", "", 403, `"error_code":403`},
		{tokenOfAdmin, "localhost", "POST", "/v1/bots/first/token", `{"token":"x"}`, 403, ""},
		{firstToken, "localhost", "GET", "/v1/status", "", 401, "bearer"},
		{"wrong", "localhost", "GET", "/v1/status", "", 401, "bearer"},
	} {
		status, text := h.over(tt.bearer, tt.host, tt.method, tt.path, tt.body)
		if status != tt.status || !strings.Contains(text, tt.want) {
			t.Errorf("%s %s as %.5s: %d %s; want %d and %s", tt.method, tt.path, tt.bearer, status, text, tt.status, tt.want)
		}
	}
	h.wantSent("posted")
	h.wantSent("noted")
	h.submits(t)
	h.reloads(t)
	h.floods(t)
	h.end()
	if log := h.log.String(); strings.Contains(log, tokenOfBell) || strings.Contains(log, tokenOfAdmin) {
		t.Errorf("a secret was logged:\n%s", log)
	}
}

// submits posts on the socket that serves nothing else.
func (h *house) submits(t *testing.T) {
	client := localapi.Dial(filepath.Join(h.dir, "submit"))
	defer client.Close()
	do := func(method, path, body string, out any) error {
		return client.Do(t.Context(), localapi.Request{Method: method, Path: path, Body: []byte(body)}, out)
	}
	var job spool.Job
	if err := do("POST", "/v1/bots/first/notify?wait=30s", `{"text":"submitted"}`, &job); err != nil || job.State != spool.Done {
		t.Errorf("submitting: %+v, %v", job, err)
	}
	if want := fmt.Sprintf("submit:%d", os.Geteuid()); job.Origin != want {
		t.Errorf("origin %q, want %q", job.Origin, want)
	}
	var own struct{ Items []spool.Job }
	if err := do("GET", "/v1/bots/first/jobs", "", &own); err != nil || len(own.Items) != 1 {
		t.Errorf("its own: %+v, %v", own, err)
	}
	for _, path := range []string{"/v1/status", "/v1/bots/first/updates", "/v1/bots/first/chats"} {
		if p, ok := problemOf(do("GET", path, "", nil)); !ok || p.Status != http.StatusForbidden {
			t.Errorf("%s: %+v", path, p)
		}
	}
	if p, ok := problemOf(do("POST", fmt.Sprintf("/v1/jobs/%d/cancel", job.ID), "", nil)); !ok || p.Status != http.StatusForbidden {
		t.Errorf("cancel: %+v", p)
	}
}

func problemOf(err error) (*manage.Problem, bool) {
	p, ok := err.(*manage.Problem) //nolint:errorlint // the client hands it out bare
	return p, ok
}

// reloads takes other names, another administrator and other webhook hosts into
// use.
func (h *house) reloads(t *testing.T) {
	hook := func() int {
		status, _ := h.over("", "localhost", "POST", "/bot"+firstToken+"/setWebhook", `{"url":"http://box.lan/hook"}`)
		return status
	}
	if status := hook(); status != http.StatusBadRequest {
		t.Errorf("a webhook of an unknown host: %d", status)
	}
	h.access("hosts = [\"pi.lan\"]\nwebhook_hosts = [\"box.lan\"]\n")
	h.file("admin", "another")
	if err := h.reach().Do(t.Context(), localapi.Request{Method: http.MethodPost, Path: "/v1/reload"}, nil); err != nil {
		t.Fatal(err)
	}
	if status, text := h.over("another", "pi.lan", "GET", "/v1/status", ""); status != http.StatusOK {
		t.Errorf("by the new name and token: %d %s", status, text)
	}
	if status, _ := h.over(tokenOfAdmin, "pi.lan", "GET", "/v1/status", ""); status != http.StatusUnauthorized {
		t.Errorf("by the old token: %d", status)
	}
	if status := hook(); status != http.StatusOK {
		t.Errorf("a webhook of a host that is known by now: %d", status)
	}
}

// floods tries tokens: after a few everybody who has a wrong one is turned away,
// and nobody who has a right one.
func (h *house) floods(t *testing.T) {
	tooMany := 0
	for range 30 {
		if status, _ := h.over("guess", "localhost", "GET", "/v1/status", ""); status == http.StatusTooManyRequests {
			tooMany++
		}
	}
	if tooMany == 0 {
		t.Error("nobody slows down who tries tokens")
	}
	if status, text := h.over("", "localhost", "GET", "/bot111:"+strings.Repeat("g", 35)+"/getMe", ""); status != http.StatusTooManyRequests || !strings.Contains(text, "retry_after") {
		t.Errorf("the same at the bot endpoint: %d %s", status, text)
	}
	if status, _ := h.over(tokenOfBell, "localhost", "GET", "/v1/bots/first/jobs", ""); status != http.StatusOK {
		t.Errorf("the right token: %d", status)
	}
}
