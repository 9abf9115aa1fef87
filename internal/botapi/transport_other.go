//go:build !linux

package botapi

import "syscall"

// setUserTimeout does nothing where there is no such option; our own timers remain.
func setUserTimeout(_, _ string, _ syscall.RawConn) error { return nil }
