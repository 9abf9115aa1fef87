package spool_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/tgspool/tgspool/internal/spool"
)

func TestFileSystems(t *testing.T) {
	tests := []struct {
		magic        uint32
		mount        string
		name         string
		refuse, warn bool
	}{
		{0xEF53, "ext4", "", false, false},
		{0xF2F52010, "f2fs", "", false, false},
		{0x9123683E, "btrfs", "", false, false},
		{0x6969, "nfs4", "NFS", true, true},
		{0xFF534D42, "cifs", "CIFS", true, true},
		{0xFE534D42, "smb3", "SMB", true, true},
		{0x01021997, "9p", "9p", true, true},
		{0x65735546, "fuse.sshfs", "sshfs", true, true},
		{0x65735546, "fuse.rclone", "rclone", true, true},
		{0x65735546, "fuse.mergerfs", "mergerfs", false, true},
		{0x65735546, "fuseblk", "FUSE", false, true},
		{0x01021994, "tmpfs", "tmpfs", false, true},
		{0x794C7630, "overlay", "overlay", false, true},
		{0x4D44, "vfat", "FAT", false, true},
	}
	for _, tt := range tests {
		name, refuse, warn := spool.JudgeFS(tt.magic, tt.mount)
		if name != tt.name || refuse != tt.refuse || warn != tt.warn {
			t.Errorf("%s: got %q refuse %v warn %v", tt.mount, name, refuse, warn)
		}
	}
}

func TestReadOnlyFileSystem_Explained(t *testing.T) {
	err := spool.ExplainFile(&fs.PathError{Op: "open", Path: "/x/spool.lock", Err: syscall.EROFS})
	if !errors.Is(err, spool.ErrReadOnly) || !strings.Contains(err.Error(), "remount") || !strings.Contains(err.Error(), "/x/spool.lock") {
		t.Errorf("got %v", err)
	}
	if again := spool.ExplainFile(err); again.Error() != err.Error() {
		t.Errorf("explained twice: %v", again)
	}
}

// TestOpen_NoPermission opens a file of mode 000: that is no damage, and nothing
// is moved aside.
func TestOpen_NoPermission(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "spool.db")
	write(t, path, []byte("anything"))
	if err := os.Chmod(path, 0); err != nil {
		t.Fatal(err)
	}
	done := make(chan error)
	go func() {
		// For root every file is open: this thread is another user's, and ends with
		// the goroutine.
		runtime.LockOSThread()
		if os.Geteuid() == 0 {
			if err := os.Chown(dir, 65534, 65534); err != nil {
				done <- err
				return
			}
			if _, err := unix.SetfsuidRetUid(65534); err != nil {
				done <- err
				return
			}
		}
		_, err := spool.Open(t.Context(), spool.Options{Path: path, OnDamage: spool.OnDamageSnapshot})
		done <- err
	}()
	if err := <-done; !errors.Is(err, fs.ErrPermission) || !strings.Contains(err.Error(), path) {
		t.Errorf("got %v", err)
	}
	if list, _ := filepath.Glob(path + "*"); len(list) != 1 {
		t.Errorf("files: %v", list)
	}
}
