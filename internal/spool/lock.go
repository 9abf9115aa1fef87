package spool

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// lockFile is spool.lock beside the store: held as long as the store is open,
// and it names the process, so that a second daemon can say who is first.
type lockFile struct{ f *os.File }

// lockWait is how long a start waits for a predecessor that is just ending.
const lockWait = 2 * time.Second

// lockStore takes the lock of the store at path, or fails with a LockedError.
func lockStore(ctx context.Context, path string) (*lockFile, error) {
	name := filepath.Join(filepath.Dir(path), "spool.lock")
	f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("locking spool %q: %w", path, err)
	}
	deadline := time.Now().Add(lockWait)
	for {
		err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if err == nil {
			break
		}
		if !errors.Is(err, syscall.EWOULDBLOCK) {
			return nil, errors.Join(fmt.Errorf("locking spool %q: %w", path, err), f.Close())
		}
		if time.Now().After(deadline) || ctx.Err() != nil {
			return nil, errors.Join(&LockedError{Path: path, PID: readPID(f)}, f.Close())
		}
		// A lock has no event to wait for; this bounded wait is at start only.
		select {
		case <-time.After(50 * time.Millisecond):
		case <-ctx.Done():
		}
	}
	l := &lockFile{f}
	if err := l.writePID(); err != nil {
		l.release()
		return nil, fmt.Errorf("locking spool %q: %w", path, err)
	}
	return l, nil
}

func (l *lockFile) writePID() error {
	if err := l.f.Truncate(0); err != nil {
		return err
	}
	_, err := l.f.WriteAt([]byte(strconv.Itoa(os.Getpid())+"\n"), 0)
	return err
}

func readPID(f *os.File) int {
	buf := make([]byte, 20)
	n, _ := f.ReadAt(buf, 0)
	pid, err := strconv.Atoi(strings.TrimSpace(string(buf[:n])))
	if err != nil {
		return 0
	}
	return pid
}

// release lets the next process in. The file stays: removing it would race
// with a process that has opened it already.
func (l *lockFile) release() { _ = l.f.Close() }
