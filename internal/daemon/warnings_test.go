package daemon

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tgspool/tgspool/internal/config"
)

func TestWarn(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.toml")
	text := "[bots.home.chats]\nme = 1\n[[bots.home.handlers]]\nname = \"x\"\npull = true\nmatch = { kind = \"mesage\" }\n"
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	cfg, err := config.Load(path, func(string) string { return "" })
	if err != nil {
		t.Fatal(err)
	}
	var said bytes.Buffer
	d := &daemon{log: slog.New(slog.NewTextHandler(&said, nil))}
	d.warn(t.Context(), cfg)
	want := `level=WARN msg="a warning about the settings" reason="` + path + `:6:11: bots.home.handlers.0.match.kind: \"mesage\" is no kind of update known here (did you mean \"message\"?)"` + "\n"
	if _, line, _ := strings.Cut(said.String(), " "); line != want {
		t.Errorf("logged\n%s\nwant\n%s", line, want)
	}
}
