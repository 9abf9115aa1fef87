package daemon

import (
	"context"
	"log/slog"
)

// UnitVariable is the variable of the environment that holds the socket of the
// unit that runs handlers. Where it is set nothing else does; where it isn't,
// or is empty, they run as the daemon does.
const UnitVariable = "TGSPOOL_EXEC_SOCKET"

// sayHow says once what the handlers' programs may do.
func (d *daemon) sayHow(ctx context.Context) {
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
