package handler

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// The test binary is also the programs that it runs: its first argument names
// one of these.
var programs = map[string]func(args []string) int{
	"echo": func([]string) int { // the update comes back
		_, _ = io.Copy(os.Stdout, os.Stdin)
		return 0
	},
	"print": func(args []string) int { // print TEXT [STATUS]
		_, _ = io.WriteString(os.Stdout, args[0])
		return status(args[1:])
	},
	"complain": func(args []string) int { // complain TEXT [STATUS]
		_, _ = io.WriteString(os.Stderr, args[0])
		return status(args[1:])
	},
	"environment": func([]string) int {
		_, _ = io.WriteString(os.Stdout, strings.Join(os.Environ(), "\n"))
		return 0
	},
	"flood": func(args []string) int { // flood BYTES
		n, _ := strconv.Atoi(args[0])
		block := bytes.Repeat([]byte("x"), 64<<10)
		for ; n > 0; n -= len(block) {
			if _, err := os.Stdout.Write(block[:min(n, len(block))]); err != nil {
				return 1
			}
		}
		return 0
	},
	"deaf": func([]string) int { // never reads
		_, _ = io.WriteString(os.Stdout, "deaf")
		return 0
	},
	"shut": func([]string) int { // closes its input at once, then works on
		_ = os.Stdin.Close()
		_, _ = io.WriteString(os.Stdout, "shut")
		return 0
	},
	"hang": func(args []string) int { // hang FILE: with a child that says in FILE that it lives
		child := exec.Command(os.Args[0], "stay", args[0])
		child.Stdout, child.Stderr = os.Stdout, os.Stderr
		if child.Start() != nil {
			return 1
		}
		forever()
		return 0
	},
	"stay": func(args []string) int { // stay FILE
		_ = os.WriteFile(args[0]+".new", []byte(strconv.Itoa(os.Getpid())), 0o600)
		_ = os.Rename(args[0]+".new", args[0])
		forever()
		return 0
	},
	"leave": func(args []string) int { // leave FILE: ends, its child keeps the pipes
		child := exec.Command(os.Args[0], "stay", args[0])
		child.Stdin, child.Stdout, child.Stderr = os.Stdin, os.Stdout, os.Stderr
		child.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
		_, _ = io.WriteString(os.Stdout, "left")
		if child.Start() != nil {
			return 1
		}
		return 0
	},
	"unit": func([]string) int { // one run of the unit, on the socket that is our input
		return serveOne()
	},
	"append": func(args []string) int { // append FILE TEXT [STATUS]: a mark for each run
		f, err := os.OpenFile(args[0], os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
		if err != nil {
			return 1
		}
		_, _ = io.WriteString(f, args[1])
		_ = f.Close()
		return status(args[2:])
	},
}

func status(args []string) int {
	if len(args) == 0 {
		return 0
	}
	n, _ := strconv.Atoi(args[0])
	return n
}

func TestMain(m *testing.M) {
	if len(os.Args) > 1 {
		if f, ok := programs[os.Args[1]]; ok {
			syscall.Exit(f(os.Args[2:])) // not os.Exit: the race detector takes a second for that
		}
	}
	m.Run()
}

// self is a program of this binary.
func self(t *testing.T, args ...string) []string {
	t.Helper()
	path, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return append([]string{path}, args...)
}

// starter runs a program as a route would.
type starter func(ctx context.Context, t *testing.T, timeout time.Duration, stdin []byte, argv []string) run

// eachRunner runs a test with programs that are children of ours, and with
// programs in a unit.
func eachRunner(t *testing.T, test func(t *testing.T, start starter)) {
	for name, unit := range map[string]string{"child": "", "unit": serveUnits(t)} {
		t.Run(name, func(t *testing.T) {
			test(t, func(ctx context.Context, t *testing.T, timeout time.Duration, stdin []byte, argv []string) run {
				t.Helper()
				p := program{argv: argv, dir: "/", timeout: timeout, unit: unit}
				return p.run(ctx, []string{"LANG=C.UTF-8"}, stdin, watcher{started: func() {}, line: func([]byte) {}})
			})
		})
	}
}

// TestProgram_WithoutItsFolder: the system says the same of a folder that is
// missing as of a program; the folder is named, and the program isn't blamed.
func TestProgram_WithoutItsFolder(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, unit := range map[string]string{"child": "", "unit": serveUnits(t)} {
		for dir, want := range map[string]string{"/no/such/folder": "is missing", file: "is no folder"} {
			p := program{argv: self(t, "echo"), dir: dir, timeout: time.Minute, unit: unit}
			r := p.run(t.Context(), nil, nil, watcher{started: func() { t.Error("started") }})
			if r.end != endUnstarted || !strings.Contains(r.err.Error(), dir) || !strings.Contains(r.err.Error(), want) ||
				errors.Is(r.err, fs.ErrNotExist) || strings.Contains(r.err.Error(), "program") {
				t.Errorf("%s in %s: end %d, %v", name, dir, r.end, r.err)
			}
		}
	}
}

// awaitFile returns the content of a file that a program is about to write.
func awaitFile(t *testing.T, path string) string {
	t.Helper()
	deadline := time.NewTimer(10 * time.Second)
	defer deadline.Stop()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		b, err := os.ReadFile(path)
		if err == nil {
			return string(b)
		}
		if !errors.Is(err, fs.ErrNotExist) {
			t.Fatal(err)
		}
		select {
		case <-deadline.C:
			t.Fatalf("%s was never written", filepath.Base(path))
		case <-tick.C:
		}
	}
}

// awaitGone waits until a process has ended. One that has ended and that nobody
// has asked for shows as a zombie, which counts.
func awaitGone(t *testing.T, pid string) {
	t.Helper()
	deadline := time.NewTimer(10 * time.Second)
	defer deadline.Stop()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		stat, err := os.ReadFile(filepath.Join("/proc", pid, "stat"))
		if err != nil {
			return
		}
		_, after, _ := strings.Cut(string(stat), ") ")
		if strings.HasPrefix(after, "Z") || strings.HasPrefix(after, "X") {
			return
		}
		select {
		case <-deadline.C:
			t.Fatalf("process %s still lives", pid)
		case <-tick.C:
		}
	}
}

func TestProgram_Ends(t *testing.T) {
	eachRunner(t, func(t *testing.T, start starter) {
		big := bytes.Repeat([]byte(`{"text":"0123456789"}`), 50_000) // a megabyte, far more than a pipe holds
		tests := []struct {
			name   string
			stdin  []byte
			argv   []string
			end    end
			code   int
			stdout string
			stderr string
		}{
			{name: "silent", argv: []string{"/bin/true"}},
			{name: "text", argv: self(t, "print", "hello\n"), stdout: "hello\n"},
			{name: "update comes in", stdin: []byte(`{"update_id":1}`), argv: self(t, "echo"), stdout: `{"update_id":1}`},
			{name: "never reads a big update", stdin: big, argv: self(t, "deaf"), stdout: "deaf"},
			{name: "closes its input at once", stdin: big, argv: self(t, "shut"), stdout: "shut"},
			{name: "fails", argv: self(t, "complain", "oops", "3"), code: 3, stderr: "oops"},
			{name: "permanent", argv: self(t, "print", "", "65"), code: 65},
			{name: "binary", argv: self(t, "print", "\xff\xfe\x00"), stdout: "\xff\xfe\x00"},
			{name: "kills itself", argv: []string{"/bin/sh", "-c", "kill -9 $$"}, end: endSignal, code: 0},
		}
		// The zero byte can't be an argument; printf makes one.
		tests[7].argv = []string{"/bin/sh", "-c", `printf '\377\376\000'`}
		for _, tt := range tests {
			t.Run(tt.name, func(t *testing.T) {
				r := start(t.Context(), t, time.Minute, tt.stdin, tt.argv)
				if r.end != tt.end || r.code != tt.code || string(r.stdout) != tt.stdout || string(r.stderr) != tt.stderr {
					t.Errorf("got end %d, code %d, stdout %q, stderr %q, err %v; want %d, %d, %q, %q",
						r.end, r.code, r.stdout, r.stderr, r.err, tt.end, tt.code, tt.stdout, tt.stderr)
				}
				if good := r.end == endExit && r.code == 0; good != (r.err == nil) {
					t.Errorf("err is %v", r.err)
				}
			})
		}
	})
}

func TestProgram_StreamsBothWays(t *testing.T) {
	eachRunner(t, func(t *testing.T, start starter) {
		// More than both pipes hold: with one after the other, both sides would wait.
		in := bytes.Repeat([]byte("x"), maxStdout)
		r := start(t.Context(), t, time.Minute, in, self(t, "echo"))
		if r.err != nil || !bytes.Equal(r.stdout, in) {
			t.Errorf("got %d bytes, err %v", len(r.stdout), r.err)
		}
	})
}

func TestProgram_TooMuchOutput(t *testing.T) {
	eachRunner(t, func(t *testing.T, start starter) {
		for _, argv := range [][]string{
			self(t, "flood", strconv.Itoa(10<<20)),
			{"/bin/sh", "-c", "exec yes"}, // without an end
		} {
			r := start(t.Context(), t, time.Minute, nil, argv)
			if r.end != endOverflow || len(r.stdout) != maxStdout {
				t.Errorf("%s: end %d with %d bytes, err %v", argv[1], r.end, len(r.stdout), r.err)
			}
		}
		r := start(t.Context(), t, time.Minute, nil, self(t, "flood", strconv.Itoa(maxStdout)))
		if r.err != nil || len(r.stdout) != maxStdout {
			t.Errorf("at the limit: end %d with %d bytes, err %v", r.end, len(r.stdout), r.err)
		}
	})
}

func TestProgram_TimeoutKillsTheWholeGroup(t *testing.T) {
	eachRunner(t, func(t *testing.T, start starter) {
		file := filepath.Join(t.TempDir(), "pid")
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		done := make(chan run, 1)
		go func() { done <- start(ctx, t, 2*time.Second, nil, self(t, "hang", file)) }()
		child := awaitFile(t, file)
		r := <-done
		if r.end != endTimeout || r.err == nil || !strings.Contains(r.err.Error(), "timeout") {
			t.Errorf("got end %d, err %v", r.end, r.err)
		}
		awaitGone(t, child)
	})
}

func TestProgram_StopKillsTheWholeGroup(t *testing.T) {
	eachRunner(t, func(t *testing.T, start starter) {
		file := filepath.Join(t.TempDir(), "pid")
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan run, 1)
		go func() { done <- start(ctx, t, time.Minute, nil, self(t, "hang", file)) }()
		child := awaitFile(t, file)
		cancel()
		if r := <-done; r.end != endStopped {
			t.Errorf("got end %d, err %v", r.end, r.err)
		}
		awaitGone(t, child)
	})
}

func TestProgram_WhatItLeavesBehindDoesNotHoldUs(t *testing.T) {
	eachRunner(t, func(t *testing.T, start starter) {
		file := filepath.Join(t.TempDir(), "pid")
		r := start(t.Context(), t, time.Minute, bytes.Repeat([]byte("x"), 1<<20), self(t, "leave", file))
		if r.end != endExit || r.code != 0 || r.err != nil || string(r.stdout) != "left" {
			t.Errorf("got end %d, code %d, stdout %q, err %v", r.end, r.code, r.stdout, r.err)
		}
		// It outlives its parent, as a daemon should; the test tidies up.
		pid, err := strconv.Atoi(awaitFile(t, file))
		if err != nil {
			t.Fatal(err)
		}
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
			t.Errorf("what was left behind had been killed: %v", err)
		}
	})
}

func TestProgram_CannotStart(t *testing.T) {
	eachRunner(t, func(t *testing.T, start starter) {
		dir := t.TempDir()
		write := func(name, text string, mode os.FileMode) string {
			path := filepath.Join(dir, name)
			if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			if err := os.Chmod(path, mode); err != nil { // past the umask
				t.Fatal(err)
			}
			return path
		}
		open := filepath.Join(dir, "open")
		if err := os.Mkdir(open, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(open, 0o777); err != nil { //nolint:gosec // what is to be refused
			t.Fatal(err)
		}
		script := "#!/bin/sh\n"
		tests := []struct{ name, path, want string }{
			{"missing", filepath.Join(dir, "none"), "missing"},
			{"no permission", write("plain", script, 0o600), "may not be run"},
			{"a folder", dir, "may not be run"},
			{"interpreter missing", write("odd", "#!/no/such/interpreter\n", 0o700), "missing"},
			{"no program", write("noise", "\x01\x02\x03\x04", 0o700), "starting program"},
			{"writable by everybody", write("shared", script, 0o777), "everybody may write to it"},
			{"in a folder that everybody may write to", write("open/script", script, 0o755), "everybody may write to its folder"},
		}
		link := filepath.Join(dir, "link")
		if err := os.Symlink(filepath.Join(dir, "shared"), link); err != nil {
			t.Fatal(err)
		}
		tests = append(tests, struct{ name, path, want string }{"a link to one writable by everybody", link, "everybody may write to it"})
		for _, tt := range tests {
			t.Run(tt.name, func(t *testing.T) {
				r := start(t.Context(), t, time.Minute, nil, []string{tt.path})
				if r.end != endUnstarted || r.err == nil || !strings.Contains(r.err.Error(), tt.want) {
					t.Errorf("got end %d, err %v; want %q", r.end, r.err, tt.want)
				}
				if r.err != nil && !strings.Contains(r.err.Error(), tt.path) {
					t.Errorf("the reason doesn't name the program: %v", r.err)
				}
			})
		}
	})
}

func TestTail_HandsOutLines(t *testing.T) {
	var lines []string
	tl := &tail{max: 8, line: func(b []byte) { lines = append(lines, string(b)) }}
	for _, part := range []string{"one\ntw", "o\r\n\n", "three"} {
		if _, err := io.WriteString(tl, part); err != nil {
			t.Fatal(err)
		}
	}
	if got := tl.flush(); string(got) != "o\r\n\nthree"[len("o\r\n\nthree")-8:] {
		t.Errorf("tail is %q", got)
	}
	if got := strings.Join(lines, "|"); got != "one|two|three" {
		t.Errorf("lines are %q", got)
	}
}

func TestTail_BoundsALineAndTheWhole(t *testing.T) {
	n, longest := 0, 0
	tl := &tail{max: maxTail, line: func(b []byte) { n += len(b); longest = max(longest, len(b)) }}
	line := strings.Repeat("x", 10*maxLine) + "\n"
	for range 1000 {
		if _, err := io.WriteString(tl, line); err != nil {
			t.Fatal(err)
		}
	}
	if longest != maxLine || n != maxLogged {
		t.Errorf("longest line %d, in all %d", longest, n)
	}
	if got := len(tl.flush()); got != maxTail {
		t.Errorf("tail has %d bytes", got)
	}
}

func TestPrinted(t *testing.T) {
	tests := []struct {
		in, want string
		binary   bool
	}{
		{"", "", false},
		{"\n\n", "", false},
		{" \t\n", "", false},
		{"hello\r\n", "hello", false},
		{"a\n\nb\n\n", "a\n\nb", false},
		{"caf\xe9", "caf\uFFFD", false},
		{"a\x00b", "", true},
		{"\xff\xfe\xfd", "", true},
		{"\x1f\x8b\x08\xff\xfe\xfd\xfc\xfb", "", true},
	}
	for _, tt := range tests {
		if got, err := printed([]byte(tt.in)); got != tt.want || (err != nil) != tt.binary {
			t.Errorf("printed(%q) = %q, %v, want %q", tt.in, got, err, tt.want)
		}
	}
}

// forever waits for a signal that nobody sends. An empty select would do without
// cgo what it mustn't: the runtime sees that nothing can wake it, and ends it.
func forever() {
	never := make(chan os.Signal, 1)
	signal.Notify(never, syscall.SIGUSR2)
	<-never
}
