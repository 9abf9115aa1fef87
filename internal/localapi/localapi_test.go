package localapi_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tgspool/tgspool/internal/localapi"
	"github.com/tgspool/tgspool/internal/manage"
)

// api stands in for the management API: it answers with the path, or waits for
// the end of the request's context.
func api(waiting chan<- struct{}) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/wait":
			waiting <- struct{}{}
			<-r.Context().Done()
		case "/stubborn":
			waiting <- struct{}{}
			<-waitForever
		}
		_ = json.NewEncoder(w).Encode(map[string]string{"path": r.URL.Path, "origin": r.Header.Get(manage.OriginHeader)})
	})
}

// waitForever is never closed.
var waitForever = make(chan struct{})

// server listens on the endpoints and serves until stop is called, which
// returns what Serve did.
func server(t *testing.T, c localapi.Config) (s *localapi.Server, stop func() error) {
	t.Helper()
	s, err := localapi.Listen(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.Serve(ctx) }()
	stopped := false
	stop = func() error {
		if stopped {
			return nil
		}
		stopped = true
		cancel()
		return <-done
	}
	t.Cleanup(func() {
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
	return s, stop
}

func TestServer_Unix(t *testing.T) {
	path := filepath.Join(t.TempDir(), "made", "for", "it.sock")
	_, stop := server(t, localapi.Config{Endpoints: []localapi.Endpoint{{Addr: "unix:" + path}}, Manage: api(nil)})
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o660 || info.Mode().Type() != os.ModeSocket {
		t.Fatalf("socket %v, %v", info.Mode(), err)
	}
	client := localapi.Dial(path)
	defer client.Close()
	var got struct{ Path, Origin string }
	err = client.Do(t.Context(), localapi.Request{Method: "POST", Path: "/v1/x?y=1", Body: []byte("{}"), Origin: "cli"}, &got)
	if err != nil || got.Path != "/v1/x" || got.Origin != "cli" {
		t.Errorf("answer %+v, %v", got, err)
	}
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the socket file is left: %v", err)
	}
	if err := client.Do(t.Context(), localapi.Request{Method: "GET", Path: "/"}, nil); !errors.Is(err, localapi.ErrNoDaemon) {
		t.Errorf("after the stop: %v", err)
	}
}

// TestServer_Roles: what an address serves, and what not.
func TestServer_Roles(t *testing.T) {
	dir := t.TempDir()
	tests := []struct {
		name     string
		endpoint localapi.Endpoint
		path     string
		status   int
	}{
		{"all on a socket", localapi.Endpoint{Addr: "unix:" + filepath.Join(dir, "a")}, "/v1/status", 200},
		{"manage on a socket", localapi.Endpoint{Addr: "unix:" + filepath.Join(dir, "b"), Serve: []string{"manage"}}, "/v1/status", 200},
		{"bot on a socket", localapi.Endpoint{Addr: "unix:" + filepath.Join(dir, "c"), Serve: []string{"bot"}}, "/v1/status", 403},
		{"submit on a socket", localapi.Endpoint{Addr: "unix:" + filepath.Join(dir, "d"), Serve: []string{"submit"}}, "/v1/status", 200},
		{"health on the submit socket", localapi.Endpoint{Addr: "unix:" + filepath.Join(dir, "e"), Serve: []string{"submit"}}, "/healthz", 200},
		{"TCP", localapi.Endpoint{Addr: "tcp:127.0.0.1:0"}, "/v1/status", 401},
		{"TCP, another path", localapi.Endpoint{Addr: "tcp:127.0.0.1:0"}, "/bot123:abc/getMe", 401},
		{"TCP, health", localapi.Endpoint{Addr: "tcp:127.0.0.1:0"}, "/healthz", 200},
		{"TCP, ready", localapi.Endpoint{Addr: "tcp:127.0.0.1:0"}, "/readyz", 200},
		{"TCP, bot alone", localapi.Endpoint{Addr: "tcp:127.0.0.1:0", Serve: []string{"bot"}}, "/v1/status", 403},
		{"off this machine", localapi.Endpoint{Addr: "tcp:0.0.0.0:0"}, "/v1/status", 403},
		{"off this machine, health", localapi.Endpoint{Addr: "tcp:0.0.0.0:0"}, "/healthz", 403},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s, _ := server(t, localapi.Config{Endpoints: []localapi.Endpoint{tt.endpoint}, Manage: api(nil)})
			res := ask(t, s.Addrs()[0], tt.path) //nolint:bodyclose // ask closes it at the end of the test
			if res.StatusCode != tt.status {
				t.Errorf("status %d, want %d", res.StatusCode, tt.status)
			}
			if tt.status >= 400 && res.Header.Get("Content-Type") != "application/problem+json" {
				t.Errorf("content type %q", res.Header.Get("Content-Type"))
			}
			if tt.status == 401 && !strings.HasPrefix(res.Header.Get("WWW-Authenticate"), "Bearer") {
				t.Errorf("challenge %q", res.Header.Get("WWW-Authenticate"))
			}
		})
	}
}

// ask makes one request to an address.
func ask(t *testing.T, addr net.Addr, path string) *http.Response {
	t.Helper()
	transport := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, addr.Network(), addr.String())
	}}
	defer transport.CloseIdleConnections()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://localhost"+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	res, err := (&http.Client{Transport: transport}).Do(req)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = res.Body.Close() })
	return res
}

func TestListen_Refused(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, []byte("keep me"), 0o600); err != nil {
		t.Fatal(err)
	}
	busy := filepath.Join(dir, "busy")
	server(t, localapi.Config{Endpoints: []localapi.Endpoint{{Addr: "unix:" + busy}}, Manage: api(nil)})
	tcp, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tcp.Close() }()
	tests := []struct{ name, addr, want string }{
		{"a file that is no socket", "unix:" + file, "no socket"},
		{"another daemon", "unix:" + busy, "another daemon answers there"},
		{"a long path", "unix:/tmp/" + strings.Repeat("x", 120), "longer than 107 bytes"},
		{"a port in use", "tcp:" + tcp.Addr().String(), "in use by another program"},
		{"no scheme", "/run/x.sock", "begins with neither unix: nor tcp:"},
		{"no port", "tcp:127.0.0.1", "missing port"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			first := filepath.Join(dir, "first")
			_, err := localapi.Listen(t.Context(), localapi.Config{Manage: api(nil), Endpoints: []localapi.Endpoint{
				{Addr: "unix:" + first}, {Addr: tt.addr},
			}})
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error %v, want one with %q", err, tt.want)
			}
			if _, err := os.Stat(first); !errors.Is(err, os.ErrNotExist) {
				t.Errorf("the first socket is left: %v", err)
			}
		})
	}
	if data, err := os.ReadFile(file); err != nil || string(data) != "keep me" {
		t.Errorf("the file: %q, %v", data, err)
	}
	if err := localapi.Dial(busy).Do(t.Context(), localapi.Request{Method: "GET", Path: "/"}, nil); err != nil {
		t.Errorf("the first daemon is harmed: %v", err)
	}
}

// TestListen_Stale: a socket file that a killed daemon left is taken over.
func TestListen_Stale(t *testing.T) {
	path := filepath.Join(t.TempDir(), "old.sock")
	l, err := new(net.ListenConfig).Listen(t.Context(), "unix", path)
	if err != nil {
		t.Fatal(err)
	}
	l.(*net.UnixListener).SetUnlinkOnClose(false)
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if err := localapi.Dial(path).Do(t.Context(), localapi.Request{Method: "GET", Path: "/"}, nil); err == nil || !strings.Contains(err.Error(), "nobody listens") {
		t.Errorf("a stale socket: %v", err)
	}
	server(t, localapi.Config{Endpoints: []localapi.Endpoint{{Addr: "unix:" + path}}, Manage: api(nil)})
	if err := localapi.Dial(path).Do(t.Context(), localapi.Request{Method: "GET", Path: "/"}, nil); err != nil {
		t.Error(err)
	}
}

// TestListen_Passed: a listener of the service manager is used, and its socket
// file stays at the stop.
func TestListen_Passed(t *testing.T) {
	path := filepath.Join(t.TempDir(), "passed.sock")
	l, err := new(net.ListenConfig).Listen(t.Context(), "unix", path)
	if err != nil {
		t.Fatal(err)
	}
	l.(*net.UnixListener).SetUnlinkOnClose(false)
	_, stop := server(t, localapi.Config{
		Endpoints: []localapi.Endpoint{{Addr: "unix:" + path}}, Manage: api(nil),
		Passed: map[string]net.Listener{"unix:" + path: l},
	})
	if err := localapi.Dial(path).Do(t.Context(), localapi.Request{Method: "GET", Path: "/"}, nil); err != nil {
		t.Error(err)
	}
	if err := stop(); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(path); err != nil {
		t.Errorf("the socket file: %v", err)
	}
}

// TestListen_PassedStaysOpen: when another address can't be opened, whoever
// passed a listener can still answer on it.
func TestListen_PassedStaysOpen(t *testing.T) {
	path := filepath.Join(t.TempDir(), "passed.sock")
	passed, err := new(net.ListenConfig).Listen(t.Context(), "unix", path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = passed.Close() }()
	taken, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = taken.Close() }()
	_, err = localapi.Listen(t.Context(), localapi.Config{
		Endpoints: []localapi.Endpoint{{Addr: "unix:" + path}, {Addr: "tcp:" + taken.Addr().String()}}, Manage: api(nil),
		Passed: map[string]net.Listener{"unix:" + path: passed},
	})
	if !errors.Is(err, localapi.ErrInUse) {
		t.Fatalf("error %v, want one about the address", err)
	}
	accepted := make(chan error, 1)
	go func() {
		conn, err := passed.Accept()
		if err == nil {
			err = conn.Close()
		}
		accepted <- err
	}()
	conn, err := new(net.Dialer).DialContext(t.Context(), "unix", path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	if err := <-accepted; err != nil {
		t.Errorf("the passed listener: %v", err)
	}
}

// TestServe_Stop: a request that waits is ended and answered at the stop; one
// that doesn't listen is cut off after the grace.
func TestServe_Stop(t *testing.T) {
	waiting := make(chan struct{})
	path := filepath.Join(t.TempDir(), "x.sock")
	_, stop := server(t, localapi.Config{
		Endpoints: []localapi.Endpoint{{Addr: "unix:" + path}}, Manage: api(waiting), Grace: 200 * time.Millisecond,
	})
	client := localapi.Dial(path)
	defer client.Close()
	answers := make(chan error, 2)
	for _, p := range []string{"/wait", "/stubborn"} {
		go func() { answers <- client.Do(context.Background(), localapi.Request{Method: "GET", Path: p}, nil) }()
		<-waiting
	}
	began := time.Now()
	if err := stop(); err != nil {
		t.Error(err)
	}
	if d := time.Since(began); d > 10*time.Second {
		t.Errorf("the stop took %s", d)
	}
	if err := <-answers; err != nil {
		t.Errorf("the waiting request: %v", err)
	}
	if err := <-answers; err == nil {
		t.Error("the stubborn request was answered")
	}
}

// TestServe_StopWithSilentClient: one that has connected and says nothing doesn't
// hold the stop up for long.
func TestServe_StopWithSilentClient(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.sock")
	_, stop := server(t, localapi.Config{Endpoints: []localapi.Endpoint{{Addr: "unix:" + path}}, Manage: api(nil), Grace: time.Hour})
	conn, err := new(net.Dialer).DialContext(t.Context(), "unix", path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	began := time.Now()
	if err := stop(); err != nil {
		t.Error(err)
	}
	if d := time.Since(began); d > 10*time.Second {
		t.Errorf("the stop took %s", d)
	}
}

// TestServe_Broken: a listener that breaks ends the server with an error.
func TestServe_Broken(t *testing.T) {
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s, err := localapi.Listen(t.Context(), localapi.Config{
		Endpoints: []localapi.Endpoint{{Addr: "tcp:x"}}, Passed: map[string]net.Listener{"tcp:x": l}, Manage: api(nil),
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if err := s.Serve(t.Context()); err == nil || !strings.Contains(err.Error(), "serving tcp:x") {
		t.Errorf("error %v", err)
	}
}

func TestClient_Errors(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.sock")
	server(t, localapi.Config{Endpoints: []localapi.Endpoint{{Addr: "unix:" + path}}, Manage: http.HandlerFunc(
		func(w http.ResponseWriter, r *http.Request) {
			switch r.URL.Path {
			case "/problem":
				manage.WriteProblem(w, r, http.StatusConflict, "job 5 is done")
			case "/proxy":
				http.Error(w, "<html>", http.StatusBadGateway)
			case "/cut":
				w.Header().Set("Content-Length", "100")
				_, _ = io.WriteString(w, `{"a":`)
			case "/text":
				_, _ = io.WriteString(w, `hello`)
			}
		})})
	client := localapi.Dial(path)
	defer client.Close()
	do := func(p string) error {
		var out map[string]any
		return client.Do(t.Context(), localapi.Request{Method: "GET", Path: p}, &out)
	}
	if p, ok := errors.AsType[*manage.Problem](do("/problem")); !ok || p.Status != 409 || p.Title != "Conflict" || p.Detail != "job 5 is done" {
		t.Errorf("problem %+v", p)
	}
	if p, ok := errors.AsType[*manage.Problem](do("/proxy")); !ok || p.Status != 502 || strings.Contains(p.Detail, "html") {
		t.Errorf("an answer of another form: %+v", p)
	}
	for _, p := range []string{"/cut", "/text"} {
		if err := do(p); err == nil || !strings.Contains(err.Error(), "reading the daemon's answer") {
			t.Errorf("%s: %v", p, err)
		}
	}
	absent := localapi.Dial(filepath.Join(t.TempDir(), "none.sock"))
	err := absent.Do(t.Context(), localapi.Request{Method: "GET", Path: "/"}, nil)
	if !errors.Is(err, localapi.ErrNoDaemon) || !strings.Contains(err.Error(), "there is no socket") {
		t.Errorf("no daemon: %v", err)
	}
}
