package cli

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/tgspool/tgspool/internal/spool"
)

// TestStoreFiles: what is given away belongs to the store; what else lies in its
// folder is somebody else's.
func TestStoreFiles(t *testing.T) {
	dir := t.TempDir()
	o := spool.Options{Path: filepath.Join(dir, "spool.db"), Snapshots: filepath.Join(dir, "snapshots")}
	want := []string{"snapshots", "snapshots/spool-20260103T030000Z.db", "spool.db", "spool.db.v1", "spool.lock", "spool.reserve"}
	for _, name := range append([]string{"other.db", "spooler", "snapshots/other", "sub/spool.db"}, want[1:]...) {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	got := storeFiles(o)
	for i, path := range got {
		got[i], _ = filepath.Rel(dir, path)
	}
	slices.Sort(got)
	if !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}
