package localapi_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tgspool/tgspool/internal/localapi"
)

// botFace stands in for the bot endpoint: it says what it was asked.
func botFace(a localapi.BotAccess) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Access", fmt.Sprint(a.ClientsOnly))
		w.Header().Set("X-Path", r.URL.Path)
		_, _ = io.Copy(io.Discard, r.Body)
	})
}

func TestServer_Bot(t *testing.T) {
	dir := t.TempDir()
	tests := []struct {
		name     string
		endpoint localapi.Endpoint
		path     string
		want     string // path that the bot endpoint saw; empty: others answer
		access   string
	}{
		{"TCP", localapi.Endpoint{Addr: "tcp:127.0.0.1:0"}, "/bot1:a/getMe", "/bot1:a/getMe", "false"},
		{"two slashes, no redirect", localapi.Endpoint{Addr: "tcp:127.0.0.1:0"}, "//bot1:a//getMe", "//bot1:a//getMe", "false"},
		{"no way up, no redirect", localapi.Endpoint{Addr: "tcp:127.0.0.1:0"}, "/file/bot1:a/x/../y", "/file/bot1:a/x/../y", "false"},
		{"an escaped slash", localapi.Endpoint{Addr: "tcp:127.0.0.1:0"}, "/file/bot1:a/x%2Fy", "/file/bot1:a/x/y", "false"},
		{"a path of nobody's", localapi.Endpoint{Addr: "tcp:127.0.0.1:0"}, "/nothing", "/nothing", "false"},
		{"the management API", localapi.Endpoint{Addr: "tcp:127.0.0.1:0"}, "/v1/status", "", ""},
		{"health", localapi.Endpoint{Addr: "tcp:127.0.0.1:0"}, "/healthz", "", ""},
		{"another role", localapi.Endpoint{Addr: "tcp:127.0.0.1:0", Serve: []string{"manage"}}, "/bot1:a/getMe", "", ""},
		{"a socket", localapi.Endpoint{Addr: "unix:" + filepath.Join(dir, "a")}, "/bot1:a/getMe", "/bot1:a/getMe", "false"},
		{"every address", localapi.Endpoint{Addr: "tcp:0.0.0.0:0"}, "/bot1:a/getMe", "/bot1:a/getMe", "true"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s, _ := server(t, localapi.Config{Endpoints: []localapi.Endpoint{tt.endpoint}, Manage: api(nil), Bot: botFace})
			res := raw(t, s.Addrs()[0], "GET "+tt.path+" HTTP/1.1\r\nHost: localhost\r\n\r\n") //nolint:bodyclose // raw closes it at the end of the test
			if got := res.Header.Get("X-Path"); got != tt.want || res.Header.Get("X-Access") != tt.access {
				t.Errorf("path %q, access %q; want %q, %q", got, res.Header.Get("X-Access"), tt.want, tt.access)
			}
		})
	}
}

// TestServer_BotErrors are the errors that are written before any handler runs.
func TestServer_BotErrors(t *testing.T) {
	s, _ := server(t, localapi.Config{Endpoints: []localapi.Endpoint{{Addr: "tcp:127.0.0.1:0"}}, Manage: api(nil), Bot: botFace})
	tests := []struct {
		name, request string
		status        int
	}{
		{"a long header", "GET /bot1:a/x?y=" + strings.Repeat("z", 600<<10) + " HTTP/1.1\r\nHost: localhost\r\n\r\n", 431},
		{"a long query that is allowed", "GET /bot1:a/x?y=" + strings.Repeat("z", 300<<10) + " HTTP/1.1\r\nHost: localhost\r\n\r\n", 200},
		{"no HTTP", "hello\r\n\r\n", 400},
		{"no host", "GET / HTTP/1.1\r\n\r\n", 400},
		{"two hosts", "GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", 400},
		{"another version", "GET / HTTP/3.0\r\nHost: a\r\n\r\n", 505},
		{"an encoding of nobody's", "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: zip\r\n\r\n", 501},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			res := raw(t, s.Addrs()[0], tt.request) //nolint:bodyclose // raw closes it at the end of the test
			if res.StatusCode != tt.status {
				t.Fatalf("status %d, want %d", res.StatusCode, tt.status)
			}
			if tt.status == http.StatusOK {
				return
			}
			var body struct {
				OK          bool   `json:"ok"`
				ErrorCode   int    `json:"error_code"`
				Description string `json:"description"`
			}
			if err := json.NewDecoder(res.Body).Decode(&body); err != nil || body.ErrorCode != tt.status || body.Description == "" {
				t.Errorf("body %+v, %v", body, err)
			}
		})
	}
}

// raw writes a request as it is and reads the answer.
func raw(t *testing.T, addr net.Addr, request string) *http.Response {
	t.Helper()
	conn, err := net.Dial(addr.Network(), addr.String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	go func() { _, _ = io.WriteString(conn, request) }() // the server may close before all is written
	res, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = res.Body.Close() })
	return res
}
