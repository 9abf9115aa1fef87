package spool

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
)

// The files of a job lie in files/<job id>/ beside the store. They are written
// and flushed before the job is committed, so that a job never names what isn't
// there; and removed when it ends.

// ReserveJob gives out a job's id before the job, for those who have to store
// its files first. An id of which nothing comes is never used again.
func (s *Store) ReserveJob(ctx context.Context) (id int64, err error) {
	err = s.add(ctx, 64, addsMuch, func(t *txn) error {
		id = t.nextJobID()
		return nil
	})
	return id, err
}

// nextJobID gives out a job's id.
func (t *txn) nextJobID() int64 {
	t.s.nextJob++
	t.undo = append(t.undo, func() { t.s.nextJob-- })
	t.put(bMeta, kNextJob, u64bytes(uint64(t.s.nextJob)))
	return t.s.nextJob
}

func (s *Store) filesDir(id int64) string {
	return filepath.Join(s.Dir(), "files", strconv.FormatInt(id, 10))
}

// MakeFiles makes the folder for the files of a job that is to come.
func (s *Store) MakeFiles(id int64) (dir string, err error) {
	dir = s.filesDir(id)
	if err := os.MkdirAll(filepath.Dir(dir), 0o700); err != nil {
		return "", fmt.Errorf("making the folder of uploads: %w", err)
	}
	if err := os.Mkdir(dir, 0o700); err != nil {
		return "", fmt.Errorf("making the folder of a job's files: %w", err)
	}
	return dir, nil
}

// SyncFiles puts the names of a job's files on disk; their content is flushed
// by whoever writes it.
func (s *Store) SyncFiles(id int64) error {
	dir := s.filesDir(id)
	for _, d := range []string{dir, filepath.Dir(dir), s.Dir()} {
		if err := syncDir(d); err != nil {
			return fmt.Errorf("flushing the folder of a job's files: %w", err)
		}
	}
	return nil
}

// dropFiles removes the files of a job that is over, once that is on disk. If we
// stop in between, the next start tidies up.
func (t *txn) dropFiles(r *jobRec) {
	if len(r.Files) == 0 {
		return
	}
	dir := t.s.filesDir(r.ID)
	t.after = append(t.after, func() { _ = os.RemoveAll(dir) })
}

// TidyFiles removes the files of jobs that have ended or never came to be. It is
// for a start, before anybody can upload anything.
func (s *Store) TidyFiles() error {
	root := filepath.Join(s.Dir(), "files")
	entries, err := os.ReadDir(root)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("looking for orphaned uploads: %w", err)
	}
	var errs []error
	removed := 0
	for _, e := range entries {
		id, err := strconv.ParseInt(e.Name(), 10, 64)
		if err != nil {
			continue // not ours
		}
		job, err := s.Job(id)
		if err != nil && !errors.Is(err, ErrNotFound) || err == nil && !job.State.Ended() {
			continue // a damaged record may yet be repaired
		}
		if err := os.RemoveAll(filepath.Join(root, e.Name())); err != nil {
			errs = append(errs, fmt.Errorf("removing an orphaned upload: %w", err))
			continue
		}
		removed++
	}
	if removed > 0 {
		s.log.Info("orphaned uploads were removed", slog.Int("count", removed))
	}
	return errors.Join(errs...)
}
