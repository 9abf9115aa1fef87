package manage

import (
	"errors"
	"net/http"

	"github.com/tgspool/tgspool/internal/spool"
)

// healthz says whether the process works: the writer turns, and so does all else.
func (a *api) healthz(w http.ResponseWriter, _ *http.Request) {
	writeHealth(w, a.store.Healthy() && a.stuck() == "")
}

// readyz says whether requests can be served: the store is open, and this is
// the API answering. Telegram has no part in it.
func (a *api) readyz(w http.ResponseWriter, _ *http.Request) {
	_, err := a.store.Job(0) // there is none of that id; the error tells why
	writeHealth(w, !errors.Is(err, spool.ErrClosed))
}

func writeHealth(w http.ResponseWriter, ok bool) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	status, word := http.StatusOK, "ok\n"
	if !ok {
		status, word = http.StatusServiceUnavailable, "unhealthy\n"
	}
	w.WriteHeader(status)
	_, _ = w.Write([]byte(word))
}
