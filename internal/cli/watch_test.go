package cli_test

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/tgspool/tgspool/internal/cli"
	"github.com/tgspool/tgspool/internal/gate"
	"github.com/tgspool/tgspool/internal/localapi"
	"github.com/tgspool/tgspool/internal/manage"
	"github.com/tgspool/tgspool/internal/spool"
)

// watched is a daemon without loops, restarted at will.
type watched struct {
	t      *testing.T
	socket string
	store  *spool.Store
	bot    *spool.Bot
	names  []string
	stop   func()
}

func (w *watched) Names() []string { return w.names }

func (w *watched) View(string) (manage.View, bool) {
	return manage.View{Intake: manage.Intake{State: "ok"}, Sender: gate.Snapshot{State: gate.StateOK}}, true
}
func (w *watched) ResolveChat(_, _ string) (string, bool) { return "", false }

func newWatched(t *testing.T) *watched {
	t.Helper()
	dir := t.TempDir()
	w := &watched{t: t, socket: filepath.Join(dir, "s"), names: []string{"home"}}
	var err error
	if w.store, err = spool.Open(t.Context(), spool.Options{Path: filepath.Join(dir, "spool.db")}); err != nil {
		t.Fatal(err)
	}
	if w.bot, err = w.store.Attach(t.Context(), spool.BotConfig{ID: 7, Name: "home"}); err != nil {
		t.Fatal(err)
	}
	w.serve()
	t.Cleanup(func() {
		w.stop()
		if err := w.store.Close(); err != nil {
			t.Error(err)
		}
	})
	return w
}

func (w *watched) serve() {
	w.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	api, err := localapi.Listen(ctx, localapi.Config{
		Endpoints: []localapi.Endpoint{{Addr: "unix:" + w.socket}}, Manage: manage.New(manage.Config{Store: w.store, Bots: w, Version: "v1"}),
	})
	if err != nil {
		w.t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- api.Serve(ctx) }()
	w.stop = func() {
		cancel()
		if err := <-done; err != nil {
			w.t.Error(err)
		}
	}
}

// watch runs the command; lines are what it prints, code how it ends.
func (w *watched) watch(args ...string) (lines <-chan string, code <-chan int) {
	w.t.Helper()
	r, out := io.Pipe()
	ended := make(chan int, 1)
	go func() {
		ended <- cli.Main("v1", append([]string{"watch", "--socket", w.socket}, args...), strings.NewReader(""), out, io.Discard)
		_ = out.Close()
	}()
	read := make(chan string, 1000)
	go func() {
		defer close(read)
		for in := bufio.NewScanner(r); in.Scan(); {
			read <- in.Text()
		}
	}()
	return read, ended
}

// expect skips lines until one that matches.
func expect(t *testing.T, lines <-chan string, pattern string) {
	t.Helper()
	for re := regexp.MustCompile(pattern); ; {
		select {
		case line, more := <-lines:
			if strings.Contains(line, "secret") {
				t.Errorf("a text is shown: %s", line)
			}
			if !more {
				t.Fatalf("no line %s", pattern)
			}
			if re.MatchString(line) {
				return
			}
		case <-time.After(20 * time.Second):
			t.Fatalf("no line %s within 20 s", pattern)
		}
	}
}

func (w *watched) send() {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.t.Context(), 10*time.Second)
	defer cancel()
	job := spool.NewJob{Method: "sendMessage", Chat: "9", ChatRaw: []byte("9"), Params: json.RawMessage(`{"text":"secret"}`)}
	if _, err := w.bot.Enqueue(ctx, job); err != nil {
		w.t.Fatal(err)
	}
	c, err := w.bot.Claim(ctx)
	if err != nil {
		w.t.Fatal(err)
	}
	v := spool.Verdict{State: spool.Dead, Error: &spool.JobError{Class: "rejected", Description: "no\x1b[2J"}}
	if _, err := w.bot.Settle(ctx, c, v); err != nil {
		w.t.Fatal(err)
	}
}

// TestWatch: what happens is shown as it happens, over a restart of the daemon.
func TestWatch(t *testing.T) {
	w := newWatched(t)
	lines, code := w.watch("--limit", "9")
	expect(t, lines, `^[0-9:]{8}  -- 1 bot: home$`)
	w.send()
	for _, want := range []string{`home  chat 9 active`, `home  job 1  pending  sendMessage to 9`, `home  job 1 \*running  sendMessage to 9`, `home  job 1 xdead  sendMessage to 9 \(rejected: no\\x1b\[2J\)`} {
		expect(t, lines, `^[0-9:]{8}  `+want+`$`)
	}
	w.stop()
	w.serve()
	expect(t, lines, `-- connected again`)
	w.send()
	expect(t, lines, `job 2 xdead`)
	w.send()
	if c := <-code; c != 0 {
		t.Errorf("exit code %d", c)
	}
}

func TestWatch_JSON(t *testing.T) {
	w := newWatched(t)
	lines, code := w.watch("--json", "--event", "job", "--limit", "3", "--bot", "home")
	expect(t, lines, `^\{"event":"hello","data":\{"version":"v1","missed":0,"bots":\{"home":`)
	w.send()
	expect(t, lines, `^\{"event":"job","data":\{.*"state":"pending"`)
	expect(t, lines, `^\{"event":"job","data":\{.*"state":"dead"`)
	if c := <-code; c != 0 {
		t.Errorf("exit code %d", c)
	}
	_, code = w.watch("--event", "jobs")
	if c := <-code; c != 65 {
		t.Errorf("a wrong event: exit code %d", c)
	}
	_, code = w.watch("--limit", "-1")
	if c := <-code; c != 64 {
		t.Errorf("a wrong limit: exit code %d", c)
	}
	w.socket += ".none"
	_, code = w.watch()
	if c := <-code; c != 69 {
		t.Errorf("no daemon: exit code %d", c)
	}
}
