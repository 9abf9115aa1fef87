// Command powercut shows that a power cut at any moment loses nothing that was
// confirmed. It has two halves, run by scripts/powercut.sh: work drives a real
// spool and writes a line for everything that the spool has confirmed; replay
// reads a system call trace of that, cuts the power at random moments, keeps of
// what wasn't synced yet a random part, some pages torn, opens the store that
// is left and compares it with what was confirmed by then.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
)

func main() {
	if err := run(context.Background(), os.Args[1:], os.Stdout); err != nil {
		_, _ = fmt.Fprintln(os.Stderr, "powercut:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, out io.Writer) error {
	if len(args) == 0 {
		return errors.New("usage: powercut work FOLDER | powercut replay TRACE")
	}
	flags := flag.NewFlagSet("powercut", flag.ContinueOnError)
	steps := flags.Int("steps", 400, "transitions to make")
	cuts := flags.Int("cuts", 3000, "moments at which the power is cut")
	seed := flags.Uint64("seed", 1, "of the random choices")
	if err := flags.Parse(args[1:]); err != nil {
		return err
	}
	if flags.NArg() != 1 {
		return errors.New("one folder or trace is wanted")
	}
	switch args[0] {
	case "work":
		return work(ctx, flags.Arg(0), *steps, *seed, out)
	case "replay":
		return replay(ctx, flags.Arg(0), *cuts, *seed, out)
	}
	return fmt.Errorf("unknown command %q", args[0])
}
