package main_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// booking is a conversation of several steps, as a shell script: it wants a day, a
// photo and a yes. What it knows stands in the session.
const booking = `
say() { printf '{"method":"sendMessage","chat_id":%s,"text":"%s"}\n' "$TGSPOOL_CHAT_ID" "$1"; }
keep() { printf '{"session":%s}\n' "$1"; }
day=$(printf %s "$TGSPOOL_SESSION" | sed -n 's/.*"day":"\([^"]*\)".*/\1/p')
step=$(printf %s "$TGSPOOL_SESSION" | sed -n 's/.*"step":"\([^"]*\)".*/\1/p')
case "$step:$TGSPOOL_TEXT" in
*:/book)  say 'Which day?';                   keep '{"step":"day"}' ;;
day:*)    say 'A photo of the room, please.'; keep "{\"step\":\"photo\",\"day\":\"$TGSPOOL_TEXT\"}" ;;
photo:?*) say 'That is a text. A photo, please.' ;;
photo:)   say "Book $day?";                   keep "{\"step\":\"sure\",\"day\":\"$day\"}" ;;
sure:yes) say "Booked for $day.";             keep '{}' ;;
sure:*)   say 'Then not.';                    keep null ;;
*)        say 'Write /book.' ;;
esac
`

// TestConversation_Booking plays it for two at once, in one group, and kills the
// daemon between and within the steps.
func TestConversation_Booking(t *testing.T) {
	k := newTalk(t, "[[h]]\nname = \"book\"\nexec = [\"/bin/sh\", \"-c\", '''"+booking+"''']\nreply = \"calls\"\nallow_from = [\"*\"]\nsession = \"chat+user\"\nattempts = 20\n")
	const group int64 = -8_100_000_000
	photo := func(user int64) {
		k.sim.Feed(0, json.RawMessage(fmt.Sprintf(`{"message":{"message_id":99,"date":%d,"from":{"id":%d,"is_bot":false,"first_name":"A"},`+
			`"chat":{"id":%d,"type":"group","title":"G"},"photo":[{"file_id":"p","file_unique_id":"u","width":9,"height":9}]}}`, time.Now().Unix(), user, group)))
	}
	say := func(user int64, text string) { k.sim.FeedText(group, user, text) }
	var want []string
	expect := func(texts ...string) {
		t.Helper()
		for _, text := range texts {
			want = append(want, "sendMessage "+text)
		}
		k.wantCalls(group, want...)
	}
	say(ada, "hello")
	say(ada, "/book")
	expect("Write /book.", "Which day?")
	say(bob, "/book")
	expect("Which day?")
	say(ada, "Monday")
	say(bob, "Friday")
	expect("A photo of the room, please.", "A photo of the room, please.")
	k.kill()
	say(ada, "here it is")
	k.start()
	k.ready()
	expect("That is a text. A photo, please.")
	photo(ada)
	k.kill() // before, within or after the run
	k.start()
	k.ready()
	expect("Book Monday?")
	photo(bob)
	expect("Book Friday?")
	if out := k.command(k.ctx, "session", "get", fmt.Sprintf("%d:%d", group, bob)); out != `{"step":"sure","day":"Friday"}`+"\n" {
		t.Errorf("the session is %q", out)
	}
	say(ada, "yes")
	say(bob, "no")
	expect("Booked for Monday.", "Then not.")
	say(bob, "yes")
	expect("Write /book.")
	if out := k.command(k.ctx, "session", "list"); out != "no sessions\n" {
		t.Errorf("what is left: %s", out)
	}
}

// TestConversation_Race: texts of a chat stand in one order, the buttons that its
// user presses in another, so that two of them run at once on one session. Each
// that is outrun runs again: no count is lost, and no attempt.
func TestConversation_Race(t *testing.T) {
	const each = 12
	k := newTalk(t, `
[[h]]
name = "count"
exec = ["/bin/sh", "-c", '''
n=$(printf %s "$TGSPOOL_SESSION" | sed -n 's/[^0-9]*\([0-9]*\).*/\1/p')
echo run >> DIR/runs
sleep 0.05
printf '{"session":{"n":%d}}\n{"method":"sendMessage","chat_id":%s,"text":"%s"}\n' $((n + 1)) $TGSPOOL_CHAT_ID $((n + 1))
''']
reply = "calls"
allow_from = ["*"]
attempts = 1
`)
	for range each {
		k.sim.FeedText(ada, ada, "x")
		k.sim.PressButton(ada, ada, 7, "x")
	}
	session := fmt.Sprint(ada)
	k.wait("all are counted", func() bool {
		return k.command(k.ctx, "session", "get", session) == fmt.Sprintf(`{"n":%d}`, 2*each)+"\n"
	})
	k.wait("all are answered", func() bool { return len(k.calls(ada)) == 2*each })
	seen := k.calls(ada)
	for n := range 2 * each {
		if !slices.Contains(seen, fmt.Sprint("sendMessage ", n+1)) {
			t.Errorf("nobody has counted %d: %q", n+1, seen)
		}
		k.wantUpdate(int64(n+1), "handled", "")
	}
	runs := len(k.note("runs"))
	if runs <= 2*each {
		t.Error("nobody was outrun: that isn't a race")
	}
	t.Logf("%d runs for %d updates", runs, 2*each)
}

// TestConversation_Workers runs the workers of the examples, two of each at once,
// through kills of the daemon and of a worker. It needs curl, jq and python3.
func TestConversation_Workers(t *testing.T) {
	for _, name := range []string{"worker.sh", "worker.py"} {
		t.Run(name, func(t *testing.T) {
			k := newTalk(t, "[[h]]\nname = \"w\"\npull = true\n")
			path, err := filepath.Abs(filepath.Join("..", "..", "packaging", "examples", "workers", name))
			if err != nil {
				t.Fatal(err)
			}
			first, _ := k.work(path), k.work(path)
			k.sim.FeedText(ada, ada, "a")
			k.wantCalls(ada, "sendMessage 1: a")
			k.sim.FeedText(bob, bob, "b")
			k.wantCalls(bob, "sendMessage 1: b")
			k.kill()
			k.sim.FeedText(ada, ada, `quote " and é`)
			k.start()
			k.ready()
			k.wantCalls(ada, "sendMessage 1: a", `sendMessage 2: quote " and é`)
			killGroup(first)
			for n := range 10 {
				k.sim.FeedText(ada, ada, fmt.Sprint("n", n))
				k.sim.FeedText(bob, bob, fmt.Sprint("n", n))
			}
			for chat, want := range map[int64][]string{ada: {"sendMessage 1: a", `sendMessage 2: quote " and é`}, bob: {"sendMessage 1: b"}} {
				for n := range 10 {
					want = append(want, fmt.Sprintf("sendMessage %d: n%d", len(want)+1, n))
				}
				k.wantCalls(chat, want...)
			}
			k.contend(8_100_000_003)
		})
	}
}

// contend changes the session of a chat while the worker counts in it: neither
// loses what the other has written.
func (k *talk) contend(chat int64) {
	k.t.Helper()
	const texts, changes = 15, 20
	for range texts {
		k.sim.FeedText(chat, chat, "x")
	}
	var s struct {
		Version int64
		Data    struct{ Count int }
	}
	look := func() {
		_, _ = k.do(k.ctx, http.MethodGet, fmt.Sprint("/v1/bots/kill/sessions/", chat), nil, &s) // none yet is version 0
	}
	for mine := 0; mine < changes; {
		look()
		code := k.exitOf("session", "set", fmt.Sprint(chat), fmt.Sprintf(`{"count":%d}`, s.Data.Count+1000), "--version", fmt.Sprint(s.Version))
		switch {
		case code == 0:
			mine++
		case code != 65:
			k.fatal("exit code %d", code)
		}
	}
	k.wait("the worker has counted all", func() bool { look(); return s.Data.Count%1000 == texts })
	if s.Data.Count != changes*1000+texts {
		k.fatal("the session counts %d", s.Data.Count)
	}
	k.wait("all are answered", func() bool { return len(k.calls(chat)) == texts })
}

// exitOf runs a command and returns its exit code.
func (k *talk) exitOf(args ...string) int {
	k.t.Helper()
	command := exec.CommandContext(k.ctx, k.binary, append(args, "--config", k.settings)...)
	command.Env = []string{"PATH=/usr/bin:/bin"}
	err := command.Run()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		return exit.ExitCode()
	}
	if err != nil {
		k.fatal("%v", err)
	}
	return 0
}

// work starts a worker of the examples; it ends with the test.
func (k *talk) work(path string) *exec.Cmd {
	k.t.Helper()
	for _, tool := range []string{"curl", "jq", "python3"} {
		if _, err := exec.LookPath(tool); err != nil {
			k.t.Fatalf("the examples need %s", tool)
		}
	}
	cmd := exec.CommandContext(k.ctx, path)
	cmd.Env = append(os.Environ(), "TGSPOOL_SOCKET="+filepath.Join(k.dir, "s"), "TGSPOOL_BOT=kill")
	var said strings.Builder
	cmd.Stdout, cmd.Stderr = &said, &said
	inGroup(cmd)
	if err := cmd.Start(); err != nil {
		k.t.Fatal(err)
	}
	k.t.Cleanup(func() {
		killGroup(cmd)
		_ = cmd.Wait()
		if said.Len() > 0 && k.t.Failed() {
			k.t.Logf("%s said: %s", path, said.String())
		}
	})
	return cmd
}

// inGroup gives a program a process group of its own; killGroup ends all of it.
func inGroup(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }

func killGroup(cmd *exec.Cmd) { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
