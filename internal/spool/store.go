package spool

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"

	bolt "go.etcd.io/bbolt"
)

// Keep is how long records are kept after their end. A zero value means the
// default: 72 h for Done (cancelled and expired jobs too) and Handled (ignored
// and expired updates too), 30 days for Dead of both kinds.
type Keep struct {
	Done, Handled, Dead time.Duration
}

// Options are what Open needs to know. Only Path is required.
type Options struct {
	Path   string       // the store's file; its folder is made when missing
	Logger *slog.Logger // nil: silent
	Keep   Keep
	// KeepSize bounds what ended records take, in bytes; 0: 256 MiB. The oldest
	// go first, however young they are.
	KeepSize int64
	// MaxSize bounds the file in bytes; 0: 1 GiB, 256 MiB where an address has
	// 32 bits. At the limit nothing new is taken, what is there drains.
	MaxSize int64
	// Clock is where time comes from; nil: the process' own clock, which the
	// daemon replaces by SystemClock.
	Clock Clock
	// Built is the moment before which no right clock can be; zero: none.
	Built time.Time
}

// Store is an open spool. Its methods may be called from any goroutine.
type Store struct {
	path     string
	db       *bolt.DB
	lock     *lockFile
	log      *slog.Logger
	clock    *timeline
	keep     Keep
	keepSize int64

	ops     chan *op      // transitions on their way to the writer
	kicks   chan struct{} // some bot's gate may have opened
	stop    chan struct{} // closed by Close
	stopped chan struct{} // closed when the writer has ended
	closing sync.Once

	health health

	mu      sync.RWMutex
	bots    map[string]*Bot // by name
	watches map[int64][]chan struct{}

	// The writer goroutine alone uses these.
	all       []*Bot
	nextJob   int64
	leaseSeed uint64
	nextSweep int64
	room      room
	failures  int // commits that have failed in a row
	disk      disk
}

// Open opens the store at o.Path, makes it when it isn't there, and starts its
// writer. It fails with ErrLocked when another process has it open, and with
// ErrNewer when a newer program wrote it.
func Open(ctx context.Context, o Options) (*Store, error) {
	s := &Store{
		path: o.Path, log: o.Logger, keep: o.Keep,
		ops: make(chan *op), kicks: make(chan struct{}, 1), stop: make(chan struct{}), stopped: make(chan struct{}),
		bots: map[string]*Bot{}, watches: map[int64][]chan struct{}{},
	}
	if s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	s.keep.Done = orDefault(s.keep.Done, 72*time.Hour)
	s.keep.Handled = orDefault(s.keep.Handled, 72*time.Hour)
	s.keep.Dead = orDefault(s.keep.Dead, 720*time.Hour)
	if s.keepSize = o.KeepSize; s.keepSize <= 0 {
		s.keepSize = 256 << 20
	}
	if err := os.MkdirAll(filepath.Dir(o.Path), 0o700); err != nil {
		return nil, fmt.Errorf("making the folder of spool %q: %w", o.Path, err)
	}
	var err error
	if s.lock, err = lockStore(ctx, o.Path); err != nil {
		return nil, err
	}
	if err := s.openFile(o.MaxSize); err != nil {
		s.lock.release()
		return nil, err
	}
	if err := s.startClock(o); err != nil {
		s.lock.release()
		return nil, errors.Join(err, s.db.Close())
	}
	s.room.limit = o.MaxSize
	if s.room.limit <= 0 {
		s.room.limit = defaultMaxSize
	}
	s.disk = disk{commit: (*bolt.Tx).Commit, free: s.freeBytes}
	s.keepReserve()
	go s.write()
	return s, nil
}

// startClock goes on from the last moment that is on disk.
func (s *Store) startClock(o Options) error {
	sys := o.Clock
	if sys == nil {
		sys = newProcessClock()
	}
	return s.db.View(func(tx *bolt.Tx) error {
		var rec *clockRec
		if v := tx.Bucket(bMeta).Get(kClock); v != nil {
			var err error
			if rec, err = decode[clockRec](kClock, v); err != nil {
				s.reportDamage("clock", err)
				rec = nil // as for a new store: the wall clock is believed
			}
		}
		s.clock = newTimeline(sys, o.Built, s.log, rec)
		return nil
	})
}

func orDefault(d, def time.Duration) time.Duration {
	if d == 0 {
		return def
	}
	return d
}

// Close ends the writer after the transitions that it has already taken, and
// closes the file. Transitions that come later get ErrClosed.
func (s *Store) Close() error {
	s.closing.Do(func() { close(s.stop) })
	<-s.stopped
	err := s.db.Close()
	s.lock.release()
	if err != nil {
		return fmt.Errorf("closing spool %q: %w", s.path, err)
	}
	return nil
}

// Path is the store's file.
func (s *Store) Path() string { return s.path }

// Dir is the folder of the store's file; uploads lie in it.
func (s *Store) Dir() string { return filepath.Dir(s.path) }

// openFile opens the database file, made whole under another name first: a
// power cut during the very first write must not leave a half file behind.
func (s *Store) openFile(maxSize int64) error {
	if maxSize == 0 {
		maxSize = defaultMaxSize
	}
	if _, err := os.Stat(s.path); errors.Is(err, os.ErrNotExist) {
		if err := makeFile(s.path); err != nil {
			return fmt.Errorf("making spool %q: %w", s.path, err)
		}
	}
	db, err := bolt.Open(s.path, 0o600, boltOptions(maxSize))
	if err != nil {
		return fmt.Errorf("opening spool %q: %w", s.path, err)
	}
	s.db = db
	if err := s.load(); err != nil {
		return errors.Join(fmt.Errorf("opening spool %q: %w", s.path, err), db.Close())
	}
	return nil
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

func makeFile(path string) error {
	tmp := path + ".new"
	if err := os.Remove(tmp); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	db, err := bolt.Open(tmp, 0o600, boltOptions(defaultMaxSize))
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
	if err := errors.Join(err, db.Close()); err != nil {
		return err
	}
	// If we stop here, the next start removes the half-made file and begins again.
	if err := os.Rename(tmp, path); err != nil {
		return err
	}
	return syncDir(filepath.Dir(path))
}

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// load checks the version and reads the few numbers that the writer keeps.
func (s *Store) load() error {
	return s.db.View(func(tx *bolt.Tx) error {
		meta := tx.Bucket(bMeta)
		if meta == nil || len(meta.Get(kSchema)) != 8 {
			return fmt.Errorf("this file is not a spool: %w", ErrDamaged)
		}
		if v := binary.BigEndian.Uint64(meta.Get(kSchema)); v > schemaVersion {
			return fmt.Errorf("%w: the file has version %d, this program knows up to %d; install the newer program again", ErrNewer, v, schemaVersion)
		}
		for _, name := range allBuckets() {
			if tx.Bucket(name) == nil {
				return fmt.Errorf("bucket %s is missing: %w", name, ErrDamaged)
			}
		}
		if v := meta.Get(kNextJob); len(v) == 8 {
			s.nextJob = int64(binary.BigEndian.Uint64(v))
		}
		return tx.Bucket(bBots).ForEach(func(k, v []byte) error {
			rec, err := decode[botRec](key(k), v)
			if err != nil {
				return err
			}
			rec.normalize()
			s.adopt(newBot(s, u16at(k, 0), *rec))
			return nil
		})
	})
}

// adopt makes a bot known. The writer's start and the writer itself call it.
func (s *Store) adopt(b *Bot) {
	s.all = append(s.all, b)
	s.mu.Lock()
	s.bots[b.rec.Name] = b
	s.mu.Unlock()
}

// normalize makes room for states that a later version has added.
func (r *botRec) normalize() {
	for len(r.Jobs) < len(States()) {
		r.Jobs = append(r.Jobs, 0)
	}
	for len(r.Updates) < len(UpdateStates()) {
		r.Updates = append(r.Updates, 0)
	}
}

func (s *Store) reportDamage(what string, err error) {
	s.log.Error("a damaged record was set aside", slog.String("reason", what), slog.Any("err", err))
}
