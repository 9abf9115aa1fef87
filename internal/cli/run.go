package cli

import (
	"github.com/spf13/cobra"

	"github.com/tgspool/tgspool/internal/daemon"
)

func (a *app) runCommand() *cobra.Command {
	return &cobra.Command{
		Use: "run", Short: "Run the daemon", Args: cobra.NoArgs,
		Long: `Run the daemon in the foreground. systemd starts it this way, too.

The settings are /etc/tgspool/tgspool.toml and conf.d/*.toml beside it, or the
file named by --config or TGSPOOL_CONFIG. Without settings, a token in
TELEGRAM_BOT_TOKEN is enough. SIGTERM stops it in good order, SIGHUP makes it
read its settings again.`,
		Example: `  TELEGRAM_BOT_TOKEN=123456:… tgspool run
  tgspool run --config ./tgspool.toml`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return daemon.Run(cmd.Context(), daemon.Options{
				Config: a.configPath, Version: a.version, Getenv: a.env, Stdout: a.out, Stderr: a.stderr,
			})
		},
	}
}
