package cli_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"net"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/tgspool/tgspool/internal/localapi"
	"github.com/tgspool/tgspool/internal/telegramsim"
)

const (
	setupToken = "4242:SETUP-SETUP-SETUP-SETUP-SETUP-SETUP"
	otherToken = "4242:FRESH-FRESH-FRESH-FRESH-FRESH-FRESH"
	alienToken = "4343:ALIEN-ALIEN-ALIEN-ALIEN-ALIEN-ALIEN" //nolint:gosec // no secret: only the simulator knows it
	setupOwner = 7_000_000_001
)

// box is a simulated Telegram and a folder of settings.
type box struct {
	t   *testing.T
	dir string
	sim *telegramsim.Sim
	env []string
}

func newBox(t *testing.T) *box {
	t.Helper()
	b := &box{t: t, dir: t.TempDir()}
	b.sim = telegramsim.New(telegramsim.Options{Bots: []telegramsim.Bot{
		{Token: setupToken, Username: "home_bot"}, {Token: otherToken, Username: "home_bot"}, {Token: alienToken, Username: "alien_bot"},
	}})
	server := httptest.NewServer(b.sim.Handler())
	t.Cleanup(func() { b.sim.Close(); server.Close() })
	b.env = []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + b.dir, "TZ=UTC",
		"TGSPOOL_API_BASE=" + server.URL, "TGSPOOL_SOCKET=" + filepath.Join(b.dir, "s"), "TGSPOOL_CONFIG=" + filepath.Join(b.dir, "tgspool.toml"),
	}
	b.write("tgspool.toml", "[store]\npath = \""+b.dir+"/spool.db\"\n[api]\nlisten = [\"unix:"+b.dir+"/s\"]\n")
	return b
}

func (b *box) write(name, text string) {
	b.t.Helper()
	if err := os.WriteFile(filepath.Join(b.dir, name), []byte(text), 0o600); err != nil {
		b.t.Fatal(err)
	}
}

func (b *box) read(name string) string {
	b.t.Helper()
	text, err := os.ReadFile(filepath.Join(b.dir, name))
	if err != nil {
		b.t.Fatal(err)
	}
	return string(text)
}

func (b *box) command(args ...string) *exec.Cmd {
	b.t.Helper()
	path, err := exec.LookPath("tgspool")
	if err != nil {
		b.t.Fatal(err)
	}
	c := exec.Command(path, args...)
	c.Env = b.env
	return c
}

// run runs a command to its end and returns all that it printed. No token may
// be in that, whatever went wrong.
func (b *box) run(stdin string, args ...string) (code int, printed string) {
	b.t.Helper()
	c := b.command(args...)
	c.Stdin = strings.NewReader(stdin)
	out, err := c.CombinedOutput()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		code = exit.ExitCode()
	} else if err != nil {
		b.t.Fatal(err)
	}
	for _, token := range []string{setupToken, otherToken, alienToken} {
		if _, secret, _ := strings.Cut(token, ":"); bytes.Contains(out, []byte(secret)) {
			b.t.Errorf("tgspool %s prints a token:\n%s", strings.Join(args, " "), out)
		}
	}
	return code, string(out)
}

// want runs a command and compares its code and what it prints.
func (b *box) want(code int, text, stdin string, args ...string) {
	b.t.Helper()
	if got, printed := b.run(stdin, args...); got != code || !strings.Contains(printed, text) {
		b.t.Errorf("tgspool %s: code %d, want %d with %q:\n%s", strings.Join(args, " "), got, code, text, printed)
	}
}

func (b *box) setup(more ...string) []string {
	return append([]string{"setup", "--dir", b.dir, "--yes"}, more...)
}

func TestSetup_OwnerByLink(t *testing.T) {
	b := newBox(t)
	b.sim.FeedText(666, 666, "/start")
	c := b.command(b.setup("--bot", "home")...)
	c.Stdin = strings.NewReader("\ufeff\"" + setupToken + "\"\r\n")
	c.Stderr = os.Stderr
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	link := regexp.MustCompile(`https://t\.me/home_bot\?start=([A-Za-z0-9_-]{22})$`)
	for lines := bufio.NewScanner(out); lines.Scan(); {
		if found := link.FindStringSubmatch(lines.Text()); found != nil {
			b.sim.FeedText(setupOwner, setupOwner, "/start "+found[1])
		}
	}
	if err := c.Wait(); err != nil {
		t.Fatal(err)
	}
	settings := b.read("conf.d/50-setup.toml")
	for _, want := range []string{"[bots.home]", "me = 7000000001", "token_file = "} {
		if !strings.Contains(settings, want) {
			t.Errorf("no %q in\n%s", want, settings)
		}
	}
	if b.read("credentials/home.token") != setupToken+"\n" {
		t.Error("the token isn't stored as it is")
	}
	if n := b.sim.Pending(4242); n != 2 {
		t.Errorf("%d updates wait for the daemon, want both", n)
	}
	b.want(0, "the settings are right: 1 bot (home)", "", "config", "check")
	b.want(0, "bot home: @home_bot (4242)", "", "token", "check")
}

func TestSetup_ScriptedAndRepeated(t *testing.T) {
	b := newBox(t)
	b.want(0, "not started: tgspool run --config", setupToken, b.setup("--owner", "12345")...)
	first := b.read("conf.d/50-setup.toml")
	b.want(0, "as they were", setupToken, b.setup("--owner", "12345")...)
	b.want(0, "owner    12345, as before", setupToken, b.setup()...)
	if again := b.read("conf.d/50-setup.toml"); again != first {
		t.Errorf("repeated, it writes\n%s\nand not\n%s", again, first)
	}
	b.write("token2", alienToken+"\n")
	b.want(64, "holds the token of another bot", "", b.setup("--no-owner", "--token-file", filepath.Join(b.dir, "token2"))...)
	if b.read("credentials/home.token") != setupToken+"\n" {
		t.Error("a token was overwritten without a question")
	}
	b.want(65, "is bot home already", otherToken, b.setup("--no-owner", "--bot", "alien")...)
	b.want(0, "@alien_bot", alienToken, b.setup("--no-owner", "--bot", "alien")...)
	b.want(65, "is bot alien already", alienToken, b.setup("--no-owner", "--bot", "home", "--replace")...)
	if both := b.read("conf.d/50-setup.toml"); !strings.Contains(both, "me = 12345") || !strings.Contains(both, "[bots.alien]") {
		t.Errorf("two bots are\n%s", both)
	}
	b.want(64, "holds another token of this bot", otherToken, b.setup("--bot", "home")...)
	b.want(0, "", otherToken, b.setup("--bot", "home", "--replace")...)
	if b.read("credentials/home.token") != otherToken+"\n" {
		t.Error("the token wasn't replaced")
	}
	b.write("conf.d/50-setup.toml", both(b)+"# mine\n")
	b.want(64, "edited by hand", otherToken, b.setup("--bot", "home", "--owner", "6")...)
	b.want(0, "", otherToken, b.setup("--bot", "home", "--owner", "6", "--replace")...)
	if !strings.Contains(b.read("conf.d/50-setup.toml.old"), "# mine") {
		t.Error("what was edited is gone")
	}
}

func both(b *box) string { return b.read("conf.d/50-setup.toml") }

func TestSetup_BadInput(t *testing.T) {
	b := newBox(t)
	tests := []struct {
		name, stdin, want string
		code              int
		args              []string
	}{
		{"no token", "", "token is empty", 65, nil},
		{"no token at all", "hello", "@BotFather", 65, nil},
		{"a wrong one", "4242:WRONG-WRONG-WRONG-WRONG-WRONG-WRONG", "doesn't know this token", 65, nil},
		{"two lines", setupToken + "\n" + setupToken, "longer than 80", 65, nil},
		{"a group as owner", setupToken, "not a user", 64, []string{"--owner", "-5"}},
		{"nobody as owner", setupToken, "not a user", 64, []string{"--owner", "0"}},
		{"both owners", setupToken, "exclude each other", 64, []string{"--owner", "5", "--no-owner"}},
		{"a bad name", setupToken, "no name for a bot", 64, []string{"--bot", "../x"}},
		{"no server there", setupToken, "can't be reached", 75, []string{"--api-base", "http://" + deadAddr(t)}},
		{"no URL", setupToken, "--api-base", 64, []string{"--api-base", "ftp://x"}},
		{"no file", "", "no such file", 74, []string{"--token-file", "/no/such/file"}},
		{"nobody comes", setupToken, "nobody has opened the link", 75, []string{"--timeout", "1ms"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			b.t = t
			b.want(tt.code, tt.want, tt.stdin, b.setup(tt.args...)...)
			if _, err := os.Stat(filepath.Join(b.dir, "credentials")); !errors.Is(err, os.ErrNotExist) {
				t.Errorf("something was written: %v", err)
			}
		})
	}
	b.t = t
	b.want(64, "nobody is here to be asked", setupToken, "setup", "--dir", b.dir)
	b.write("conf.d.toml", "")
	b.write("tgspool.toml", "[bots.home]\nrat = 5\n")
	b.want(78, "rat", setupToken, b.setup("--no-owner")...)
}

// deadAddr is an address at which nobody listens.
func deadAddr(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	return l.Addr().String()
}

// daemon runs the daemon of the folder until the test ends.
func (b *box) daemon() *exec.Cmd {
	b.t.Helper()
	c := b.command("run")
	c.Stderr = os.Stderr
	if err := c.Start(); err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(func() {
		_ = c.Process.Signal(os.Interrupt)
		if err := c.Wait(); err != nil {
			b.t.Errorf("the daemon ended with %v", err)
		}
	})
	return c
}

// await waits until the daemon's API shows what it is asked for.
func (b *box) await(what string, is func(status string) bool) {
	b.t.Helper()
	client := localapi.Dial(filepath.Join(b.dir, "s"))
	defer client.Close()
	ctx, cancel := context.WithTimeout(b.t.Context(), 20*time.Second)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	last := ""
	for {
		var raw rawText
		if client.Do(ctx, localapi.Request{Method: "GET", Path: "/v1/status"}, &raw) == nil {
			if last = string(raw); is(last) {
				return
			}
		}
		select {
		case <-ctx.Done():
			b.t.Fatalf("waited in vain %s; status is %s", what, last)
		case <-tick.C:
		}
	}
}

// rawText is JSON as it came.
type rawText []byte

func (r *rawText) UnmarshalJSON(b []byte) error {
	*r = append((*r)[:0], b...)
	return nil
}

func TestToken_RotatedWhileTheDaemonRuns(t *testing.T) {
	b := newBox(t)
	b.want(0, "", setupToken, b.setup("--no-owner")...)
	b.daemon()
	b.await("for the daemon", func(s string) bool { return strings.Contains(s, `"username":"home_bot"`) })
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	if err := b.sim.WaitParked(ctx, 4242); err != nil {
		t.Fatal(err)
	}
	b.want(75, "polls with this token already", setupToken, b.setup()...)

	b.sim.RevokeToken(setupToken)
	b.want(0, "job 1", "", "send", "--chat", "12345", "held back")
	b.await("for the refusal to be believed", func(s string) bool { return strings.Contains(s, `"sender":{"state":"unauthorized"`) })
	b.want(65, "another account", alienToken, "token", "set", "home")
	b.want(65, "doesn't know this token", setupToken, "token", "set", "home")
	b.want(0, "in use now", otherToken, "token", "set", "home")
	if err := b.sim.WaitFor(ctx, func([]telegramsim.Arrival) bool { return b.sim.CountText(12345, "held back") == 1 }); err != nil {
		t.Errorf("what was queued isn't sent: %v", err)
	}
	b.sim.FeedText(12345, 12345, "hello") // ends the poll, which has begun with the new token
	b.await("for all to be well", func(s string) bool {
		return strings.Contains(s, `"intake":{"state":"ok"`) && strings.Contains(s, `"sender":{"state":"ok"`)
	})
	if b.read("credentials/home.token") != otherToken+"\n" {
		t.Error("the token isn't stored")
	}
}

func TestToken_BringsABotToLife(t *testing.T) {
	b := newBox(t)
	b.write("tgspool.toml", b.read("tgspool.toml")+"[bots.home]\ntoken_file = \""+b.dir+"/token\"\napi_base = \""+strings.TrimPrefix(b.env[3], "TGSPOOL_API_BASE=")+"\"\n")
	b.want(0, "from the daemon's next start on", setupToken, "token", "set", "home")
	if err := os.Remove(filepath.Join(b.dir, "token")); err != nil {
		t.Fatal(err)
	}
	b.daemon()
	b.await("for the daemon", func(s string) bool { return strings.Contains(s, `"home"`) })
	b.want(65, "can't be used", "", "send", "--chat", "5", "too early")
	b.want(0, "in use now", setupToken, "token", "set", "home")
	b.want(0, "", "", "send", "--chat", "5", "--wait", "alive")
	if b.sim.CountText(5, "alive") != 1 {
		t.Error("nothing was sent")
	}
	b.want(64, "no bot \"nobody\"", setupToken, "token", "set", "nobody")
	b.want(64, "no bot \"nobody\"", "", "token", "check", "nobody")
}
