package config_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/tgspool/tgspool/internal/config"
)

func TestDiff(t *testing.T) {
	const base = `
[bots.home]
[bots.home.chats]
me = 1
[[bots.home.handlers]]
name = "a"
pull = true
match = { command = "/a" }
[[bots.home.handlers]]
name = "b"
pull = true
[bots.other]
`
	tests := []struct {
		name, text      string
		reload, restart []string
	}{
		{"nothing", base + "[api]\nhosts = []\n", nil, nil},
		{"top", base + "[store]\npath = \"/x\"\nkeep_size = 1\nkeep = { done = \"1h\" }\n[log]\nlevel = \"debug\"\nformat = \"json\"\n[api]\nlisten = [\"unix:/x.sock\"]\n", []string{"log.level", "store.keep.done", "store.keep_size"}, []string{"api.listen", "log.format", "store.path"}},
		{"bot", base + "[bots.other.sender]\nrate = 1\nworkers = 1\n[bots.other.intake]\nallowed_updates = []\n", []string{"bots.other.intake.allowed_updates", "bots.other.sender.rate"}, []string{"bots.other.sender.workers"}},
		{"bots", "[bots.new]\n" + strings.Replace(base, "[bots.other]\n", "", 1), nil, []string{"bots.new", "bots.other"}},
		{"handler", strings.Replace(base, "\"/a\"", "[\"/a\", \"/b\"]", 1), []string{"bots.home.handlers.a.match.command"}, nil},
		{"chats", strings.Replace(base, "me = 1", "me = 2", 1), []string{"bots.home.admin.chat", "bots.home.chats", "bots.home.default_chat"}, nil},
		{"renamed handler", strings.Replace(base, "\"b\"", "\"c\"", 1), []string{"bots.home.handlers.b", "bots.home.handlers.c"}, nil},
		{"handlers in another order", strings.NewReplacer("name = \"a\"", "name = \"b\"", "name = \"b\"", "name = \"a\"").Replace(base), []string{"bots.home.handlers", "bots.home.handlers.a.match.command", "bots.home.handlers.b.match.command"}, nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			reload, restart := config.Diff(load(t, base), load(t, tt.text))
			if !slices.Equal(reload, tt.reload) || !slices.Equal(restart, tt.restart) {
				t.Errorf("reload %q, restart %q; want %q, %q", reload, restart, tt.reload, tt.restart)
			}
		})
	}
}
