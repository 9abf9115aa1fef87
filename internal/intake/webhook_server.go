package intake

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// webhookPath is where a bot's updates are posted to; its name follows.
	webhookPath = "/telegram/"

	headTimeout    = 10 * time.Second
	requestTimeout = 30 * time.Second // head and body together
	answerTimeout  = 2 * time.Minute  // Telegram waits for one
	idleTimeout    = 2 * time.Minute
	stopGrace      = 10 * time.Second
	maxHead        = 16 << 10
	// maxConns bounds the connections of one address; Telegram uses 40 a bot.
	maxConns = 256
)

// ServerConfig says where webhooks are listened for, and for whom.
type ServerConfig struct {
	Addr string // host:port; required
	// TLSCert and TLSKey are PEM files. Empty: plain HTTP, for a proxy or tunnel.
	TLSCert, TLSKey string
	// Hooks are the receivers by the name of their bot.
	Hooks map[string]*Webhook
	// Grace is how long requests under way may go on at a stop; 0: 10 s.
	Grace  time.Duration
	Logger *slog.Logger // nil: no log
}

// Server listens for the webhooks of one address. Make one with Listen, run it
// with Serve.
type Server struct {
	config   ServerConfig
	listener net.Listener
	http     *http.Server
	cert     atomic.Pointer[tls.Certificate]
}

// Listen opens the address. Nothing is answered before Serve.
func Listen(ctx context.Context, c ServerConfig) (*Server, error) {
	s, err := newServer(c)
	if err != nil {
		return nil, err
	}
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", c.Addr)
	if err != nil {
		return nil, fmt.Errorf("listening for webhooks on %s: %w", c.Addr, err)
	}
	s.on(l)
	return s, nil
}

// newServer is a server without its listener.
func newServer(c ServerConfig) (*Server, error) {
	s := &Server{config: c}
	if s.config.Logger == nil {
		s.config.Logger = slog.New(slog.DiscardHandler)
	}
	if s.config.Grace == 0 {
		s.config.Grace = stopGrace
	}
	s.http = &http.Server{
		Handler:           http.HandlerFunc(s.route),
		ReadHeaderTimeout: headTimeout,
		ReadTimeout:       requestTimeout,
		WriteTimeout:      answerTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHead,
		// The whole Internet may knock here; what it does wrong is no news.
		ErrorLog: slog.NewLogLogger(s.config.Logger.Handler(), slog.LevelDebug),
	}
	return s, s.ReloadTLS()
}

// on gives the server its listener.
func (s *Server) on(l net.Listener) {
	s.listener = limit(l, maxConns)
	if s.config.TLSCert != "" {
		s.listener = tls.NewListener(s.listener, &tls.Config{
			MinVersion: tls.VersionTLS12,
			GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
				return s.cert.Load(), nil
			},
		})
	}
}

// ReloadTLS reads the certificate's files again, as after a renewal. When it
// fails the one in use stays.
func (s *Server) ReloadTLS() error {
	if s.config.TLSCert == "" {
		return nil
	}
	cert, err := tls.LoadX509KeyPair(s.config.TLSCert, s.config.TLSKey)
	if err != nil {
		return fmt.Errorf("reading certificate %q with key %q: %w", s.config.TLSCert, s.config.TLSKey, err)
	}
	s.cert.Store(&cert)
	return nil
}

// Addr is the address that is listened on; a port of 0 shows as the one found.
func (s *Server) Addr() net.Addr { return s.listener.Addr() }

// route finds the receiver. Paths are compared as they are: none is cleaned or
// redirected.
func (s *Server) route(rw http.ResponseWriter, r *http.Request) {
	name, ok := strings.CutPrefix(r.URL.Path, webhookPath)
	hook := s.config.Hooks[name]
	if !ok || hook == nil {
		hangUp(rw, http.StatusNotFound)
		return
	}
	hook.ServeHTTP(rw, r)
}

// Serve answers until ctx ends, then lets requests under way finish within the
// grace: their updates are committed or will come again. It also ends, with an
// error, when the listener breaks.
func (s *Server) Serve(ctx context.Context) error {
	broken := make(chan error, 1)
	go func() { broken <- s.http.Serve(s.listener) }()
	select {
	case err := <-broken:
		return errors.Join(fmt.Errorf("serving webhooks on %s: %w", s.config.Addr, err), s.http.Close())
	case <-ctx.Done():
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.config.Grace)
	defer cancel()
	if err := s.http.Shutdown(ctx); err != nil {
		s.config.Logger.LogAttrs(ctx, slog.LevelWarn, "webhook requests cut off at the stop",
			slog.String("addr", s.config.Addr), slog.Any("err", err))
		_ = s.http.Close() // whatever it says, nothing is left to be done
	}
	<-broken
	return nil
}

// Close closes the listener of a server that isn't served.
func (s *Server) Close() error { return s.listener.Close() }

// limited is a listener with at most so many open connections.
type limited struct {
	net.Listener
	slots  chan struct{}
	closed chan struct{}
	once   sync.Once
}

func limit(l net.Listener, most int) net.Listener {
	return &limited{Listener: l, slots: make(chan struct{}, most), closed: make(chan struct{})}
}

// Accept waits for a free slot, then for a connection.
func (l *limited) Accept() (net.Conn, error) {
	select {
	case l.slots <- struct{}{}:
	case <-l.closed:
		return nil, net.ErrClosed
	}
	conn, err := l.Listener.Accept()
	if err != nil {
		<-l.slots
		return nil, err
	}
	return &slot{Conn: conn, free: l.slots}, nil
}

// Close also ends an Accept that waits for a slot.
func (l *limited) Close() error {
	l.once.Do(func() { close(l.closed) })
	return l.Listener.Close()
}

// slot is a connection that counts.
type slot struct {
	net.Conn
	free chan struct{}
	once sync.Once
}

// Close gives the slot back once.
func (s *slot) Close() error {
	s.once.Do(func() { <-s.free })
	return s.Conn.Close()
}

// CloseWrite lets the last answer be read before the connection is gone.
func (s *slot) CloseWrite() error {
	if half, ok := s.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return nil
}
