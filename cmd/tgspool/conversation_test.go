package main_test

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/tgspool/tgspool/internal/telegramsim"
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

// reportSeconds is how long the report of TestConversation_Report takes.
func reportSeconds(t *testing.T) int { return number(t, "TGSPOOL_REPORT_SECONDS", 4) }

// TestConversation_Report: a slow report with an ack, edits that tell how far it
// is, and a kill in the middle. The user gets one message, which becomes the
// report.
func TestConversation_Report(t *testing.T) {
	k := newTalk(t, fmt.Sprintf(`
[[h]]
name = "report"
match = { command = "/report" }
exec = ["/bin/sh", "-c", '''
for part in 25 50 75; do
  @tgspool call editMessageText "{\"chat_id\":$TGSPOOL_CHAT_ID,\"message_id\":{\"\$job\":\"ack:$TGSPOOL_UPDATE_ID\"},\"text\":\"$part %%\"}" >> DIR/calls 2>&1
  echo "$TGSPOOL_ATTEMPT:$part" >> DIR/parts
  sleep %g
done
echo "the report of attempt $TGSPOOL_ATTEMPT"''']
allow_from = ["*"]
typing = true
ack = "one moment"
timeout = "1m"
`, float64(reportSeconds(t))/3))
	k.sim.FeedText(ada, ada, "/report")
	k.wait("half of it is done", func() bool { return slices.Contains(k.note("parts"), "1:50") })
	k.kill()
	k.start()
	k.ready()
	k.wait("the report is there", func() bool {
		return slices.Contains(k.calls(ada), "editMessageText the report of attempt 2")
	})
	u := k.wantUpdate(1, "handled", "")
	if u.Attempts != 2 {
		t.Errorf("after %d attempts", u.Attempts)
	}
	var id int64
	for _, a := range k.sim.Journal() {
		switch {
		case a.ChatID != ada || !a.Effect:
		case a.Method == "sendMessage" && id != 0:
			k.fatal("there is a second message, %q; the calls were %q", a.Text, k.calls(ada))
		case a.Method == "sendMessage":
			id = a.MessageID
		case a.Method == "editMessageText" && a.MessageID != id:
			t.Errorf("%q edits message %d, not %d", a.Text, a.MessageID, id)
		}
	}
	got := k.calls(ada)
	if got[0] != "sendMessage one moment" || !slices.Contains(got, "editMessageText 25 %") || !slices.Contains(got, "editMessageText 75 %") {
		t.Errorf("the calls were %q; the program's said %q", got, k.note("calls"))
	}
	typed := slices.ContainsFunc(k.sim.Journal(), func(a telegramsim.Arrival) bool {
		return a.Method == "sendChatAction" && a.ChatID == ada
	})
	if !typed {
		t.Error("nobody was seen typing")
	}

	// Where the edit is refused, the text is sent afresh.
	k.sim.AddFault(telegramsim.Fault{Chat: bob, Method: "editMessageText", Kind: telegramsim.FaultCode, Code: 400, Body: "Bad Request: message to edit not found"})
	k.sim.FeedText(bob, bob, "/report")
	k.wait("the report is sent afresh", func() bool {
		return slices.Contains(k.calls(bob), "sendMessage the report of attempt 1")
	})
}

// TestConversation_ManyChats: a thousand chats at once, each in order, each
// answered once.
func TestConversation_ManyChats(t *testing.T) {
	const chats, each = 1000, 3
	var mu sync.Mutex
	busy, wrong := map[int64]bool{}, 0
	app := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var u struct {
			Message struct {
				Chat struct {
					ID int64 `json:"id"`
				} `json:"chat"`
				Text string `json:"text"`
			} `json:"message"`
		}
		if err := json.NewDecoder(r.Body).Decode(&u); err != nil {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		chat := u.Message.Chat.ID
		mu.Lock()
		if busy[chat] {
			wrong++
		}
		busy[chat] = true
		mu.Unlock()
		w.Header().Set("Content-Type", "application/json")
		defer func() {
			mu.Lock()
			busy[chat] = false
			mu.Unlock()
			_ = json.NewEncoder(w).Encode(map[string]any{"method": "sendMessage", "chat_id": chat, "text": "re " + u.Message.Text})
		}()
	}))
	defer app.Close()
	k := newTalk(t, "[[h]]\nname = \"app\"\nwebhook = \""+app.URL+"\"\nmax_connections = 32\n")
	for n := range each {
		for chat := range chats {
			k.sim.FeedText(ada+int64(chat), ada+int64(chat), fmt.Sprint(n))
		}
	}
	k.wait("all have been answered", func() bool { return len(k.sim.Journal()) >= chats*each })
	got := map[int64][]string{}
	for _, a := range k.sim.Journal() {
		if a.Method == "sendMessage" {
			got[a.ChatID] = append(got[a.ChatID], a.Text)
		}
	}
	for chat := range chats {
		if list := got[ada+int64(chat)]; !slices.Equal(list, []string{"re 0", "re 1", "re 2"}) {
			t.Errorf("chat %d has got %q", chat, list)
		}
	}
	if wrong > 0 {
		t.Errorf("%d times two updates of one chat were under way", wrong)
	}
}
