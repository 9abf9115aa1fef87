package spool

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"

	bolt "go.etcd.io/bbolt"
)

// compactFrom is the size in bytes from which a start compacts a file of which
// more than half is free.
const compactFrom = 64 << 20

// spareRoom is what a copy leaves free on the disk, in bytes.
const spareRoom = 16 << 20

// Compacted tells the sizes of the file in bytes, before and after.
type Compacted struct{ Before, After int64 }

// Compact writes the store's file anew without the pages that are free. No
// daemon may run: it fails with ErrLocked. If it is cut off, the old file is
// still in its place.
func Compact(ctx context.Context, o Options) (c Compacted, err error) {
	err = offline(ctx, o, func(f *files) error {
		found, err := examine(f.path, true)
		if err != nil {
			return err
		}
		if err := f.migrate(ctx, found.version); err != nil {
			return err
		}
		c.Before = found.size
		if err := f.compact(ctx, found); err != nil {
			return err
		}
		fi, err := os.Stat(f.path)
		if err == nil {
			c.After = fi.Size()
		}
		return err
	})
	return c, err
}

// offline runs fn on a store that nobody has open.
func offline(ctx context.Context, o Options, fn func(*files) error) error {
	log := o.Logger
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	f := newFiles(o, log)
	if _, err := os.Stat(f.path); err != nil {
		return fmt.Errorf("opening spool %q: %w", f.path, err)
	}
	lock, err := takeFolder(ctx, f.path, log)
	if err != nil {
		return err
	}
	defer lock.release()
	f.tidy(ctx)
	return explainFile(fn(f))
}

// compactIfWorthwhile is the start's own compaction. It is no reason not to
// start when it fails.
func (f *files) compactIfWorthwhile(ctx context.Context, found finding) error {
	if found.size <= compactFrom || int64(found.free)*found.page*2 <= found.size {
		return nil
	}
	err := f.compact(ctx, found)
	if err != nil && ctx.Err() == nil {
		f.log.LogAttrs(ctx, slog.LevelWarn, "more than half of the spool's file is free, but it could not be compacted", slog.Any("err", err))
		return nil
	}
	return err
}

func (f *files) compact(ctx context.Context, found finding) error {
	f.progress("compacting the spool")
	need := found.size - int64(found.free)*found.page + spareRoom
	if left, err := freeSpace(filepath.Dir(f.path)); err == nil && left < need {
		return fmt.Errorf("compacting spool %q: it needs %d bytes of free space, there are %d: %w", f.path, need, left, ErrFull)
	}
	err := guarded(func() error { return f.copyRecords(ctx) })
	if err != nil {
		return errors.Join(fmt.Errorf("compacting spool %q: %w", f.path, err), os.Remove(f.tmp()))
	}
	f.hook("compacted")
	if _, err := examine(f.tmp(), true); err != nil {
		return fmt.Errorf("compacting spool %q: checking the new file: %w", f.path, err)
	}
	// If we stop before the rename, the next start removes the copy.
	if err := moveInto(f.tmp(), f.path); err != nil {
		return fmt.Errorf("compacting spool %q: %w", f.path, err)
	}
	f.hook("moved")
	if fi, err := os.Stat(f.path); err == nil {
		f.log.LogAttrs(ctx, slog.LevelInfo, "the spool's file was compacted", slog.String("path", f.path), slog.Int64("size", fi.Size()))
	}
	return nil
}

// copyRecords writes all records into a new file, in bounded transactions that
// reach the disk together at the end: nobody uses the file before.
func (f *files) copyRecords(ctx context.Context) error {
	from, err := bolt.Open(f.path, 0o600, boltOptions(0))
	if err != nil {
		return err
	}
	o := boltOptions(0)
	o.NoSync = true
	to, err := bolt.Open(f.tmp(), 0o600, o)
	if err != nil {
		return errors.Join(err, from.Close())
	}
	err = from.View(func(tx *bolt.Tx) error {
		return tx.ForEach(func(name []byte, b *bolt.Bucket) error {
			f.progress("compacting the spool")
			return copyBucket(ctx, to, name, b)
		})
	})
	if err == nil {
		err = to.Sync()
	}
	return errors.Join(err, to.Close(), from.Close())
}

// copyBucket copies a bucket; its pages are left with a little room, so that
// the first changes don't split every one of them.
func copyBucket(ctx context.Context, to *bolt.DB, name []byte, from *bolt.Bucket) error {
	c := from.Cursor()
	k, v := c.First()
	for first := true; k != nil || first; first = false {
		if err := ctx.Err(); err != nil {
			return err
		}
		err := to.Update(func(tx *bolt.Tx) error {
			b, err := tx.CreateBucketIfNotExists(name)
			if err != nil {
				return err
			}
			b.FillPercent = 0.9
			for size := 0; k != nil && size < maxBatchBytes; k, v = c.Next() {
				if err := b.Put(k, v); err != nil {
					return err
				}
				size += len(k) + len(v)
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}
