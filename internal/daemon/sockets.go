package daemon

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/coreos/go-systemd/v22/activation"

	"github.com/tgspool/tgspool/internal/config"
	"github.com/tgspool/tgspool/internal/manage"
)

const (
	// refuseIdle is how long a daemon that can't work waits for the next client
	// before it ends. The service manager's sockets stay open, and the next
	// client has it started again: with settings that may be right by then.
	refuseIdle = 10 * time.Second
	// refuseMost bounds that when clients keep coming: a start that is waited
	// for must fail before the service manager's own limit (90 s).
	refuseMost = time.Minute
)

// passedSockets are the sockets that the service manager has opened for us, by
// the address that the settings give them.
type passedSockets map[string]net.Listener

// takeSockets takes them over, once in a process.
func takeSockets() (passedSockets, error) {
	list, err := activation.Listeners()
	if err != nil {
		return nil, fmt.Errorf("taking the sockets that systemd passed: %w", err)
	}
	passed := passedSockets{}
	for _, l := range list {
		switch {
		case l == nil: // a datagram socket or the like: nothing that we listen on
		case l.Addr().Network() == "unix":
			passed["unix:"+l.Addr().String()] = l
		default:
			passed["tcp:"+l.Addr().String()] = l
		}
	}
	return passed, nil
}

// unnamed are the sockets that no address of the settings stands for.
func (p passedSockets) unnamed(listen []config.Listen) passedSockets {
	rest := passedSockets{}
	for addr, l := range p {
		if !slices.ContainsFunc(listen, func(c config.Listen) bool { return c.Addr == addr }) {
			rest[addr] = l
		}
	}
	return rest
}

// close gives the sockets up. They stay open at the service manager.
func (p passedSockets) close() {
	for _, l := range p {
		_ = l.Close() // it is a copy of another's
	}
}

// refuser answers everybody on some sockets with the reason why there is
// nothing else to be had. A connection that is refused, or never answered,
// would leave a client to guess.
type refuser struct {
	sockets passedSockets
	reason  string        // told on unix sockets, which have an owner and a mode
	idle    time.Duration // without a client, until serve ends; 0: never
	most    time.Duration // until serve ends in any case; 0: never
}

// publicReason is told on TCP, where the reason might be read by anybody.
const publicReason = "tgspool can't work, or its settings don't name this address; its log says why"

// serve answers until ctx ends, or the time is over.
func (r *refuser) serve(ctx context.Context) {
	came := make(chan struct{}, 1)
	var serving sync.WaitGroup
	var servers []*http.Server
	for addr, l := range r.sockets {
		s := &http.Server{Handler: r.handler(strings.HasPrefix(addr, "unix:"), came), ReadHeaderTimeout: refuseIdle}
		servers = append(servers, s)
		serving.Go(func() { _ = s.Serve(l) }) // it always ends with an error
	}
	wait(ctx, came, r.idle, r.most)
	ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancel()
	for _, s := range servers {
		if s.Shutdown(ending) != nil {
			_ = s.Close() // nobody is owed more than the attempt
		}
	}
	serving.Wait()
}

// wait returns when ctx ends, nobody came for the time of idle, or most is over.
func wait(ctx context.Context, came <-chan struct{}, idle, most time.Duration) {
	var over, rest <-chan time.Time
	if most > 0 {
		timer := time.NewTimer(most)
		defer timer.Stop()
		over = timer.C
	}
	for {
		if idle > 0 {
			rest = time.After(idle)
		}
		select {
		case <-ctx.Done():
			return
		case <-over:
			return
		case <-rest:
			return
		case <-came:
		}
	}
}

func (r *refuser) handler(unix bool, came chan<- struct{}) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		select {
		case came <- struct{}{}:
		default: // it is known already that somebody is here
		}
		w.Header().Set("Connection", "close")
		if unix {
			manage.WriteProblem(w, q, http.StatusServiceUnavailable, r.reason)
			return
		}
		body, err := json.Marshal(map[string]any{"ok": false, "error_code": http.StatusServiceUnavailable, "description": publicReason})
		if err != nil {
			body = nil // can't be
		}
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Retry-After", "10")
		w.WriteHeader(http.StatusServiceUnavailable)
		_, _ = w.Write(body) // the client may have gone
	})
}

// refuse ends a start that can't be: the settings are wrong, or the store can't
// be used. Where the service manager has passed sockets, whoever knocks is told
// why, until nobody does any more. A cause without an exit code is about the
// settings.
func refuse(ctx context.Context, o Options, passed passedSockets, signals <-chan os.Signal, cause error) error {
	if _, coded := errors.AsType[*exitError](cause); !coded {
		cause = exit(exitSettings, cause)
	}
	if len(passed) == 0 {
		return cause
	}
	logger := newLogger(config.Log{Level: "info"}, new(slog.LevelVar), o.Stderr, o.Getenv)
	logger.LogAttrs(ctx, slog.LevelError, "the daemon can't work; clients are told why", slog.Any("err", cause))
	first, _, _ := strings.Cut(cause.Error(), "\n")
	newNotifier(o.Getenv).send("STATUS=" + first)
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	asked := make(chan struct{})
	go func() {
		for {
			select {
			case s := <-signals:
				if s == syscall.SIGHUP {
					continue // a restart reads the settings again; we can't
				}
				close(asked)
				stop()
			case <-ctx.Done():
			}
			return
		}
	}()
	(&refuser{sockets: passed, reason: cause.Error(), idle: refuseIdle, most: refuseMost}).serve(ctx)
	if closed(asked) || errors.Is(ctx.Err(), context.Canceled) {
		return nil // a stop that was asked for is no failure
	}
	return cause
}

// serveUnnamed tells those who knock at a socket that the settings don't name.
func (d *daemon) serveUnnamed(ctx context.Context) {
	rest := d.passed.unnamed(d.started.API.Listen)
	if len(rest) == 0 {
		return
	}
	for addr := range rest {
		d.log.LogAttrs(ctx, slog.LevelWarn, "systemd listens on an address that [api] listen doesn't name; clients are told so",
			slog.String("addr", addr))
	}
	(&refuser{sockets: rest, reason: "[api] listen doesn't name this socket, so nothing is served on it"}).serve(ctx)
}
