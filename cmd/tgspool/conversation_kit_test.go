package main_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// talk is a rig whose bot has handlers of its own, and the calls that have
// arrived so far.
type talk struct {
	*rig

	ctx context.Context
}

// newTalk starts a daemon with handlers; in their text DIR is a folder for notes.
func newTalk(t *testing.T, handlers string, env ...string) *talk {
	t.Helper()
	k := &talk{rig: newRig(t, build(t), 1)}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	t.Cleanup(cancel)
	k.ctx = ctx
	text, err := os.ReadFile(k.settings)
	if err != nil {
		t.Fatal(err)
	}
	head, _, _ := strings.Cut(string(text), "[[bots.kill.handlers]]")
	handlers = strings.ReplaceAll(handlers, "[[h]]", "[[bots.kill.handlers]]")
	handlers = strings.ReplaceAll(handlers, "@tgspool", k.binary+" --config "+k.settings)
	handlers = strings.ReplaceAll(handlers, "DIR", k.dir)
	if err := os.WriteFile(k.settings, []byte(head+handlers), 0o600); err != nil { //nolint:gosec // the test's own folder
		t.Fatal(err)
	}
	k.env = env
	k.start()
	k.ready()
	return k
}

// wait waits until something holds.
func (k *talk) wait(what string, ok func() bool) {
	k.t.Helper()
	k.until(k.ctx, "to the point where "+what, ok)
}

// calls are the calls to a chat that had an effect, as "method text".
func (k *talk) calls(chat int64) (list []string) {
	for _, a := range k.sim.Journal() {
		if a.ChatID == chat && a.Effect && a.Method != "sendChatAction" {
			list = append(list, a.Method+" "+a.Text)
		}
	}
	return list
}

// wantCalls waits until a chat has got these calls, and no others.
func (k *talk) wantCalls(chat int64, want ...string) {
	k.t.Helper()
	k.wait(fmt.Sprintf("chat %d has got %q", chat, want), func() bool { return len(k.calls(chat)) >= len(want) })
	if got := k.calls(chat); !slices.Equal(got, want) {
		k.fatal("chat %d has got %q, want %q", chat, got, want)
	}
}

// shown is an update as inbox show has it.
type shown struct {
	Seq      int64   `json:"seq"`
	State    string  `json:"state"`
	Attempts int     `json:"attempts"`
	Error    *string `json:"error"`
	Output   *string `json:"output"`
}

func (k *talk) show(seq int64) (u shown) {
	k.t.Helper()
	if out := k.command(k.ctx, "inbox", "show", fmt.Sprint(seq), "--json"); json.Unmarshal([]byte(out), &u) != nil {
		return u // not there yet
	}
	return u
}

// wantUpdate waits until an update is as it should be.
func (k *talk) wantUpdate(seq int64, state, why string) shown {
	k.t.Helper()
	k.wait(fmt.Sprintf("update %d is %s", seq, state), func() bool { return k.show(seq).State == state })
	u := k.show(seq)
	if got := text(u.Error); !strings.Contains(got, why) || why == "" && got != "" {
		k.fatal("update %d is %s: %q, want %q", seq, state, got, why)
	}
	return u
}

func text(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

// note reads a file that programs write to.
func (k *talk) note(name string) []string {
	b, err := os.ReadFile(filepath.Join(k.dir, name))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		k.t.Fatal(err)
	}
	return strings.Fields(string(b))
}

const (
	ada int64 = 8_100_000_001
	bob int64 = 8_100_000_002
)

// unitInstance is what systemd does for a connection.
func unitInstance(binary string, conn net.Conn) {
	defer func() { _ = conn.Close() }()
	unix, ok := conn.(*net.UnixConn)
	if !ok {
		return
	}
	file, err := unix.File()
	if err != nil {
		return
	}
	defer func() { _ = file.Close() }()
	instance := exec.Command(binary, "exec-handler")
	instance.Stdin = file
	instance.Env = []string{"PATH=/usr/bin:/bin"}
	_ = instance.Run() // the daemon hears how it went
}
