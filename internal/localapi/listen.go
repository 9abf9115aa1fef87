package localapi

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

// The roles of an address: what is served there.
const (
	RoleBot     = "bot"     // the Bot-API-compatible endpoint
	RoleManage  = "manage"  // the management API
	RoleMetrics = "metrics" // figures
	RoleSubmit  = "submit"  // posting jobs, nothing else
)

// socketMode lets the daemon's user and group connect.
const socketMode = 0o660

// maxSocketPath is what fits into a unix address on Linux, without its NUL.
const maxSocketPath = 107

// ErrInUse is the error when somebody else answers at the address.
var ErrInUse = errors.New("address is in use")

// Endpoint is one address to listen on.
type Endpoint struct {
	Addr  string   // unix:/path or tcp:host:port
	Serve []string // roles; empty: all but submit
	// TLSCert and TLSKey are PEM files, for TCP; empty: no TLS.
	TLSCert, TLSKey string
}

func (e Endpoint) serves(role string) bool {
	if len(e.Serve) == 0 {
		return role != RoleSubmit
	}
	return slices.Contains(e.Serve, role)
}

// Config says where to listen and what to serve.
type Config struct {
	Endpoints []Endpoint
	// Passed holds listeners that the service manager opened, by the Addr of
	// the endpoint that they are for. They are closed with the rest, but their
	// socket files stay.
	Passed map[string]net.Listener
	// Manage is the management API with its health checks.
	Manage http.Handler
	// Bot makes the bot endpoint for a listener; nil: it isn't served.
	Bot func(BotAccess) http.Handler
	// Bearer says whose a token is that came over TCP; nil: nobody's.
	Bearer func(token string) Login
	// Hosts are names for the Host check beside those of this machine; UseHosts
	// changes them.
	Hosts []string
	// Grace is how long requests under way may go on at a stop; 0: 5 s.
	Grace time.Duration
	// Logger may be nil.
	Logger *slog.Logger
}

// Listen opens every endpoint. When one can't be opened none stays open but
// those passed: their owner may have something to say to who waits there.
func Listen(ctx context.Context, c Config) (*Server, error) {
	s := newServer(c)
	for _, e := range c.Endpoints {
		l, err := open(ctx, e, c.Passed)
		if err == nil {
			err = s.add(e, l)
		}
		if err != nil {
			s.faces = slices.DeleteFunc(s.faces, func(f face) bool { return c.Passed[f.endpoint.Addr] == f.listener })
			return nil, errors.Join(err, s.Close())
		}
	}
	return s, nil
}

func open(ctx context.Context, e Endpoint, passed map[string]net.Listener) (net.Listener, error) {
	if l, ok := passed[e.Addr]; ok {
		return l, nil
	}
	network, address, _ := strings.Cut(e.Addr, ":")
	switch network {
	case "unix":
		l, err := listenUnix(ctx, address)
		if err == nil && e.serves(RoleSubmit) {
			giveToSubmitters(address)
		}
		return l, err
	case "tcp":
		l, err := new(net.ListenConfig).Listen(ctx, "tcp", address)
		if errors.Is(err, syscall.EADDRINUSE) {
			err = fmt.Errorf("%w by another program", ErrInUse)
		}
		if err != nil {
			return nil, fmt.Errorf("listening on %s: %w", e.Addr, err)
		}
		return l, nil
	}
	return nil, fmt.Errorf("listening on %q: it begins with neither unix: nor tcp: as addresses do", e.Addr)
}

// listenUnix makes a socket file that the daemon's user and group may use. The
// mode is set after the file has appeared; whoever slips in before is turned
// away by its credentials.
func listenUnix(ctx context.Context, path string) (net.Listener, error) {
	if len(path) > maxSocketPath {
		return nil, fmt.Errorf("listening on %q: the path is longer than %d bytes", path, maxSocketPath)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
		return nil, fmt.Errorf("making the folder of a socket: %w", err)
	}
	if err := removeStale(ctx, path); err != nil {
		return nil, fmt.Errorf("listening on %q: %w", path, err)
	}
	l, err := new(net.ListenConfig).Listen(ctx, "unix", path)
	if err != nil {
		return nil, fmt.Errorf("listening on %q: %w", path, err)
	}
	if err := os.Chmod(path, socketMode); err != nil {
		return nil, errors.Join(fmt.Errorf("opening the socket to its group: %w", err), l.Close())
	}
	return l, nil
}

// removeStale removes a socket file that nobody listens on. Two daemons can't
// race here: each holds the lock of its spool before it listens.
func removeStale(ctx context.Context, path string) error {
	info, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if info.Mode().Type() != fs.ModeSocket {
		return errors.New("there is a file of that name that is no socket")
	}
	dialer := net.Dialer{Timeout: time.Second}
	conn, err := dialer.DialContext(ctx, "unix", path)
	if err == nil {
		return errors.Join(fmt.Errorf("%w: another daemon answers there", ErrInUse), conn.Close())
	}
	if !errors.Is(err, syscall.ECONNREFUSED) {
		return fmt.Errorf("trying the socket that is there already: %w", err)
	}
	return os.Remove(path)
}
