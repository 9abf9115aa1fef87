package config_test

import (
	"strings"
	"testing"

	"github.com/tgspool/tgspool/internal/config"
)

// shown are settings with all that is unusual to write.
const shown = `
[store]
keep_size = 1
max_size = "3GB"
max_upload = 1234567
keep = { done = "90m", handled = "36h30m5s", dead = "0s" }
[api]
listen = ["tcp:0.0.0.0:80", { addr = "tcp:[::]:443", tls_cert = "/c", tls_key = "/k" }, "unix:/y.sock"]
[monitor]
heartbeat_url = "https://example.org/hunter2"
[bots.home]
proxy = "http://me:hunter2@proxy:3128"
default_chat = ""
[bots.home.chats]
me = 12345
news = "@news"
"two words\t" = -100123
[bots.home.intake]
allowed_updates = []
[bots.home.sender]
rate = 0.5
chat_gap = 0
[bots.home.admin]
chat = "two words\t"
users = [12345]
[[bots.home.handlers]]
name = "door"
match = { command = ["/open", "/close"], from = "me", chat = [-5, "me"], text = '^a"\\é\x{1b}' }
exec = ["/bin/door", "", "a\tb\u001b\"\\c", "Tür"]
allow_from = ["me", 7]
once = true
max_age = "0s"
[[bots.home.handlers]]
name = "rest"
pull = true
[[bots.home.clients]]
name = "bell"
token_sha256 = "` + hash + `"
methods = ["*"]
chats = ["me"]
[bots.other]
`

// TestTOML: what is shown is read to the same effect, and holds no secret.
func TestTOML(t *testing.T) {
	for name, text := range map[string]string{"defaults": "[bots.home]\n", "unusual": shown} {
		was := load(t, text)
		out := was.TOML()
		for _, secret := range []string{"hunter2", hash} {
			if strings.Contains(out, secret) {
				t.Errorf("%s: %s is shown", name, secret)
			}
		}
		if strings.ContainsAny(out, "\x1b\r") {
			t.Errorf("%s: control characters are shown", name)
		}
		again := load(t, out)
		if text == shown {
			if !strings.Contains(out, "\n# [[bots.home.clients]]\n# name = \"bell\"\n# # token_sha256 is set; it may hold a secret\n") {
				t.Errorf("the client isn't there:\n%s", out)
			}
			was.Monitor.HeartbeatURL, was.Bots[0].Proxy, was.Bots[0].Clients = "", "", nil
		}
		if reload, restart := config.Diff(was, again); len(reload)+len(restart) > 0 {
			t.Errorf("%s: differs in %q %q:\n%s", name, reload, restart, out)
		}
		if second := again.TOML(); text != shown && second != out {
			t.Errorf("%s: not the same the second time:\n%s", name, second)
		}
	}
}

func TestTOMLUnits(t *testing.T) {
	out := load(t, shown).TOML()
	for _, want := range []string{
		"keep_size = \"1\"\n", "max_size = \"3GB\"\n", "max_upload = \"1234567\"\n",
		`keep = { done = "1h30m", handled = "36h30m5s", dead = "0s" }`, "chat_gap = \"0s\"\n", "late_note = \"10m\"\n", "rate = 0.5\n",
		"\n\"two words\\U00000009\" = -100123\n", "me = 12345\n", "news = \"@news\"\n", "# proxy is set; it may hold a secret\n", "\n[bots.other]\n",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is missing in\n%s", want, out)
		}
	}
	if out := load(t, "[bots.home]\n").TOML(); !strings.Contains(out, "keep_size = \"256MiB\"\n") || !strings.Contains(out, "max_upload = \"50MB\"\n") {
		t.Errorf("sizes in\n%s", out)
	}
}
