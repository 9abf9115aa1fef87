package cli

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestAttach_FilesThatChange are sent as they were when they were opened, or not
// at all.
func TestAttach_FilesThatChange(t *testing.T) {
	tests := []struct {
		name   string
		change func(f string) error
		says   string // of the error, empty: none
	}{
		{"as it was", func(string) error { return nil }, ""},
		{"grown", func(f string) error { return os.WriteFile(f, []byte("0123456789 and more"), 0o600) }, ""},
		{"shrunk", func(f string) error { return os.Truncate(f, 4) }, "became shorter while it was read"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "a.log")
			if err := os.WriteFile(path, []byte("0123456789"), 0o600); err != nil {
				t.Fatal(err)
			}
			file, err := (&app{}).attach(path)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = file.file.Close() }()
			if err := tt.change(path); err != nil {
				t.Fatal(err)
			}
			q, err := file.form([]byte("{}"), "document")
			if err != nil {
				t.Fatal(err)
			}
			body, err := io.ReadAll(q.Stream)
			if tt.says != "" {
				if err == nil || !strings.Contains(err.Error(), tt.says) {
					t.Errorf("error %v, want %q", err, tt.says)
				}
				return
			}
			if err != nil || int64(len(body)) != q.Size || !strings.Contains(string(body), "\r\n\r\n0123456789\r\n--") {
				t.Errorf("%d bytes, announced %d, %v: %s", len(body), q.Size, err, body)
			}
		})
	}
}

// TestAttach_SizeUnknown reads what says that it is empty and isn't.
func TestAttach_SizeUnknown(t *testing.T) {
	file, err := (&app{}).attach("/proc/self/status")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.file.Close() }()
	if body, err := io.ReadAll(file.content); err != nil || len(body) == 0 || file.size != 0 || file.name != "status" {
		t.Errorf("%s of %d bytes: %q, %v", file.name, file.size, body, err)
	}
}
