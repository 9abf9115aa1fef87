package botserver

import (
	"strings"
	"testing"
)

func TestParsePath(t *testing.T) {
	tests := []struct {
		path string
		want target
		ok   bool
	}{
		{"/bot1:a/getMe", target{token: "1:a", method: "getMe"}, true},
		{"//bot1:a//getMe//", target{token: "1:a", method: "getMe"}, true},
		{"/bot1:a/test/getMe", target{token: "1:a", method: "getMe"}, true},
		{"/bot1:a/", target{token: "1:a"}, true},
		{"/bot1:a", target{}, false},
		{"/bot/getMe", target{method: "getMe"}, true},
		{"/bot1:a/x/y", target{token: "1:a", method: "x/y"}, true},
		{"/file/bot1:a/documents/a b.txt", target{token: "1:a", file: "documents/a b.txt", isFile: true}, true},
		{"/file//bot1:a//test/photos/x", target{token: "1:a", file: "photos/x", isFile: true}, true},
		{"/file/bot1:a/", target{}, false},
		{"/file/x", target{}, false},
		{"/", target{}, false},
		{"", target{}, false},
		{"/robots.txt", target{}, false},
	}
	for _, tt := range tests {
		got, ok := parsePath(tt.path)
		if ok != tt.ok || ok && got != tt.want {
			t.Errorf("%q: %+v, %v; want %+v, %v", tt.path, got, ok, tt.want, tt.ok)
		}
	}
}

func FuzzParsePath(f *testing.F) {
	for _, seed := range []string{"/bot1:a/getMe", "/file/bot1:a/x/../y", "//", "bot/"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, path string) {
		got, ok := parsePath(path)
		if ok && strings.Contains(got.token, "/") {
			t.Errorf("token %q", got.token)
		}
		if ok && got.isFile && safePath(got.file) && strings.Contains("/"+got.file+"/", "/../") {
			t.Errorf("a way out: %q", got.file)
		}
	})
}
