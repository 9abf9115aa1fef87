package botapi

import "syscall"

// tcpUserTimeout is TCP_USER_TIMEOUT, which package syscall doesn't name on every
// architecture.
const tcpUserTimeout = 0x12

// setUserTimeout makes the kernel end a connection whose data stays unacknowledged, where
// it would else try for a quarter of an hour.
func setUserTimeout(_, _ string, raw syscall.RawConn) error {
	// Without the option a dead connection is noticed later, by our own timers: no
	// reason to have none.
	return raw.Control(func(fd uintptr) {
		_ = syscall.SetsockoptInt(int(fd), syscall.IPPROTO_TCP, tcpUserTimeout, int(userTimeout.Milliseconds()))
	})
}
