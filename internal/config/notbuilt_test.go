package config_test

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tgspool/tgspool/internal/config"
)

// TestNotBuilt: what a file sets and nothing acts on is told, with its place.
func TestNotBuilt(t *testing.T) {
	path := write(t, map[string]string{
		"main.toml": `[monitor]
heartbeat_url = "https://example.org/ping"
offline_after = "5m"
stats_interval = "0s"
[bots.home.chats]
me = 1
[bots.home.admin]
chat = "me"
[[bots.home.handlers]]
name = "quiet"
pull = true
session = "chat"
match = { command = "/q" }
[[bots.home.handlers]]
name = "loud"
exec = ["/bin/true"]
allow_from = ["*"]
session = "chat+user"
`,
		"conf.d/a.toml": "[bots.home.sender]\nworkers = 3\n",
	})
	cfg, err := config.Load(path, noEnv)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, p := range config.Check(cfg) {
		got = append(got, strings.ReplaceAll(p.String(), filepath.Dir(path)+"/", ""))
	}
	var want []string
	for _, key := range []string{
		"main.toml:7:12: bots.home.admin",
	} {
		want = append(want, key+": not built yet, has no effect")
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func TestNotBuiltAreKeys(t *testing.T) {
	for _, key := range config.NotBuilt() {
		if !slices.ContainsFunc(config.Keys(), func(k config.Key) bool { return k.Path == key || strings.HasPrefix(k.Path, key+".") }) {
			t.Errorf("%s is no key", key)
		}
	}
}
