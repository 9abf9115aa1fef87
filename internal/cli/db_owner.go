package cli

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/tgspool/tgspool/internal/spool"
)

// handBack gives what root has written to the owner of the store's folder: the
// daemon isn't root, and couldn't open its own store any more.
func (a *app) handBack(o spool.Options) {
	if os.Geteuid() != 0 {
		return
	}
	folder, err := os.Stat(filepath.Dir(o.Path))
	if err != nil {
		return // nothing was written there
	}
	to, ok := folder.Sys().(*syscall.Stat_t)
	if !ok || to.Uid == 0 {
		return
	}
	var errs []error
	for _, path := range storeFiles(o) {
		errs = append(errs, giveTo(path, to))
	}
	if err := errors.Join(errs...); err != nil {
		a.complain("warning", "the daemon may not be able to use its files: "+err.Error())
	}
}

// storeFiles are the files of a store and the snapshots of it, and nothing else
// that may lie beside them.
func storeFiles(o spool.Options) []string {
	dir := filepath.Dir(o.Path)
	paths := []string{o.Path, filepath.Join(dir, "spool.lock"), filepath.Join(dir, "spool.reserve")}
	entries, _ := os.ReadDir(dir) // what can't be read can't be given
	for _, e := range entries {
		if path := filepath.Join(dir, e.Name()); strings.HasPrefix(path, o.Path+".") || path == o.Snapshots {
			paths = append(paths, path)
		}
	}
	for _, s := range spool.Snapshots(o.Snapshots) {
		paths = append(paths, s.Path)
	}
	return paths
}

// giveTo gives a file or folder of root's to somebody.
func giveTo(path string, to *syscall.Stat_t) error {
	info, err := os.Lstat(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil || !info.IsDir() && !info.Mode().IsRegular() {
		return err
	}
	// A second name of a file may be anybody's file.
	if is, ok := info.Sys().(*syscall.Stat_t); !ok || is.Uid != 0 || is.Nlink > 1 && !info.IsDir() {
		return nil
	}
	return os.Lchown(path, int(to.Uid), int(to.Gid))
}
