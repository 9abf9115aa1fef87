package demo_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tgspool/tgspool/internal/demo"
)

// program writes a shell script that stands in for the program.
func program(t *testing.T, script string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "program")
	if err := os.WriteFile(name, []byte("#!/bin/sh\n"+script+"\n"), 0o700); err != nil { //nolint:gosec // it is to be run
		t.Fatal(err)
	}
	return name
}

// TestRun_CantStart: whatever doesn't start, the demo says so and leaves
// nothing behind.
func TestRun_CantStart(t *testing.T) {
	const simulates = `case $1 in simulate) echo api http://127.0.0.1:1; echo control http://127.0.0.1:1; exec sleep 60;; esac
echo broken >&2; exit 3`
	control := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, `{"bots":[]}`)
	}))
	t.Cleanup(control.Close)
	for name, c := range map[string]struct {
		script, want string
	}{
		"the daemon ends":      {strings.ReplaceAll(simulates, "http://127.0.0.1:1", control.URL), "the daemon has ended by itself: exit status 3"},
		"the simulator ends":   {"exit 3", "the simulator ended at once: exit status 3"},
		"nobody is controlled": {simulates, "asking simulator"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := temp(t)
			var told strings.Builder
			_, err := demo.Run(t.Context(), demo.Options{Executable: program(t, c.script), Progress: &told})
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want %q", err, c.want)
			}
			if strings.Contains(c.want, "daemon") && !strings.Contains(told.String(), "last words:\nbroken\n") {
				t.Errorf("told %q, want what the daemon said", told.String())
			}
			empty(t, dir)
		})
	}
	t.Run("no program", func(t *testing.T) {
		dir := temp(t)
		if _, err := demo.Run(t.Context(), demo.Options{Executable: "/nonexistent", Progress: io.Discard}); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("error %v", err)
		}
		empty(t, dir)
	})
}

// TestRun_Interrupted: a run that is ended while it waits cleans up as well.
func TestRun_Interrupted(t *testing.T) {
	dir := temp(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := demo.Run(ctx, demo.Options{Executable: program(t, "exec sleep 60"), Progress: io.Discard})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want the cancelled context", err)
	}
	empty(t, dir)
}

// TestRun_Keep keeps the folder and says where it is.
func TestRun_Keep(t *testing.T) {
	dir := temp(t)
	var told strings.Builder
	script := "case $1 in simulate) echo api http://127.0.0.1:1; echo control http://127.0.0.1:1; exec sleep 60;; esac; exit 3"
	if _, err := demo.Run(t.Context(), demo.Options{Executable: program(t, script), Progress: &told, Keep: true}); err == nil {
		t.Error("no error")
	}
	kept, err := filepath.Glob(filepath.Join(dir, "tgspool-demo-*"))
	if err != nil || len(kept) != 1 {
		t.Fatalf("kept %v (%v), want one folder", kept, err)
	}
	if !strings.Contains(told.String(), "kept: "+kept[0]) {
		t.Errorf("told %q, want the folder", told.String())
	}
}

// temp makes the folder for temporary files.
func temp(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	t.Setenv("TMPDIR", dir)
	return dir
}

func empty(t *testing.T, dir string) {
	t.Helper()
	left, err := filepath.Glob(filepath.Join(dir, "tgspool-demo-*"))
	if err != nil || len(left) > 0 {
		t.Errorf("left behind: %v (%v)", left, err)
	}
}
