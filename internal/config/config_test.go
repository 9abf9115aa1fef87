package config_test

import (
	"testing"

	"github.com/tgspool/tgspool/internal/config"
)

func TestMethods(t *testing.T) {
	cfg := load(t, "[store]\npath = \"/srv/a/spool.db\"\n[monitor]\nname = \"pi at %H\"\n[bots.a]\n[bots.b]\ntoken_file = \"/t\"\n")
	if got := cfg.SnapshotDir(); got != "/srv/a/snapshots" {
		t.Errorf("SnapshotDir = %q", got)
	}
	cfg.Backup.To = "/mnt/b"
	if got := cfg.SnapshotDir(); got != "/mnt/b" {
		t.Errorf("SnapshotDir with backup.to = %q", got)
	}
	if got := cfg.Monitor.DisplayName("attic"); got != "pi at attic" {
		t.Errorf("DisplayName = %q", got)
	}
	if b, ok := cfg.Bot("b"); !ok || b.TokenFile != "/t" {
		t.Errorf("Bot(b) = %+v, %v", b, ok)
	}
	if _, ok := cfg.Bot("c"); ok {
		t.Error("Bot(c) is there")
	}
	if _, ok := cfg.Where("log.level"); ok {
		t.Error("Where knows a key that no file sets")
	}
}

func TestExposed(t *testing.T) {
	tests := []struct {
		listen config.Listen
		want   bool
	}{
		{config.Listen{Addr: "unix:/x.sock"}, false},
		{config.Listen{Addr: "tcp:127.0.0.1:1"}, false},
		{config.Listen{Addr: "tcp:127.1.2.3:1"}, false},
		{config.Listen{Addr: "tcp:[::1]:1"}, false},
		{config.Listen{Addr: "tcp:[::ffff:127.0.0.1]:1"}, false},
		{config.Listen{Addr: "tcp:localhost:1"}, false},
		{config.Listen{Addr: "tcp::1"}, true},
		{config.Listen{Addr: "tcp:0.0.0.0:1"}, true},
		{config.Listen{Addr: "tcp:[::]:1"}, true},
		{config.Listen{Addr: "tcp:pi.local:1"}, true},
		{config.Listen{Addr: "tcp:192.168.1.2:1", TLSCert: "/c", TLSKey: "/k"}, false},
	}
	for _, tt := range tests {
		if got := tt.listen.Exposed(); got != tt.want {
			t.Errorf("%s: Exposed = %v", tt.listen.Addr, got)
		}
	}
}

func TestMayCall(t *testing.T) {
	some := config.Client{Methods: []string{"sendMessage"}}
	for method, want := range map[string]bool{"sendMessage": true, "SENDMESSAGE": true, "sendmessage": true, "sendMessages": false, "getMe": false, "": false} {
		if got := some.MayCall(method); got != want {
			t.Errorf("MayCall(%q) = %v", method, got)
		}
	}
	if (config.Client{}).MayCall("getMe") {
		t.Error("an empty list allows getMe")
	}
	if !(config.Client{Methods: []string{"*"}}).MayCall("getMe") {
		t.Error("* doesn't allow getMe")
	}
}
