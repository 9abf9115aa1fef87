package localapi

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"unsafe"

	"golang.org/x/sys/unix"
)

// peer is who has connected to a unix socket, as the kernel says.
type peer struct {
	uid    uint32
	groups []uint32 // the primary one and all others
}

// peerKey finds the peer, or the error of asking, in a connection's context.
type peerKey struct{}

// withPeer asks for the credentials once a connection.
func withPeer(ctx context.Context, conn net.Conn) context.Context {
	c, ok := conn.(*net.UnixConn)
	if !ok {
		return ctx
	}
	p, err := credentials(c)
	if err != nil {
		return context.WithValue(ctx, peerKey{}, err)
	}
	return context.WithValue(ctx, peerKey{}, p)
}

// PeerUID returns the user at the other end of a request that came over a unix
// socket; false where nobody vouches for one.
func PeerUID(ctx context.Context) (uid uint32, known bool) {
	p, ok := ctx.Value(peerKey{}).(peer)
	return p.uid, ok
}

// credentials reads who opened the other end.
func credentials(conn *net.UnixConn) (p peer, err error) {
	raw, err := conn.SyscallConn()
	if err != nil {
		return p, fmt.Errorf("asking for the peer's credentials: %w", err)
	}
	var failed error
	err = raw.Control(func(fd uintptr) {
		var cred *unix.Ucred
		if cred, failed = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED); failed != nil {
			return
		}
		p.uid = cred.Uid
		p.groups, failed = peerGroups(fd)
		p.groups = append(p.groups, cred.Gid)
	})
	if err := errors.Join(err, failed); err != nil {
		return p, fmt.Errorf("asking for the peer's credentials: %w", err)
	}
	return p, nil
}

// peerGroups reads the supplementary groups, which SO_PEERCRED leaves out: most
// people are in the daemon's group by one of these.
func peerGroups(fd uintptr) ([]uint32, error) {
	groups := make([]uint32, 64)
	for {
		size := uint32(len(groups) * 4)
		_, _, errno := unix.Syscall6(unix.SYS_GETSOCKOPT, fd, unix.SOL_SOCKET, unix.SO_PEERGROUPS,
			uintptr(unsafe.Pointer(&groups[0])), uintptr(unsafe.Pointer(&size)), 0) //nolint:gosec // no wrapper reads a list of ids
		if errno == 0 {
			return groups[:size/4], nil
		}
		if errno == unix.ENOPROTOOPT || errno == unix.ENODATA {
			return nil, nil // an old kernel, or a peer without any
		}
		if errno != unix.ERANGE {
			return nil, errno
		}
		groups = make([]uint32, max(int(size/4), 2*len(groups))) // size holds what is needed
	}
}

// mayManage reports whether the peer is root, the given user or in the given
// group.
func (p peer) mayManage(uid, gid uint32) bool {
	return p.uid == 0 || p.uid == uid || slices.Contains(p.groups, gid)
}
