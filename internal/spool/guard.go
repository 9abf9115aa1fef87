package spool

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"runtime"
	"runtime/debug"
	"strings"
	"sync"
)

// DamageError is an ErrDamaged about the store's file as a whole: it can't be
// used as it is.
type DamageError struct {
	Path   string // "" where the caller knows it
	Reason error
}

// Error names the file and what is wrong with it.
func (e *DamageError) Error() string {
	if e.Path == "" {
		return e.Reason.Error()
	}
	return fmt.Sprintf("spool %q is damaged: %v", e.Path, e.Reason)
}

// Unwrap returns what was found.
func (e *DamageError) Unwrap() error { return e.Reason }

// Is makes every DamageError an ErrDamaged.
func (e *DamageError) Is(target error) bool { return target == ErrDamaged }

// guarded runs fn and turns what a damaged file does to it into a DamageError:
// a fault of the mapping (the file was cut short, the card can't read a sector)
// and bbolt's own panics. Panics of our own code go on.
func guarded(fn func() error) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		p := recover()
		if p == nil {
			return
		}
		if !fromFile(p) {
			panic(p)
		}
		if _, fault := p.(runtime.Error); fault {
			err = damagef("a page can't be read: the file was cut short or changed from outside, or the disk fails")
			return
		}
		err = damagef("a page is wrong: %v", p)
	}()
	return fn()
}

// fromFile reports whether a panic comes from the file: a fault with an
// address, or a panic in bbolt's code. It must be called by a deferred
// function, while the stack of the panic still stands.
func fromFile(p any) bool {
	if _, fault := p.(interface{ Addr() uintptr }); fault {
		return true
	}
	pcs := make([]uintptr, 64)
	frames := runtime.CallersFrames(pcs[:runtime.Callers(2, pcs)])
	panicked := false
	for {
		f, more := frames.Next()
		switch {
		case f.Function == "runtime.gopanic":
			panicked = true
		case panicked && !strings.HasPrefix(f.Function, "runtime."):
			return strings.HasPrefix(f.Function, "go.etcd.io/bbolt")
		}
		if !more {
			return false
		}
	}
}

// trouble is the end of a store whose file turned out to be damaged while it
// was open.
type trouble struct {
	once  sync.Once
	ended chan struct{} // closed once err is set
	err   error
}

// fail ends the store's use for good: what is in memory can't be trusted to
// fit the file any more. The note beside the file makes the next start look at
// all of it, so that it finds out what to do instead of failing again.
func (s *Store) fail(err error) {
	s.trouble.once.Do(func() {
		s.trouble.err = &DamageError{Path: s.path, Reason: fmt.Errorf("%w; the next start looks at all of it and goes by on_damage", reasonOf(err))}
		s.log.Error("the spool's file is damaged; nothing more is done with it", slog.String("path", s.path), slog.Any("err", reasonOf(err)))
		if err := writeSuspicion(s.path, reasonOf(err)); err != nil {
			s.log.Error("the damage could not be noted for the next start", slog.Any("err", err))
		}
		close(s.trouble.ended)
		s.closing.Do(func() { close(s.stop) })
	})
}

// Broken is closed when the file turned out to be damaged while the store was
// open. Nothing works from then on; Err says what was found, and the next Open
// deals with it.
func (s *Store) Broken() <-chan struct{} { return s.trouble.ended }

// Err is why Broken is closed; nil while it isn't.
func (s *Store) Err() error {
	select {
	case <-s.trouble.ended:
		return s.trouble.err
	default:
		return nil
	}
}

// gone is the answer of a store that takes nothing any more.
func (s *Store) gone() error {
	if err := s.Err(); err != nil {
		return err
	}
	return ErrClosed
}

// keepWriting is the writer's goroutine. A fault leaves its transaction open
// for ever, so that the file can't even be closed in good order.
func (s *Store) keepWriting() {
	defer close(s.stopped)
	err := guarded(func() error {
		s.write()
		return nil
	})
	if err != nil {
		s.fail(err)
	}
}

// closeFile gives the file back, unless a fault has left the writer inside a
// transaction: bbolt would wait for its end.
func (s *Store) closeFile() error {
	s.past.copying.Lock() // a snapshot ends with the store
	defer s.past.copying.Unlock()
	select {
	case <-s.trouble.ended:
		return nil
	default:
	}
	err := s.db.Close()
	if err == nil {
		_ = os.Remove(suspicion(s.path)) // a run that ends well ends the row; there is none as a rule
	}
	return err
}

// suspicion is the file beside the store which says that a run has ended by
// damage. It holds the reasons, one a line.
func suspicion(path string) string { return path + ".suspect" }

func writeSuspicion(path string, reason error) error {
	f, err := os.OpenFile(suspicion(path), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(f, strings.ReplaceAll(reason.Error(), "\n", " "))
	return errors.Join(err, f.Sync(), f.Close())
}

// suspicions counts the runs in a row that have ended by damage.
func suspicions(path string) int {
	b, err := os.ReadFile(suspicion(path))
	if err != nil {
		return 0
	}
	return max(1, strings.Count(string(b), "\n"))
}
