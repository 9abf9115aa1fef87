package wire

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

// ErrStore marks trouble of ours while a file is stored.
var ErrStore = errors.New("the upload can't be stored")

// syncEvery is how many bytes of a file are written before they are flushed, so
// that the last flush, for which the caller waits, is short.
const syncEvery = 4 << 20

// Upload stores the files of one call below the store's folder, under the id
// that its job is going to have. If we stop before the job is committed the
// folder is an orphan, and tidied at the next start.
type Upload struct {
	store *spool.Store
	max   int64 // bytes of all files

	ctx   context.Context
	id    int64 // of the job; 0 until there is a file
	dir   string
	files []spool.File
	sums  [][sha256.Size]byte // of the files, in their order
	size  int64
}

// NewUpload stores files in store until ctx ends, all of them of at most limit bytes.
func NewUpload(ctx context.Context, store *spool.Store, limit int64) *Upload {
	return &Upload{ctx: ctx, store: store, max: limit}
}

// Job is the id that the job of the files must have; 0 when there are none.
func (u *Upload) Job() int64 { return u.id }

// Files are the files so far.
func (u *Upload) Files() []spool.File { return u.files }

// Sums are the SHA-256 sums of the files, in their order.
func (u *Upload) Sums() [][sha256.Size]byte { return u.sums }

// Limit is how many bytes all files may have.
func (u *Upload) Limit() int64 { return u.max }

// Has reports whether a file came under that name.
func (u *Upload) Has(field string) bool {
	for _, f := range u.files {
		if f.Field == field {
			return true
		}
	}
	return false
}

// Take stores one file while it comes in. What follows the first of equal
// fields is read and forgotten.
func (u *Upload) Take(field, name string, content io.Reader) error {
	if u.Has(field) {
		_, err := io.Copy(io.Discard, content)
		return err
	}
	if len(u.files) == maxFiles {
		return errorf(413, "more than %d files", maxFiles)
	}
	if err := u.begin(); err != nil {
		return fmt.Errorf("%w: %w", ErrStore, err)
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
func (u *Upload) begin() (err error) {
	if u.id != 0 {
		return nil
	}
	if u.id, err = u.store.ReserveJob(u.ctx); err != nil {
		return err
	}
	u.dir, err = u.store.MakeFiles(u.id)
	return err
}

func (u *Upload) copy(path string, content io.Reader) (sum [sha256.Size]byte, n int64, err error) {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return sum, 0, fmt.Errorf("%w: %w", ErrStore, err)
	}
	defer func() {
		if e := f.Close(); e != nil && err == nil {
			err = fmt.Errorf("%w: %w", ErrStore, e)
		}
	}()
	hash := sha256.New()
	buf := make([]byte, 64<<10)
	for unsynced := 0; ; {
		k, readErr := content.Read(buf)
		if n, u.size = n+int64(k), u.size+int64(k); u.size > u.max {
			return sum, n, TooLarge(u.max)
		}
		hash.Write(buf[:k])
		if _, err := f.Write(buf[:k]); err != nil {
			return sum, n, fmt.Errorf("%w: %w", ErrStore, err)
		}
		end := errors.Is(readErr, io.EOF)
		if unsynced += k; unsynced >= syncEvery || end {
			if err := f.Sync(); err != nil {
				return sum, n, fmt.Errorf("%w: %w", ErrStore, err)
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

// Finish makes sure that the names of the files are on disk, too.
func (u *Upload) Finish() error {
	if u.id == 0 {
		return nil
	}
	if err := u.store.SyncFiles(u.id); err != nil {
		return fmt.Errorf("%w: %w", ErrStore, err)
	}
	return nil
}

// Drop removes what no job has come of.
func (u *Upload) Drop() {
	if u.id != 0 && u.dir != "" {
		_ = os.RemoveAll(u.dir) // else the next start does
	}
}
