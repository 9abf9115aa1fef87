package cli

import "github.com/spf13/cobra"

func (a *app) runCommand() *cobra.Command {
	return &cobra.Command{
		Use: "run", Short: "Run the daemon", Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error { return usagef("the daemon is not built in") },
	}
}
