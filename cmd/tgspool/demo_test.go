package main_test

import (
	"bufio"
	"context"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestDemo_Interrupted ends the real demo by Ctrl-C's signal while its daemon
// works: it ends soon, says so by its code, prints no result, and leaves neither
// folder nor process behind.
func TestDemo_Interrupted(t *testing.T) {
	temp := t.TempDir()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	command := exec.CommandContext(ctx, build(t), "demo", "--json")
	command.Env = []string{"TMPDIR=" + temp}
	var stdout strings.Builder
	command.Stdout = &stdout
	stderr, err := command.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(stderr)
	for lines.Scan() && !strings.Contains(lines.Text(), "kill -9 number 1") {
		t.Log(lines.Text())
	}
	if err := command.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	rest, err := io.ReadAll(stderr)
	if err != nil {
		t.Error(err)
	}
	_ = command.Wait() // the state tells how
	if code := command.ProcessState.ExitCode(); code != exitTempFail {
		t.Errorf("the demo ended with %s, want %d:\n%s", command.ProcessState, exitTempFail, rest)
	}
	if stdout.Len() > 0 {
		t.Errorf("it printed %q", stdout.String())
	}
	left, err := filepath.Glob(filepath.Join(temp, "*"))
	if err != nil || len(left) > 0 {
		t.Errorf("left behind: %v (%v)", left, err)
	}
	if running := mentioning(t, temp); len(running) > 0 {
		t.Errorf("still running: %q", running)
	}
}

// mentioning lists the command lines of processes that contain a text.
func mentioning(t *testing.T, text string) []string {
	t.Helper()
	var found []string
	files, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil || len(files) == 0 {
		t.Fatalf("no processes are seen: %v", err)
	}
	for _, name := range files {
		line, err := os.ReadFile(name)
		if err == nil && strings.Contains(string(line), text) { // it may have ended meanwhile
			found = append(found, strings.ReplaceAll(string(line), "\x00", " "))
		}
	}
	return found
}

// TestSimulate runs the simulator as a command: it says where it listens, shows
// what arrives and what it feeds, refuses other tokens than the given one, and
// ends with SIGTERM.
func TestSimulate(t *testing.T) {
	const token = "123456:SIMULATE"
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	command := exec.CommandContext(ctx, build(t), "simulate", "--token", token, "--username", "some_bot", "--feed", "10ms", "--strict")
	stdout, err := command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(stdout)
	next := func(pattern string) string {
		t.Helper()
		for lines.Scan() {
			if m := regexp.MustCompile(pattern).FindStringSubmatch(lines.Text()); m != nil {
				return m[len(m)-1]
			}
		}
		t.Fatalf("it ended without a line like %s", pattern)
		return ""
	}
	api, control := next(`^api (http://127\.0\.0\.1:\d+)$`), next(`^control (http://127\.0\.0\.1:\d+)$`)
	next(`^\d\d:\d\d:\d\d > update \d+ from chat 70001: /start$`)
	answer := func(path string, form url.Values) string {
		t.Helper()
		request, err := http.NewRequestWithContext(ctx, http.MethodPost, path, strings.NewReader(form.Encode()))
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = response.Body.Close() }()
		text, err := io.ReadAll(response.Body)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	message := url.Values{"chat_id": {"5"}, "text": {"hi \x1b[31m"}}
	if got := answer(api+"/bot"+token+"/sendMessage", message); !strings.Contains(got, `"username":"some_bot"`) {
		t.Errorf("sendMessage answered %s", got)
	}
	next(`^\S+ < sendMessage to chat 5 message \d+: hi \\x1b\[31m$`)
	if got := answer(api+"/bot99:OTHER/sendMessage", message); !strings.Contains(got, `"error_code":401`) {
		t.Errorf("another token was answered %s", got)
	}
	next(`^\S+ < sendMessage, answered 401`)
	if got := answer(control+"/sim/press", nil); !strings.Contains(got, `"error"`) {
		t.Errorf("a control call without a body was answered %s", got)
	}
	if err := command.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	for lines.Scan() { // what it still has to say
	}
	if err := command.Wait(); err != nil {
		t.Errorf("after SIGTERM: %v", err)
	}
}
