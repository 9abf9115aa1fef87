package telegramsim

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"
)

const (
	headerTimeout = 10 * time.Second
	idleTimeout   = 500 * time.Second
	stopTimeout   = 2 * time.Second
	// restBeforeCut is how long a connection must rest in an outage before it
	// is closed. Closing one that is about to be used would cut a request in
	// the middle, and the caller could not know what became of it.
	restBeforeCut = 50 * time.Millisecond
)

// Serve serves the Bot API on a listener until ctx ends, and returns nil then.
// Parked polls end with a normal empty answer. The listener is closed when
// Serve returns.
func (s *Sim) Serve(ctx context.Context, listener net.Listener) error {
	f := newFront(s, listener)
	s.mu.Lock()
	s.fronts[f] = struct{}{}
	if s.offline {
		f.close()
	}
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		delete(s.fronts, f)
		s.mu.Unlock()
	}()
	return s.serveUntil(ctx, f, &http.Server{
		Handler: s.Handler(), ConnState: f.track,
		ReadHeaderTimeout: headerTimeout, IdleTimeout: idleTimeout,
	})
}

// ServeControl serves only the control paths on a listener until ctx ends, and
// returns nil then. It goes on while the simulator is offline.
func (s *Sim) ServeControl(ctx context.Context, listener net.Listener) error {
	return s.serveUntil(ctx, listener, &http.Server{
		Handler: s.ControlHandler(), ReadHeaderTimeout: headerTimeout, IdleTimeout: idleTimeout,
	})
}

// serveUntil runs a server until ctx ends.
func (s *Sim) serveUntil(ctx context.Context, listener net.Listener, server *http.Server) error {
	server.ErrorLog = slog.NewLogLogger(s.log.Handler(), slog.LevelDebug)
	done := make(chan error, 1)
	go func() { done <- server.Serve(listener) }()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
	}
	s.releasePolls()
	// The server's own time to stop begins when its context has ended.
	stop, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopTimeout)
	defer cancel()
	err := server.Shutdown(stop)
	if err != nil {
		err = server.Close() // whatever still hangs, hangs on purpose
	}
	if served := <-done; !errors.Is(served, http.ErrServerClosed) {
		return served
	}
	return err
}

// releasePolls gives every parked poll a normal empty answer.
func (s *Sim) releasePolls() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, b := range s.bots {
		b.abortPollLocked(nil, 0)
	}
}

// SetOffline takes the network away or brings it back. In process, calls fail
// with a refused connection at once. On sockets the listeners close, so that
// connections are refused; parked polls and hanging calls are cut; connections
// that rest are closed, and one that is in use serves the call that is on the
// wire and closes then, so that an outage by itself leaves nobody in doubt.
func (s *Sim) SetOffline(offline bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.offline == offline {
		return
	}
	s.offline = offline
	if offline {
		close(s.cut)
	} else {
		s.cut = make(chan struct{})
	}
	for f := range s.fronts {
		if offline {
			f.close()
		} else if err := f.open(); err != nil {
			s.log.LogAttrs(context.Background(), slog.LevelError, "listening again failed", slog.Any("err", err))
		}
	}
}

// isOffline tells whether the network is away.
func (s *Sim) isOffline() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.offline
}

// front is a listener that can go away and come back at the same address.
type front struct {
	sim     *Sim
	network string
	address string

	mu      sync.Mutex
	inner   net.Listener      // nil while offline
	changed chan struct{}     // closed and replaced when inner changes
	resting map[net.Conn]bool // idle connections; true when the last sweep saw them
	swept   time.Time         // of the last sweep
	sweeper *time.Timer       // the next sweep, nil before the first
	ended   bool
	addr    net.Addr
}

// newFront takes over a listener.
func newFront(s *Sim, listener net.Listener) *front {
	return &front{
		sim: s, inner: listener, addr: listener.Addr(),
		network: listener.Addr().Network(), address: listener.Addr().String(),
		changed: make(chan struct{}), resting: make(map[net.Conn]bool),
	}
}

// Accept waits for a connection, through outages.
func (f *front) Accept() (net.Conn, error) {
	for {
		f.mu.Lock()
		inner, changed, ended := f.inner, f.changed, f.ended
		f.mu.Unlock()
		if ended {
			return nil, net.ErrClosed
		}
		if inner == nil {
			<-changed
			continue
		}
		conn, err := inner.Accept()
		if err == nil {
			if f.sim.closesAtAccept() {
				reset(conn)
				continue
			}
			return conn, nil
		}
		f.mu.Lock()
		same := f.inner == inner && !f.ended
		f.mu.Unlock()
		if same {
			return nil, err // not our doing
		}
	}
}

// Close ends the listener for good.
func (f *front) Close() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.ended = true
	return f.setLocked(nil)
}

// Addr is the address listened on.
func (f *front) Addr() net.Addr { return f.addr }

// setLocked changes the inner listener, closes the old one and wakes Accept.
func (f *front) setLocked(next net.Listener) error {
	var err error
	if f.inner != nil {
		err = f.inner.Close()
	}
	f.inner = next
	close(f.changed)
	f.changed = make(chan struct{})
	return err
}

// close begins an outage.
func (f *front) close() {
	f.mu.Lock()
	defer f.mu.Unlock()
	_ = f.setLocked(nil)
	f.swept = time.Time{} // the first sweep only looks
	f.sweepLocked()
}

// open ends an outage.
func (f *front) open() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.ended || f.inner != nil {
		return nil
	}
	var config net.ListenConfig
	next, err := config.Listen(context.Background(), f.network, f.address)
	if err != nil {
		return err
	}
	return f.setLocked(next)
}

// track is the server's report of a connection's state.
func (f *front) track(conn net.Conn, state http.ConnState) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if state == http.StateIdle {
		f.resting[conn] = false
		if f.inner == nil { // its answer was on the way when the outage began
			f.sweepLaterLocked()
		}
	} else {
		delete(f.resting, conn)
	}
}

// sweepLocked closes the connections that have rested since the sweep before,
// and comes back for the others while the outage lasts. A sweep that comes late
// closes nothing: this process was held up, so a request may lie unread.
func (f *front) sweepLocked() {
	if f.inner != nil || f.ended {
		return
	}
	late := time.Since(f.swept) > 2*restBeforeCut
	f.swept = time.Now()
	for conn, seen := range f.resting {
		if seen && !late {
			_ = conn.Close()
			delete(f.resting, conn)
		} else {
			f.resting[conn] = true
		}
	}
	if len(f.resting) > 0 {
		f.sweepLaterLocked()
	}
}

// sweepLaterLocked sets the next sweep.
func (f *front) sweepLaterLocked() {
	if f.sweeper != nil {
		f.sweeper.Stop()
	}
	f.sweeper = time.AfterFunc(restBeforeCut, func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.sweepLocked()
	})
}

// closesAtAccept tells whether a fault strikes connections as they come: one
// that meets every call, and closes before anything is read.
func (s *Sim) closesAtAccept() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, x := range s.faults {
		f := &x.fault
		if f.Kind.unread() && f.Method == "" && f.Chat == 0 && f.After == 0 && f.Times == 0 {
			return true
		}
	}
	return false
}
