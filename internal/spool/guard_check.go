package spool

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strings"
	"time"

	bolt "go.etcd.io/bbolt"
)

// CheckFile looks at every page, record, index and counter of a store that
// nobody has open, and returns what doesn't fit, nothing when all is well. It
// fails with a DamageError when the file can't be used at all, and with
// ErrLocked while a daemon runs. It changes nothing but the note that a run has
// ended by damage, which goes when all is well.
func CheckFile(ctx context.Context, o Options) (problems []string, err error) {
	err = offline(ctx, o, func(f *files) error {
		if problems, err = inspect(f.path); err == nil && len(problems) == 0 {
			_ = os.Remove(suspicion(f.path)) // there is none as a rule
		}
		return err
	})
	return problems, err
}

// Repair makes indexes and counters of a store that nobody has open again from
// its records. Damaged records are set aside; jobs of which nothing says
// whether they were sent are held. A copy of the old file is kept.
func Repair(ctx context.Context, o Options) (Recovery, error) {
	var kept string
	err := offline(ctx, o, func(f *files) error {
		found, err := examine(f.path, true)
		if err != nil {
			return err
		}
		if err := f.finishRecovery(ctx, o); err != nil {
			return err
		}
		kept = f.asideName("unrepaired")
		if err := copyFile(ctx, f.path, kept); err != nil {
			return fmt.Errorf("keeping a copy of spool %q: %w", f.path, err)
		}
		if err := f.migrate(ctx, found.version); err != nil {
			return err
		}
		rec := &recoveryRec{Kind: kindRepair, Reason: "repaired by hand", At: time.Now().UnixNano(), MovedTo: kept}
		return withFile(f.path, func(tx *bolt.Tx) error {
			return tx.Bucket(bMeta).Put(kRecovery, encode(kRecovery, rec))
		})
	})
	if err != nil {
		return Recovery{}, err
	}
	s, err := Open(ctx, o)
	if err != nil {
		return Recovery{}, err
	}
	rec := s.past.recovery
	return Recovery{At: instantOf(rec.At), Reason: rec.Reason, MovedTo: kept, Held: rec.Held, Dead: rec.Dead}, s.Close()
}

// finishRecovery ends a restore that was cut off: a repair in its place would
// let go out what its fence has yet to hold.
func (f *files) finishRecovery(ctx context.Context, o Options) error {
	s := &Store{path: f.path, log: f.log, bots: map[string]*Bot{}}
	s.trouble.ended = make(chan struct{})
	s.past.files = f
	if err := s.mapFile(ctx, o); err != nil {
		return err
	}
	return s.db.Close()
}

// inspect checks a file that nobody changes.
func inspect(path string) (problems []string, err error) {
	found, err := examine(path, true)
	if err != nil {
		return nil, err
	}
	if found.doubt {
		problems = append(problems, "one of the file's two heads is damaged: the last change may be missing")
	}
	if found.version != schemaVersion {
		return append(problems, fmt.Sprintf("the file has version %d; the next start brings it to %d", found.version, schemaVersion)), nil
	}
	more, err := compare(path)
	more = slices.DeleteFunc(more, func(p string) bool { return strings.HasPrefix(p, setAsideNote) })
	return append(problems, more...), err
}

// compare opens a file for reading and compares its records with its indexes.
func compare(path string) (problems []string, err error) {
	s := &Store{path: path, log: slog.New(slog.DiscardHandler), bots: map[string]*Bot{}}
	s.trouble.ended = make(chan struct{})
	err = guarded(func() (err error) {
		o := boltOptions(0)
		o.ReadOnly = true
		if s.db, err = bolt.Open(path, 0o600, o); err != nil {
			return err
		}
		if err := s.load(); err != nil {
			return errors.Join(err, s.db.Close())
		}
		if err := s.startClock(Options{}); err != nil {
			return errors.Join(err, s.db.Close())
		}
		problems, err = s.Check()
		return errors.Join(err, s.db.Close())
	})
	return problems, err
}
