package spool

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"slices"
	"sync/atomic"
	"syscall"
	"time"

	bolt "go.etcd.io/bbolt"
	bolterrors "go.etcd.io/bbolt/errors"
)

// Bounds of one transaction: callers that wait are served together, but a
// transaction never keeps more than this in memory.
const (
	maxBatchOps   = 512
	maxBatchBytes = 256 << 10
	maxDue        = 256 // timers handled in one transaction
)

// op is one transition on its way through the writer.
type op struct {
	fn   func(*txn) error
	size int        // bytes that it is about to store
	adds filling    // what it does to the space that is left
	done chan error // buffered: the writer never waits for a caller
	// taken is called once the writer has it: what others hand over from then on
	// comes after it. May be nil.
	taken func()
	told  bool // whoever waits for what it is about has heard already
}

// do hands a transition to the writer and waits until it is on disk. ctx counts
// only until the writer has taken it: from then on it happens, and the caller
// must hear how it went.
func (s *Store) do(ctx context.Context, size int, fn func(*txn) error) error {
	return s.submit(ctx, &op{fn: fn, size: size, adds: ends, done: make(chan error, 1)})
}

// add is do for what grows the store.
func (s *Store) add(ctx context.Context, size int, adds filling, fn func(*txn) error) error {
	return s.submit(ctx, &op{fn: fn, size: size, adds: adds, done: make(chan error, 1)})
}

func (s *Store) submit(ctx context.Context, o *op) error {
	select {
	case s.ops <- o:
	case <-s.stop:
		return ErrClosed
	case <-ctx.Done():
		return ctx.Err()
	}
	if o.taken != nil {
		o.taken()
	}
	select {
	case err := <-o.done:
		return err
	case <-s.stopped:
	}
	select {
	case err := <-o.done:
		return err
	default: // a fault has ended the writer in the middle of it
		return s.gone()
	}
}

// write is the writer goroutine: the only place where the file changes.
func (s *Store) write() {
	alarm := s.clock.sys.NewAlarm()
	defer alarm.Close()
	next := s.run(nil)
	for {
		s.arm(alarm, next)
		select {
		case o := <-s.ops:
			next = s.run(s.gather(o))
		case <-s.kicks:
			for _, b := range s.all {
				b.askAt = 0
			}
			next = s.run(nil)
		case <-alarm.C():
			next = s.run(nil)
		case <-s.stop:
			return
		}
	}
}

// arm sets the alarm to the next thing that waits for a time. With nothing to
// wait for it is off: an idle store does no work.
func (s *Store) arm(alarm Alarm, next int64) {
	if next == 0 {
		alarm.Set(0)
		return
	}
	// Never at once again: whatever kept a due timer from being handled would
	// otherwise spin.
	alarm.Set(max(time.Duration(next-s.clock.now()), time.Millisecond))
}

// gather takes all transitions that wait, up to the bounds. Before it closes the
// batch it lets the callers run who have just been answered: their next ones
// share this commit, too. With nobody else to run that costs nothing. Where all
// have heard already how it went, so that a commit keeps nobody, it stays open
// for a moment: the next call of a caller who has just got his answer shares it.
func (s *Store) gather(first *op) []*op {
	batch, size, told := []*op{first}, first.size, first.told
	for yielded := false; len(batch) < maxBatchOps && size < maxBatchBytes; {
		select {
		case o := <-s.ops:
			batch, size, told = append(batch, o), size+o.size, told && o.told
			yielded = false
			continue
		default:
		}
		if !yielded {
			runtime.Gosched()
			yielded = true
			continue
		}
		if !told {
			return batch
		}
		told = false // no longer than this once
		select {
		case o := <-s.ops:
			batch, size, yielded = append(batch, o), size+o.size, false
		case <-time.After(linger):
		case <-s.stop:
		}
	}
	return batch
}

// linger is how long a commit that keeps nobody waits for others.
const linger = 2 * time.Millisecond

// run puts a batch into one transaction and answers each caller. A transition
// that fails after it has written something (a fault of the program) would
// take its neighbours with it: it is answered and the others run again. So it
// is when the disk is full, where those that add most give way.
func (s *Store) run(batch []*op) (next int64) {
	s.health.since.Store(time.Now().UnixNano())
	defer s.health.since.Store(0)
	batch = s.admit(batch)
	for {
		errs, bad, next, err := s.attempt(batch)
		if bad >= 0 {
			batch[bad].done <- errs[bad]
			batch = append(batch[:bad:bad], batch[bad+1:]...)
			continue
		}
		if errors.Is(err, ErrFull) {
			if rest, again := s.noRoom(batch); again {
				batch = rest
				continue
			}
		}
		for i, o := range batch {
			if err != nil && errs[i] == nil {
				errs[i] = err
			}
			o.done <- errs[i]
		}
		s.tellTrouble(err)
		if err != nil {
			return s.retrySoon(next)
		}
		return next
	}
}

// tellTrouble logs the first failure of a row, and its end.
func (s *Store) tellTrouble(err error) {
	s.health.failing.Store(err != nil)
	switch {
	case err != nil:
		if s.failures++; s.failures == 1 {
			s.log.Error("the store can't be written", slog.Any("err", err))
		}
	case s.failures > 0:
		s.log.Info("the store can be written again", slog.Int("count", s.failures))
		s.failures = 0
	}
}

// retrySoon bounds how often a store that can't be written is tried for the
// sake of timers and waiting workers alone: after 1 s, doubling to 16 s.
func (s *Store) retrySoon(next int64) int64 {
	if next == 0 {
		return 0
	}
	return max(next, s.clock.now()+int64(time.Second)<<min(max(s.failures-1, 0), 4))
}

// attempt runs a batch once. bad is the index of the transition that spoilt
// the transaction, -1 when none did; err is why the commit failed.
func (s *Store) attempt(batch []*op) (errs []error, bad int, next int64, err error) {
	errs = make([]error, len(batch))
	s.clock.look()
	tx, err := s.db.Begin(true)
	if err != nil {
		return errs, -1, s.clock.now(), s.fault(err)
	}
	t := s.begin(tx)
	for i, o := range batch {
		before := t.writes
		errs[i] = t.call(o.fn)
		if errs[i] != nil && t.writes != before {
			t.abandon()
			return errs, i, t.now, nil
		}
	}
	var work error
	next, work = t.work()
	if work != nil {
		t.abandon()
		return errs, -1, t.now, s.fault(work)
	}
	if t.writes == 0 {
		_ = tx.Rollback()
		t.finish()
		return errs, -1, next, nil
	}
	size, id := tx.Size(), tx.ID()
	s.health.syncing.Store(true)
	began := time.Now()
	err = s.disk.commit(tx)
	took := time.Since(began)
	if err != nil && s.stands(id) {
		err = s.confirm(err)
	}
	s.health.syncing.Store(false)
	if err != nil {
		t.abandon()
		return errs, -1, t.now, s.fault(err)
	}
	s.health.commits.Add(1)
	if s.observer != nil { // and one page for the head
		stats := tx.Stats()
		s.observer.Committed(took, stats.GetPageAlloc()+int64(s.db.Info().PageSize))
	}
	s.measure(size)
	t.finish()
	return errs, -1, next, nil
}

// stands reports whether a transaction whose commit has failed is what the file
// says all the same: only the sync of its head has failed. Memory that is put
// back then would give the same ids to others.
func (s *Store) stands(id int) (stands bool) {
	_ = s.db.View(func(tx *bolt.Tx) error { // without a transaction nothing stands
		stands = tx.ID() >= id
		return nil
	})
	return stands
}

// confirm makes a transaction that stands durable: all but its head is synced
// already, so that the next head does it. It goes on until that succeeds or the
// store is closed; then the file is read anew by the next start.
func (s *Store) confirm(cause error) error {
	s.tellTrouble(s.fault(cause))
	for pause := time.Second; ; pause = min(2*pause, 16*time.Second) {
		err := s.db.Update(func(tx *bolt.Tx) error {
			return tx.Bucket(bMeta).Put(kClock, encode(kClock, s.clock.record()))
		})
		if err == nil {
			return nil
		}
		select {
		case <-time.After(pause):
		case <-s.stop:
			return err
		}
	}
}

// call runs one transition; faults of the file come back as errors.
func (t *txn) call(fn func(*txn) error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			f, ok := p.(storeFault)
			if !ok {
				panic(p)
			}
			t.writes++ // whatever it has written must go
			err = t.s.fault(f.err)
		}
	}()
	return fn(t)
}

// work does what time and room allow in the same transaction: due timers,
// retention, and claims for the workers that wait.
func (t *txn) work() (next int64, err error) {
	err = t.call(func(t *txn) error {
		t.fireTimers()
		t.sweep()
		for _, b := range t.s.all {
			t.fill(b)
			t.fillUpdates(b)
		}
		next = t.nextWake()
		t.flush()
		return nil
	})
	return next, err
}

// finish makes the transaction's effects in memory visible.
func (t *txn) finish() {
	for b := range t.bots {
		b.publish()
	}
	for _, fn := range t.after {
		fn()
	}
}

// abandon gives the transaction up and puts memory back to what the file says.
func (t *txn) abandon() {
	_ = t.tx.Rollback()
	for _, undo := range slices.Backward(t.undo) {
		undo()
	}
	for b := range t.bots {
		b.reload()
	}
}

// fault gives an error of the file its meaning.
func (s *Store) fault(err error) error {
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) || errors.Is(err, bolterrors.ErrMaxSizeReached) {
		return fmt.Errorf("%w: %w", ErrFull, err)
	}
	if errors.Is(err, syscall.EROFS) {
		return fmt.Errorf("%w: %w", ErrReadOnly, err)
	}
	if errors.Is(err, bolterrors.ErrDatabaseNotOpen) {
		return ErrClosed
	}
	return fmt.Errorf("writing spool %q: %w", s.path, err)
}

// health is what others may read of the writer while it works.
type health struct {
	full    atomic.Bool  // the last commit failed for want of space
	since   atomic.Int64 // when the present transaction began, Unix nanoseconds; 0: idle
	syncing atomic.Bool  // it waits for the disk
	commits atomic.Int64 // so far
	failing atomic.Bool  // the last transaction couldn't be written
}

// Commits is how many transactions have reached the disk since Open, two
// flushes each.
func (s *Store) Commits() int64 { return s.health.commits.Load() }

// Writable reports whether the last transaction could be written.
func (s *Store) Writable() bool { return !s.health.failing.Load() && !s.health.full.Load() }

// Code never needs long in a transaction, but a flash card may need minutes
// for one flush.
const (
	longestWork = 30 * time.Second
	longestSync = 10 * time.Minute
)

// Healthy reports whether the writer makes progress: it is idle, at work, or
// waits for the disk, each for no longer than it may.
func (s *Store) Healthy() bool {
	since := s.health.since.Load()
	if since == 0 {
		return true
	}
	limit := longestWork
	if s.health.syncing.Load() {
		limit = longestSync
	}
	return time.Since(time.Unix(0, since)) < limit
}
