package spool

import (
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
	"time"
)

// What a transition may answer. Callers branch with errors.Is.
var (
	// ErrNotFound: there is no such job, update, chat or bot, or it has been
	// removed by retention.
	ErrNotFound = errors.New("not found")
	// ErrConflict: the record has moved on; the wrapping *StateError says where to.
	ErrConflict = errors.New("state has moved")
	// ErrLeaseLost: the update is no longer leased to this caller.
	ErrLeaseLost = errors.New("lease is no longer held")
	// ErrStale: somebody has changed the session meanwhile; the wrapping
	// *StaleError says to what version.
	ErrStale = errors.New("session has changed")
	// ErrTooLarge: it is larger than it may be. Nothing was stored.
	ErrTooLarge = errors.New("too large")
	// ErrInvalid: the request itself is wrong, whatever the store holds.
	ErrInvalid = errors.New("invalid")
	// ErrChatInactive: the chat can't be written to; the wrapping
	// *InactiveError says since when and why.
	ErrChatInactive = errors.New("chat is inactive")
	// ErrFull: the disk or the size limit leaves no room. Nothing was stored.
	ErrFull = errors.New("spool is full")
	// ErrReadOnly: the file system doesn't take changes any more, as after a
	// power cut or with a worn card. Nothing was stored.
	ErrReadOnly = errors.New("spool is on a read-only file system")
	// ErrClosed: the store is closed or closing. Nothing was stored.
	ErrClosed = errors.New("spool is closed")
	// ErrLocked: another process has the store open.
	ErrLocked = errors.New("spool is in use")
	// ErrNewer: the file was written by a newer version of the program.
	ErrNewer = errors.New("spool is from a newer version")
	// ErrDamaged: a record's checksum doesn't match; in a *DamageError the file
	// as a whole can't be used.
	ErrDamaged = errors.New("record is damaged")
	// ErrForeign: the file is not a spool. It is left as it is.
	ErrForeign = errors.New("not a spool")
	// ErrFileSystem: on that file system a spool would come to harm.
	ErrFileSystem = errors.New("file system can't carry a spool")
)

// StateError is an ErrConflict that knows the record's state now.
type StateError struct {
	What string // "job" or "update"
	ID   int64
	Now  string // its state
	Want string // the state that was asked for
}

// Error names the record and its state, and says why what was asked for is not
// possible there, or what is.
func (e *StateError) Error() string {
	now := fmt.Sprintf("%s %d is %s", e.What, e.ID, e.Now)
	why := jobRefusal(State(e.Now), State(e.Want))
	if e.What == "update" {
		why = updateRefusal(UpdateState(e.Now), UpdateState(e.Want))
	}
	if why == "" {
		return now + " and can't become " + e.Want
	}
	return now + why
}

// jobRefusal completes "job 1 is …" for a decision that doesn't fit the job's
// state; "" where no decision leads to want.
func jobRefusal(now, want State) string {
	switch want {
	case Done:
		return "; only uncertain jobs can be resolved"
	case Held:
		return "; only pending jobs can be held"
	case Cancelled:
		switch {
		case now == Running:
			return ": a call in flight can't be called off"
		case now.Ended():
			return ": it is over already"
		}
		return "; only uncertain jobs can be resolved"
	case Pending:
		switch now {
		case Pending:
			return ": it waits for its turn already"
		case Running:
			return ": it is in flight"
		case Uncertain:
			return "; tgspool queue resolve decides about it"
		case Held:
			return "; tgspool queue release lets it go on"
		case Done:
			return ": it has been sent"
		case Dead, Cancelled, Expired:
			return "; tgspool queue retry brings it back"
		}
	case Running, Dead, Uncertain, Expired:
	}
	return ""
}

// updateRefusal is jobRefusal for updates.
func updateRefusal(now, want UpdateState) string {
	switch {
	case want != UpdateOpen && want != UpdateIgnored:
		return ""
	case now == UpdateLeased:
		return ": its handler is at work"
	case want == UpdateIgnored:
		return ": it is over already"
	case now == UpdateOpen:
		return ": it hasn't been handled yet"
	case now == UpdateDead:
		return ", and malformed: no handler can take it"
	}
	return ""
}

// Is makes every StateError an ErrConflict.
func (e *StateError) Is(target error) bool { return target == ErrConflict }

// InactiveError is an ErrChatInactive with Telegram's own words.
type InactiveError struct {
	Chat   string
	Reason string // Telegram's description when it refused
	Since  time.Time
}

// Error names the chat and repeats Telegram's reason.
func (e *InactiveError) Error() string {
	return fmt.Sprintf("chat %s is inactive since %s: %s", e.Chat, e.Since.UTC().Format(time.RFC3339), e.Reason)
}

// Is makes every InactiveError an ErrChatInactive.
func (e *InactiveError) Is(target error) bool { return target == ErrChatInactive }

// LockedError is an ErrLocked that names the process holding the lock, which is
// one for all that lies in the store's folder.
type LockedError struct {
	Path string // of the store that was to be opened
	PID  int    // 0 when unknown
}

// Error names the folder and the process: the other may have another store there.
func (e *LockedError) Error() string {
	who := "another process"
	if e.PID != 0 {
		who = "process " + strconv.Itoa(e.PID)
	}
	return fmt.Sprintf("the folder %s is in use by %s; every daemon needs a store folder of its own", filepath.Dir(e.Path), who)
}

// Is makes every LockedError an ErrLocked.
func (e *LockedError) Is(target error) bool { return target == ErrLocked }
