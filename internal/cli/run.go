package cli

import (
	"github.com/spf13/cobra"

	"github.com/tgspool/tgspool/internal/daemon"
)

func (a *app) runCommand() *cobra.Command {
	return &cobra.Command{
		Use: "run", Short: "Run the daemon", Args: cobra.NoArgs,
		Long: "Run the daemon in the foreground until SIGTERM or Ctrl-C. Without settings it takes one bot,\n" +
			"default, whose token is in TELEGRAM_BOT_TOKEN.",
		Example: "  tgspool run\n  TELEGRAM_BOT_TOKEN=… tgspool run\n  tgspool run --config ./tgspool.toml",
		RunE: func(c *cobra.Command, _ []string) error {
			return daemon.Run(c.Context(), daemon.Options{
				Config: a.configPath, Version: a.version, Getenv: a.env, Stdout: a.out.raw, Stderr: a.stderr,
			})
		},
	}
}
