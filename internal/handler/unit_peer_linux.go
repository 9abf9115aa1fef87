package handler

import (
	"errors"
	"fmt"
	"net"

	"golang.org/x/sys/unix"
)

// UnitPeer returns the user at the other end of a unix connection, as the
// kernel noted it when the connection was made.
func UnitPeer(conn net.Conn) (uid uint32, err error) {
	c, ok := conn.(*net.UnixConn)
	if !ok {
		return 0, errors.New("asking who has connected: it is no unix socket")
	}
	raw, err := c.SyscallConn()
	if err != nil {
		return 0, fmt.Errorf("asking who has connected: %w", err)
	}
	var cred *unix.Ucred
	var failed error
	err = raw.Control(func(fd uintptr) {
		cred, failed = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED)
	})
	if err := errors.Join(err, failed); err != nil {
		return 0, fmt.Errorf("asking who has connected: %w", err)
	}
	return cred.Uid, nil
}
