package setup_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/tgspool/tgspool/internal/botapi"
	"github.com/tgspool/tgspool/internal/config"
	"github.com/tgspool/tgspool/internal/setup"
)

func splitLines(s string) []string { return strings.Split(strings.TrimSuffix(s, "\n"), "\n") }

// folder is a folder of settings with a main file.
func folder(t *testing.T, main string) setup.Dir {
	t.Helper()
	d := setup.OpenDir(t.TempDir())
	if err := d.EnsureMain(main); err != nil {
		t.Fatal(err)
	}
	return d
}

// put plans and applies an entry.
func put(t *testing.T, d setup.Dir, e setup.Entry) setup.Change {
	t.Helper()
	c, err := d.Plan(e)
	if err != nil {
		t.Fatal(err)
	}
	if err := d.Apply(c); err != nil {
		t.Fatal(err)
	}
	return c
}

func load(t *testing.T, d setup.Dir) *config.Config {
	t.Helper()
	cfg, err := config.Load(d.Main(), func(string) string { return "" })
	if err != nil {
		t.Fatal(err)
	}
	return cfg
}

func TestPlan_BotAfterBot(t *testing.T) {
	d := folder(t, config.Example())
	home := setup.Entry{Bot: "home", Me: "12345", APIBase: "http://127.0.0.1:1"}
	put(t, d, home)
	put(t, d, setup.Entry{Bot: "alarm", TokenFile: d.Credential("alarm")})
	cfg := load(t, d)
	bot, ok := cfg.Bot("home")
	if !ok || bot.Chats["me"] != "12345" || bot.APIBase != home.APIBase || bot.DefaultChat != "12345" || bot.Admin.Chat != "12345" {
		t.Errorf("home is %+v", bot)
	}
	if alarm, ok := cfg.Bot("alarm"); !ok || alarm.TokenFile != d.Credential("alarm") || len(alarm.Chats) != 0 {
		t.Errorf("alarm is %+v", alarm)
	}
	c, err := d.Plan(home)
	if err != nil || !c.Same() || c.Foreign {
		t.Errorf("the same again: %+v, %v", c, err)
	}
	home.Me = "6"
	if c = put(t, d, home); c.Foreign || c.Was == nil || c.Was.Me != "12345" {
		t.Errorf("another owner: %+v", c)
	}
	info, err := os.Stat(d.Settings())
	if err != nil || info.Mode().Perm() != 0o640 {
		t.Errorf("the settings' mode is %v, %v", info.Mode(), err)
	}
}

func TestPlan_LeavesOutWhatOthersSay(t *testing.T) {
	d := folder(t, "[bots.home]\ntoken_file = \"/t\"\n[bots.home.chats]\nme = 12345\n")
	put(t, d, setup.Entry{Bot: "home", Me: "12345", TokenFile: "/t"})
	if bot, _ := load(t, d).Bot("home"); bot.Chats["me"] != "12345" {
		t.Errorf("home is %+v", bot)
	}
	_, err := d.Plan(setup.Entry{Bot: "home", Me: "6"})
	if err == nil || !strings.Contains(err.Error(), "tgspool.toml:4:1: bots.home.chats.me is 12345") {
		t.Errorf("another owner: %v", err)
	}
}

func TestPlan_KeepsWhatWasEdited(t *testing.T) {
	d := folder(t, "")
	put(t, d, setup.Entry{Bot: "home", Me: "1"})
	edited := "[bots.home.chats]\nme = 1\nfamily = -5\n"
	if err := os.WriteFile(d.Settings(), []byte(edited), 0o600); err != nil {
		t.Fatal(err)
	}
	if c := put(t, d, setup.Entry{Bot: "home", Me: "2"}); !c.Foreign {
		t.Error("an edit goes unnoticed")
	}
	if kept, err := os.ReadFile(d.Settings() + ".old"); err != nil || string(kept) != edited {
		t.Errorf("kept %q, %v", kept, err)
	}
}

func TestPlan_RefusesBrokenSettings(t *testing.T) {
	for name, text := range map[string]string{"the main file": "[bots.home]\nrat = 5\n", "no TOML": "[[["} {
		if _, err := folder(t, text).Plan(setup.Entry{Bot: "home"}); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

func TestApply_TakesBackWhatIsWrong(t *testing.T) {
	d := folder(t, "")
	good := put(t, d, setup.Entry{Bot: "home", Me: "1"})
	if err := d.Apply(setup.Change{Path: d.Settings(), Old: good.New, New: []byte("[bots.home]\nrat = 5\n")}); err == nil {
		t.Fatal("no error")
	}
	if text, err := os.ReadFile(d.Settings()); err != nil || !slices.Equal(text, good.New) {
		t.Errorf("the file is %q, %v", text, err)
	}
	other := folder(t, "")
	if err := other.Apply(setup.Change{Path: other.Settings(), New: []byte("x")}); err == nil {
		t.Fatal("no error")
	}
	if _, err := os.Stat(other.Settings()); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a broken file stays: %v", err)
	}
}

// TestStage_NoFolders: where even the folder of the settings has gone, those that
// are made can be read by the daemon's group.
func TestStage_NoFolders(t *testing.T) {
	group := os.Getegid()
	if os.Geteuid() == 0 {
		group = 4242
	}
	defer syscall.Umask(syscall.Umask(0o077))
	dir := setup.Dir{Path: filepath.Join(t.TempDir(), "etc"), Group: group}
	s, err := setup.Stage(dir.Settings(), []byte("# x\n"), 0o640, dir.Group)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Commit(); err != nil {
		t.Fatal(err)
	}
	for name, mode := range map[string]os.FileMode{dir.Path: 0o750, filepath.Dir(dir.Settings()): 0o750, dir.Settings(): 0o640} {
		info, err := os.Stat(name)
		if err != nil {
			t.Fatal(err)
		}
		if is, ok := info.Sys().(*syscall.Stat_t); !ok || int(is.Gid) != group || info.Mode().Perm() != mode {
			t.Errorf("%s is %v of group %d, want %v of %d", name, info.Mode(), is.Gid, mode, group)
		}
	}
}

func TestStageToken(t *testing.T) {
	token, err := botapi.ParseToken(simToken)
	if err != nil {
		t.Fatal(err)
	}
	path := setup.OpenDir(t.TempDir()).Credential("home")
	s, err := setup.StageToken(path, token)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("there before its commit: %v", err)
	}
	if err := s.Commit(); err != nil {
		t.Fatal(err)
	}
	s.Drop()
	if text, err := os.ReadFile(path); err != nil || string(text) != simToken+"\n" {
		t.Errorf("%d bytes, %v", len(text), err)
	}
	for name, mode := range map[string]os.FileMode{path: 0o600, filepath.Dir(path): 0o700} {
		if info, err := os.Stat(name); err != nil || info.Mode().Perm() != mode {
			t.Errorf("%s is %v, %v", name, info.Mode(), err)
		}
	}
	if s, err = setup.StageToken(path, token); err != nil {
		t.Fatal(err)
	}
	s.Drop()
	if left, err := filepath.Glob(filepath.Dir(path) + "/.*"); err != nil || len(left) > 0 {
		t.Errorf("left behind: %q, %v", left, err)
	}
}

func TestStartService(t *testing.T) {
	tests := []struct {
		name, fails string
		calls       []string
		want        string
	}{
		{"all well", "", []string{"cat", "enable", "restart"}, ""},
		{"not installed", "cat", []string{"cat"}, "no tgspool.service"},
		{"won't start", "restart", []string{"cat", "enable", "restart"}, "systemctl restart tgspool.service: exit status 1: Job failed"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var calls []string
			err := setup.StartService(t.Context(), func(_ context.Context, args ...string) (string, error) {
				calls = append(calls, args[0])
				if args[0] == tt.fails {
					return "Job failed", errors.New("exit status 1")
				}
				return "", nil
			})
			if !slices.Equal(calls, tt.calls) || tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
				t.Errorf("calls %q, %v", calls, err)
			}
		})
	}
}
