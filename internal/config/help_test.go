package config_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tgspool/tgspool/internal/config"
)

// noEnv is an empty environment.
func noEnv(string) string { return "" }

// environ makes an environment of pairs of name and value.
func environ(pairs ...string) func(string) string {
	return func(name string) string {
		for i := 0; i < len(pairs); i += 2 {
			if pairs[i] == name {
				return pairs[i+1]
			}
		}
		return ""
	}
}

// write writes files into a fresh folder and returns the path of main.toml in
// it. A file's name is its path from there.
func write(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return filepath.Join(dir, "main.toml")
}

// load loads settings that must be good, whether or not all in them is built.
func load(t *testing.T, text string) *config.Config {
	t.Helper()
	cfg, err := config.LoadWhole(write(t, map[string]string{"main.toml": text}), noEnv)
	if err != nil {
		t.Fatalf("Load: %v", err)
	}
	return cfg
}

// loadError loads settings that must be bad and returns the errors' text, with
// the folder taken off.
func loadError(t *testing.T, files map[string]string) string {
	t.Helper()
	path := write(t, files)
	cfg, err := config.LoadWhole(path, noEnv)
	if err == nil {
		t.Fatalf("Load gave no error but %+v", cfg)
	}
	return strings.ReplaceAll(err.Error(), filepath.Dir(path)+"/", "")
}

// cases reads testdata/broken.txt: by the name of each case its files, and what
// Load should say about them. A line "-- CASE/FILE --" begins a file, FILE being
// "want" for the answer.
func cases(t testing.TB) (files map[string]map[string]string, want map[string]string) {
	t.Helper()
	data, err := os.ReadFile("testdata/broken.txt")
	if err != nil {
		t.Fatal(err)
	}
	files, want = map[string]map[string]string{}, map[string]string{}
	var name, file string
	for line := range strings.Lines(string(data)) {
		if head, ok := strings.CutPrefix(line, "-- "); ok {
			name, file, _ = strings.Cut(strings.TrimSuffix(head, " --\n"), "/")
			continue
		}
		switch {
		case name == "":
		case file == "want":
			want[name] += line
		case files[name] == nil:
			files[name] = map[string]string{file: line}
		default:
			files[name][file] += line
		}
	}
	if len(want) < 100 || len(want) != len(files) {
		t.Fatalf("%d cases, %d answers", len(files), len(want))
	}
	return files, want
}
