package config_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tgspool/tgspool/internal/config"
)

const secret = "123456789:AAExampleExampleExampleExampleExampl"

func TestReadToken(t *testing.T) {
	dir := t.TempDir()
	put := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	put("bot_home.token", secret+"\n")
	put("bot_plain", secret)
	put("bot_both", "wrong")
	put("bot_both.token", secret)
	env := environ("CREDENTIALS_DIRECTORY", dir, "TELEGRAM_BOT_TOKEN", secret)
	file := func(text string) config.Bot { return config.Bot{Name: "f", TokenFile: put("file", text)} }

	tests := []struct {
		name   string
		bot    func() config.Bot
		source string
		err    string // what the error says, without the folder
	}{
		{"credential", func() config.Bot { return config.Bot{Name: "home"} }, "credential bot_home.token", ""},
		{"plain credential", func() config.Bot { return config.Bot{Name: "plain"} }, "credential bot_plain", ""},
		{"credential with suffix first", func() config.Bot { return config.Bot{Name: "both"} }, "credential bot_both.token", ""},
		{"environment", func() config.Bot { return config.Bot{Name: "default"} }, "TELEGRAM_BOT_TOKEN", ""},
		{"environment is for default only", func() config.Bot { return config.Bot{Name: "other"} }, "credential bot_other.token", "bot other: no usable token: credential bot_other.token: not there\nwrite it with: tgspool token set other, or name its file with token_file"},
		{"file", func() config.Bot { return file(secret) }, "DIR/file", ""},
		{"file with CRLF", func() config.Bot { return file(secret + "\r\n\r\n") }, "DIR/file", ""},
		{"file with a byte order mark", func() config.Bot { return file("\ufeff" + secret + "\n") }, "DIR/file", ""},
		{"file with quotes and blanks", func() config.Bot { return file(" \"" + secret + "\"\t\n") }, "DIR/file", ""},
		{"file with typographic quotes", func() config.Bot { return file("“" + secret + "”\u00a0") }, "DIR/file", ""},
		{"file with a zero-width space", func() config.Bot { return file(secret + "\u200b") }, "DIR/file", ""},
		{"empty file", func() config.Bot { return file("\n") }, "DIR/file", "bot f: no usable token: DIR/file: empty\nwrite it with: tgspool token set f"},
		{"two lines", func() config.Bot { return file(secret + "\n" + secret) }, "DIR/file", "bot f: no usable token: DIR/file: holds more than the token\nwrite it with: tgspool token set f"},
		{"UTF-16", func() config.Bot { return file("\xff\xfe1\x002\x00") }, "DIR/file", "bot f: no usable token: DIR/file: not UTF-8 text\nwrite it with: tgspool token set f"},
		{"huge", func() config.Bot { return file(strings.Repeat("1", 5000)) }, "DIR/file", "bot f: no usable token: DIR/file: larger than 4096 bytes\nwrite it with: tgspool token set f"},
		{"folder", func() config.Bot { return config.Bot{Name: "f", TokenFile: dir} }, "DIR", "bot f: no usable token: DIR: is a directory\nwrite it with: tgspool token set f"},
		{"missing file doesn't fall through", func() config.Bot { return config.Bot{Name: "home", TokenFile: dir + "/none"} }, "DIR/none", "bot home: no usable token: DIR/none: no such file or directory\nwrite it with: tgspool token set home"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			token, source, err := config.ReadToken(tt.bot(), env)
			if got := strings.Replace(source, dir, "DIR", 1); got != tt.source {
				t.Errorf("source = %q, want %q", got, tt.source)
			}
			if tt.err == "" {
				if err != nil || token != secret {
					t.Fatalf("got %q, %v", token, err)
				}
				return
			}
			if !errors.Is(err, config.ErrNoToken) || token != "" {
				t.Fatalf("got %q, %v; want an ErrNoToken", token, err)
			}
			if got := strings.ReplaceAll(err.Error(), dir, "DIR"); got != tt.err {
				t.Errorf("got\n%s\nwant\n%s", got, tt.err)
			}
			if strings.Contains(err.Error(), secret[10:]) {
				t.Errorf("the token is in %q", err)
			}
		})
	}
}

func TestReadTokenWithoutAnything(t *testing.T) {
	_, _, err := config.ReadToken(config.Bot{Name: "default"}, noEnv)
	var te *config.TokenError
	if !errors.As(err, &te) || te.Bot != "default" || te.Hint == "" {
		t.Errorf("got %v", err)
	}
	_, _, err = config.ReadToken(config.Bot{Name: "default"}, environ("TELEGRAM_BOT_TOKEN", " "))
	if !errors.Is(err, config.ErrNoToken) || !strings.Contains(err.Error(), "TELEGRAM_BOT_TOKEN: empty") {
		t.Errorf("blank variable: %v", err)
	}
}

func TestReadSecret(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	if err := os.WriteFile(path, []byte("s3cr3t\r\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got, err := config.ReadSecret(path); got != "s3cr3t" || err != nil {
		t.Errorf("got %q, %v", got, err)
	}
	_, err := config.ReadSecret(path + "x")
	if !errors.Is(err, config.ErrNoToken) || !errors.Is(err, os.ErrNotExist) {
		t.Errorf("missing: %v", err)
	}
}
