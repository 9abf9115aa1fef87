package handler

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"syscall"
	"time"
)

const (
	// maxStdout is the most that a program may print on standard output, in
	// bytes. It is far more than all the texts that Telegram would take in a
	// minute; a program that prints more has gone wrong.
	maxStdout = 1 << 20
	// pipeDelay is how long we wait for the pipes after the program itself has
	// ended: a daemon that it left behind may hold them open for ever.
	pipeDelay = time.Second
)

// errOverflow ends a run whose standard output got too long.
var errOverflow = errors.New("standard output is too long")

// errTimeout ends a run that took too long.
var errTimeout = errors.New("timeout")

// program is what a route runs for each update.
type program struct {
	argv    []string // the path and its arguments; no shell
	dir     string   // the folder to run in
	timeout time.Duration
}

// end is how a run ended.
type end int

const (
	endExit      end = iota // by itself; code says how
	endSignal               // by a signal that we didn't send
	endTimeout              // killed: it took too long
	endOverflow             // killed: it printed too much
	endStopped              // killed: we are stopping
	endUnstarted            // never started; err says why
)

// run is one run of a program, ended.
type run struct {
	end    end
	code   int    // with endExit
	err    error  // what to tell; nil after exit 0
	stdout []byte // at most maxStdout
	stderr []byte // the last part of it
}

// watcher hears of a run while it goes on.
type watcher struct {
	started func()       // the program could be started
	line    func([]byte) // a line of standard error; not to be kept
}

// run starts the program, feeds it, and waits for its end, the timeout, or ctx.
func (p program) run(ctx context.Context, env []string, stdin []byte, w watcher) run {
	if err := p.usable(); err != nil {
		return run{end: endUnstarted, err: err}
	}
	// The kernel kills the program when the thread that started it ends, so the
	// thread must stay ours until the program has ended.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()

	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	limit := time.AfterFunc(p.timeout, func() { cancel(errTimeout) })
	defer limit.Stop()

	stdout := &capped{max: maxStdout, full: func() { cancel(errOverflow) }}
	stderr := &tail{max: maxTail, line: w.line}
	cmd := exec.CommandContext(ctx, p.argv[0], p.argv[1:]...)
	cmd.Dir, cmd.Env = p.dir, env
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(stdin), stdout, stderr
	cmd.SysProcAttr = ownGroup()
	cmd.Cancel = func() error { return killGroup(cmd.Process) }
	cmd.WaitDelay = pipeDelay

	if err := cmd.Start(); err != nil {
		return run{end: endUnstarted, err: startError(p.argv[0], err)}
	}
	w.started()
	err := cmd.Wait()
	r := p.ended(cmd.ProcessState, err, context.Cause(ctx))
	r.stdout, r.stderr = stdout.bytes(), stderr.flush()
	return r
}

// ended says how a started program ended. The exit status decides where there
// is one: a program that finished in the moment of its timeout has finished.
func (p program) ended(state *os.ProcessState, err, cause error) run {
	if state == nil {
		return run{end: endSignal, err: fmt.Errorf("waiting for the program: %w", err)}
	}
	code := state.ExitCode()
	switch {
	case errors.Is(cause, errOverflow):
		return run{end: endOverflow, err: fmt.Errorf("standard output is over %d bytes", maxStdout)}
	case code == 0:
		return run{end: endExit}
	case code > 0:
		return run{end: endExit, code: code, err: fmt.Errorf("exit status %d", code)}
	case errors.Is(cause, errTimeout):
		return run{end: endTimeout, err: fmt.Errorf("killed after %s: timeout", p.timeout)}
	case cause != nil:
		return run{end: endStopped, err: errors.New("killed: the daemon stops")}
	default:
		return run{end: endSignal, err: errors.New(state.String())}
	}
}

// usable refuses a program that isn't there or may not be run, and one that
// others than its owner could have replaced by one of theirs: it would run with
// our rights.
func (p program) usable() error {
	path, err := filepath.EvalSymlinks(p.argv[0])
	if err != nil {
		return startError(p.argv[0], err)
	}
	info, err := os.Stat(path)
	if err != nil {
		return startError(p.argv[0], err)
	}
	if info.Mode().Perm()&0o002 != 0 {
		return fmt.Errorf("program %q is refused: everybody may write to it (chmod o-w)", p.argv[0])
	}
	const mayRun = 1 // X_OK
	if err := syscall.Access(path, mayRun); err != nil || info.IsDir() {
		return startError(p.argv[0], fs.ErrPermission)
	}
	folder, err := os.Stat(filepath.Dir(path))
	if err != nil {
		return startError(p.argv[0], err)
	}
	if folder.Mode().Perm()&0o002 != 0 && folder.Mode()&fs.ModeSticky == 0 {
		return fmt.Errorf("program %q is refused: everybody may write to its folder (chmod o-w)", p.argv[0])
	}
	return nil
}

// startError says in one line why a program can't be started.
func startError(path string, err error) error {
	switch {
	case errors.Is(err, fs.ErrNotExist):
		// The interpreter of a script may be what is missing; the system doesn't say.
		return fmt.Errorf("program %q or its interpreter is missing: %w", path, fs.ErrNotExist)
	case errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("program %q may not be run: %w", path, fs.ErrPermission)
	default:
		return fmt.Errorf("starting program %q: %w", path, err)
	}
}
