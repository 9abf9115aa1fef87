package localapi_test

import (
	"context"
	"net"
	"net/http"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/tgspool/tgspool/internal/localapi"
	"github.com/tgspool/tgspool/internal/manage"
)

// TestServe_Handover: while one server after the other takes over a listener of
// the service manager, clients that connect all the time are answered, and
// always by a server that is still in charge.
func TestServe_Handover(t *testing.T) {
	const rounds, clients = 150, 4
	path := filepath.Join(t.TempDir(), "x.sock")
	kept, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = kept.Close() }()

	ctx, stop := context.WithCancel(t.Context())
	var knocking sync.WaitGroup
	for range clients {
		knocking.Go(func() {
			for ctx.Err() == nil {
				client := localapi.Dial(path)
				for _, method := range []string{"GET", "POST"} {
					if err := client.Do(t.Context(), localapi.Request{Method: method, Path: "/"}, nil); err != nil {
						t.Errorf("a client was told: %v", err)
					}
				}
				client.Close()
			}
		})
	}
	nobody := make(chan struct{})
	for range rounds {
		serveOnce(t, kept, path, nobody)
	}
	stop()
	go func() { knocking.Wait(); close(nobody) }()
	for range clients { // their last requests
		serveOnce(t, kept, path, nobody)
	}
}

// serveOnce serves on a copy of the listener until somebody was answered, or
// nobody is left. Whoever is served after Serve has returned is told so.
func serveOnce(t *testing.T, kept *net.UnixListener, path string, nobody <-chan struct{}) {
	t.Helper()
	file, err := kept.File()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	l, err := net.FileListener(file)
	if err != nil {
		t.Fatal(err)
	}
	var over atomic.Bool
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	served := make(chan struct{}, 1)
	s, err := localapi.Listen(ctx, localapi.Config{
		Endpoints: []localapi.Endpoint{{Addr: "unix:" + path}}, Passed: map[string]net.Listener{"unix:" + path: l},
		Manage: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			select {
			case served <- struct{}{}:
			default:
			}
			if over.Load() {
				manage.WriteProblem(w, r, http.StatusServiceUnavailable, "served after the end")
				return
			}
			_, _ = w.Write([]byte("{}"))
		}),
	})
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(ctx) }()
	select {
	case <-served:
	case <-nobody:
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	over.Store(true)
}
