package handler

import "syscall"

// ownGroup puts the program into a process group of its own, so that a timeout
// reaches what it has started too, and has the kernel kill it when we die
// without a chance to: nobody would take its answer any more.
func ownGroup() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
