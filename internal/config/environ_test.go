package config_test

import (
	"errors"
	"fmt"
	"os"
	"testing"

	"github.com/tgspool/tgspool/internal/config"
)

func TestResolve(t *testing.T) {
	named := environ("TGSPOOL_CONFIG", "/env.toml")
	if path, explicit := config.Resolve("/flag.toml", named); path != "/flag.toml" || !explicit {
		t.Errorf("flag: %q, %v", path, explicit)
	}
	if path, explicit := config.Resolve("", named); path != "/env.toml" || !explicit {
		t.Errorf("variable: %q, %v", path, explicit)
	}
}

func TestEnvironmentAlone(t *testing.T) {
	uid := os.Getuid()
	tests := []struct {
		name          string
		env           []string
		store, socket string
	}{
		{"systemd", []string{"STATE_DIRECTORY", "/var/lib/a:/var/lib/b", "RUNTIME_DIRECTORY", "/run/a:/run/b", "XDG_STATE_HOME", "/x", "HOME", "/h"}, "/var/lib/a/spool.db", "/run/a/tgspool.sock"},
		{"XDG", []string{"XDG_STATE_HOME", "/x/state", "XDG_RUNTIME_DIR", "/run/user/1", "HOME", "/h"}, "/x/state/tgspool/spool.db", "/run/user/1/tgspool/tgspool.sock"},
		{"relative XDG folders don't count", []string{"XDG_STATE_HOME", "x", "XDG_RUNTIME_DIR", "y", "HOME", "/h"}, "/h/.local/state/tgspool/spool.db", fmt.Sprintf("/tmp/tgspool-%d/tgspool.sock", uid)},
		{"home", []string{"HOME", "/h"}, "/h/.local/state/tgspool/spool.db", fmt.Sprintf("/tmp/tgspool-%d/tgspool.sock", uid)},
		{"nothing", nil, "/var/lib/tgspool/spool.db", fmt.Sprintf("/tmp/tgspool-%d/tgspool.sock", uid)},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			cfg, err := config.Load("", environ(append(tt.env, "TELEGRAM_BOT_TOKEN", "x", "TGSPOOL_API_BASE", "http://127.0.0.1:1/")...))
			if err != nil {
				t.Fatal(err)
			}
			if cfg.Store.Path != tt.store || cfg.API.Socket() != tt.socket {
				t.Errorf("store %s, socket %s", cfg.Store.Path, cfg.API.Socket())
			}
			if len(cfg.API.Listen) != 2 || cfg.API.Listen[1].Addr != "tcp:127.0.0.1:8081" || !cfg.API.Listen[1].Serves("bot") {
				t.Errorf("listen = %+v", cfg.API.Listen)
			}
			if len(cfg.Bots) != 1 || cfg.Bots[0].Name != "default" || cfg.Bots[0].APIBase != "http://127.0.0.1:1" || cfg.Bots[0].Sender.Workers != 16 {
				t.Errorf("bots = %+v", cfg.Bots)
			}
		})
	}
}

func TestNothingConfigured(t *testing.T) {
	commented := write(t, map[string]string{"main.toml": config.Example(), "conf.d/empty.toml": "\n"})
	for _, path := range []string{"", commented} {
		cfg, err := config.Load(path, environ("HOME", "/h", "RUNTIME_DIRECTORY", "/run/t"))
		if !errors.Is(err, config.ErrNothingConfigured) {
			t.Fatalf("%q: %v", path, err)
		}
		want := "no bot is configured: there are no settings"
		if path != "" {
			want = path + " names no bot"
		}
		if want += ", and TELEGRAM_BOT_TOKEN is not set\nrun tgspool setup, or set TELEGRAM_BOT_TOKEN to the token that @BotFather gave you"; err.Error() != want {
			t.Errorf("got %q, want %q", err, want)
		}
		if cfg == nil || cfg.API.Socket() != "/run/t/tgspool.sock" || cfg.Path != path {
			t.Errorf("%q: commands can't look for a daemon: %+v", path, cfg)
		}
	}
	cfg, err := config.Load(commented, environ("TELEGRAM_BOT_TOKEN", "x"))
	if err != nil || len(cfg.Bots) != 1 {
		t.Errorf("a file that sets nothing, and a token: %v", err)
	}
}

func TestSettingsWithoutABot(t *testing.T) {
	path := write(t, map[string]string{"main.toml": "[log]\nlevel = \"debug\"\n"})
	cfg, err := config.Load(path, noEnv)
	if err != nil || len(cfg.Bots) != 0 || cfg.Store.Path != "/var/lib/tgspool/spool.db" {
		t.Errorf("without a token: %+v, %v", cfg, err)
	}
	cfg, err = config.Load(path, environ("TELEGRAM_BOT_TOKEN", "x"))
	if err != nil || len(cfg.Bots) != 1 || cfg.Log.Level != "debug" || cfg.Store.Path != "/var/lib/tgspool/spool.db" {
		t.Errorf("with a token: %+v, %v", cfg, err)
	}
}

func TestBadAPIBaseOfTheEnvironment(t *testing.T) {
	_, err := config.Load("", environ("TELEGRAM_BOT_TOKEN", "x", "TGSPOOL_API_BASE", "127.0.0.1"))
	want := "TGSPOOL_API_BASE: not a URL (it begins with http:// or https:// and a host)"
	if err == nil || err.Error() != want {
		t.Errorf("got %v", err)
	}
}
