package localapi

import (
	"context"
	"net"
	"net/http"
	"sync"
	"time"
)

// firstWords is how long a stop waits for a client that has connected and said
// nothing yet.
const firstWords = time.Second

// drain knows the connections of one server, so that a stop can wait for those
// that were accepted. http.Server.Shutdown alone hangs up on a client whose
// request it has read and not begun to answer.
type drain struct {
	mu    sync.Mutex
	conns map[net.Conn]http.ConnState // without those that rest
	moved chan struct{}               // holds one token after a change
}

func newDrain() *drain {
	return &drain{conns: map[net.Conn]http.ConnState{}, moved: make(chan struct{}, 1)}
}

// track is the server's ConnState hook.
func (d *drain) track(conn net.Conn, state http.ConnState) {
	d.mu.Lock()
	if state == http.StateNew || state == http.StateActive {
		d.conns[conn] = state
	} else {
		delete(d.conns, conn)
	}
	d.mu.Unlock()
	select {
	case d.moved <- struct{}{}:
	default:
	}
}

// owed tells whether somebody still waits for an answer; silent ones count only
// when fresh is set.
func (d *drain) owed(fresh bool) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, state := range d.conns {
		if fresh || state == http.StateActive {
			return true
		}
	}
	return false
}

// wait returns when nobody is owed an answer any more, or ctx ends.
func (d *drain) wait(ctx context.Context) {
	timer := time.NewTimer(firstWords)
	defer timer.Stop()
	fresh := true
	for d.owed(fresh) {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
			fresh = false
		case <-d.moved:
		}
	}
}
