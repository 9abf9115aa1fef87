package manage

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"net/http"
	"strconv"
	"time"

	"github.com/tgspool/tgspool/internal/spool"
	"github.com/tgspool/tgspool/internal/wire"
)

// problemType is the media type of an error (RFC 9457).
const problemType = "application/problem+json"

// Problem is the body of every answer that is an error. It is an error itself,
// for the endpoints that make one and for clients that read one.
type Problem struct {
	Type   string `json:"type"`
	Title  string `json:"title"`
	Status int    `json:"status"`
	Detail string `json:"detail"`
	// State is the record's state now, with 409.
	State string `json:"state,omitempty"`
	// Bots are those that may be posted to, where nothing else may be done.
	Bots []string `json:"bots,omitempty"`

	retryAfter time.Duration // 0: not said
}

// Error returns the detail, or the title where there is none.
func (p *Problem) Error() string {
	if p.Detail == "" {
		return p.Title
	}
	return p.Detail
}

// problemf makes a problem with its standard title.
func problemf(status int, format string, args ...any) *Problem {
	return &Problem{
		Type: "about:blank", Title: http.StatusText(status), Status: status,
		Detail: fmt.Sprintf(format, args...),
	}
}

// WriteProblem answers with a problem; for refusals made before the API is
// reached.
func WriteProblem(w http.ResponseWriter, r *http.Request, status int, detail string) {
	(&api{log: slog.New(slog.DiscardHandler)}).fail(w, r, problemf(status, "%s", detail))
}

// statuses is the table from what went wrong to the status of the answer. The
// first that matches counts.
var statuses = []struct {
	is     error
	status int
}{
	{spool.ErrNotFound, http.StatusNotFound},
	{spool.ErrConflict, http.StatusConflict},
	{spool.ErrLeaseLost, http.StatusConflict},
	{spool.ErrStale, http.StatusPreconditionFailed},
	{spool.ErrTooLarge, http.StatusRequestEntityTooLarge},
	{spool.ErrChatInactive, http.StatusConflict},
	{spool.ErrInvalid, http.StatusUnprocessableEntity},
	{spool.ErrFull, http.StatusInsufficientStorage},
	{spool.ErrReadOnly, http.StatusInsufficientStorage},
	{spool.ErrClosed, http.StatusServiceUnavailable},
	{context.DeadlineExceeded, http.StatusServiceUnavailable},
	{context.Canceled, http.StatusServiceUnavailable},
	{wire.ErrStore, http.StatusInsufficientStorage},
}

// toProblem finds the answer to an error. An error that is nobody's fault but
// ours says nothing of itself; it is for the log.
func toProblem(err error) *Problem {
	if p, ok := errors.AsType[*Problem](err); ok {
		return p
	}
	if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return problemf(http.StatusRequestEntityTooLarge, "the body is larger than %d bytes", maxBody)
	}
	if e, ok := errors.AsType[*wire.Error](err); ok {
		return problemf(e.Code, "%s", e.Text)
	}
	for _, row := range statuses {
		if errors.Is(err, row.is) {
			p := problemf(row.status, "%s", err)
			if moved, ok := errors.AsType[*spool.StateError](err); ok {
				p.State = moved.Now
			}
			if lost, ok := errors.AsType[*spool.LeaseError](err); ok {
				p.State = string(lost.Now)
			}
			return p
		}
	}
	return problemf(http.StatusInternalServerError, "something went wrong inside the daemon; its log says what")
}

// fail answers with an error.
func (a *api) fail(w http.ResponseWriter, r *http.Request, err error) {
	p := toProblem(err)
	if p.Status == http.StatusInternalServerError {
		a.log.LogAttrs(r.Context(), slog.LevelError, "request failed",
			slog.String("path", r.URL.Path), slog.Any("err", err))
	}
	if errors.Is(err, wire.ErrStore) {
		a.log.LogAttrs(r.Context(), slog.LevelWarn, "a job's files weren't taken", slog.Any("err", err))
	}
	if p.Status == http.StatusServiceUnavailable {
		w.Header().Set("Retry-After", "1")
	}
	if p.retryAfter > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(int(math.Ceil(p.retryAfter.Seconds()))))
	}
	a.writeJSON(w, r, p.Status, problemType, p)
}
