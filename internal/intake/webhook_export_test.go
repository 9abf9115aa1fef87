package intake

import "net"

// MaxUpdate and MaxConns are the limits that the tests go to.
const (
	MaxUpdate = maxUpdate
	MaxConns  = maxConns
)

// ServerOn is Listen with a listener that needs no socket.
func ServerOn(c ServerConfig, l net.Listener) (*Server, error) {
	s, err := newServer(c)
	if err == nil {
		s.on(l)
	}
	return s, err
}
