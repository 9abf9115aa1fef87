package spool

import (
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	bolt "go.etcd.io/bbolt"
	"golang.org/x/sys/unix"
)

const (
	snapshotPrefix = "spool-"
	snapshotSuffix = ".db"
)

// SnapshotInfo is one snapshot in a folder.
type SnapshotInfo struct {
	Path string    `json:"path"`
	At   time.Time `json:"at"`         // when it was made
	Size int64     `json:"size_bytes"` // of its file
}

// Snapshots lists the snapshots in a folder, youngest first.
func Snapshots(dir string) []SnapshotInfo {
	names, _ := filepath.Glob(filepath.Join(dir, snapshotPrefix+"*"+snapshotSuffix)) // the pattern is ours
	var list []SnapshotInfo
	for _, name := range names {
		stamp := strings.TrimSuffix(strings.TrimPrefix(filepath.Base(name), snapshotPrefix), snapshotSuffix)
		at, err := time.Parse(stampLayout, stamp)
		if err != nil {
			continue // another file
		}
		if fi, err := os.Stat(name); err == nil && fi.Mode().IsRegular() {
			list = append(list, SnapshotInfo{name, at, fi.Size()})
		}
	}
	slices.SortFunc(list, func(a, b SnapshotInfo) int { return b.At.Compare(a.At) })
	return list
}

// fromAhead is how far after the present a snapshot's time may be: what a clock
// is corrected by now and then.
const fromAhead = 24 * time.Hour

// FromAhead reports whether the snapshot was named by a clock that was ahead of
// the right one, so that its name doesn't tell its age.
func (s SnapshotInfo) FromAhead(now time.Time) bool { return s.At.After(now.Add(fromAhead)) }

// PruneSnapshots removes all but the youngest snapshots of a folder. The clock
// must be right: those named after now, by a wrong one, go first.
func PruneSnapshots(dir string, keep int, now time.Time) error {
	list := Snapshots(dir)
	first := slices.IndexFunc(list, func(s SnapshotInfo) bool { return !s.FromAhead(now) })
	if first > 0 {
		list = slices.Concat(list[first:], list[:first])
	}
	var errs []error
	for i, s := range list {
		if i >= keep {
			errs = append(errs, os.Remove(s.Path))
		}
	}
	return errors.Join(errs...)
}

// SnapshotOptions say where a snapshot goes and how fast it is written.
type SnapshotOptions struct {
	// To is the new file; it must not be there yet. Empty: a name by the time, in
	// Dir.
	To string
	// Dir is the folder of the snapshots, made when missing; empty: the store's.
	Dir string
	// Rate bounds the writing, in bytes a second; 0: as fast as it goes. The
	// spool's own commits share the disk.
	Rate int64
}

// Snapshot writes a consistent copy of the store while it is in use. The copy is
// synced and checked as a whole before it gets its name.
//
// Most of it is written without a transaction, as slowly as asked; pages that
// change meanwhile come out wrong. A short read transaction then compares all
// pages with what was written and corrects those. bbolt can't use pages again
// that were freed while a read transaction stands, so that a long one makes the
// file grow for ever; this one lasts as long as reading the file.
func (s *Store) Snapshot(ctx context.Context, o SnapshotOptions) (SnapshotInfo, error) {
	if !s.past.copying.TryLock() {
		return SnapshotInfo{}, fmt.Errorf("another snapshot is being made: %w", ErrConflict)
	}
	defer s.past.copying.Unlock()
	ctx, cancel := s.whileOpen(ctx)
	defer cancel()
	return s.past.files.snapshot(ctx, o, s.copyTo)
}

// CheckSnapshot looks at the store while it is in use: at a copy, which is gone
// afterwards. It returns what doesn't fit, nothing when all is well.
func (s *Store) CheckSnapshot(ctx context.Context) (problems []string, err error) {
	if !s.past.copying.TryLock() {
		return nil, fmt.Errorf("a snapshot is being made: %w", ErrConflict)
	}
	defer s.past.copying.Unlock()
	ctx, cancel := s.whileOpen(ctx)
	defer cancel()
	f := s.past.files
	if err := os.MkdirAll(f.snapshots, 0o700); err != nil {
		return nil, fmt.Errorf("checking spool %q: %w", f.path, explainFile(err))
	}
	if err := f.roomFor(filepath.Join(f.snapshots, "check.db")); err != nil {
		return nil, fmt.Errorf("checking spool %q: %w", f.path, err)
	}
	out, err := os.CreateTemp(f.snapshots, "check-*.db.new")
	if err != nil {
		return nil, fmt.Errorf("checking spool %q: %w", f.path, explainFile(err))
	}
	defer func() { _ = os.Remove(out.Name()) }() // else the next start does
	if err := errors.Join(s.copyTo(ctx, out, 0), out.Close()); err != nil {
		return nil, fmt.Errorf("checking spool %q: %w", f.path, err)
	}
	return inspect(out.Name())
}

// whileOpen ends the context when the store is closed.
func (s *Store) whileOpen(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	go func() {
		select {
		case <-s.stop:
			cancel()
		case <-ctx.Done():
		}
	}()
	return ctx, cancel
}

// Backup copies a store that nobody has open, as Snapshot does with one that is.
func Backup(ctx context.Context, o Options, so SnapshotOptions) (info SnapshotInfo, err error) {
	err = offline(ctx, o, func(f *files) error {
		if _, err := examine(f.path, true); err != nil {
			return err
		}
		info, err = f.snapshot(ctx, so, func(ctx context.Context, out *os.File, _ int64) error {
			in, err := os.Open(f.path)
			if err != nil {
				return err
			}
			_, err = io.Copy(out, in)
			return errors.Join(err, ctx.Err(), in.Close())
		})
		return err
	})
	return info, err
}

// snapshot gives the copy that write makes its place. A half-made one has a
// name that the next start removes.
func (f *files) snapshot(ctx context.Context, o SnapshotOptions, write func(context.Context, *os.File, int64) error) (info SnapshotInfo, err error) {
	at := time.Now().UTC()
	to := o.To
	if to == "" {
		dir := orElse(o.Dir, f.snapshots)
		to = filepath.Join(dir, snapshotPrefix+at.Format(stampLayout)+snapshotSuffix)
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return info, fmt.Errorf("making a snapshot: %w", explainFile(err))
		}
	}
	defer func() {
		if err != nil {
			err = fmt.Errorf("making snapshot %q: %w", to, explainFile(err))
		}
	}()
	if err := f.roomFor(to); err != nil {
		return info, err
	}
	tmp := to + ".new"
	out, err := os.OpenFile(tmp, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return info, err
	}
	err = write(ctx, out, o.Rate)
	f.hook("written")
	if err == nil {
		err = out.Sync()
	}
	// Checked as the disk gives it back, not as memory remembers it.
	_ = unix.Fadvise(int(out.Fd()), 0, 0, unix.FADV_DONTNEED)
	err = errors.Join(err, out.Close(), ctx.Err())
	if err == nil {
		err = verify(tmp)
	}
	if err == nil {
		f.hook("verified")
		err = moveInto(tmp, to)
	}
	if err != nil {
		return info, errors.Join(err, os.Remove(tmp))
	}
	fi, err := os.Stat(to)
	if err != nil {
		return info, err
	}
	f.log.LogAttrs(ctx, slog.LevelInfo, "snapshot made", slog.String("path", to), slog.Int64("size", fi.Size()), slog.Duration("duration", time.Since(at)))
	return SnapshotInfo{to, at, fi.Size()}, nil
}

// roomFor refuses a snapshot that would overwrite something or fill the disk:
// the spool itself must not stop for want of space because of its backup.
func (f *files) roomFor(to string) error {
	if _, err := os.Lstat(to); err == nil {
		return os.ErrExist
	}
	fi, err := os.Stat(f.path)
	if err != nil {
		return err
	}
	left, err := freeSpace(filepath.Dir(to))
	if err != nil {
		return err
	}
	if left < fi.Size()+spareRoom {
		return fmt.Errorf("it needs %d bytes of free space, there are %d: %w", fi.Size()+spareRoom, left, ErrFull)
	}
	return nil
}

// verify reads a snapshot whole: its pages, its records' checksums, and how
// records, indexes and counters fit.
func verify(path string) error {
	problems, err := inspect(path)
	if err != nil {
		return fmt.Errorf("checking it: %w", err)
	}
	if len(problems) > 0 {
		return fmt.Errorf("checking it: %d problems, the first: %s: %w", len(problems), problems[0], ErrDamaged)
	}
	return nil
}

// copyChunk is how much is read and written at once, in bytes.
const copyChunk = 256 << 10

// syncEvery is how much is written before it is synced: a disk that has to
// write all of it at once would keep the commits waiting.
const syncEvery = 4 << 20

// copyTo writes the store's pages to a file.
func (s *Store) copyTo(ctx context.Context, out *os.File, rate int64) error {
	in, err := os.Open(s.path)
	if err != nil {
		return err
	}
	defer func() { _ = in.Close() }()
	c := &pageCopy{out: out, seed: maphash.MakeSeed(), page: int64(s.db.Info().PageSize)}
	if err := c.rough(ctx, in, rate); err != nil {
		return err
	}
	size := int64(0)
	err = guarded(func() error {
		return s.db.View(func(tx *bolt.Tx) error {
			size = tx.Size()
			_, err := tx.WriteTo(c)
			return err
		})
	})
	if isFileDamage(err) {
		s.fail(err)
	}
	if err != nil {
		return err
	}
	return out.Truncate(size)
}

// pageCopy remembers what it has written of each page, to write only what is
// different the second time.
type pageCopy struct {
	out  *os.File
	seed maphash.Seed
	page int64
	sums []uint64 // of the pages as they stand in out
	at   int64    // where the second pass is
	rest []byte   // of a page that came in parts
}

// rough copies the pages as they come.
func (c *pageCopy) rough(ctx context.Context, in io.ReaderAt, rate int64) error {
	buf, began := make([]byte, copyChunk), time.Now()
	for at := int64(0); ; at += copyChunk {
		if err := ctx.Err(); err != nil {
			return err
		}
		n, err := in.ReadAt(buf, at)
		n -= n % int(c.page)
		if n > 0 {
			if _, werr := c.out.WriteAt(buf[:n], at); werr != nil {
				return werr
			}
		}
		for off := 0; off < n; off += int(c.page) {
			c.sums = append(c.sums, maphash.Bytes(c.seed, buf[off:off+int(c.page)]))
		}
		if (at+copyChunk)%syncEvery == 0 {
			if serr := c.out.Sync(); serr != nil {
				return serr
			}
		}
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		}
		if err := pace(ctx, began, at+copyChunk, rate); err != nil {
			return err
		}
	}
}

// pace waits until what has been written fits the rate.
func pace(ctx context.Context, began time.Time, written, rate int64) error {
	if rate <= 0 {
		return nil
	}
	ahead := time.Duration(float64(written)/float64(rate)*float64(time.Second)) - time.Since(began)
	if ahead <= 0 {
		return nil
	}
	wait := time.NewTimer(ahead)
	defer wait.Stop()
	select {
	case <-wait.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Write takes the pages of the second pass in order.
func (c *pageCopy) Write(b []byte) (int, error) {
	n := len(b)
	if len(c.rest) > 0 {
		b = append(c.rest, b...)
	}
	for int64(len(b)) >= c.page {
		if err := c.correct(b[:c.page]); err != nil {
			return 0, err
		}
		b = b[c.page:]
	}
	c.rest = slices.Clone(b)
	return n, nil
}

func (c *pageCopy) correct(page []byte) error {
	i := c.at / c.page
	at := c.at
	c.at += c.page
	if i < int64(len(c.sums)) && c.sums[i] == maphash.Bytes(c.seed, page) {
		return nil
	}
	_, err := c.out.WriteAt(page, at)
	return err
}
