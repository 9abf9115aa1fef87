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
	"syscall"
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
	if err := os.WriteFile(k.settings, []byte(head+handlers), 0o600); err != nil {
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
	ada = 8_100_000_001
	bob = 8_100_000_002
)

// badPrograms are programs that go wrong, each by its command, and what becomes
// of their update.
var badPrograms = []struct{ name, program, reply, state, why string }{
	{"half", `printf '{"method":"sendMessage","chat_id":1,"text":"a"}\n{"method":"sendMess'`, "calls", "dead", "line 2 of the calls is not a JSON object"},
	{"invalid", `echo '{"method":"sendMessage",}'`, "calls", "dead", "line 1 of the calls is not a JSON object"},
	{"prose", `echo done`, "calls", "dead", "line 1 of the calls is not a JSON object"},
	{"unknown", `echo '{"method":"sendMesage","chat_id":1}'`, "calls", "dead", `line 1 of the calls: unknown method "sendMesage"`},
	{"foreign", `echo '{"method":"sendMessage","chat_id":-100999,"text":"a"}'`, "calls", "dead", "line 1 of the calls: chat_id names a chat outside of allow_chats"},
	{"huge", `head -c 10000000 /dev/zero | tr '\000' x`, "text", "dead", "standard output is over 1048576 bytes"},
	{"binary", `head -c 1000 /dev/urandom; printf '\000'`, "text", "dead", "standard output is binary, no text"},
	{"binarycalls", `printf '\377\376\n'`, "calls", "dead", "line 1 of the calls: not valid UTF-8"},
	{"data", `echo sorry >&2; exit 65`, "text", "dead", "exit status 65"},
	{"temp", `exit 75`, "text", "open", "exit status 75"},
	{"killed", `kill -9 $$`, "text", "open", "signal: killed"},
	{"endless", `sleep 100 & wait`, "text", "open", "killed after 1s: timeout"},
	{"deaf", `sleep 0.3; echo fine`, "text", "handled", ""},           // never reads what it is given
	{"shut", `exec <&-; sleep 0.3; echo fine`, "text", "handled", ""}, // closes it at once
	{"daemon", `setsid sleep 300 & echo $! >> DIR/left; echo fine`, "text", "handled", ""},
	{"empty", `cat > /dev/null`, "text", "handled", ""},
}

// badSettings has a handler for each of them, and one that is well.
func badSettings() string {
	var b strings.Builder
	for _, p := range badPrograms {
		fmt.Fprintf(&b, "[[h]]\nname = %q\nmatch = { command = \"/%s\" }\nexec = [\"/bin/sh\", \"-c\", '''%s''']\nreply = %q\nallow_chats = [%d, %d]\ntimeout = \"1s\"\n",
			p.name, p.name, p.program, p.reply, ada, bob)
	}
	b.WriteString("[[h]]\nname = \"well\"\nexec = [\"/bin/sh\", \"-c\", \"echo well\"]\nallow_from = [\"*\"]\n")
	return b.String()
}

func TestConversation_BadPrograms(t *testing.T) {
	k := newTalk(t, badSettings())
	k.playBadPrograms()
}

// TestConversation_BadProgramsInTheUnit does the same where another process runs
// the programs.
func TestConversation_BadProgramsInTheUnit(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x")
	binary := build(t)
	listener, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go unitInstance(binary, conn)
		}
	}()
	t.Cleanup(func() {
		_ = listener.Close()
		<-ended
	})
	k := newTalk(t, badSettings(), "TGSPOOL_EXEC_SOCKET="+path)
	k.playBadPrograms()
}

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

// playBadPrograms starts each of them and looks at what became of it, and at its
// neighbours.
func (k *talk) playBadPrograms() {
	k.t.Helper()
	big := strings.Repeat("x", 300_000) // more than a pipe holds
	for _, p := range badPrograms {
		k.sim.Feed(0, json.RawMessage(fmt.Sprintf(`{"message":{"message_id":1,"date":%d,"from":{"id":%d,"is_bot":false,"first_name":"A"},`+
			`"chat":{"id":%d,"type":"private","first_name":"A"},"text":"/%s","padding":%q}}`, time.Now().Unix(), ada, ada, p.name, big)))
	}
	for range 3 {
		k.sim.FeedText(bob, bob, "how are you")
	}
	k.wantCalls(bob, "sendMessage well", "sendMessage well", "sendMessage well")
	for i, p := range badPrograms {
		seq := int64(i + 1)
		if p.state == "open" { // until it has been tried five times
			k.wait(p.name+" was tried", func() bool { return k.show(seq).Attempts > 0 && text(k.show(seq).Error) != "" })
			if got := text(k.show(seq).Error); !strings.Contains(got, p.why) {
				k.fatal("%s: %q, want %q", p.name, got, p.why)
			}
			k.command(k.ctx, "inbox", "drop", fmt.Sprint(seq)) // those behind it in the chat wait
			continue
		}
		k.wantUpdate(seq, p.state, p.why)
	}
	k.wait("the last of them have answered", func() bool { return len(k.calls(ada)) >= 3 })
	if got := k.calls(ada); !slices.Equal(got, []string{"sendMessage fine", "sendMessage fine", "sendMessage fine"}) {
		k.fatal("the chat has got %q", got)
	}
	for _, pid := range k.note("left") { // what a program leaves behind in a group of its own is its own
		var n int
		if _, err := fmt.Sscan(pid, &n); err == nil && n > 1 {
			_ = syscall.Kill(n, syscall.SIGKILL)
		}
	}
}

// TestConversation_Button: five presses of one button are one, over a kill, and
// the same update handed over twice or out of order is one, too.
func TestConversation_Button(t *testing.T) {
	k := newTalk(t, `
[[h]]
name = "press"
match = { kind = "callback_query" }
exec = ["/bin/sh", "-c", "echo $TGSPOOL_TEXT >> DIR/pressed; echo pressed $TGSPOOL_TEXT"]
allow_from = ["*"]
collapse = "1m"
`)
	for range 3 {
		k.sim.PressButton(ada, ada, 7, "lamp")
	}
	k.wantCalls(ada, "sendMessage pressed lamp")
	k.kill()
	k.start()
	k.ready()
	k.sim.PressButton(ada, ada, 7, "lamp")
	k.sim.PressButton(ada, ada, 7, "lamp")
	k.sim.PressButton(ada, ada, 7, "fan")
	k.wantCalls(ada, "sendMessage pressed lamp", "sendMessage pressed fan")
	if got := k.note("pressed"); !slices.Equal(got, []string{"lamp", "fan"}) {
		t.Errorf("the program ran for %v", got)
	}
	ignored := strings.Count(k.command(k.ctx, "inbox", "list", "--state", "ignored", "--json"), `"collapsed"`)
	if ignored != 4 {
		t.Errorf("%d presses were ignored, want 4", ignored)
	}
	// Each press had its answer, so that no button spins.
	answers := 0
	k.wait("all buttons are answered", func() bool {
		answers = 0
		for _, a := range k.sim.Journal() {
			if a.Method == "answerCallbackQuery" && a.Effect {
				answers++
			}
		}
		return answers >= 6
	})

	// Out of order and twice: Telegram's ids jump, and come again.
	press := func(id int64, data string) {
		k.sim.Feed(0, json.RawMessage(fmt.Sprintf(`{"update_id":%d,"callback_query":{"id":"%d","from":{"id":%d,"is_bot":false,"first_name":"B"},`+
			`"message":{"message_id":9,"date":1,"chat":{"id":%d,"type":"private"}},"chat_instance":"c","data":%q}}`, id, id, bob, bob, data)))
	}
	k.kill()
	press(900_002, "second")
	press(900_001, "first")
	press(900_002, "second")
	press(900_003, "third")
	k.start()
	k.ready()
	k.wantCalls(bob, "sendMessage pressed second", "sendMessage pressed first", "sendMessage pressed third")
}

// TestConversation_CrashAfterTheSideEffect: a program that dies after its work
// is run again and can tell; one that must not be isn't, and the user hears so.
func TestConversation_CrashAfterTheSideEffect(t *testing.T) {
	k := newTalk(t, `
[[h]]
name = "pay"
match = { command = "/pay" }
exec = ["/bin/sh", "-c", '''
if grep -qx $TGSPOOL_UPDATE_ID DIR/paid; then echo "paid, told on attempt $TGSPOOL_ATTEMPT"; exit; fi
echo $TGSPOOL_UPDATE_ID >> DIR/paid
kill -9 $$''']
allow_from = ["*"]
[[h]]
name = "door"
match = { command = "/door" }
exec = ["/bin/sh", "-c", "echo open >> DIR/door; kill -9 $$"]
allow_from = ["*"]
once = true
on_error = "nobody knows whether the door is open"
late = "too late for the door"
`)
	k.sim.FeedText(ada, ada, "/pay")
	k.wantCalls(ada, "sendMessage paid, told on attempt 2")
	if got := k.note("paid"); len(got) != 1 {
		t.Errorf("it was paid %d times", len(got))
	}
	k.sim.FeedText(bob, bob, "/door")
	k.wantCalls(bob, "sendMessage nobody knows whether the door is open")
	k.wantUpdate(2, "dead", "may have run: signal: killed, and once = true")
	// One from an hour ago opens nothing.
	k.sim.Feed(0, json.RawMessage(fmt.Sprintf(`{"message":{"message_id":1,"date":%d,"from":{"id":%d,"is_bot":false,"first_name":"B"},`+
		`"chat":{"id":%d,"type":"private","first_name":"B"},"text":"/door"}}`, time.Now().Add(-time.Hour).Unix(), bob, bob)))
	k.wantUpdate(3, "expired", "older than 1m0s")
	k.wantCalls(bob, "sendMessage nobody knows whether the door is open", "sendMessage too late for the door")
	if got := k.note("door"); len(got) != 1 {
		t.Errorf("the door was opened %d times", len(got))
	}
}

// TestConversation_Poison: an update that fails holds up its own chat, only until
// it is dead; mended, it is replayed.
func TestConversation_Poison(t *testing.T) {
	k := newTalk(t, `
[[h]]
name = "eat"
exec = ["/bin/sh", "-c", '''
if [ "$TGSPOOL_TEXT" = poison ] && [ ! -e DIR/antidote ]; then echo choked >&2; exit 3; fi
echo ate $TGSPOOL_TEXT''']
allow_from = ["*"]
attempts = 2
`)
	for _, what := range []string{"apple", "poison", "pear"} {
		k.sim.FeedText(ada, ada, what)
	}
	k.sim.FeedText(bob, bob, "bread")
	k.wantCalls(bob, "sendMessage ate bread")
	k.wantCalls(ada, "sendMessage ate apple", "sendMessage ate pear")
	if u := k.wantUpdate(2, "dead", "given up after 2 attempts: exit status 3"); !strings.Contains(text(u.Output), "choked") {
		t.Errorf("its output is %q", text(u.Output))
	}
	if err := os.WriteFile(filepath.Join(k.dir, "antidote"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	k.command(k.ctx, "inbox", "replay", "2")
	k.wantCalls(ada, "sendMessage ate apple", "sendMessage ate pear", "sendMessage ate poison")
}
