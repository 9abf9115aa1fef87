package cli

import (
	"regexp"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// mask stands before a negative number on its way through the flag parser. No
// argument of a process can hold it.
const mask = "\x00"

var negative = regexp.MustCompile(`^-[0-9]+$`)

// maskNegative lets chat ids of groups, which are negative, pass where the
// parser would see flags. A number that is the value of the flag before it
// needs no help.
func maskNegative(root *cobra.Command, args []string) []string {
	valued := map[string]bool{}
	collectValued(root, valued)
	out := make([]string, len(args))
	for i, arg := range args {
		if arg == "--" {
			copy(out[i:], args[i:])
			break
		}
		out[i] = arg
		if negative.MatchString(arg) && (i == 0 || !valued[args[i-1]]) {
			out[i] = mask + arg
		}
	}
	return out
}

// collectValued notes every flag of the command and those below that takes a
// value from the next argument.
func collectValued(c *cobra.Command, into map[string]bool) {
	note := func(f *pflag.Flag) {
		if f.NoOptDefVal == "" {
			into["--"+f.Name] = true
			if f.Shorthand != "" {
				into["-"+f.Shorthand] = true
			}
		}
	}
	c.Flags().VisitAll(note)
	c.PersistentFlags().VisitAll(note)
	for _, sub := range c.Commands() {
		collectValued(sub, into)
	}
}

func unmask(args []string) []string {
	out := make([]string, len(args))
	for i, arg := range args {
		out[i] = strings.TrimPrefix(arg, mask)
	}
	return out
}
