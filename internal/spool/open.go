package spool

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"time"

	bolt "go.etcd.io/bbolt"
)

// What a start does about a file that can't be used.
const (
	OnDamageSnapshot = "snapshot" // take the last good snapshot, or an empty spool, into use, fenced
	OnDamageStop     = "stop"     // refuse to start
)

// files works on the store's file while nobody has it open. Each of its steps
// leaves something behind that the next start can go on from: a new file is
// made whole under another name and takes the place of the old one by a rename.
type files struct {
	path      string
	snapshots string
	onDamage  string
	log       *slog.Logger
	hook      func(step string)
	progress  func(what string)

	found finding // of the last look
}

func newFiles(o Options, log *slog.Logger) *files {
	f := &files{path: o.Path, snapshots: o.Snapshots, onDamage: o.OnDamage, log: log, hook: o.hook, progress: o.Progress}
	if f.snapshots == "" {
		f.snapshots = filepath.Join(filepath.Dir(o.Path), "snapshots")
	}
	if f.hook == nil {
		f.hook = func(string) {}
	}
	if f.progress == nil {
		f.progress = func(string) {}
	}
	return f
}

// tmp is where a new file grows. Whatever is found there at a start is half
// made and goes.
func (f *files) tmp() string { return f.path + ".new" }

// takeFolder makes the store's folder, refuses one that can't carry a spool,
// and takes its lock.
func takeFolder(ctx context.Context, path string, log *slog.Logger) (*lockFile, error) {
	dir := filepath.Dir(path)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, explainFile(fmt.Errorf("making the folder of spool %q: %w", path, err))
	}
	if err := checkFileSystem(ctx, dir, log); err != nil {
		return nil, err
	}
	lock, err := lockStore(ctx, path)
	return lock, explainFile(err)
}

// openFile makes the file usable, whatever the last process left behind, and
// maps it.
func (s *Store) openFile(ctx context.Context, o Options) error {
	s.trouble.ended = make(chan struct{})
	f := newFiles(o, s.log)
	s.past.files = f
	f.tidy(ctx)
	if err := f.ready(ctx); err != nil {
		return err
	}
	err := s.mapFile(ctx, o)
	if !isFileDamage(err) {
		return err
	}
	// What a look at a big file's small buckets doesn't show. Once: the file that
	// takes its place is refused when it is no better.
	if err := f.damaged(ctx, err); err != nil {
		return err
	}
	if err := f.look(ctx); err != nil {
		return err
	}
	return s.mapFile(ctx, o)
}

func isFileDamage(err error) bool {
	_, ok := errors.AsType[*DamageError](err)
	return ok
}

// ready leaves a file that can be mapped: it is made when there is none, and
// replaced, or refused, when it is damaged.
func (f *files) ready(ctx context.Context) error {
	fi, err := os.Stat(f.path)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return f.create(ctx)
	case err != nil:
		return fmt.Errorf("opening spool %q: %w", f.path, err)
	case !fi.Mode().IsRegular():
		return fmt.Errorf("opening spool %q: it is no file (%s): %w", f.path, fi.Mode().Type(), ErrForeign)
	}
	err = f.look(ctx)
	if !isFileDamage(err) {
		return err
	}
	if err := f.damaged(ctx, err); err != nil {
		return err
	}
	return f.look(ctx)
}

// maxSuspicions is how many runs in a row may end by damage that a look at the
// whole file doesn't find.
const maxSuspicions = 3

// look examines the file and brings it into the form of this program.
func (f *files) look(ctx context.Context) error {
	runs := suspicions(f.path)
	if runs > 0 {
		f.progress("looking at the whole spool")
	}
	found, err := examine(f.path, runs > 0)
	switch {
	case errors.Is(err, ErrNewer):
		return f.newer(found.version)
	case err != nil:
		return err
	}
	f.found = found
	switch {
	case runs >= maxSuspicions:
		return fmt.Errorf("spool %q: %d runs in a row have ended by damage (%s), yet the whole file looks right: the card or the memory may be failing; tgspool db check looks again and lets the next start go on: %w",
			f.path, runs, suspicion(f.path), ErrDamaged)
	case runs > 0:
		f.log.LogAttrs(ctx, slog.LevelWarn, "the last run ended by damage, yet the whole file looks right; going on", slog.String("path", f.path))
	}
	if found.bad > 0 {
		f.log.LogAttrs(ctx, slog.LevelError, "records of the spool are damaged; each is set aside when it is met",
			slog.Int("count", found.bad), slog.String("path", f.path))
	}
	if err := f.migrate(ctx, found.version); err != nil {
		return err
	}
	if found.doubt {
		return f.doubt(ctx)
	}
	return f.compactIfWorthwhile(ctx, found)
}

// create makes a store where there is none.
func (f *files) create(ctx context.Context) error {
	if list := Snapshots(f.snapshots); len(list) > 0 {
		f.log.LogAttrs(ctx, slog.LevelWarn, "there is no spool, yet there are snapshots of one; beginning with an empty spool (to go back: tgspool db restore)",
			slog.String("path", f.path), slog.String("snapshot", list[0].Path))
	}
	if err := makeFile(f.tmp()); err != nil {
		return fmt.Errorf("making spool %q: %w", f.path, err)
	}
	f.hook("made")
	if err := moveInto(f.tmp(), f.path); err != nil {
		return fmt.Errorf("making spool %q: %w", f.path, err)
	}
	return nil
}

// tidy removes what a process that was killed has left half made.
func (f *files) tidy(ctx context.Context) {
	list := []string{f.tmp()}
	for _, pattern := range []string{f.path + ".v*.new", filepath.Join(f.snapshots, "*.db.new")} {
		found, _ := filepath.Glob(pattern) // the patterns are ours: they are well formed
		list = append(list, found...)
	}
	for _, name := range list {
		if err := os.Remove(name); err == nil {
			f.log.LogAttrs(ctx, slog.LevelInfo, "removed a file that was left half made", slog.String("path", name))
		}
	}
}

// moveInto gives a file that is whole and synced its final name.
func moveInto(from, to string) error {
	if err := os.Rename(from, to); err != nil {
		return err
	}
	return syncDir(filepath.Dir(to))
}

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// copyFile makes a synced copy of a file.
func copyFile(ctx context.Context, from, to string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer func() { _ = in.Close() }()
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	for err == nil && ctx.Err() == nil {
		_, err = io.CopyN(out, in, 4<<20)
	}
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return errors.Join(err, ctx.Err(), out.Sync(), out.Close())
}

func boltOptions(maxSize int64) *bolt.Options {
	return &bolt.Options{
		Timeout:        2 * time.Second, // spool.lock is ours already: a holder here is a stranger
		NoFreelistSync: true,            // a synced list costs a page in every commit
		FreelistType:   bolt.FreelistMapType,
		PageSize:       4096, // also where the kernel's are bigger: less to write, and files move between boards
		MaxSize:        int(maxSize),
	}
}

// makeFile makes an empty store, made whole under this name: a power cut during
// the very first write must not leave a half file behind as the store.
func makeFile(path string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	db, err := bolt.Open(path, 0o600, boltOptions(defaultMaxSize))
	if err != nil {
		return err
	}
	err = db.Update(func(tx *bolt.Tx) error {
		for _, name := range allBuckets() {
			if _, err := tx.CreateBucketIfNotExists(name); err != nil {
				return err
			}
		}
		return tx.Bucket(bMeta).Put(kSchema, u64bytes(schemaVersion))
	})
	return errors.Join(err, db.Close())
}

// withFile changes a file that isn't in use, in one transaction.
func withFile(path string, fn func(tx *bolt.Tx) error) error {
	return guarded(func() error {
		db, err := bolt.Open(path, 0o600, boltOptions(0))
		if err != nil {
			return err
		}
		return errors.Join(db.Update(fn), db.Close())
	})
}

// growBy is by how many bytes the file grows at once: each growth costs a flush,
// and on a small card a big one is space that others could have.
const growBy = 4 << 20

// mapFile opens the file for good, reads what is kept in memory, and ends what
// a restore or a repair has begun.
func (s *Store) mapFile(ctx context.Context, o Options) error {
	maxSize := o.MaxSize
	if maxSize <= 0 {
		maxSize = defaultMaxSize
	}
	err := guarded(func() (err error) {
		if s.db, err = bolt.Open(s.path, 0o600, boltOptions(maxSize+drainRoom)); err == nil {
			s.db.AllocSize = growBy
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("opening spool %q: %w", s.path, err)
	}
	err = guarded(func() error {
		if err := errors.Join(s.addPulls(), s.addSessions()); err != nil {
			return err
		}
		if err := s.load(); err != nil {
			return err
		}
		if err := s.startClock(o); err != nil {
			return err
		}
		if err := s.readBusy(); err != nil {
			return err
		}
		if err := s.endRecovery(ctx); err != nil {
			return err
		}
		return s.repairAstray(ctx)
	})
	if err == nil {
		return nil
	}
	s.all, s.bots = nil, map[string]*Bot{}
	if isFileDamage(err) {
		// A transaction may stand open for ever; what is mapped stays mapped until
		// the process ends. The lock on it is given up with the file's place.
		return fmt.Errorf("opening spool %q: %w", s.path, err)
	}
	return errors.Join(fmt.Errorf("opening spool %q: %w", s.path, err), s.db.Close())
}

// maxIDGap is further than ids run ahead of the jobs that are kept.
const maxIDGap = 1 << 40

// lastJob returns the highest id of a job that is there. Ids rise in each bot's
// part of a bucket.
func lastJob(tx *bolt.Tx) (last int64) {
	note := func(bucket []byte, prefix key) {
		c := tx.Bucket(bucket).Cursor()
		k, _ := c.Seek(slices.Concat(prefix, u64bytes(1<<64-1)))
		if k == nil {
			k, _ = c.Last()
		} else {
			k, _ = c.Prev()
		}
		if n := len(prefix); len(k) == n+8 && bytes.Equal(k[:n], prefix) {
			last = max(last, int64(u64at(k, n)))
		}
	}
	_ = tx.Bucket(bBots).ForEach(func(k, _ []byte) error { // fn never fails
		if len(k) != 2 {
			return nil // damage, and found by who reads it
		}
		bot := u16at(k, 0)
		note(bLive, botKey(bot))
		for _, state := range States() {
			note(bParked, newKey(11).u16(bot).u8(state.code()))
			note(bEnded, newKey(11).u16(bot).u8(state.code()))
		}
		return nil
	})
	return last
}

// load reads the few numbers that the writer keeps.
func (s *Store) load() error {
	return s.db.View(func(tx *bolt.Tx) error {
		meta := tx.Bucket(bMeta)
		if v := meta.Get(kNextJob); len(v) == 8 {
			s.nextJob = int64(binary.BigEndian.Uint64(v))
		}
		// The number has no checksum: a flipped bit must not give an id twice, nor
		// one that is no number of JavaScript's.
		if last := lastJob(tx); s.nextJob < last || s.nextJob-last > maxIDGap {
			s.log.Error("the last job's number is damaged; counting on from the jobs that are there",
				slog.Int64("job_id", last))
			s.nextJob = last + idJump
		}
		if err := s.past.load(meta.Get(kRecovery)); err != nil {
			return err
		}
		return tx.Bucket(bBots).ForEach(func(k, v []byte) error {
			rec, err := decode[botRec](slices.Clone(key(k)), v)
			if err != nil {
				return damagef("a bot's record: %w", err)
			}
			rec.normalize()
			s.adopt(newBot(s, u16at(k, 0), *rec))
			return nil
		})
	})
}
