package spool

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// fsVerdict is what is known of a file system.
type fsVerdict struct {
	name   string
	refuse bool   // locks or mappings can't be relied on
	say    string // why, or what to expect; empty where all is well
}

const (
	networkFS = "locks and mapped files can't be relied on there, which would end in a damaged spool"
	volatile  = "it keeps nothing over a restart of the machine"
)

// fileSystems is what is known by the number that statfs gives. What isn't
// listed is a disk.
var fileSystems = map[uint32]fsVerdict{
	0x6969:     {"NFS", true, networkFS},
	0xFF534D42: {"CIFS", true, networkFS},
	0xFE534D42: {"SMB", true, networkFS},
	0x517B:     {"SMB", true, networkFS},
	0x564C:     {"NCP", true, networkFS},
	0x5346414F: {"AFS", true, networkFS},
	0x73757245: {"Coda", true, networkFS},
	0x00C36400: {"Ceph", true, networkFS},
	0x01021997: {"9p", true, networkFS},
	0x01021994: {"tmpfs", false, volatile},
	0x858458F6: {"ramfs", false, volatile},
	0x794C7630: {"overlay", false, "a container or a read-only root keeps it no longer than itself; put the spool on a volume"},
	0x65735546: {"FUSE", false, "whether it keeps what it has confirmed is up to its program"},
	0x4D44:     {"FAT", false, "it has no journal: a power cut can lose files"},
	0x2011BAB0: {"exFAT", false, "it has no journal: a power cut can lose files"},
}

// remoteFUSE are the FUSE programs that are known to be a network.
var remoteFUSE = []string{"sshfs", "rclone", "s3fs", "davfs", "glusterfs", "smbnetfs", "curlftpfs"}

// judgeFS decides by statfs' number and, for FUSE, the type in the mount table.
func judgeFS(magic uint32, mountType string) fsVerdict {
	v := fileSystems[magic]
	if v.name != "FUSE" {
		return v
	}
	v.name = "FUSE"
	if _, sub, ok := strings.Cut(mountType, "."); ok {
		v.name = sub
		for _, remote := range remoteFUSE {
			if strings.HasPrefix(sub, remote) {
				v.refuse, v.say = true, networkFS
			}
		}
	}
	return v
}

// checkFileSystem refuses a folder on which a spool would come to harm, and
// warns where it may.
func checkFileSystem(ctx context.Context, dir string, logger *slog.Logger) error {
	var st syscall.Statfs_t
	if err := syscall.Statfs(dir, &st); err != nil {
		return fmt.Errorf("looking at the file system of %q: %w", dir, err)
	}
	v := judgeFS(uint32(st.Type), mountType(dir)) // all of them have 32 bits
	if v.refuse {
		return fmt.Errorf("%q is on %s: %s; name a folder on a local disk as [store] path: %w", dir, v.name, v.say, ErrFileSystem)
	}
	if v.say != "" {
		logger.LogAttrs(ctx, slog.LevelWarn, "the spool is on an unusual file system",
			slog.String("path", dir), slog.String("reason", v.name+": "+v.say))
	}
	return nil
}

// mountType finds the type of the mount that a folder is on; "" when unknown.
func mountType(dir string) string {
	dir, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return ""
	}
	if dir, err = filepath.Abs(dir); err != nil {
		return ""
	}
	f, err := os.Open("/proc/self/mountinfo")
	if err != nil {
		return ""
	}
	defer func() { _ = f.Close() }()
	best, kind := "", ""
	for lines := bufio.NewScanner(f); lines.Scan(); {
		left, right, ok := strings.Cut(lines.Text(), " - ")
		fields := strings.Fields(left)
		if !ok || len(fields) < 5 {
			continue
		}
		at := fields[4]
		if (dir == at || strings.HasPrefix(dir, strings.TrimSuffix(at, "/")+"/")) && len(at) >= len(best) {
			best = at
			kind, _, _ = strings.Cut(right, " ")
		}
	}
	return kind
}

// explainFile gives the errors of the operating system that a person can do
// something about their words.
func explainFile(err error) error {
	if errors.Is(err, syscall.EROFS) && !errors.Is(err, ErrReadOnly) {
		return fmt.Errorf("%w: %w; after a power cut or with a failing card the kernel mounts it so: see dmesg, then mount -o remount,rw", ErrReadOnly, err)
	}
	return err
}

// freeSpace is how many bytes are left for us on a folder's file system.
func freeSpace(dir string) (int64, error) {
	var st syscall.Statfs_t
	if err := syscall.Statfs(dir, &st); err != nil {
		return 0, &os.PathError{Op: "statfs", Path: dir, Err: err}
	}
	return int64(st.Bavail) * int64(st.Bsize), nil //nolint:unconvert // the fields' types differ between architectures
}
