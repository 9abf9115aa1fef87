package spool

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	bolt "go.etcd.io/bbolt"
)

// Recovery is what a start has done about a file that couldn't be used, or a
// person by a restore.
type Recovery struct {
	At         time.Time  `json:"at"`
	Reason     string     `json:"reason"`      // what was wrong
	MovedTo    string     `json:"moved_to"`    // where the old file is kept; empty when it is still in use
	Snapshot   string     `json:"snapshot"`    // what has taken its place; empty: an empty spool
	SnapshotAt *time.Time `json:"snapshot_at"` // null when unknown
	Held       int64      `json:"held"`        // jobs held because they may have been sent since
	Dead       int64      `json:"dead"`        // updates that were open
}

// Recovered tells of the last restore of this store, by a start or a person;
// false when there has been none. It is kept in the store.
func (s *Store) Recovered() (Recovery, bool) {
	r := s.past.recovery
	if r == nil || r.Kind != kindRestore {
		return Recovery{}, false
	}
	out := Recovery{At: instantOf(r.At), Reason: r.Reason, MovedTo: r.MovedTo, Snapshot: r.Snapshot, Held: r.Held, Dead: r.Dead}
	if r.SnapshotAt != 0 {
		at := instantOf(r.SnapshotAt)
		out.SnapshotAt = &at
	}
	return out, true
}

// past is what a store knows of its own files.
type past struct {
	files    *files
	recovery *recoveryRec
	copying  sync.Mutex // held while a snapshot is made
}

// The kinds of recovery.
const (
	kindRestore = "restore" // the file is older than what may have been sent: it is fenced
	kindRepair  = "repair"  // indexes and counters are made again from the records
)

// kRecovery holds the last recovery. While it isn't over, each start goes on
// with it before anything else: if we stop in between, nothing is sent.
var kRecovery = []byte("recovery")

type recoveryRec struct {
	Kind       string `cbor:"1,keyasint"`
	Reason     string `cbor:"2,keyasint"`
	At         int64  `cbor:"3,keyasint"` // Unix nanoseconds
	MovedTo    string `cbor:"4,keyasint,omitempty"`
	Snapshot   string `cbor:"5,keyasint,omitempty"`
	SnapshotAt int64  `cbor:"6,keyasint,omitempty"` // Unix nanoseconds
	Held       int64  `cbor:"7,keyasint,omitempty"`
	Dead       int64  `cbor:"8,keyasint,omitempty"`
	Step       int    `cbor:"9,keyasint,omitempty"`  // of its transactions, the next one
	After      []byte `cbor:"10,keyasint,omitempty"` // within the step: the last key that was done
	Over       bool   `cbor:"11,keyasint,omitempty"`
	Blind      bool   `cbor:"12,keyasint,omitempty"` // nothing is known of what bots had taken in
}

// fenceForNew is the fence of a bot that a blind restore meets: as long as
// Telegram keeps updates (24 h), it may hand over some that the lost file had
// taken in.
func (p *past) fenceForNew() int64 {
	if r := p.recovery; r != nil && r.Blind && time.Now().UnixNano() < r.At+int64(24*time.Hour) {
		return math.MaxInt64
	}
	return 0
}

func (p *past) load(stored []byte) error {
	p.recovery = nil
	if stored == nil {
		return nil
	}
	rec, err := decode[recoveryRec](kRecovery, stored)
	if err != nil {
		// Whether the fence is complete can't be told: the file is not to be used.
		return damagef("the record of a restore: %w", err)
	}
	p.recovery = rec
	return nil
}

// damaged puts a good file in the place of one that can't be used. The old one
// is kept, whatever happens.
func (f *files) damaged(ctx context.Context, damage error) error {
	if f.onDamage == OnDamageStop {
		return f.refuse(damage)
	}
	f.log.LogAttrs(ctx, slog.LevelError, "the spool's file can't be used", slog.String("path", f.path), slog.Any("err", reasonOf(damage)))
	f.progress("restoring the spool from its last good snapshot")
	old := readHints(f.path)
	from, err := f.newestGood(ctx)
	if err != nil {
		return err
	}
	return f.takeInstead(ctx, from, "corrupt", reasonOf(damage).Error(), old)
}

// refuse is the answer where a person is to decide.
func (f *files) refuse(damage error) error {
	what := "; tgspool db check looks at all of it"
	if list := Snapshots(f.snapshots); len(list) > 0 {
		what += "; tgspool db restore " + list[0].Path + " goes back to the last snapshot, holding what may have been sent since"
	} else {
		what += `; on_damage = "snapshot" moves it aside and begins with an empty spool`
	}
	return &DamageError{Path: f.path, Reason: fmt.Errorf("%w%s", reasonOf(damage), what)}
}

// reasonOf is what is wrong with a file, without the file's name.
func reasonOf(damage error) error {
	if d, ok := errors.AsType[*DamageError](damage); ok {
		return d.Reason
	}
	return damage
}

// newer is the answer to a file of a newer program. It is left untouched.
func (f *files) newer(version uint64) error {
	for v := uint64(schemaVersion); v > 0; v-- {
		kept := f.path + ".v" + strconv.FormatUint(v, 10)
		if _, err := os.Stat(kept); err == nil {
			return fmt.Errorf("%w: %q has version %d, this program knows up to %d; install the newer program again, or go back to the copy from before: tgspool db restore %s",
				ErrNewer, f.path, version, schemaVersion, kept)
		}
	}
	return fmt.Errorf("%w: %q has version %d, this program knows up to %d, and there is no copy from before (%s.v%d); install the newer program again",
		ErrNewer, f.path, version, schemaVersion, f.path, schemaVersion)
}

// newestGood finds the youngest snapshot that is whole; "" when there is none.
func (f *files) newestGood(ctx context.Context) (string, error) {
	for _, s := range Snapshots(f.snapshots) {
		if err := ctx.Err(); err != nil {
			return "", err
		}
		found, err := examine(s.Path, true)
		if err == nil && found.bad == 0 && !found.doubt {
			return s.Path, nil
		}
		f.log.LogAttrs(ctx, slog.LevelError, "a snapshot can't be used", slog.String("path", s.Path), slog.Int("count", found.bad), slog.Any("err", err))
	}
	return "", nil
}

// takeInstead makes a fenced file of a snapshot, or of nothing, and puts it in
// the store's place.
func (f *files) takeInstead(ctx context.Context, from, kind, reason string, old *hints) error {
	rec := &recoveryRec{Kind: kindRestore, Reason: reason, At: time.Now().UnixNano(), Snapshot: from, Blind: !old.known}
	if _, err := os.Stat(f.path); err == nil {
		rec.MovedTo = f.asideName(kind)
	}
	if err := f.make(ctx, from, rec, old); err != nil {
		return fmt.Errorf("restoring spool %q: %w", f.path, err)
	}
	f.hook("restored")
	if err := f.swap(rec.MovedTo); err != nil {
		return fmt.Errorf("restoring spool %q: %w", f.path, err)
	}
	f.log.LogAttrs(ctx, slog.LevelError, "another spool is in use now; what may have been sent since is held, updates that were open are dead",
		slog.String("path", f.path), slog.String("snapshot", orElse(from, "none: it is empty")), slog.String("moved_to", rec.MovedTo))
	return nil
}

func orElse(s, other string) string {
	if s == "" {
		return other
	}
	return s
}

// make builds the new file under its temporary name.
func (f *files) make(ctx context.Context, from string, rec *recoveryRec, old *hints) error {
	if from == "" {
		if err := makeFile(f.tmp()); err != nil {
			return err
		}
	} else {
		rec.SnapshotAt = madeAt(from).UnixNano()
		if err := copyFile(ctx, from, f.tmp()); err != nil {
			return err
		}
		found, err := examine(f.tmp(), true)
		if err != nil {
			return err
		}
		if err := migrateFile(f.tmp(), found.version); err != nil {
			return err
		}
	}
	return withFile(f.tmp(), func(tx *bolt.Tx) error {
		if err := old.merge(tx, from == ""); err != nil {
			return err
		}
		return tx.Bucket(bMeta).Put(kRecovery, encode(kRecovery, rec))
	})
}

// asideName finds a free name for the old file. A start that was killed after
// it had kept the file finds it kept.
func (f *files) asideName(kind string) string {
	fi, err := os.Stat(f.path)
	kept, _ := filepath.Glob(f.path + "." + kind + "-*")
	for _, name := range kept {
		if other, e := os.Stat(name); err == nil && e == nil && os.SameFile(fi, other) {
			return name
		}
	}
	base := f.path + "." + kind + "-" + time.Now().UTC().Format(stampLayout)
	name := base
	for n := 2; ; n++ {
		if _, err := os.Lstat(name); errors.Is(err, os.ErrNotExist) {
			return name
		}
		name = base + "-" + strconv.Itoa(n)
	}
}

// stampLayout is how moments stand in file names: sortable, UTC.
const stampLayout = "20060102T150405Z"

// swap puts the new file into the store's place and keeps the old one under
// another name. There is no moment without a file in that place: if we stop
// before the rename, the old one is still there and the next start begins again.
func (f *files) swap(aside string) error {
	if aside != "" {
		if err := keepAs(f.path, aside); err != nil {
			return err
		}
	}
	f.hook("kept")
	if err := moveInto(f.tmp(), f.path); err != nil {
		return err
	}
	f.hook("moved")
	if err := os.Remove(suspicion(f.path)); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}

// keepAs gives a file a second name. File systems without hard links move it,
// which leaves the place empty for a moment.
func keepAs(path, name string) error {
	err := os.Link(path, name)
	if errors.Is(err, os.ErrExist) {
		return nil // asideName has found it there: it is the same file
	}
	if err != nil {
		err = os.Rename(path, name)
	}
	if err != nil {
		return err
	}
	return syncDir(filepath.Dir(name))
}

// doubt deals with a file one of whose two heads is unusable. If it was the
// newer one, the last transaction is gone: it may have marked an attempt, whose
// job would now be sent again. All else is there, so that the file stays in use,
// fenced.
func (f *files) doubt(ctx context.Context) error {
	const reason = "one of the file's two heads is damaged: the last change may be missing"
	if f.onDamage == OnDamageStop {
		return damagef(reason)
	}
	f.log.LogAttrs(ctx, slog.LevelError, reason+"; it stays in use, what may have been sent is held", slog.String("path", f.path))
	rec := &recoveryRec{Kind: kindRestore, Reason: reason, At: time.Now().UnixNano()}
	// The transaction writes the damaged head anew: if we stop before it, the
	// next start sees the same.
	return withFile(f.path, func(tx *bolt.Tx) error {
		return tx.Bucket(bMeta).Put(kRecovery, encode(kRecovery, rec))
	})
}

// Restore puts the snapshot at from in the place of the store at o.Path, fenced
// as after damage, and keeps the old file. No daemon may run: it fails with
// ErrLocked. The snapshot stays as it is.
func Restore(ctx context.Context, o Options, from string) (Recovery, error) {
	log := o.Logger
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	if err := restoreFile(ctx, newFiles(o, log), from); err != nil {
		return Recovery{}, err
	}
	// The fence is finished by an open.
	s, err := Open(ctx, o)
	if err != nil {
		return Recovery{}, err
	}
	r, _ := s.Recovered()
	return r, s.Close()
}

func restoreFile(ctx context.Context, f *files, from string) error {
	lock, err := takeFolder(ctx, f.path, f.log)
	if err != nil {
		return err
	}
	defer lock.release()
	f.tidy(ctx)
	found, err := examine(from, true)
	switch {
	case errors.Is(err, ErrNewer):
		return fmt.Errorf("restoring %q: %w: it has version %d, this program knows up to %d", from, ErrNewer, found.version, schemaVersion)
	case err != nil:
		return fmt.Errorf("restoring %q: %w", from, err)
	}
	if same(from, f.path) {
		return fmt.Errorf("restoring %q: it is the store itself: %w", from, ErrInvalid)
	}
	return f.takeInstead(ctx, from, "replaced", "restored by hand", readHints(f.path))
}

func same(a, b string) bool {
	x, err1 := os.Stat(a)
	y, err2 := os.Stat(b)
	return err1 == nil && err2 == nil && os.SameFile(x, y)
}

// madeAt is when a snapshot was made: its name says it, else the file's time.
func madeAt(path string) time.Time {
	name := strings.TrimSuffix(strings.TrimPrefix(filepath.Base(path), snapshotPrefix), snapshotSuffix)
	if at, err := time.Parse(stampLayout, name); err == nil {
		return at
	}
	if fi, err := os.Stat(path); err == nil {
		return fi.ModTime()
	}
	return time.Time{}
}
