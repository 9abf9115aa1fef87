//go:build unix

package handler

import (
	"errors"
	"fmt"
	"os"
	"syscall"
)

// killGroup ends a program and all that it has started in its group. A program
// that has been waited for is left alone: its number may be another's by now.
func killGroup(p *os.Process) error {
	if err := p.Signal(syscall.Signal(0)); errors.Is(err, os.ErrProcessDone) {
		return os.ErrProcessDone
	}
	err := syscall.Kill(-p.Pid, syscall.SIGKILL)
	if errors.Is(err, syscall.ESRCH) {
		return os.ErrProcessDone
	}
	if err != nil {
		return fmt.Errorf("killing the program's group: %w", err)
	}
	return nil
}
