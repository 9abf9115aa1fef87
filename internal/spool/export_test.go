package spool

import (
	"context"
	"log/slog"

	bolt "go.etcd.io/bbolt"
)

// WithHook tells of the named steps of the work on files, so that a test can
// stop at each.
func WithHook(o Options, hook func(step string)) Options {
	o.hook = hook
	return o
}

// Damage changes a store's file behind the back of its writer.
func Damage(s *Store, edit func(*bolt.Tx) error) error { return s.db.Update(edit) }

// SchemaVersion is the version that this program writes.
const SchemaVersion = schemaVersion

// Migrate runs a migration table of a test's own on a store's file.
func Migrate(ctx context.Context, o Options, version uint64, list ...func(*bolt.Tx) error) error {
	all := make([]migration, len(list))
	for i := range list {
		all[i] = list[i]
	}
	return newFiles(o, slog.New(slog.DiscardHandler)).migrateBy(ctx, version, all)
}

// JudgeFS is what is thought of a file system by statfs' number and the type in
// the mount table.
func JudgeFS(magic uint32, mountType string) (name string, refuse, warn bool) {
	v := judgeFS(magic, mountType)
	return v.name, v.refuse, v.say != ""
}

// ExplainFile is what is said about an error of the operating system.
var ExplainFile = explainFile

// WholeUpTo is the size up to which a file is looked at as a whole.
const WholeUpTo = wholeUpTo

// CheckPages looks at all pages of a bolt file.
func CheckPages(path string) error {
	p, err := openPages(path)
	if err != nil {
		return err
	}
	defer p.close()
	return p.walk(&walker{})
}
