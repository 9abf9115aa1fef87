package botserver

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"github.com/tgspool/tgspool/internal/spool"
	"github.com/tgspool/tgspool/internal/wire"
)

// wrongCounter is an Authorizer that slows down who tries tokens.
type wrongCounter interface {
	// Wrong counts a wrong token and says how long to turn callers away.
	Wrong() (retryAfter time.Duration)
}

const (
	fullPause = 30 * time.Second // until a full spool is worth another try
	stopPause = 5 * time.Second  // until the daemon may be back
)

// refuse answers with an error of ours.
func (s *Server) refuse(c *call, err error) {
	e := toAPIError(err)
	if e.code == http.StatusInternalServerError {
		s.log.LogAttrs(c.r.Context(), slog.LevelError, "a request has failed",
			slog.String("method", c.method.Name), slog.Any("err", err))
	}
	fail(c.w, e)
}

// toAPIError is the table from what went wrong here to the answer. Trouble that
// passes is 429: nothing was accepted, and a repeat is what helps.
func toAPIError(err error) *apiError {
	if e, ok := errors.AsType[*apiError](err); ok {
		return e
	}
	if e, ok := errors.AsType[*wire.Error](err); ok {
		return errorf(e.Code, "%s", e.Text)
	}
	if gone, ok := errors.AsType[*spool.InactiveError](err); ok {
		return &apiError{code: codeOf(gone.Reason), description: gone.Reason}
	}
	switch {
	case errors.Is(err, spool.ErrFull), errors.Is(err, spool.ErrReadOnly):
		return later(fullPause, "tgspool: nothing new is taken: %s", err)
	case errors.Is(err, spool.ErrClosed), errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return later(stopPause, "tgspool: it is stopping")
	case errors.Is(err, spool.ErrInvalid):
		return errorf(http.StatusBadRequest, "tgspool: %s", strings.TrimPrefix(err.Error(), spool.ErrInvalid.Error()+": "))
	case errors.Is(err, wire.ErrStore):
		return later(fullPause, "tgspool: the upload can't be stored")
	}
	return errorf(http.StatusInternalServerError, "tgspool: something went wrong; its log says what")
}

// codeOf finds the code that belongs to the word before Telegram's own text.
func codeOf(description string) int {
	word, _, _ := strings.Cut(description, ":")
	for _, code := range []int{
		http.StatusBadRequest, http.StatusForbidden, http.StatusUnauthorized, http.StatusNotFound,
		http.StatusConflict, http.StatusTooManyRequests, http.StatusInternalServerError,
	} {
		if word == statusWord(code) {
			return code
		}
	}
	return http.StatusBadRequest
}
