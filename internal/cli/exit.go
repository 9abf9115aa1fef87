package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"strings"
	"syscall"

	"github.com/tgspool/tgspool/internal/config"
	"github.com/tgspool/tgspool/internal/localapi"
	"github.com/tgspool/tgspool/internal/manage"
	"github.com/tgspool/tgspool/internal/spool"
)

// The exit codes, from sysexits.h.
const (
	exitOK       = 0
	exitUsage    = 64 // EX_USAGE: the command line is wrong
	exitData     = 65 // EX_DATAERR: the data, or the daemon's no
	exitNoDaemon = 69 // EX_UNAVAILABLE: nobody answers
	exitIO       = 74 // EX_IOERR: store, disk, output
	exitTempFail = 75 // EX_TEMPFAIL: try later
	exitConfig   = 78 // EX_CONFIG: the settings
)

// exitError is an error with the code that it ends the command with, and what
// can be done about it.
type exitError struct {
	code int
	msg  string // "" prints nothing
	hint string
}

func (e *exitError) Error() string { return e.msg }

func usagef(format string, args ...any) error {
	return &exitError{code: exitUsage, msg: fmt.Sprintf(format, args...)}
}

func dataf(format string, args ...any) error {
	return &exitError{code: exitData, msg: fmt.Sprintf(format, args...)}
}

// silent ends with a code after everything has been said.
func silent(code int) error { return &exitError{code: code} }

// withHint adds what can be done about an error of ours.
func withHint(err error, hint string) error {
	if e, ok := errors.AsType[*exitError](err); ok {
		return &exitError{code: e.code, msg: e.msg, hint: hint}
	}
	return err
}

// explain finds the code, the words and the hint of any error. An error that
// knows its own code keeps it.
func explain(err error) *exitError {
	if e, ok := errors.AsType[*exitError](err); ok {
		return e
	}
	e := classify(err)
	var coded interface{ ExitCode() int }
	if errors.As(err, &coded) {
		e.code = coded.ExitCode()
	}
	return e
}

func classify(err error) *exitError {
	if errors.Is(err, config.ErrNothingConfigured) {
		what, hint, _ := strings.Cut(err.Error(), "\n")
		return &exitError{code: exitConfig, msg: what, hint: hint}
	}
	if e, ok := errors.AsType[*localapi.NoDaemonError](err); ok {
		return absent(e)
	}
	if e, ok := errors.AsType[*manage.Problem](err); ok {
		return &exitError{code: problemCode(e.Status), msg: e.Error()}
	}
	if e, ok := errors.AsType[config.Errors](err); ok {
		return &exitError{code: exitConfig, msg: e.Error()}
	}
	for _, row := range []struct {
		is   error
		code int
		hint string
	}{
		{config.ErrNoToken, exitConfig, ""},
		{spool.ErrLocked, exitTempFail, "is a daemon running already? tgspool status shows it"},
		{localapi.ErrInUse, exitTempFail, "is another daemon running?"},
		{spool.ErrNewer, exitIO, ""},
		{spool.ErrFull, exitIO, ""},
		{context.Canceled, exitTempFail, ""},
		{syscall.ENOSPC, exitIO, ""},
	} {
		if errors.Is(err, row.is) {
			return &exitError{code: row.code, msg: err.Error(), hint: row.hint}
		}
	}
	if _, ok := errors.AsType[*fs.PathError](err); ok {
		return &exitError{code: exitIO, msg: err.Error()}
	}
	return &exitError{code: exitTempFail, msg: err.Error()}
}

func absent(e *localapi.NoDaemonError) *exitError {
	hint := "start it with tgspool run, or name its socket with --socket"
	if e.Denied() {
		hint = "use sudo, or become a member of the daemon's group"
	}
	return &exitError{code: exitNoDaemon, msg: e.Error(), hint: hint}
}

// problemCode is the exit code for an answer of the daemon that is an error.
func problemCode(status int) int {
	switch status {
	case http.StatusServiceUnavailable:
		return exitTempFail
	case http.StatusInsufficientStorage, http.StatusInternalServerError:
		return exitIO
	case http.StatusUnauthorized, http.StatusForbidden:
		return exitNoDaemon
	}
	return exitData
}

// report prints an error and returns the code to end with.
func (a *app) report(err error) int {
	e := explain(err)
	for line := range strings.Lines(e.msg) {
		a.complain("error", line)
	}
	for line := range strings.Lines(e.hint) {
		a.complain("hint", line)
	}
	return e.code
}

// complain prints one line to stderr.
func (a *app) complain(kind, line string) {
	// Where stderr can't be written there is nobody to tell.
	_, _ = fmt.Fprintf(a.stderr, "tgspool: %s: %s\n", kind, safe(strings.TrimRight(line, "\n")))
}
