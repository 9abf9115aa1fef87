package daemon

import (
	"context"
	"time"

	"github.com/tgspool/tgspool/internal/botapi"
	"github.com/tgspool/tgspool/internal/spool"
)

// built is a moment that no right clock is before: the sources are from then.
var built = time.Date(2026, time.November, 1, 0, 0, 0, 0, time.UTC)

// witness is a client whose every answer tells the store what time it is.
type witness struct {
	*botapi.Client
	store *spool.Store
}

// Call makes a call. Only a server that has proved who it is bears witness.
func (w witness) Call(ctx context.Context, r botapi.Request) botapi.Seen {
	seen := w.Client.Call(ctx, r)
	if seen.TLSVerified && !seen.ServerDate.IsZero() {
		w.store.Witness(seen.ServerDate)
	}
	return seen
}

// clockState is the clock as status shows it.
func (d *daemon) clockState() string {
	if d.store.ClockKnown() {
		return "ok"
	}
	return "unknown"
}
