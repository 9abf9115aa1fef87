package cli

import (
	"encoding/json"
	"errors"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/tgspool/tgspool/internal/demo"
)

// exitFailed is the code of a demo that has found a fault.
const exitFailed = 1

func (a *app) demoCommand() *cobra.Command {
	var keep bool
	c := &cobra.Command{
		Use: "demo", Short: "The whole job against the built-in simulator, with proof at the end", Args: cobra.NoArgs,
		Long: "Start the simulator and the daemon in a temporary folder, write from 200 chats, queue messages\n" +
			"from outside, and meanwhile kill the daemon three times, flood it, lose answers and cut the\n" +
			"network. At the end compare what was to be sent with what the simulator has received.\n\n" +
			"It needs no bot and no network, takes less than a minute, and ends with 1 when anything was\n" +
			"lost or doubled, or more is uncertain than can be.",
		Example: "  tgspool demo\n  tgspool demo --json | jq .lost",
		RunE: func(c *cobra.Command, _ []string) error {
			// A terminal that goes away must not leave the processes behind.
			ctx, stop := signal.NotifyContext(c.Context(), syscall.SIGHUP)
			defer stop()
			executable, err := os.Executable()
			if err != nil {
				return &exitError{code: exitTempFail, msg: "finding this program: " + err.Error()}
			}
			result, err := demo.Run(ctx, demo.Options{
				Executable: executable, Progress: a.stderr, Live: isTerminal(a.stderr), Keep: keep,
			})
			switch {
			case ctx.Err() != nil:
				return &exitError{code: exitTempFail, msg: "interrupted"}
			case err != nil:
				return &exitError{code: exitFailed, msg: err.Error()}
			}
			return a.printDemo(result)
		},
	}
	c.Flags().BoolVar(&keep, "keep", false, "leave the folder with spool and logs, and say where it is")
	return a.jsonFlag(c)
}

func (a *app) printDemo(result demo.Result) error {
	if a.json {
		line, err := json.Marshal(result)
		if err != nil {
			return err
		}
		a.out.jsonLine(line)
	} else if err := result.Print(a.out); err != nil {
		return &exitError{code: exitIO, msg: "writing the output: " + err.Error()}
	}
	if result.OK() {
		return nil
	}
	if a.json { // the table has told them already
		for _, problem := range result.Problems {
			a.complain("error", problem)
		}
	}
	return silent(exitFailed)
}

// demoHandlerCommand is the bot's own code in the demo.
func (a *app) demoHandlerCommand() *cobra.Command {
	return &cobra.Command{
		Use: "demo-handler", Short: "Answer an update as the demo's bot does", Args: cobra.NoArgs, Hidden: true,
		RunE: func(*cobra.Command, []string) error {
			err := demo.Handle(a.stdin, a.out, a.env("TGSPOOL_ATTEMPT"))
			switch {
			case errors.Is(err, demo.ErrTryAgain):
				return &exitError{code: exitTempFail, msg: err.Error()}
			case err != nil:
				return &exitError{code: exitData, msg: err.Error()}
			}
			return nil
		},
	}
}
