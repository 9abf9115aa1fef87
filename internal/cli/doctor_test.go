package cli_test

import (
	"bytes"
	"fmt"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/tgspool/tgspool/internal/cli"
	"github.com/tgspool/tgspool/internal/telegramsim"
)

// patient is a machine for the doctor: settings, a token, a simulated Telegram.
type patient struct {
	t                *testing.T
	dir, base, token string
	more             string // of the bot's settings
	report           string
	sim              *telegramsim.Sim
}

func newPatient(t *testing.T) *patient {
	t.Helper()
	p := &patient{t: t, dir: t.TempDir(), token: "4242:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"}
	p.sim = telegramsim.New(telegramsim.Options{Bots: []telegramsim.Bot{{Token: p.token}}})
	server := httptest.NewServer(p.sim.Handler())
	t.Cleanup(func() { p.sim.Close(); server.Close() })
	p.base, p.report = server.URL, filepath.Join(p.dir, "report")
	return p
}

// examine runs the doctor.
func (p *patient) examine() (said string, code int) {
	p.t.Helper()
	token, settings := filepath.Join(p.dir, "token"), filepath.Join(p.dir, "tgspool.toml")
	text := fmt.Sprintf("[store]\npath = \"%[1]s/spool.db\"\n[api]\nlisten = [\"unix:%[1]s/s\"]\n[monitor]\nheartbeat_url = \"http://h.example/ping-secret\"\n[bots.home.chats]\nme = 1\n[bots.home]\ntoken_file = %[2]q\napi_base = %[3]q\n%[4]s", p.dir, token, p.base, p.more)
	for name, text := range map[string]string{token: p.token, settings: text} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			p.t.Fatal(err)
		}
	}
	var out, errs bytes.Buffer
	code = cli.Main("v1", []string{"doctor", "--config", settings, "--socket", filepath.Join(p.dir, "s"), "--report", p.report}, strings.NewReader(""), &out, &errs)
	for _, text := range []string{out.String(), errs.String()} {
		if strings.Contains(text, p.token) || strings.Contains(text, "ping-secret") {
			p.t.Errorf("a secret is shown: %s", text)
		}
	}
	return out.String(), code
}

func wantLine(t *testing.T, said, pattern string) {
	t.Helper()
	if !regexp.MustCompile(`(?m)` + pattern).MatchString(said) {
		t.Errorf("no line %s in\n%s", pattern, said)
	}
}

func TestDoctor(t *testing.T) {
	p := newPatient(t)
	said, code := p.examine()
	for _, want := range []string{
		`^ok    settings  1 bot$`, `^ok    proxy     home: none$`, `^ok    dns       home: 127.0.0.1 has 1 address$`,
		`^warn  tls       home: not used$`, `^ +→ api_base without https`, `^ok    clock     right`,
		`^ok    token     home: Telegram accepts it \(bot 4242\)$`, `^(ok|warn|fail)  +disk `, `^(ok|warn|fail)  +card      a flush takes `,
		`^warn  store     no daemon runs, and there is no store yet$`, `^(ok|warn|fail)  +unit `,
	} {
		wantLine(t, said, want)
	}
	if bad := strings.Contains(said, "\nfail"); bad != (code == 65) || !bad && code != 0 {
		t.Errorf("exit code %d for\n%s", code, said)
	}
	report, err := os.ReadFile(p.report)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`^tgspool v1, linux/`, `^ok    token     home`, `^\[bots.home\]$`} {
		wantLine(t, string(report), want)
	}
	for _, secret := range []string{p.token, "ping-secret"} {
		if bytes.Contains(report, []byte(secret)) {
			t.Errorf("%q is in the report:\n%s", secret, report)
		}
	}
	if info, err := os.Stat(p.report); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the report's mode: %v, %v", info.Mode(), err)
	}
	if left, err := filepath.Glob(filepath.Join(p.dir, ".doctor*")); err != nil || len(left) != 0 {
		t.Errorf("left behind: %v %v", left, err)
	}
}

func TestDoctor_Ill(t *testing.T) {
	p := newPatient(t)
	p.sim.RevokeToken(p.token)
	said, code := p.examine()
	wantLine(t, said, `^fail  token     home: Telegram refuses it$`)
	wantLine(t, said, `^ +→ ask @BotFather`)
	if code != 65 {
		t.Errorf("exit code %d", code)
	}
	p.base = "http://127.0.0.1:1"
	if said, code = p.examine(); code != 65 {
		t.Errorf("exit code %d", code)
	}
	wantLine(t, said, `^fail  tls       home: Telegram can't be reached: `)
	p.base = "http://name.invalid"
	said, _ = p.examine()
	wantLine(t, said, `^fail  dns       home: name.invalid can't be looked up: `)
	p.more = "proxy = \"http://user:ping-secret@127.0.0.1:1\"\n"
	said, _ = p.examine()
	wantLine(t, said, `^ok    proxy     home: 127.0.0.1:1, from the settings$`)
	p.more, p.token = "", "not-a-token"
	p.base = "http://127.0.0.1:1"
	said, _ = p.examine()
	wantLine(t, said, `^fail  token     home: the token in `)
	p.more = "nonsense = 1\n"
	if said, code = p.examine(); code != 78 {
		t.Errorf("exit code %d", code)
	}
	wantLine(t, said, `^fail  settings  .*tgspool.toml:\d+:1: bots.home.nonsense: unknown key`)
}
