package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/tgspool/tgspool/internal/config"
)

// app is one run of the program.
type app struct {
	version string
	stdin   io.Reader
	out     *output
	stderr  io.Writer
	env     func(string) string

	// The flags that every command has.
	configPath, socket, bot string
	json                    bool

	started bool // a command runs: its arguments were right

	refused config.Errors // settings of the system that its daemon wouldn't start with
}

// Main runs the command that args name and returns the exit code. It is the
// whole program but for the end of the process.
func Main(version string, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	a := &app{
		version: buildVersion(version), stdin: stdin, stderr: stderr, env: os.Getenv,
		out: &output{w: bufio.NewWriter(stdout), raw: stdout},
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop) // a second Ctrl-C ends the process at once
	root := a.root()
	root.SetArgs(maskNegative(root, args))
	err := root.ExecuteContext(ctx)
	if err != nil && !a.started {
		err = usageError(err)
	}
	if flushed := a.out.flush(); flushed != nil && err == nil {
		err = &exitError{code: exitIO, msg: "writing the output: " + flushed.Error()}
	}
	if err != nil {
		return a.report(err)
	}
	return exitOK
}

// usageError is an error of cobra's about the command line.
func usageError(err error) error {
	if _, ours := errors.AsType[*exitError](err); ours {
		return err
	}
	return &exitError{code: exitUsage, msg: err.Error(), hint: "tgspool --help lists the commands and flags"}
}

// buildVersion is what the linker set, else what the go command noted.
func buildVersion(version string) string {
	if version != "" {
		return version
	}
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		return info.Main.Version
	}
	return "dev"
}

// root is the table of commands.
func (a *app) root() *cobra.Command {
	root := &cobra.Command{
		Use:   "tgspool",
		Short: "A durable spool between a Telegram bot's own code and Telegram",
		Long: "tgspool takes every update of a Telegram bot in durably, hands it to the bot's own code,\n" +
			"and delivers every outgoing call durably, in order and within Telegram's limits.",
		SilenceErrors: true, SilenceUsage: true,
	}
	flags := root.PersistentFlags()
	flags.StringVar(&a.configPath, "config", "", "settings `file` (default $TGSPOOL_CONFIG, else /etc/tgspool/tgspool.toml)")
	flags.StringVar(&a.socket, "socket", "", "the daemon's `socket` (default $TGSPOOL_SOCKET, else the settings')")
	root.AddCommand(
		a.runCommand(), a.demoCommand(), a.demoHandlerCommand(), a.simulateCommand(), a.sendCommand(), a.callCommand(), a.statusCommand(), a.watchCommand(), a.doctorCommand(), a.pauseCommand(), a.resumeCommand(),
		a.queueCommand(), a.inboxCommand(), a.chatCommand(), a.sessionCommand(), a.dbCommand(), a.configCommand(), a.reloadCommand(), a.versionCommand(), a.docsCommand(),
		a.setupCommand(), a.tokenCommand(), a.clientCommand(), a.tryCommand(), a.execHandlerCommand(),
	)
	root.SetOut(a.out)
	root.SetErr(a.stderr)
	root.SetFlagErrorFunc(func(c *cobra.Command, err error) error {
		return &exitError{code: exitUsage, msg: err.Error(), hint: c.CommandPath() + " --help lists the flags"}
	})
	a.complete(root)
	a.wrap(root)
	return root
}

// wrap notes the start of each command and gives back the negative numbers
// among its arguments. A command that only holds others complains.
func (a *app) wrap(c *cobra.Command) {
	if run := c.RunE; run != nil {
		c.RunE = func(c *cobra.Command, args []string) error {
			a.started = true
			return run(c, unmask(args))
		}
		if check := c.Args; check != nil {
			c.Args = func(c *cobra.Command, args []string) error {
				if err := check(c, unmask(args)); err != nil {
					return &exitError{code: exitUsage, msg: err.Error(), hint: "usage: " + c.UseLine()}
				}
				return nil
			}
		}
	} else {
		c.Args = cobra.ArbitraryArgs
		c.RunE = a.which
	}
	for _, sub := range c.Commands() {
		a.wrap(sub)
	}
}

// which answers to a command that only holds others.
func (a *app) which(c *cobra.Command, args []string) error {
	if len(args) > 0 {
		hint := c.CommandPath() + " --help lists the commands"
		c.SuggestionsMinimumDistance = 2
		if near := c.SuggestionsFor(args[0]); len(near) > 0 {
			hint = "did you mean " + c.CommandPath() + " " + near[0] + "?"
		}
		return &exitError{code: exitUsage, msg: fmt.Sprintf("unknown command %q for %q", args[0], c.CommandPath()), hint: hint}
	}
	if err := c.Help(); err != nil {
		return err
	}
	if c.HasParent() {
		return silent(exitUsage)
	}
	return nil
}

func (a *app) versionCommand() *cobra.Command {
	return &cobra.Command{
		Use: "version", Short: "Print the version", Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			a.out.printf("tgspool %s\n", a.version)
			return nil
		},
	}
}

// isTerminal reports whether a stream is a person's.
func isTerminal(stream any) bool {
	f, ok := stream.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// jsonFlag gives a command --json.
func (a *app) jsonFlag(c *cobra.Command) *cobra.Command {
	c.Flags().BoolVar(&a.json, "json", false, "print JSON, one object a line")
	return c
}

// botFlag gives a command --bot.
func (a *app) botFlag(c *cobra.Command) *cobra.Command {
	c.Flags().StringVar(&a.bot, "bot", "", "the `bot`; needed only where there are several")
	return c
}
