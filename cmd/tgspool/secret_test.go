package main_test

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/tgspool/tgspool/internal/telegramsim"
)

// TestNothingShowsTheToken lets calls fail in every way, some by answers that
// repeat the address with the token in it, and then reads all that the daemon
// and the commands have said.
func TestNothingShowsTheToken(t *testing.T) {
	r := newRig(t, build(t), 1)
	r.start()
	r.ready()
	r.provoke()
	said := r.askAll()

	r.sim.AddFault(telegramsim.Fault{Kind: telegramsim.FaultCode, Code: 401, Body: "Unauthorized: /bot" + rigToken})
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	r.ask(ctx, 999)
	r.until(ctx, "to believe that its token is refused", func() bool {
		return strings.Contains(r.command(ctx, "status"), "unauthorized")
	})
	said += r.askAll()

	line, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", r.daemon.cmd.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	if err := r.daemon.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	<-r.daemon.ended
	log, err := os.ReadFile(r.log.Name())
	if err != nil {
		t.Fatal(err)
	}
	for what, text := range map[string]string{"a command": said, "the log": string(log), "the list of processes": string(line)} {
		for _, secret := range []string{"KILL-KILL", url.QueryEscape(rigToken)} {
			if at := strings.Index(text, secret); at >= 0 {
				t.Errorf("%s shows the token: …%s…", what, text[max(0, at-200):min(len(text), at+60)])
			}
		}
		if text == "" {
			t.Errorf("%s has said nothing", what)
		}
	}
	for _, class := range []string{
		"unknown_outcome", "flood", "flood_undated", "rejected", "chat_gone", "too_late",
		"migrated", "unauthorized",
	} {
		if !strings.Contains(said+string(log), class) {
			t.Errorf("nothing came to %s", class)
		}
	}
}

// provoke has one call fail in each way, each in a chat of its own.
func (r *rig) provoke() {
	r.t.Helper()
	address := "https://api.telegram.org/bot" + rigToken + "/sendMessage"
	code := func(code int, body string) telegramsim.Fault {
		return telegramsim.Fault{Kind: telegramsim.FaultCode, Code: code, Body: body + " at " + address}
	}
	said := func(status int, more string) telegramsim.Fault {
		return telegramsim.Fault{Kind: telegramsim.FaultCode, Code: status, Body: fmt.Sprintf(
			`{"ok":false,"error_code":%d,"description":%q%s}`, status, "Trouble at "+address, more)}
	}
	faults := []telegramsim.Fault{
		{Kind: telegramsim.FaultAcceptClose},
		{Kind: telegramsim.FaultResetAfterRead},
		{Kind: telegramsim.FaultHalfBody},
		{Kind: telegramsim.FaultEmpty},
		{Kind: telegramsim.FaultHTML200},
		{Kind: telegramsim.FaultTruncatedJSON},
		{Kind: telegramsim.FaultRedirect, Body: address},
		{Kind: telegramsim.FaultOffline},
		{Kind: telegramsim.FaultFlood, RetryAfter: 1},
		{Kind: telegramsim.FaultFloodUndated},
		code(400, "Bad Request: nonsense"), code(500, "Internal Server Error"), code(502, "<html>"),
		code(403, "Forbidden: bot was blocked by the user"), code(404, "Not Found: method not found"), code(401, "Unauthorized"),
		said(400, ""), said(429, ""), said(400, `,"parameters":{"migrate_to_chat_id":1}`), said(503, ""),
	}
	ctx, cancel := context.WithTimeout(r.t.Context(), time.Minute)
	defer cancel()
	for n, f := range faults {
		f.Chat, f.Times = int64(100+n), 1
		if f.Kind == telegramsim.FaultCode && strings.Contains(f.Body, "migrate_to_chat_id") {
			f.Times = 0
			f.Body = strings.Replace(f.Body, ":1}", fmt.Sprintf(":%d}", f.Chat), 1) // to itself, so that it stands
		}
		r.sim.AddFault(f)
		r.ask(ctx, f.Chat)
	}
	r.call(ctx, "answerCallbackQuery", `{"callback_query_id":"1"}`)
	r.until(ctx, "to try every call", func() bool {
		tried := map[int64]bool{}
		for _, a := range r.sim.Journal() {
			tried[a.ChatID] = true
		}
		return len(tried) >= len(faults)-2 // those that strike before the request is read leave no trace
	})
}

// ask queues a message for a chat.
func (r *rig) ask(ctx context.Context, chat int64) {
	r.t.Helper()
	r.call(ctx, "sendMessage", fmt.Sprintf(`{"chat_id":%d,"text":"hello"}`, chat))
}

// call queues a call.
func (r *rig) call(ctx context.Context, method, params string) {
	r.t.Helper()
	body := fmt.Appendf(nil, `{"method":%q,"params":%s}`, method, params)
	if _, err := r.do(ctx, http.MethodPost, "/v1/bots/kill/jobs", body, nil); err != nil {
		r.fatal("queueing a call: %v", err)
	}
}

// askAll is what the commands say of everything.
func (r *rig) askAll() string {
	r.t.Helper()
	var all strings.Builder
	for _, args := range []string{
		"status", "status --json", "queue list --all", "queue list --all --json", "inbox list --all", "chat list --json",
		"config show", "config check",
	} {
		all.WriteString(r.command(r.t.Context(), strings.Fields(args)...))
	}
	for id := range 22 {
		all.WriteString(r.command(r.t.Context(), "queue", "why", fmt.Sprint(id+1)))
		all.WriteString(r.command(r.t.Context(), "queue", "show", fmt.Sprint(id+1)))
	}
	return all.String()
}

// command is what a command says, whether or not it succeeds.
func (r *rig) command(ctx context.Context, args ...string) string {
	r.t.Helper()
	command := exec.CommandContext(ctx, r.binary, append(args, "--config", r.settings)...)
	command.Env = []string{"PATH=/usr/bin:/bin"}
	out, _ := command.CombinedOutput()
	return string(out)
}
