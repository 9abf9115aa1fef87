package daemon

import (
	"context"
	"log/slog"

	"github.com/tgspool/tgspool/internal/config"
)

// warn logs what tgspool config check warns of: what is allowed in the settings
// but hardly meant, and what nothing acts on yet.
func (d *daemon) warn(ctx context.Context, cfg *config.Config) {
	for _, p := range config.Check(cfg) {
		d.log.LogAttrs(ctx, slog.LevelWarn, "a warning about the settings", slog.String("reason", p.String()))
	}
}
