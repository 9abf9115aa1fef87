package spool

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strconv"

	bolt "go.etcd.io/bbolt"
)

// migration brings a file from one version to the next, in one transaction.
// What it does must stay as it is for ever: files of all versions come by.
type migration func(tx *bolt.Tx) error

// migrations holds the way from version i+1 to i+2 at place i.
func migrations() []migration { return []migration{} }

// migrate brings the store's file to this program's version. A copy of it as it
// was is kept, for those who go back to the older program.
func (f *files) migrate(ctx context.Context, version uint64) error {
	if version >= schemaVersion {
		return nil
	}
	return f.migrateBy(ctx, version, migrations())
}

func (f *files) migrateBy(ctx context.Context, version uint64, list []migration) error {
	kept := f.path + ".v" + strconv.FormatUint(version, 10)
	f.progress("keeping a copy of the spool before it is migrated")
	if err := copyFile(ctx, f.path, kept+".new"); err != nil {
		return errors.Join(fmt.Errorf("keeping a copy of spool %q before its migration: %w", f.path, err), os.Remove(kept+".new"))
	}
	f.hook("copied")
	// If we stop before the migration is over, the next start copies again: up to
	// its commit the file is still what it was.
	if err := moveInto(kept+".new", kept); err != nil {
		return fmt.Errorf("keeping a copy of spool %q before its migration: %w", f.path, err)
	}
	f.hook("kept")
	if err := migrateWith(f.path, version, list, f.hook); err != nil {
		return fmt.Errorf("migrating spool %q from version %d: %w; the copy from before is %s", f.path, version, err, kept)
	}
	f.log.LogAttrs(ctx, slog.LevelInfo, "the spool's file was brought to a new version",
		slog.Int("version", len(list)+1), slog.String("path", f.path), slog.String("moved_to", kept))
	return nil
}

// migrateFile brings a file that isn't the store's to this program's version.
func migrateFile(path string, version uint64) error {
	return migrateWith(path, version, migrations(), func(string) {})
}

// migrateWith runs the migrations behind version. A file is between two of them
// at worst, which is a version like any other.
func migrateWith(path string, version uint64, list []migration, hook func(string)) error {
	for v := version; v < uint64(len(list))+1; v++ {
		err := withFile(path, func(tx *bolt.Tx) error {
			if err := list[v-1](tx); err != nil {
				return err
			}
			return tx.Bucket(bMeta).Put(kSchema, u64bytes(v+1))
		})
		if err != nil {
			return fmt.Errorf("going to version %d: %w", v+1, err)
		}
		hook("migrated")
	}
	return nil
}
