package cli

import (
	"regexp"
	"strings"

	"github.com/spf13/cobra"
)

// mask stands before a negative number on its way through the flag parser. No
// argument of a process can hold it.
const mask = "\x00"

var negative = regexp.MustCompile(`^-[0-9]+(:[A-Za-z0-9_]+)?$`)

// maskNegative lets chat ids of groups, which are negative, and keys of sessions
// pass where the parser would see flags. A number that is the value of the flag before it
// needs no help.
func maskNegative(root *cobra.Command, args []string) []string {
	out := make([]string, len(args))
	for i, arg := range args {
		if arg == "--" {
			copy(out[i:], args[i:])
			break
		}
		out[i] = arg
		if negative.MatchString(arg) && (i == 0 || !takesValue(root, args[i-1])) {
			out[i] = mask + arg
		}
	}
	return out
}

// takesValue reports whether an argument is a flag of the command, or of one
// below, whose value is the next argument.
func takesValue(c *cobra.Command, arg string) bool {
	if name, long := strings.CutPrefix(arg, "--"); long {
		if f := c.LocalFlags().Lookup(name); f != nil && f.NoOptDefVal == "" {
			return true
		}
	}
	for _, sub := range c.Commands() {
		if takesValue(sub, arg) {
			return true
		}
	}
	return false
}

func unmask(args []string) []string {
	out := make([]string, len(args))
	for i, arg := range args {
		out[i] = strings.TrimPrefix(arg, mask)
	}
	return out
}
