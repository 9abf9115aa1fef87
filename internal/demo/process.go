package demo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"
)

// stopTime is how long a process gets to end by itself after SIGTERM.
const stopTime = 8 * time.Second

// process is a command of the program that runs beside us.
type process struct {
	name  string
	cmd   *exec.Cmd
	ended chan struct{} // closed when it has been waited for
	err   error         // how it ended; valid then
}

// launch starts a program in a process group of its own, so that the Ctrl-C of
// a terminal reaches only us and everything ends in order. It sees none of our
// environment, which may name a real bot's token.
func launch(name string, stdout, stderr *os.File, argv ...string) (*process, error) {
	p := &process{name: name, cmd: exec.Command(argv[0], argv[1:]...), ended: make(chan struct{})} //nolint:noctx // ends by stop or kill, never with a context: the order matters
	p.cmd.Env = plainEnvironment()
	p.cmd.Stdout, p.cmd.Stderr = stdout, stderr
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := p.cmd.Start(); err != nil {
		return nil, fmt.Errorf("starting %s: %w", name, err)
	}
	go func() {
		defer close(p.ended)
		p.err = p.cmd.Wait()
	}()
	return p, nil
}

func plainEnvironment() []string {
	return []string{"PATH=/usr/local/bin:/usr/bin:/bin", "LANG=C.UTF-8", "HOME=/"}
}

// kill ends the process at once and without warning, and waits for its end.
func (p *process) kill() {
	_ = p.cmd.Process.Kill() // it may have ended by itself
	<-p.ended
}

// stop asks the process to end, and ends it when it takes too long. It returns
// how it ended; nil is exit 0.
func (p *process) stop() error {
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("stopping %s: %w", p.name, err)
	}
	limit := time.NewTimer(stopTime)
	defer limit.Stop()
	select {
	case <-p.ended:
	case <-limit.C:
		p.kill()
		return fmt.Errorf("%s did not end within %s after SIGTERM", p.name, stopTime)
	}
	if p.err != nil {
		return fmt.Errorf("%s ended: %w", p.name, p.err)
	}
	return nil
}

// outcome is how a command that was run to its end went.
type outcome struct {
	code   int
	stdout string
	stderr string
}

// command runs a command of the program to its end.
func command(ctx context.Context, argv ...string) (outcome, error) {
	var stdout, stderr strings.Builder
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Env = plainEnvironment()
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.WaitDelay = stopTime
	err := cmd.Run()
	if ctx.Err() != nil {
		return outcome{}, ctx.Err()
	}
	if _, exited := errors.AsType[*exec.ExitError](err); err != nil && !exited {
		return outcome{}, fmt.Errorf("running %s: %w", argv[1], err)
	}
	return outcome{cmd.ProcessState.ExitCode(), stdout.String(), stderr.String()}, nil
}

// tail is the end of a file, for a person who looks for the reason.
func tail(path string, lines int) string {
	f, err := os.Open(path)
	if err != nil {
		return ""
	}
	defer func() { _ = f.Close() }()
	const most = 16 << 10
	if info, err := f.Stat(); err == nil && info.Size() > most {
		if _, err := f.Seek(-most, io.SeekEnd); err != nil {
			return ""
		}
	}
	text, err := io.ReadAll(f)
	if err != nil {
		return ""
	}
	all := strings.Split(strings.TrimRight(string(text), "\n"), "\n")
	return strings.Join(all[max(0, len(all)-lines):], "\n")
}
