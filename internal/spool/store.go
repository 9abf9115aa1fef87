package spool

import (
	"context"
	"fmt"
	"log/slog"
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
	// OnDamage is what a start does about a file that can't be used: OnDamageStop
	// (also when empty) or OnDamageSnapshot.
	OnDamage string
	// Snapshots is the folder of the snapshots; empty: snapshots beside the store.
	Snapshots string
	// Observer is told what the writer does; nil: nobody.
	Observer Observer
	// Progress is told what takes long during Open, again and again while it
	// lasts. May be nil.
	Progress func(what string)

	hook func(step string) // told the steps that a test may stop at
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
	observer Observer

	ops     chan *op      // transitions on their way to the writer
	kicks   chan struct{} // some bot's gate may have opened
	stop    chan struct{} // closed by Close
	stopped chan struct{} // closed when the writer has ended
	closing sync.Once

	health  health
	trouble trouble
	feeds   feeds
	past    past // what has been recovered, and the snapshots

	mu      sync.RWMutex
	bots    map[string]*Bot // by name
	watches map[int64][]chan struct{}
	// foretold are the ends that are on their way to disk, by job.
	foretold map[int64]*foretold
	callers  map[int64]int // who waits for an answer, by job

	// The writer goroutine alone uses these.
	all       []*Bot
	nextJob   int64
	leaseSeed uint64
	nextSweep int64
	loose     loose
	room      room
	failures  int // commits that have failed in a row
	disk      disk
}

// Open opens the store at o.Path, makes it when it isn't there, and starts its
// writer. It fails with ErrLocked when another process has it open, and with
// ErrNewer when a newer program wrote it.
func Open(ctx context.Context, o Options) (*Store, error) {
	s := &Store{
		path: o.Path, log: o.Logger, keep: o.Keep, observer: o.Observer,
		ops: make(chan *op), kicks: make(chan struct{}, 1), stop: make(chan struct{}), stopped: make(chan struct{}),
		bots: map[string]*Bot{}, watches: map[int64][]chan struct{}{}, foretold: map[int64]*foretold{}, callers: map[int64]int{},
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
	var err error
	if s.lock, err = takeFolder(ctx, o.Path, s.log); err != nil {
		return nil, err
	}
	if err := s.openFile(ctx, o); err != nil {
		s.lock.release()
		return nil, explainFile(err)
	}
	s.room.limit = o.MaxSize
	if s.room.limit <= 0 {
		s.room.limit = defaultMaxSize
	}
	s.disk = disk{commit: (*bolt.Tx).Commit, free: s.freeBytes}
	s.keepReserve()
	go s.keepWriting()
	go s.lookAround(context.WithoutCancel(ctx))
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
	err := s.closeFile()
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
