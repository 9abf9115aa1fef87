package handler

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/tgspool/tgspool/internal/spool"
)

// serveUnits listens as tgspool-exec.socket does: each connection gets a process
// of its own, whose input and output it is.
func serveUnits(t *testing.T) (socket string) {
	t.Helper()
	dir, err := os.MkdirTemp("", "unit") //nolint:usetesting // the names of t.TempDir are too long for a socket
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	socket = filepath.Join(dir, "exec.sock")
	serveUnitsAt(t, socket)
	return socket
}

func serveUnitsAt(t *testing.T, socket string) {
	t.Helper()
	serveConns(t, socket, func(conn *net.UnixConn) {
		file, err := conn.File()
		if err != nil {
			t.Errorf("handing a connection over: %v", err)
			return
		}
		argv := self(t, "unit")
		cmd := exec.Command(argv[0], argv[1:]...)
		cmd.Stdin, cmd.Stdout, cmd.Stderr = file, file, os.Stderr
		cmd.Env = []string{"HOME=/home/of-the-unit", "CREDENTIALS_DIRECTORY=/secret"}
		err = cmd.Start()
		_, _ = file.Close(), conn.Close() // ours; the child has its own
		if err != nil {
			t.Errorf("starting a unit: %v", err)
			return
		}
		if err := cmd.Wait(); err != nil {
			t.Errorf("the unit ended with %v", err)
		}
	})
}

// serveConns calls serve for each connection until the test ends.
func serveConns(t *testing.T, socket string, serve func(*net.UnixConn)) {
	t.Helper()
	listener, err := net.ListenUnix("unix", &net.UnixAddr{Name: socket, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	var running sync.WaitGroup
	running.Go(func() {
		for {
			conn, err := listener.AcceptUnix()
			if err != nil {
				return
			}
			running.Go(func() { serve(conn) })
		}
	})
	t.Cleanup(func() {
		_ = listener.Close()
		running.Wait()
	})
}

// serveOne is the process of one connection.
func serveOne() int {
	conn, err := net.FileConn(os.Stdin)
	if err == nil {
		var uid uint32
		if uid, err = UnitPeer(conn); err == nil && int(uid) != os.Getuid() {
			err = errors.New("a stranger")
		}
	}
	if err == nil {
		err = ServeUnit(context.Background(), conn, UnitOptions{Env: os.Environ()})
	}
	if err != nil {
		_, _ = io.WriteString(os.Stderr, err.Error()+"\n")
		return 1
	}
	return 0
}

func TestUnit_ProgramSeesNothingOfEitherProcess(t *testing.T) {
	unit := serveUnits(t)
	p := program{argv: self(t, "environment"), dir: "/", timeout: time.Minute, unit: unit}
	r := p.run(t.Context(), []string{"LANG=C.UTF-8", "HOME=/of-the-daemon"}, nil, watcher{started: func() {}, line: func([]byte) {}})
	if got, want := string(r.stdout), "LANG=C.UTF-8\nHOME=/home/of-the-unit"; got != want || r.err != nil {
		t.Errorf("environment is %q, want %q (%v)", got, want, r.err)
	}
}

func TestUnit_KeepsKindsOfFailureApart(t *testing.T) {
	unit := serveUnits(t)
	plain := filepath.Join(t.TempDir(), "plain")
	if err := os.WriteFile(plain, []byte("#!/bin/sh\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]error{"/no/such/program": fs.ErrNotExist, plain: fs.ErrPermission} {
		p := program{argv: []string{path}, dir: "/", timeout: time.Minute, unit: unit}
		if err := p.look(t.Context()); !errors.Is(err, want) {
			t.Errorf("looking at %s: %v", path, err)
		}
		r := p.run(t.Context(), nil, nil, watcher{started: func() { t.Error("started") }})
		if r.end != endUnstarted || !errors.Is(r.err, want) {
			t.Errorf("running %s: end %d, %v", path, r.end, r.err)
		}
	}
	if err := (program{argv: self(t, "echo"), timeout: time.Minute, unit: unit}).look(t.Context()); err != nil {
		t.Errorf("looking at a good one: %v", err)
	}
}

// TestUnit_BrokenConnections has a unit that ends at each point of the wire.
func TestUnit_BrokenConnections(t *testing.T) {
	frames := func(kinds string) func(*net.UnixConn) {
		return func(conn *net.UnixConn) {
			in := bufio.NewReader(conn)
			if _, _, err := readUnitRequest(in); err != nil {
				t.Error(err)
			}
			for _, kind := range kinds {
				switch kind {
				case unitGoOn:
					if b, err := in.ReadByte(); b != unitGoOn {
						t.Errorf("the daemon says %q (%v)", b, err)
					}
				case frameFailed:
					_ = writeJSONFrame(conn, frameFailed, unitFailure{Kind: "other", Error: "out of memory"})
				default:
					_ = writeFrame(conn, byte(kind), []byte("text"))
				}
			}
		}
	}
	tests := []struct {
		name  string
		serve func(*net.UnixConn)
		end   end
		why   string
	}{
		{"at once", func(*net.UnixConn) {}, endUnstarted, "can't be reached"},
		{"before it is ready", frames(""), endUnstarted, "can't be reached"},
		{"refused", frames("f"), endUnstarted, "out of memory"},
		{"not of this wire", frames("z"), endUnstarted, "can't be reached"},
		{"ready, then silent", frames("rg"), endSignal, "before the program did"},
		{"couldn't start after all", frames("rgf"), endUnstarted, "out of memory"},
		{"started, then gone", frames("rgso"), endSignal, "before the program did"},
		{"an end that can't be read", frames("rgsx"), endSignal, "before the program did"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			socket := filepath.Join(t.TempDir(), "s")
			serveConns(t, socket, func(conn *net.UnixConn) {
				tt.serve(conn)
				_ = conn.Close()
			})
			begun := false
			p := program{argv: []string{"/bin/true"}, dir: "/", timeout: time.Minute, unit: socket}
			r := p.run(t.Context(), nil, []byte("{}"), watcher{started: func() { begun = true }, line: func([]byte) {}})
			if r.end != tt.end || r.err == nil || !strings.Contains(r.err.Error(), tt.why) {
				t.Errorf("got end %d, %v; want %d, %q", r.end, r.err, tt.end, tt.why)
			}
			if begun != (tt.end != endUnstarted) {
				t.Errorf("begun is %t", begun)
			}
		})
	}
}

func TestUnit_RefusesWhatIsNoRequest(t *testing.T) {
	good := unitRequest{Argv: []string{"/bin/true"}, Dir: "/", TimeoutMS: 1000, Version: unitVersion}
	line := func(change func(*unitRequest)) string {
		q := good
		change(&q)
		b, err := json.Marshal(q)
		if err != nil {
			t.Fatal(err)
		}
		return string(b) + "\n"
	}
	for name, text := range map[string]string{
		"no JSON":       "GET / HTTP/1.1\n",
		"other version": line(func(q *unitRequest) { q.Version = 2 }),
		"no program":    line(func(q *unitRequest) { q.Argv = nil }),
		"no time":       line(func(q *unitRequest) { q.TimeoutMS = 0 }),
		"endless input": line(func(q *unitRequest) { q.Stdin = maxUnitInput + 1 }),
		"cut":           line(func(q *unitRequest) { q.Stdin = 10 }) + "12345",
		"endless line":  strings.Repeat("x", maxUnitLine+1<<20),
	} {
		t.Run(name, func(t *testing.T) {
			ours, theirs := net.Pipe()
			go func() {
				_, _ = io.WriteString(ours, text)
				if name == "cut" {
					_ = ours.Close()
				}
			}()
			done := make(chan error, 1)
			go func() { done <- ServeUnit(context.Background(), theirs, UnitOptions{}) }()
			if name != "cut" {
				if f, err := readFrame(ours); err != nil || f.kind != frameFailed {
					t.Errorf("answer is %q, %v", f.kind, err)
				}
			}
			if err := <-done; err == nil {
				t.Error("no error")
			}
			_ = ours.Close()
		})
	}
}

func TestUnit_HangUpKillsTheWholeGroup(t *testing.T) {
	unit := serveUnits(t)
	file := filepath.Join(t.TempDir(), "pid")
	p := program{argv: self(t, "hang", file), dir: "/", timeout: time.Minute, unit: unit}
	u, err := p.prepare(t.Context(), nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := u.conn.Write([]byte{unitGoOn}); err != nil {
		t.Fatal(err)
	}
	child := awaitFile(t, file)
	u.close() // as the kernel does it for a daemon that was killed
	awaitGone(t, child)
}

func TestUnit_EndsAProgramWhoseDaemonDoesNot(t *testing.T) {
	file := filepath.Join(t.TempDir(), "pid")
	argv := self(t, "hang", file)
	p := program{argv: argv, dir: "/", timeout: time.Minute}
	ctx, cancel := context.WithCancelCause(t.Context())
	ours, theirs := net.Pipe()
	out := &unitOut{conn: theirs, lost: func() {}}
	done := make(chan error, 1)
	go func() { done <- out.follow(ctx, p, nil, nil) }()
	if f, err := readFrame(ours); err != nil || f.kind != frameStarted {
		t.Fatalf("first frame is %q, %v", f.kind, err)
	}
	child := awaitFile(t, file)
	cancel(errTimeout)
	f, err := readFrame(ours)
	if err != nil || f.kind != frameEnded || !strings.Contains(string(f.payload), "killed") {
		t.Errorf("last frame is %q %s, %v", f.kind, f.payload, err)
	}
	if err := <-done; err != nil {
		t.Error(err)
	}
	awaitGone(t, child)
}

func TestUnit_HandlesAnUpdate(t *testing.T) {
	unit := serveUnits(t)
	h := openHouse(t, does(t, "echo", ReplyText, "print", "hello"))
	defer h.close()
	h.run(func(c *Config) { c.Unit = unit })
	seq := h.feed(said(5, "hi"))
	h.told(1)
	h.stop()
	h.want(seq, spool.UpdateHandled, 1, "")
	h.wantCalls(`sendMessage {"chat_id":5,"text":"hello"}`)
}

func TestUnit_RouteWaitsForItAndBurnsNoAttempt(t *testing.T) {
	dir := t.TempDir()
	socket := filepath.Join(dir, "s")
	h := openHouse(t, does(t, "echo", ReplyText, "print", "hello"))
	defer h.close()
	handlers := h.run(func(c *Config) { c.Unit = socket })
	seq := h.feed(said(5, "hi"))
	h.told(1) // given back
	if why := handlers.Routes()[0].Reason; !strings.Contains(why, "tgspool-exec.socket") {
		t.Errorf("reason is %q", why)
	}
	serveUnitsAt(t, socket)
	for h.update(seq).State != spool.UpdateHandled { // with the next look, a second later
		h.told(1)
	}
	h.stop()
	h.want(seq, spool.UpdateHandled, 1, "")
}

func TestUnit_LostRunOfOnceMayHaveRun(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "s")
	var mu sync.Mutex
	runs := 0
	serveConns(t, socket, func(conn *net.UnixConn) {
		mu.Lock()
		runs++
		mu.Unlock()
		in := bufio.NewReader(conn)
		if _, _, err := readUnitRequest(in); err == nil {
			_ = writeFrame(conn, frameReady, nil)
			_, _ = in.ReadByte()
		}
		_ = conn.Close()
	})
	route := does(t, "pay", ReplyText, "print", "paid")
	route.Once = true
	h := openHouse(t, route)
	defer h.close()
	h.run(func(c *Config) { c.Unit = socket })
	seq := h.feed(said(5, "hi"))
	h.told(1)
	h.stop()
	h.want(seq, spool.UpdateDead, 1, "may have run")
	mu.Lock()
	defer mu.Unlock()
	if runs != 1 {
		t.Errorf("%d runs", runs)
	}
}

func TestUnitPeer(t *testing.T) {
	fds, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = syscall.Close(fds[1]) }()
	file := os.NewFile(uintptr(fds[0]), "pair")
	conn, err := net.FileConn(file)
	_ = file.Close()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	if uid, err := UnitPeer(conn); err != nil || strconv.Itoa(int(uid)) != strconv.Itoa(os.Getuid()) {
		t.Errorf("peer is %d, %v", uid, err)
	}
	one, other := net.Pipe()
	defer func() { _, _ = one.Close(), other.Close() }()
	if _, err := UnitPeer(one); err == nil {
		t.Error("a pipe has no peer")
	}
}
