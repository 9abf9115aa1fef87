package config_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tgspool/tgspool/internal/config"
)

// hash stands for the hash of a client's token.
const hash = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"

// TestBroken holds every error to its exact text.
func TestBroken(t *testing.T) {
	files, want := cases(t)
	for name, want := range want {
		t.Run(name, func(t *testing.T) {
			if got := loadError(t, files[name]) + "\n"; got != want {
				t.Errorf("got\n%s\nwant\n%s", got, want)
			}
		})
	}
}

// TestBrokenBytes is TestBroken for what can't stand in a text file.
func TestBrokenBytes(t *testing.T) {
	tests := []struct{ name, text, want string }{
		{"not UTF-8", "[store]\npath = \"\xff\"\n", `main.toml:2:9: not UTF-8 text (save the file as UTF-8)`},
		{"UTF-16", "\xff\xfe[\x00s\x00", `main.toml:1:1: not UTF-8 text (save the file as UTF-8)`},
		{"UTF-16 without a mark", "[\x00s\x00", `main.toml:1:2: not UTF-8 text (save the file as UTF-8)`},
		{"CRLF", "[log]\r\nlevel = \"info\"\r\nformat = 1\r\n", `main.toml:3:10: log.format: want a string, have an integer (one of auto, json, in quotes)`},
		{"CR alone", "[log]\rlevel = \"info\"\r", "main.toml:1:6: expected newline but got U+000D"},
		{"byte order mark", "\xef\xbb\xbf[log]\nformat = 1\n", `main.toml:2:10: log.format: want a string, have an integer (one of auto, json, in quotes)`},
		{"control characters in a key", "\"a\\u001b[31m\\nb\" = 1\n", `main.toml:1:1: "a\x1b[31m\nb": unknown key (known here: store, backup, api, monitor, log, daemon, bots)`},
		{"too large", strings.Repeat("#", 1<<20+1), "main.toml: reading the settings: larger than 1 MiB"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := loadError(t, map[string]string{"main.toml": tt.text}); got != tt.want {
				t.Errorf("got\n%s\nwant\n%s", got, tt.want)
			}
		})
	}
}

func TestBrokenShowsNoSecret(t *testing.T) {
	const token = "123456789:AAExampleExampleExampleExampleExampl"
	for _, key := range config.Keys() {
		table, name := key.Path[:max(strings.LastIndexByte(key.Path, '.'), 0)], key.Path[strings.LastIndexByte(key.Path, '.')+1:]
		if strings.HasPrefix(table, "api.listen") {
			table, name = "api", "listen"
		}
		header := "[" + strings.ReplaceAll(table, "NAME", "home") + "]"
		if strings.HasSuffix(table, "[]") {
			header = "[" + strings.TrimSuffix(header, "[]]") + "]]"
		}
		for _, value := range []string{`"` + token + `"`, `["` + token + `"]`, `{ "` + token + `" = 1 }`} {
			path := write(t, map[string]string{"main.toml": header + "\n" + name + " = " + value + "\n"})
			_, err := config.Load(path, noEnv)
			if err != nil && strings.Contains(err.Error(), token[10:]) {
				t.Errorf("%s = %s: the token is in %q", key.Path, value, err)
			}
		}
	}
}

func TestUnreadable(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "none.toml")
	_, err := config.Load(path, noEnv)
	want := path + ": reading the settings: no such file or directory (check the name, or run tgspool setup)"
	if err == nil || err.Error() != want {
		t.Errorf("missing file: got %v, want %s", err, want)
	}
	_, err = config.Load(dir, noEnv)
	if want := dir + ": reading the settings: is a directory"; err == nil || err.Error() != want {
		t.Errorf("folder: got %v, want %s", err, want)
	}
	path = write(t, map[string]string{"main.toml": ""})
	link := filepath.Join(filepath.Dir(path), "conf.d", "gone.toml")
	if err := os.Mkdir(filepath.Dir(link), 0o750); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("nowhere", link); err != nil {
		t.Fatal(err)
	}
	_, err = config.Load(path, noEnv)
	var one *config.Error
	if !errors.As(err, &one) || one.File != link {
		t.Errorf("dangling link: got %v, want an error naming %s", err, link)
	}
}

func TestConfD(t *testing.T) {
	path := write(t, map[string]string{
		"main.toml":               "[bots.b]\n[[bots.b.handlers]]\nname = \"one\"\npull = true\n",
		"conf.d/10-a.toml":        "[[bots.b.handlers]]\nname = \"two\"\npull = true\n[bots.b.sender]\nworkers = 3\n",
		"conf.d/20-b.toml":        "[bots.a]\n[[bots.b.handlers]]\nname = \"three\"\npull = true\n[bots.b.sender]\nrate = 5\n",
		"conf.d/.#20-b.toml":      "broken by an editor",
		"conf.d/20-b.toml~":       "broken by an editor",
		"conf.d/more.toml/x.toml": "not read: conf.d has no folders",
	})
	cfg, err := config.Load(path, noEnv)
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Dir(path)
	want := []string{path, filepath.Join(dir, "conf.d/10-a.toml"), filepath.Join(dir, "conf.d/20-b.toml")}
	if !slices.Equal(cfg.Files, want) || cfg.Path != path {
		t.Errorf("Files = %q, Path = %q", cfg.Files, cfg.Path)
	}
	if len(cfg.Bots) != 2 || cfg.Bots[0].Name != "a" || cfg.Bots[1].Name != "b" {
		t.Fatalf("Bots = %+v", cfg.Bots)
	}
	var names []string
	for _, h := range cfg.Bots[1].Handlers {
		names = append(names, h.Name)
	}
	if !slices.Equal(names, []string{"one", "two", "three"}) {
		t.Errorf("handlers = %q", names)
	}
	if s := cfg.Bots[1].Sender; s.Workers != 3 || s.Rate != 5 {
		t.Errorf("sender = %+v", s)
	}
	if at, ok := cfg.Where("bots.b.sender.rate"); !ok || at.String() != want[2]+":6:1" {
		t.Errorf("Where = %v, %v", at, ok)
	}
}

func TestErrorsCanBeTakenApart(t *testing.T) {
	path := write(t, map[string]string{"main.toml": "[log]\nlevel = \"loud\"\nformat = 1\n"})
	_, err := config.Load(path, noEnv)
	var list config.Errors
	if !errors.As(err, &list) || len(list) != 2 {
		t.Fatalf("got %v", err)
	}
	var one *config.Error
	if !errors.As(err, &one) || one.Line != 2 || one.Column != 9 || one.Key != "log.level" || one.File != path {
		t.Errorf("first = %+v", one)
	}
}

func TestResolved(t *testing.T) {
	cfg := load(t, `
[api]
listen = ["tcp:0.0.0.0:80", { addr = "tcp:[::]:443", tls_cert = "/c", tls_key = "/k" }, "unix:/x/../y.sock", "tcp:localhost:1"]
[bots.home]
api_base = "http://127.0.0.1:8081/"
[bots.home.chats]
me = 12345
mum = "777"
news = "@news"
team = -100123
[bots.home.sender]
on_uncertain = "drop"
ttl = "1h"
chat_gap = 0
[bots.home.intake]
allowed_updates = []
[[bots.home.handlers]]
name = "door"
match = { command = ["/open", "/close"], from = "me", chat = [-5, "team"] }
exec = ["/bin/door", ""]
allow_from = ["me", 7]
once = true
[[bots.home.handlers]]
name = "forever"
exec = ["cmd"]
allow_chats = ["*"]
reply = "calls"
once = true
max_age = "0s"
[[bots.home.handlers]]
name = "push"
webhook = "http://127.0.0.1:3000/x"
parallel = 3
[[bots.home.clients]]
name = "bell"
token_sha256 = "`+strings.ToUpper(hash)+`"
methods = ["sendMessage"]
chats = ["me", "news", -9]
[bots.home.admin]
chat = "team"
users = ["me", "mum"]
`)
	var roles []string
	for _, l := range cfg.API.Listen {
		roles = append(roles, l.Network()+" "+l.Address()+" "+strings.Join(l.Serve, "+"))
	}
	want := []string{
		"tcp 0.0.0.0:80 bot", "tcp [::]:443 bot+manage+metrics", "unix /y.sock bot+manage+metrics", "tcp localhost:1 bot+manage+metrics",
	}
	if !slices.Equal(roles, want) {
		t.Errorf("listen = %q", roles)
	}
	if got := cfg.API.Socket(); got != "/y.sock" {
		t.Errorf("Socket = %q", got)
	}
	bot := cfg.Bots[0]
	checks := []struct {
		name      string
		got, want any
	}{
		{"api_base", bot.APIBase, "http://127.0.0.1:8081"},
		{"chats", bot.Chats, map[string]string{"me": "12345", "mum": "777", "news": "@news", "team": "-100123"}},
		{"default_chat", bot.DefaultChat, "12345"},
		{"chat_gap", bot.Sender.ChatGap, time.Duration(0)},
		{"allowed_updates", bot.Intake.AllowedUpdates, []string{}},
		{"match", bot.Handlers[0].Match, config.Match{Command: []string{"/open", "/close"}, Chat: []int64{-5, -100123}, From: []int64{12345}}},
		{"exec", bot.Handlers[0].Exec, []string{"/bin/door", ""}},
		{"allow_from", bot.Handlers[0].AllowFrom, config.Allow{IDs: []int64{12345, 7}}},
		{"allow_chats not given", bot.Handlers[0].AllowChats, config.Allow{All: true}},
		{"max_age with once", bot.Handlers[0].MaxAge, time.Minute},
		{"answer_callbacks of texts", bot.Handlers[0].AnswerCallbacks, true},
		{"max_age 0s with once", bot.Handlers[1].MaxAge, time.Duration(0)},
		{"answer_callbacks of calls", bot.Handlers[1].AnswerCallbacks, false},
		{"allow_from of a webhook", bot.Handlers[2].AllowFrom, config.Allow{All: true}},
		{"max_connections", bot.Handlers[2].MaxConnections, 3},
		{"kind", bot.Handlers[2].Kind(), "webhook"},
		{"token_sha256", bot.Clients[0].TokenSHA256, hash},
		{"client's chats", bot.Clients[0].Chats, []string{"12345", "@news", "-9"}},
		{"client's max_wait", bot.Clients[0].MaxWait, 10 * time.Minute},
		{"client's on_uncertain", bot.Clients[0].OnUncertain, "drop"},
		{"client's ttl", bot.Clients[0].TTL, time.Hour},
		{"admin", bot.Admin, config.Admin{Chat: "-100123", Users: []int64{12345, 777}}},
	}
	for _, c := range checks {
		if !reflect.DeepEqual(c.got, c.want) {
			t.Errorf("%s = %#v, want %#v", c.name, c.got, c.want)
		}
	}
}

func TestResolveChat(t *testing.T) {
	bot := config.Bot{Chats: map[string]string{"me": "12345", "news": "@news"}}
	tests := []struct {
		in, want string
		ok       bool
	}{
		{"me", "12345", true},
		{"news", "@news", true},
		{"-1001234567890", "-1001234567890", true},
		{"+7", "7", true},
		{"@someone", "@someone", true},
		{" me ", "12345", true},
		{"Me", "", false},
		{"0", "", false},
		{"", "", false},
		{"@", "", false},
		{"99999999999999999999", "", false},
	}
	for _, tt := range tests {
		if got, ok := bot.ResolveChat(tt.in); ok != tt.ok || (ok && got != tt.want) {
			t.Errorf("ResolveChat(%q) = %q, %v; want %q, %v", tt.in, got, ok, tt.want, tt.ok)
		}
	}
}

func TestAllows(t *testing.T) {
	tests := []struct {
		allow config.Allow
		id    int64
		want  bool
	}{
		{config.Allow{}, 1, false},
		{config.Allow{All: true}, 0, true},
		{config.Allow{All: true}, -7, true},
		{config.Allow{IDs: []int64{1, -7}}, -7, true},
		{config.Allow{IDs: []int64{1, -7}}, 7, false},
		{config.Allow{IDs: []int64{0}}, 0, false},
	}
	for _, tt := range tests {
		if got := tt.allow.Allows(tt.id); got != tt.want {
			t.Errorf("%+v.Allows(%d) = %v", tt.allow, tt.id, got)
		}
	}
}

// FuzzLoad: whatever a file holds, Load answers, and each error has a place.
func FuzzLoad(f *testing.F) {
	files, _ := cases(f)
	for _, set := range files {
		for _, text := range set {
			f.Add([]byte(text))
		}
	}
	f.Add([]byte(config.Example()))
	f.Add([]byte("a = [[], [{}], {}, {b = [1]}]\n\"\" = 1\n'' = 2\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		path := filepath.Join(t.TempDir(), "x.toml")
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		cfg, err := config.Load(path, noEnv)
		var list config.Errors
		switch {
		case err == nil || errors.Is(err, config.ErrNothingConfigured):
			config.Check(cfg)
			return
		case !errors.As(err, &list) || len(list) == 0:
			t.Fatalf("not Errors but %T: %v", err, err)
		case errors.Is(err, fs.ErrNotExist):
			t.Fatal(err)
		}
		for _, e := range list {
			if len(data) <= 1<<20 && (e.Line < 1 || e.Column < 1) || e.File != path || e.Why == "" || strings.ContainsAny(e.Error(), "\n\x1b") {
				t.Errorf("no place or no reason, or more than a line: %+v", e)
			}
		}
	})
}
