//go:build unix && !linux

package handler

import "syscall"

// ownGroup puts the program into a process group of its own, so that a timeout
// reaches what it has started too.
func ownGroup() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
