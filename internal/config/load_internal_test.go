package config

import (
	"os"
	"path/filepath"
	"testing"
)

// TestResolveSystemFile is about the file of an installed tgspool, which a test
// can't put where it belongs.
func TestResolveSystemFile(t *testing.T) {
	none := func(string) string { return "" }
	path := filepath.Join(t.TempDir(), "tgspool.toml")
	if got, explicit := resolve("", none, path); got != "" || explicit {
		t.Errorf("absent: %q, %v", got, explicit)
	}
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if got, explicit := resolve("", none, path); got != path || explicit {
		t.Errorf("there: %q, %v", got, explicit)
	}
}

func TestNearest(t *testing.T) {
	keys := []string{"path", "keep", "keep_size", "max_size", "max_upload", "on_damage"}
	tests := []struct{ in, want string }{
		{"pth", "path"},
		{"apth", "path"},
		{"Path", "path"},
		{"keepsize", "keep_size"},
		{"max_sise", "max_size"},
		{"maximum", ""},
		{"rate", ""},
		{"x", ""},
		{"", ""},
		{"ondamage", "on_damage"},
	}
	for _, tt := range tests {
		if got := nearest(tt.in, keys); got != tt.want {
			t.Errorf("nearest(%q) = %q, want %q", tt.in, got, tt.want)
		}
	}
}

func TestDistance(t *testing.T) {
	tests := []struct {
		a, b string
		want int
	}{
		{"", "", 0},
		{"", "abc", 3},
		{"abc", "", 3},
		{"abc", "abc", 0},
		{"abc", "acb", 1},
		{"kitten", "sitting", 3},
		{"chat_gpa", "chat_gap", 1},
	}
	for _, tt := range tests {
		if got := distance(tt.a, tt.b); got != tt.want {
			t.Errorf("distance(%q, %q) = %d, want %d", tt.a, tt.b, got, tt.want)
		}
	}
}
