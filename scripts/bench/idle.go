package main

import (
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/tgspool/tgspool/internal/telegramsim"
	"github.com/tgspool/tgspool/scripts/bench/kit"
)

const (
	token = "4242:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"
	// idleFor fits between two long polls of 50 s; the figures are for a minute.
	idleFor = 45 * time.Second
)

// size builds the binary as it is released and looks at its size.
func (b *bench) size() error {
	path, err := b.binary()
	if err != nil {
		return err
	}
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	b.atMost("binary, stripped", float64(info.Size())/mib, 16, " MiB")
	return nil
}

// binary builds the real program, once.
func (b *bench) binary() (string, error) {
	path := filepath.Join(b.dir, "tgspool")
	if _, err := os.Stat(path); err == nil {
		return path, nil
	}
	build := exec.CommandContext(b.ctx, "go", "build", "-trimpath", "-ldflags", "-s -w", "-o", path, "./cmd/tgspool")
	build.Dir = filepath.Join("..", "..")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("building the binary: %w\n%s", err, out)
	}
	return path, nil
}

// idle runs the real program against a simulator and looks at what it does
// while its long poll is parked and nobody writes.
func (b *bench) idle() error {
	path, err := b.binary()
	if err != nil {
		return err
	}
	polls := make(chan struct{}, 8)
	base, stop, err := simulator(polls)
	if err != nil {
		return err
	}
	defer stop()
	cmd, err := b.daemon(path, base, "")
	if err != nil {
		return err
	}
	defer func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		_ = cmd.Wait()
	}()
	fmt.Println("   waiting for the third long poll, then 45 s of nothing: two and a half minutes")
	for range 3 { // what a start brings with it is over then
		select {
		case <-polls:
		case <-time.After(2 * time.Minute):
			return fmt.Errorf("the daemon doesn't poll")
		case <-b.ctx.Done():
			return b.ctx.Err()
		}
	}
	time.Sleep(2 * time.Second) // the request is on its way
	before := kit.Threads(cmd.Process.Pid)
	time.Sleep(idleFor)
	after := kit.Threads(cmd.Process.Pid)
	minute := float64(time.Minute) / float64(idleFor)
	b.atMost("idle: bytes written", float64(after.Stored-before.Stored), 0, "")
	b.atMost("idle: wakeups a minute, all threads", float64(after.Wakeups-before.Wakeups)*minute, 10, "")
	b.atMost("idle: CPU seconds a minute", (after.CPU-before.CPU).Seconds()*minute, 0.005, "")
	b.atMost("idle: anonymous memory", float64(kit.RSSAnon(cmd.Process.Pid))/mib, 24, " MiB")
	return nil
}

// simulator serves a simulated Telegram on loopback and tells of each poll.
func simulator(polls chan<- struct{}) (base string, stop func(), err error) {
	sim := telegramsim.New(telegramsim.Options{Bots: []telegramsim.Bot{{Token: token}}})
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", nil, err
	}
	handler := sim.Handler()
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/getUpdates") {
			polls <- struct{}{}
		}
		handler.ServeHTTP(w, r)
	})}
	go func() { _ = server.Serve(listener) }()
	return "http://" + listener.Addr().String(), func() {
		sim.Close()
		_ = server.Close()
	}, nil
}

// daemon starts the program with one bot and more settings of it.
func (b *bench) daemon(path, base, more string) (*exec.Cmd, error) {
	dir, err := os.MkdirTemp(b.dir, "daemon")
	if err != nil {
		return nil, err
	}
	settings := fmt.Sprintf(`
[store]
path = "%[1]s/spool.db"
[api]
listen = ["unix:%[1]s/tgspool.sock"]
[bots.bench]
token_file = "%[1]s/token"
api_base = "%[2]s"
%[3]s`, dir, base, more)
	for name, text := range map[string]string{"tgspool.toml": settings, "token": token + "\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			return nil, err
		}
	}
	cmd := exec.CommandContext(b.ctx, path, "run", "--config", filepath.Join(dir, "tgspool.toml"))
	log, err := os.Create(filepath.Join(dir, "log"))
	if err != nil {
		return nil, err
	}
	defer func() { _ = log.Close() }()
	cmd.Stderr, cmd.Stdout = log, log
	return cmd, cmd.Start()
}
