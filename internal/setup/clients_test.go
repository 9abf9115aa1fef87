package setup_test

import (
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/tgspool/tgspool/internal/config"
	"github.com/tgspool/tgspool/internal/setup"
)

const clientsMain = "[bots.home]\n[bots.home.chats]\nme = 12345\n[[bots.home.clients]]\nname = \"byhand\"\n" +
	"token_sha256 = \"0000000000000000000000000000000000000000000000000000000000000001\"\n"

func clientsIn(t *testing.T) (setup.Clients, string) {
	t.Helper()
	main := filepath.Join(t.TempDir(), "mine.toml")
	if err := os.WriteFile(main, []byte(clientsMain), 0o600); err != nil {
		t.Fatal(err)
	}
	return setup.OpenClients(main), main
}

func loadClients(t *testing.T, main string) map[string]config.Client {
	t.Helper()
	cfg, err := config.Load(main, func(string) string { return "" })
	if err != nil {
		t.Fatal(err)
	}
	bot, _ := cfg.Bot("home")
	all := map[string]config.Client{}
	for _, c := range bot.Clients {
		all[c.Name] = c
	}
	return all
}

func TestNewClientToken(t *testing.T) {
	a, b := setup.NewClientToken(4200), setup.NewClientToken(4200)
	if want := regexp.MustCompile(`^4200:[A-Za-z0-9_-]{35}$`); a == b || !want.MatchString(a) || !want.MatchString(b) {
		t.Errorf("%q and %q", a, b)
	}
	if setup.HashClientToken("abc") != "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad" {
		t.Error("the hash isn't SHA-256 in hex")
	}
}

func TestClients_AddRotateRemove(t *testing.T) {
	c, main := clientsIn(t)
	for _, e := range []setup.Client{
		{Bot: "home", Name: "doorbell", Hash: setup.HashClientToken("a"), Methods: []string{"sendMessage", "sendPhoto"}, Chats: []string{"me", "@news"}, Lane: "bulk", MaxWait: 90 * time.Second, Rate: 2},
		{Bot: "home", Name: "whole", Hash: setup.HashClientToken("b"), Methods: []string{"*"}, Chats: []string{"*"}, Full: true},
		{Bot: "home", Name: "none", Hash: setup.HashClientToken("c")},
	} {
		if err := c.Add(e); err != nil {
			t.Fatal(err)
		}
	}
	got := loadClients(t, main)
	d := got["doorbell"]
	if len(got) != 4 || d.Chats[0] != "12345" || d.Chats[1] != "@news" || len(d.Methods) != 2 || d.Lane != "bulk" || d.MaxWait != 90*time.Second || d.Rate != 2 || d.Full {
		t.Errorf("doorbell: %+v of %d", d, len(got))
	}
	if w := got["whole"]; !w.Full || !w.MayCall("deleteMessage") || len(got["none"].Methods) != 0 {
		t.Errorf("whole: %+v", w)
	}
	// What somebody has written between them stays.
	text, err := os.ReadFile(c.Path())
	if err != nil {
		t.Fatal(err)
	}
	edited := strings.Replace(string(text), "lane = \"bulk\"", "lane = \"normal\" # mine", 1)
	if err := os.WriteFile(c.Path(), []byte(edited), 0o600); err != nil { //nolint:gosec // the file of this test
		t.Fatal(err)
	}
	if err := c.Rotate("home", "doorbell", setup.HashClientToken("new")); err != nil {
		t.Fatal(err)
	}
	if err := c.Remove("home", "whole"); err != nil {
		t.Fatal(err)
	}
	got = loadClients(t, main)
	if d := got["doorbell"]; len(got) != 3 || d.TokenSHA256 != setup.HashClientToken("new") || d.Lane != "normal" || d.Rate != 2 {
		t.Errorf("after rotate and remove: %+v of %d", d, len(got))
	}
	text, err = os.ReadFile(c.Path())
	if err != nil || !strings.Contains(string(text), "# mine") || strings.Contains(string(text), "whole") {
		t.Errorf("the file holds\n%s, %v", text, err)
	}
}

func TestClients_Refused(t *testing.T) {
	c, main := clientsIn(t)
	if err := c.Remove("home", "nobody"); !errors.Is(err, setup.ErrNoClient) {
		t.Errorf("unknown: %v", err)
	}
	if err := c.Rotate("home", "byhand", setup.HashClientToken("x")); err == nil || !strings.Contains(err.Error(), "mine.toml:4:") {
		t.Errorf("in another file: %v", err)
	}
	for name, e := range map[string]setup.Client{
		"a name that is taken": {Bot: "home", Name: "byhand", Hash: setup.HashClientToken("x")},
		"no method":            {Bot: "home", Name: "a", Hash: setup.HashClientToken("x"), Methods: []string{"send message"}},
		"no chat":              {Bot: "home", Name: "a", Hash: setup.HashClientToken("x"), Chats: []string{"nobody\"\n[x]"}},
	} {
		if err := c.Add(e); err == nil {
			t.Errorf("%s: added", name)
		}
		if _, err := os.Stat(c.Path()); err == nil {
			t.Errorf("%s: the file stays", name)
		}
	}
	if len(loadClients(t, main)) != 1 {
		t.Error("the settings have changed")
	}
}
