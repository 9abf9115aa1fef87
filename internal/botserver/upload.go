package botserver

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"

	"github.com/tgspool/tgspool/internal/spool"
)

// errStore marks trouble of ours while a file is stored.
var errStore = errors.New("the upload can't be stored")

// syncEvery is how many bytes of a file are written before they are flushed, so
// that the last flush, for which the caller waits, is short.
const syncEvery = 4 << 20

// upload stores the files of one call below the store's folder, under the id
// that its job is going to have. If we stop before the job is committed the
// folder is an orphan, and tidied at the next start.
type upload struct {
	store *spool.Store
	max   int64 // bytes of all files

	ctx   context.Context
	id    int64 // of the job; 0 until there is a file
	dir   string
	files []spool.File
	sums  [][sha256.Size]byte // of the files, in their order
	size  int64
}

// limit is how many bytes all files may have.
func (u *upload) limit() int64 { return u.max }

// has reports whether a file came under that name.
func (u *upload) has(field string) bool {
	for _, f := range u.files {
		if f.Field == field {
			return true
		}
	}
	return false
}

// take stores one file while it comes in. What follows the first of equal
// fields is read and forgotten.
func (u *upload) take(field, name string, content io.Reader) error {
	if u.has(field) {
		_, err := io.Copy(io.Discard, content)
		return err
	}
	if len(u.files) == maxFiles {
		return errorf(413, "more than %d files", maxFiles)
	}
	if err := u.begin(); err != nil {
		return fmt.Errorf("%w: %w", errStore, err)
	}
	base := strconv.Itoa(len(u.files))
	sum, n, err := u.copy(filepath.Join(u.dir, base), content)
	if err != nil {
		return err
	}
	u.files = append(u.files, spool.File{
		Field: field, Name: name, Size: n,
		Path: "files/" + strconv.FormatInt(u.id, 10) + "/" + base,
	})
	u.sums = append(u.sums, sum)
	return nil
}

// begin makes the folder at the first file.
func (u *upload) begin() (err error) {
	if u.id != 0 {
		return nil
	}
	if u.id, err = u.store.ReserveJob(u.ctx); err != nil {
		return err
	}
	u.dir, err = u.store.MakeFiles(u.id)
	return err
}

func (u *upload) copy(path string, content io.Reader) (sum [sha256.Size]byte, n int64, err error) {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return sum, 0, fmt.Errorf("%w: %w", errStore, err)
	}
	defer func() {
		if e := f.Close(); e != nil && err == nil {
			err = fmt.Errorf("%w: %w", errStore, e)
		}
	}()
	hash := sha256.New()
	buf := make([]byte, 64<<10)
	for unsynced := 0; ; {
		k, readErr := content.Read(buf)
		if n, u.size = n+int64(k), u.size+int64(k); u.size > u.max {
			return sum, n, tooLarge(u.max)
		}
		hash.Write(buf[:k])
		if _, err := f.Write(buf[:k]); err != nil {
			return sum, n, fmt.Errorf("%w: %w", errStore, err)
		}
		end := errors.Is(readErr, io.EOF)
		if unsynced += k; unsynced >= syncEvery || end {
			if err := f.Sync(); err != nil {
				return sum, n, fmt.Errorf("%w: %w", errStore, err)
			}
			unsynced = 0
		}
		switch {
		case end:
			hash.Sum(sum[:0])
			return sum, n, nil
		case readErr != nil:
			return sum, n, readErr
		}
	}
}

// finish makes sure that the names of the files are on disk, too.
func (u *upload) finish() error {
	if u.id == 0 {
		return nil
	}
	if err := u.store.SyncFiles(u.id); err != nil {
		return fmt.Errorf("%w: %w", errStore, err)
	}
	return nil
}

// drop removes what no job has come of.
func (u *upload) drop() {
	if u.id != 0 && u.dir != "" {
		_ = os.RemoveAll(u.dir) // else the next start does
	}
}
