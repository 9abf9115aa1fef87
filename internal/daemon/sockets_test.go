package daemon_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/tgspool/tgspool/internal/daemon"
	"github.com/tgspool/tgspool/internal/telegramsim"
)

// asDaemon is the variable that makes the test's binary a daemon.
const asDaemon = "TGSPOOL_TEST_DAEMON"

func TestMain(m *testing.M) {
	if os.Getenv(asDaemon) == "" {
		m.Run()
		return
	}
	err := daemon.Run(context.Background(), daemon.Options{
		Version: "test", Getenv: os.Getenv, Stdout: os.Stdout, Stderr: os.Stderr,
	})
	var coded interface{ ExitCode() int }
	switch {
	case errors.As(err, &coded):
		syscall.Exit(coded.ExitCode())
	case err != nil:
		syscall.Exit(1)
	}
}

// activated is a daemon that was handed sockets, as systemd does it.
type activated struct {
	t       *testing.T
	dir     string
	sockets []*os.File
	addrs   map[string]string // what net.Dial wants, by the name that the test gives
	cmd     *exec.Cmd
	log     bytes.Buffer
	ended   chan error
	state   *net.UnixConn // what the daemon tells systemd
}

func newActivated(t *testing.T) *activated {
	t.Helper()
	dir, err := os.MkdirTemp("", "act") //nolint:usetesting // the names of t.TempDir are too long for a socket
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	a := &activated{t: t, dir: dir, addrs: map[string]string{}, ended: make(chan error, 1)}
	a.state, err = net.ListenUnixgram("unixgram", &net.UnixAddr{Name: filepath.Join(dir, "notify"), Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = a.state.Close() })
	return a
}

// listen opens a socket that stays open whatever the daemon does.
func (a *activated) listen(name, network, addr string) {
	a.t.Helper()
	l, err := net.Listen(network, addr)
	if err != nil {
		a.t.Fatal(err)
	}
	if u, ok := l.(*net.UnixListener); ok {
		u.SetUnlinkOnClose(false)
	}
	file, err := l.(interface{ File() (*os.File, error) }).File()
	a.addrs[name] = l.Addr().String()
	if err := errors.Join(err, l.Close()); err != nil {
		a.t.Fatal(err)
	}
	a.t.Cleanup(func() { _ = file.Close() })
	a.sockets = append(a.sockets, file)
}

func (a *activated) settings(text string) {
	a.t.Helper()
	if err := os.WriteFile(filepath.Join(a.dir, "tgspool.toml"), []byte(text), 0o600); err != nil {
		a.t.Fatal(err)
	}
}

// start starts the daemon. The shell makes LISTEN_PID its number.
func (a *activated) start() {
	a.t.Helper()
	self, err := os.Executable()
	if err != nil {
		a.t.Fatal(err)
	}
	a.cmd = exec.Command("/bin/sh", "-c", `LISTEN_PID=$$ exec "$0"`, self)
	a.cmd.ExtraFiles = a.sockets
	a.cmd.Stderr = &a.log
	a.cmd.Env = []string{
		asDaemon + "=1", fmt.Sprintf("LISTEN_FDS=%d", len(a.sockets)), "NOTIFY_SOCKET=" + filepath.Join(a.dir, "notify"),
		"TGSPOOL_CONFIG=" + filepath.Join(a.dir, "tgspool.toml"), "HOME=" + a.dir,
	}
	if err := a.cmd.Start(); err != nil {
		a.t.Fatal(err)
	}
	go func() { a.ended <- a.cmd.Wait() }()
	a.t.Cleanup(func() { _ = a.cmd.Process.Kill() })
}

// told waits until the daemon has told systemd something.
func (a *activated) told(want string) {
	a.t.Helper()
	if err := a.state.SetReadDeadline(time.Now().Add(20 * time.Second)); err != nil {
		a.t.Fatal(err)
	}
	buf := make([]byte, 4096)
	for {
		n, err := a.state.Read(buf)
		if err != nil {
			a.t.Fatalf("systemd was never told %q: %v", want, err)
		}
		if strings.Contains(string(buf[:n]), want) {
			return
		}
	}
}

// stop stops the daemon and returns its exit code.
func (a *activated) stop() int {
	a.t.Helper()
	if err := a.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		a.t.Fatal(err)
	}
	return a.code(<-a.ended)
}

func (a *activated) code(err error) int {
	a.t.Helper()
	if err == nil {
		return 0
	}
	exit, ok := errors.AsType[*exec.ExitError](err)
	if !ok {
		a.t.Fatal(err)
	}
	return exit.ExitCode()
}

// get asks on one of the sockets.
func (a *activated) get(name, path string) (status int, body string) {
	a.t.Helper()
	transport := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		network := "tcp"
		if strings.HasPrefix(a.addrs[name], "/") {
			network = "unix"
		}
		return new(net.Dialer).DialContext(ctx, network, a.addrs[name])
	}}
	defer transport.CloseIdleConnections()
	ctx, cancel := context.WithTimeout(a.t.Context(), 20*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://localhost"+path, nil)
	if err != nil {
		a.t.Fatal(err)
	}
	res, err := transport.RoundTrip(req)
	if err != nil {
		a.t.Fatalf("asking on %s: %v; log:\n%s", name, err, &a.log)
	}
	defer func() { _ = res.Body.Close() }()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		a.t.Fatal(err)
	}
	return res.StatusCode, string(b)
}

func TestSockets_PassedOnesAreServed(t *testing.T) {
	a := newActivated(t)
	a.listen("api", "unix", a.dir+"/api.sock")
	a.listen("stray", "unix", a.dir+"/stray.sock")
	sim := telegramsim.New(telegramsim.Options{Bots: []telegramsim.Bot{{Token: firstToken}}})
	server := httptest.NewServer(sim.Handler())
	t.Cleanup(func() { sim.Close(); server.Close() })
	a.settings(fmt.Sprintf("[store]\npath = \"%s/spool.db\"\n[api]\nlisten = [\"unix:%[1]s/api.sock\"]\n[bots.home]\ntoken_file = \"%[1]s/token\"\napi_base = %q\n", a.dir, server.URL))
	if err := os.WriteFile(a.dir+"/token", []byte(firstToken), 0o600); err != nil {
		t.Fatal(err)
	}
	for range 2 { // the sockets outlive the daemon, so that the next one finds them
		a.start()
		a.told("READY=1")
		if status, body := a.get("api", "/v1/status"); status != http.StatusOK || !strings.Contains(body, `"home"`) {
			t.Errorf("status: %d %s", status, body)
		}
		if status, body := a.get("stray", "/v1/status"); status != http.StatusServiceUnavailable || !strings.Contains(body, "doesn't name this socket") {
			t.Errorf("a stray socket: %d %s", status, body)
		}
		if code := a.stop(); code != 0 {
			t.Errorf("exit code %d; log:\n%s", code, &a.log)
		}
		if _, err := os.Stat(a.dir + "/api.sock"); err != nil {
			t.Errorf("the socket's file is gone: %v", err)
		}
	}
}

func TestSockets_BadSettingsAreToldToWhoKnocks(t *testing.T) {
	a := newActivated(t)
	a.listen("api", "unix", a.dir+"/api.sock")
	a.listen("bot", "tcp", "127.0.0.1:0")
	a.settings("[bots.home]\nrat = 5\n")
	a.start()
	a.told("STATUS=" + a.dir + "/tgspool.toml:2:1")
	var problem struct {
		Status int
		Detail string
	}
	status, body := a.get("api", "/v1/status")
	if err := json.Unmarshal([]byte(body), &problem); err != nil || status != http.StatusServiceUnavailable || problem.Status != status {
		t.Errorf("%d %s (%v)", status, body, err)
	}
	if !strings.Contains(problem.Detail, "tgspool.toml:2:1: bots.home.rat") {
		t.Errorf("the reason is %q", problem.Detail)
	}
	status, body = a.get("bot", "/bot1:x/getMe")
	var refused struct {
		OK          bool   `json:"ok"`
		Code        int    `json:"error_code"`
		Description string `json:"description"`
	}
	if err := json.Unmarshal([]byte(body), &refused); err != nil || refused.OK || refused.Code != status || strings.Contains(body, "rat") {
		t.Errorf("%d %s (%v)", status, body, err)
	}
	if code := a.stop(); code != 0 {
		t.Errorf("exit code %d", code)
	}
	conn, err := net.Dial("unix", a.addrs["api"])
	if err != nil {
		t.Fatalf("the socket doesn't outlive the daemon: %v", err)
	}
	_ = conn.Close()
}

func TestSockets_WithoutThemBadSettingsEndAtOnce(t *testing.T) {
	a := newActivated(t)
	a.settings("[bots.home]\nrat = 5\n")
	a.start()
	if code := a.code(<-a.ended); code != 78 {
		t.Errorf("exit code %d; log:\n%s", code, &a.log)
	}
}
