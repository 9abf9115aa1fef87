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
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return filepath.Join(dir, "main.toml")
}

// load loads settings that must be good.
func load(t *testing.T, text string) *config.Config {
	t.Helper()
	cfg, err := config.Load(write(t, map[string]string{"main.toml": text}), noEnv)
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
	cfg, err := config.Load(path, noEnv)
	if err == nil {
		t.Fatalf("Load gave no error but %+v", cfg)
	}
	return strings.ReplaceAll(err.Error(), filepath.Dir(path)+"/", "")
}
