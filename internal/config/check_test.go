package config_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tgspool/tgspool/internal/config"
)

func TestCheck(t *testing.T) {
	const fine = "[bots.home]\n[bots.home.chats]\nme = 1\n"
	handler := func(name, rest string) string {
		return "[[bots.home.handlers]]\nname = \"" + name + "\"\npull = true\n" + rest
	}
	tests := []struct{ name, text, want string }{
		{"fine", fine, ""},
		{"no bot", "[log]\n", "bots: no bot is configured (run tgspool setup, or add [bots.NAME] in conf.d)"},
		{"no chat", "[bots.home]\n", "main.toml:1:7: bots.home.default_chat: texts without a chat can't be sent (name your own chat me in [bots.home.chats])"},
		{"long drain", fine + "[daemon]\ndrain = \"40s\"\n", "main.toml:5:1: daemon.drain: systemd ends the process 30s after it asks for a stop (at most 25s)"},
		{"large keep_size", fine + "[store]\nkeep_size = \"2GiB\"\n", "main.toml:5:1: store.keep_size: larger than max_size: ended records alone may fill the store"},
		{"no socket", fine + "[api]\nlisten = [\"tcp:127.0.0.1:1\"]\n", "main.toml:5:1: api.listen: no unix socket serves manage: the commands can't reach the daemon (add \"unix:/run/tgspool/tgspool.sock\")"},
		{"handler behind a catch-all", fine + handler("a", "") + handler("b", "match = { command = \"/b\" }\n"), "main.toml:7:13: bots.home.handlers.1: handler b gets nothing: a before it takes every update (the first match wins; move it up)"},
		{"misspelled kind", fine + "[bots.home.intake]\nallowed_updates = [\"message\", \"callback_qery\"]\n", "main.toml:5:31: bots.home.intake.allowed_updates.1: \"callback_qery\" is no kind of update known here (did you mean \"callback_query\"?)"},
		{"new kind", fine + handler("a", "match = { kind = \"telepathy\" }\n"), "main.toml:7:11: bots.home.handlers.0.match.kind: \"telepathy\" is no kind of update known here (fine if Telegram has a new one of that name)"},
		{"client without rights", fine + "[[bots.home.clients]]\nname = \"c\"\ntoken_sha256 = \"" + hash + "\"\n", "main.toml:4:13: bots.home.clients.0: client c may do nothing (methods and chats; [\"*\"] is all)"},
		{
			"client that polls for nothing", fine + "[[bots.home.clients]]\nname = \"c\"\ntoken_sha256 = \"" + hash + "\"\nfull = true\n[[bots.home.handlers]]\nname = \"w\"\nwebhook = \"http://127.0.0.1:1/\"\n",
			"main.toml:7:1: bots.home.clients.0.full: no update ever waits for client c: no handler has pull = true (unmatched = \"pull\", or a pull handler)",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			cfg := load(t, tt.text)
			var lines []string
			for _, p := range config.Check(cfg) {
				lines = append(lines, strings.ReplaceAll(p.String(), filepath.Dir(cfg.Path)+"/", ""))
			}
			if got := strings.Join(lines, "\n"); got != tt.want {
				t.Errorf("got\n%s\nwant\n%s", got, tt.want)
			}
		})
	}
}

func TestCheckTokens(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"main.toml": "[bots.a]\ntoken_file = \"DIR/private\"\n[bots.b]\ntoken_file = \"DIR/open\"\n[bots.c]\ntoken_file = \"DIR/none\"\n" +
			"[bots.d]\n[bots.d.intake]\nmode = \"webhook\"\nsecret_file = \"DIR/secret\"\n",
		"private": secret, "open": secret, "secret": "s",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(strings.ReplaceAll(text, "DIR", dir)), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"open", "secret"} {
		if err := os.Chmod(filepath.Join(dir, name), 0o640); err != nil { //nolint:gosec // what is to be told
			t.Fatal(err)
		}
	}
	cfg, err := config.Load(filepath.Join(dir, "main.toml"), noEnv)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"main.toml:4:1: bots.b.token_file: others than its owner may use open, mode 0640 (chmod 600 open)",
		"main.toml:6:1: bots.c.token_file: no usable token: none: no such file or directory (write it with: tgspool token set c)",
		"main.toml:7:7: bots.d: no usable token: credential bot_d.token: not there (write it with: tgspool token set d, or name its file with token_file)",
		"main.toml:10:1: bots.d.intake.secret_file: others than its owner may use secret, mode 0640 (chmod 600 secret)",
	}
	var got []string
	for _, p := range config.CheckTokens(cfg, func(b config.Bot) error {
		_, _, err := config.ReadToken(b, noEnv)
		return err
	}) {
		got = append(got, strings.ReplaceAll(p.String(), dir+"/", ""))
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}
