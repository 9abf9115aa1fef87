package localapi

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tgspool/tgspool/internal/manage"
)

const (
	defaultGrace      = 5 * time.Second
	readHeaderTimeout = 10 * time.Second
	idleTimeout       = 2 * time.Minute
	maxHeaderBytes    = 32 << 10
	unreadBody        = 30 * time.Second
)

// Server serves all endpoints of the daemon. Make one with Listen, run it with
// Serve.
type Server struct {
	manage http.Handler
	bot    func(BotAccess) http.Handler
	bearer func(token string) Login
	hosts  atomic.Pointer[[]string]
	grace  time.Duration
	log    *slog.Logger
	faces  []face
}

// face is one listener with what is served on it.
type face struct {
	endpoint Endpoint
	listener net.Listener
	http     *http.Server
	drain    *drain
	cert     *certificate // nil: no TLS
}

func newServer(c Config) *Server {
	s := &Server{manage: c.Manage, bot: c.Bot, bearer: c.Bearer, grace: c.Grace, log: c.Logger}
	s.UseHosts(c.Hosts)
	if s.grace == 0 {
		s.grace = defaultGrace
	}
	if s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	return s
}

// UseHosts takes other names for the Host check into use.
func (s *Server) UseHosts(names []string) { s.hosts.Store(&names) }

// add prepares the server of one listener, which is closed with the others from
// now on.
func (s *Server) add(e Endpoint, l net.Listener) error {
	d := newDrain()
	handler, header := s.handler(e, l), maxHeaderBytes
	if s.bot != nil && e.serves(RoleBot) {
		handler, header = withBot(s.bot(BotAccess{ClientsOnly: e.exposed(l)}), handler), maxBotHeader
	}
	if l.Addr().Network() != "unix" {
		handler = s.onlyOwnHosts(handler)
	}
	handler = bounded(handler)
	s.faces = append(s.faces, face{endpoint: e, listener: l, drain: d, http: &http.Server{
		Handler:           handler,
		ReadHeaderTimeout: readHeaderTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    header,
		ErrorLog:          slog.NewLogLogger(s.log.Handler(), slog.LevelWarn),
		ConnContext:       withPeer,
		ConnState:         d.track,
	}})
	if e.TLSCert == "" {
		return nil
	}
	cert := &certificate{certFile: e.TLSCert, keyFile: e.TLSKey}
	s.faces[len(s.faces)-1].cert = cert
	if err := cert.load(); err != nil {
		return fmt.Errorf("listening on %s: %w", e.Addr, err)
	}
	return nil
}

// bounded keeps those who never send the body that they have announced from
// holding a connection for ever: whoever is refused before it is read is answered
// only when it has come, or this time is over. Who reads it sets his own.
func bounded(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.ContentLength != 0 {
			_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(unreadBody))
		}
		next.ServeHTTP(w, r)
	})
}

// handler decides what a listener serves beside the bot endpoint.
func (s *Server) handler(e Endpoint, l net.Listener) http.Handler {
	unix := l.Addr().Network() == "unix"
	mux := http.NewServeMux()
	switch {
	case e.exposed(l):
		return refuse("off this machine without TLS nothing but the Bot API is served")
	case !e.serves(RoleManage) && !e.serves(RoleSubmit):
		mux.Handle("/", refuse("the management API is not served on this address"))
	case unix:
		mux.Handle("/", byPeer(e, s.manage))
	default:
		mux.Handle("/", s.byBearer(e, s.manage))
	}
	mux.Handle("GET /healthz", s.manage)
	mux.Handle("GET /readyz", s.manage)
	mux.Handle("GET /metrics", s.metrics(e, unix))
	return mux
}

func refuse(why string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		manage.WriteProblem(w, r, http.StatusForbidden, why)
	})
}

// Addrs returns the addresses that are listened on, in the order of the
// endpoints; a TCP port of 0 shows as the one that was found.
func (s *Server) Addrs() []net.Addr {
	addrs := make([]net.Addr, len(s.faces))
	for i, f := range s.faces {
		addrs[i] = f.listener.Addr()
	}
	return addrs
}

// Serve answers requests until ctx ends, then those of the connections that were
// accepted, within the grace; what waits for a job's end is answered at once with
// the state so far. Whoever connects later waits at the listener's other owner,
// where it has one. Serve also ends, with an error, when a listener breaks.
func (s *Server) Serve(ctx context.Context) error {
	waits, stop := context.WithCancel(ctx)
	defer stop()
	broken := make(chan error, len(s.faces))
	var serving sync.WaitGroup
	var stopping atomic.Bool
	for _, f := range s.faces {
		f.http.BaseContext = func(net.Listener) context.Context { return waits }
		serving.Go(func() {
			if err := f.http.Serve(s.accepting(f)); !stopping.Load() {
				broken <- fmt.Errorf("serving %s: %w", f.endpoint.Addr, err)
			}
		})
	}
	var err error
	select {
	case <-ctx.Done():
	case err = <-broken:
	}
	stop()
	stopping.Store(true)
	err = errors.Join(err, s.Close())
	serving.Wait() // from here on every accepted connection is known
	s.shutdown(context.WithoutCancel(ctx))
	return err
}

// accepting is where a face takes its connections from.
func (s *Server) accepting(f face) net.Listener {
	switch {
	case f.cert != nil:
		return tlsListener{f.listener, f.cert.config()}
	case s.bot != nil && f.endpoint.serves(RoleBot):
		return shapedListener{f.listener}
	}
	return f.listener
}

// shutdown lets all connections end, and ends what is left after the grace.
func (s *Server) shutdown(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, s.grace)
	defer cancel()
	var ending sync.WaitGroup
	for _, f := range s.faces {
		ending.Go(func() {
			f.http.SetKeepAlivesEnabled(false) // ends those that rest, and the others after their answer
			f.drain.wait(ctx)
			if f.drain.owed(false) {
				s.log.LogAttrs(ctx, slog.LevelWarn, "requests cut off at the stop", slog.String("addr", f.endpoint.Addr))
			}
			_ = f.http.Close() // whatever it says, nothing is left to be done
		})
	}
	ending.Wait()
}

// Close closes the listeners. A server that is served ends by that, with an error.
func (s *Server) Close() error {
	var errs []error
	for _, f := range s.faces {
		if err := f.listener.Close(); err != nil && !errors.Is(err, net.ErrClosed) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}
