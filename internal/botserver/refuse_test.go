package botserver

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/tgspool/tgspool/internal/spool"
	"github.com/tgspool/tgspool/internal/wire"
)

func TestToAPIError(t *testing.T) {
	tests := []struct {
		err   error
		code  int
		words string
		later bool // with retry_after
	}{
		{fmt.Errorf("queueing: %w", spool.ErrFull), 429, "full", true},
		{spool.ErrReadOnly, 429, "read-only", true},
		{spool.ErrClosed, 429, "stopping", true},
		{context.DeadlineExceeded, 429, "stopping", true},
		{fmt.Errorf("%w: %w", wire.ErrStore, errors.New("no space left")), 429, "upload", true},
		{fmt.Errorf("%w: no such lane", spool.ErrInvalid), 400, "Bad Request: tgspool: no such lane", false},
		{&spool.InactiveError{Reason: "Forbidden: bot was kicked from the group chat"}, 403, "Forbidden: bot was kicked from the group chat", false},
		{&spool.InactiveError{Reason: "Bad Request: chat not found"}, 400, "Bad Request: chat not found", false},
		{errorf(413, "too much"), 413, "Request Entity Too Large: too much", false},
		{errors.New("a secret of the store"), 500, "Internal Server Error", false},
	}
	for _, tt := range tests {
		e := toAPIError(tt.err)
		if e.code != tt.code || !strings.Contains(e.description, tt.words) || (e.retryAfter > 0) != tt.later {
			t.Errorf("%v: %d %q after %v", tt.err, e.code, e.description, e.retryAfter)
		}
		if strings.Contains(e.description, "secret") {
			t.Errorf("%q says too much", e.description)
		}
	}
}
