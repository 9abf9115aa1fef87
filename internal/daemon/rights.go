package daemon

import (
	"context"
	"log/slog"
	"path/filepath"

	"github.com/tgspool/tgspool/internal/spool"
)

// UnitVariable is the variable of the environment that holds the socket of the
// unit that runs handlers. Where it is set nothing else does; where it isn't,
// or is empty, they run as the daemon does.
const UnitVariable = "TGSPOOL_EXEC_SOCKET"

// sayHow says once what people would want to know before they rely on us: what
// the handlers' programs may do, and whether anything is kept at all.
func (d *daemon) sayHow(ctx context.Context) {
	if d.volatile != "" {
		d.log.LogAttrs(ctx, slog.LevelError, "the spool does not outlive a restart of this machine: put [store] path on a disk of its own",
			slog.String("path", d.store.Path()), slog.String("reason", "its folder is on "+d.volatile))
	}
	programs := 0
	for _, c := range d.cfg.Bots {
		for _, h := range c.Handlers {
			if h.Kind() == "exec" {
				programs++
			}
		}
	}
	unit := d.o.Getenv(UnitVariable)
	switch {
	case programs == 0:
	case unit != "":
		d.log.LogAttrs(ctx, slog.LevelInfo, "handlers run in a unit of their own", slog.String("path", unit))
	default:
		d.log.LogAttrs(ctx, slog.LevelWarn, "handlers run as the daemon does: they can read its store and its tokens",
			slog.String("reason", UnitVariable+" names no unit for them"))
	}
}

// lookAtDisk notes whether the store lies where nothing stays: a RAM disk, or
// the overlay that a read-only root of a Raspberry Pi has.
func (d *daemon) lookAtDisk() { d.volatile = spool.Volatile(filepath.Dir(d.store.Path())) }
