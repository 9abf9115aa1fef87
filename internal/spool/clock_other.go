//go:build !linux

package spool

// SystemClock is the process' own clock where the kernel offers no better one.
func SystemClock() (Clock, error) { return newProcessClock(), nil }
