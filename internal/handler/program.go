package handler

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
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
	unit    string // the socket of the unit that runs it; empty: we do
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

// streams are where the output of a program goes while it runs.
type streams struct {
	stdin          []byte
	stdout, stderr io.Writer
	started        func() // the program could be started
}

// run starts the program, feeds it, and waits for its end, the timeout, or ctx.
func (p program) run(ctx context.Context, env []string, stdin []byte, w watcher) run {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	limit := time.AfterFunc(p.timeout, func() { cancel(errTimeout) })
	defer limit.Stop()

	stdout := &capped{max: maxStdout, full: func() { cancel(errOverflow) }}
	stderr := &tail{max: maxTail, line: w.line}
	start := p.execute
	if p.unit != "" {
		start = p.inUnit
	}
	end, err := start(ctx, env, streams{stdin: stdin, stdout: stdout, stderr: stderr, started: w.started})
	if err != nil {
		return run{end: endUnstarted, err: err}
	}
	r := p.ended(end, context.Cause(ctx))
	r.stdout, r.stderr = stdout.bytes(), stderr.flush()
	return r
}

// exitStatus is how the system says that a program has ended.
type exitStatus struct {
	Code int    `json:"code"` // of its exit; -1 when it was a signal or nobody knows
	Text string `json:"text"` // the same for people
}

// execute starts the program as a child of ours and waits for its end. When ctx
// ends first, it kills all of its group. An error means that it never started.
func (p program) execute(ctx context.Context, env []string, s streams) (exitStatus, error) {
	if err := p.usable(); err != nil {
		return exitStatus{}, err
	}
	// The kernel kills the program when the thread that started it ends, so the
	// thread must stay ours until the program has ended.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()

	cmd := exec.CommandContext(ctx, p.argv[0], p.argv[1:]...)
	cmd.Dir, cmd.Env = p.dir, env
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(s.stdin), s.stdout, s.stderr
	cmd.SysProcAttr = ownGroup()
	cmd.Cancel = func() error { return killGroup(cmd.Process) }
	cmd.WaitDelay = pipeDelay

	if err := cmd.Start(); err != nil {
		return exitStatus{}, p.startError(err)
	}
	s.started()
	err := cmd.Wait()
	if cmd.ProcessState == nil {
		return exitStatus{Code: -1, Text: fmt.Sprintf("waiting for the program: %v", err)}, nil
	}
	return exitStatus{Code: cmd.ProcessState.ExitCode(), Text: cmd.ProcessState.String()}, nil
}

// ended says how a started program ended. The exit status decides where there
// is one: a program that finished in the moment of its timeout has finished.
func (p program) ended(s exitStatus, cause error) run {
	switch {
	case errors.Is(cause, errOverflow):
		return run{end: endOverflow, err: fmt.Errorf("standard output is over %d bytes", maxStdout)}
	case s.Code == 0:
		return run{end: endExit}
	case s.Code > 0:
		return run{end: endExit, code: s.Code, err: fmt.Errorf("exit status %d", s.Code)}
	case errors.Is(cause, errTimeout):
		return run{end: endTimeout, err: fmt.Errorf("killed after %s: timeout", p.timeout)}
	case cause != nil:
		return run{end: endStopped, err: errors.New("killed: the daemon stops")}
	default:
		return run{end: endSignal, err: errors.New(s.Text)}
	}
}

// look tells why the program can't be started, before there is a reason to.
func (p program) look(ctx context.Context) error {
	if p.unit != "" {
		return p.lookInUnit(ctx)
	}
	return p.usable()
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

// startError says why a program that is usable hasn't started. The system has
// the same word for a folder to run it in that is missing.
func (p program) startError(err error) error {
	info, bad := os.Stat(p.dir)
	switch {
	case p.dir == "": // ours
	case errors.Is(bad, fs.ErrNotExist):
		return fmt.Errorf("the folder to run it in, %q, is missing", p.dir)
	case bad == nil && !info.IsDir():
		return fmt.Errorf("%q, to run it in, is no folder", p.dir)
	}
	return startError(p.argv[0], err)
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
