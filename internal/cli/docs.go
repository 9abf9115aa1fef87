package cli

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/tgspool/tgspool/internal/config"
)

// docsCommand prints what the packages ship and the code knows best: the man
// pages and the settings file. It is there for whoever builds a package.
func (a *app) docsCommand() *cobra.Command {
	c := &cobra.Command{
		Use: "docs", Short: "Print the man pages and the commented settings file", Hidden: true,
	}
	for _, page := range []struct {
		name, short string
		print       func(c *cobra.Command, date string) string
	}{
		{"man8", "The man page of the commands", a.commandsPage},
		{"man5", "The man page of the settings", a.settingsPage},
		{"settings", "The settings file with every key, commented out", func(*cobra.Command, string) string { return config.Example() }},
	} {
		c.AddCommand(&cobra.Command{
			Use: page.name, Short: page.short, Args: cobra.NoArgs,
			RunE: func(c *cobra.Command, _ []string) error {
				date, err := docsDate(a.env("SOURCE_DATE_EPOCH"))
				if err != nil {
					return err
				}
				a.out.printf("%s", page.print(c.Root(), date))
				return nil
			},
		})
	}
	return c
}

// docsDate is the day that a page bears: that of the sources, so that the same
// sources make the same page.
func docsDate(epoch string) (string, error) {
	if epoch == "" {
		return "", nil
	}
	seconds, err := strconv.ParseInt(epoch, 10, 64)
	if err != nil {
		return "", usagef("SOURCE_DATE_EPOCH: %q is not a number of seconds", epoch)
	}
	return time.Unix(seconds, 0).UTC().Format(time.DateOnly), nil
}

// source names the program and its version in the foot of a page.
func (a *app) source() string { return "tgspool " + strings.TrimPrefix(a.version, "v") }

// commandsPage is tgspool(8).
func (a *app) commandsPage(root *cobra.Command, date string) string {
	r := &roff{}
	r.title("tgspool", "8", date, a.source(), "System Administration")
	r.section("NAME")
	r.line(`tgspool \- `, escape("durable spool between a Telegram bot's own code and Telegram"))
	r.section("SYNOPSIS")
	r.line(`.B tgspool`)
	r.line(`.I command`)
	r.line(`.RI [ flags ]`)
	r.section("DESCRIPTION")
	r.paragraph(root.Long)
	r.paragraph(descriptionText)
	r.section("COMMANDS")
	for c := range visible(root) {
		commandEntry(r, c)
	}
	r.section("GLOBAL FLAGS")
	flagItems(r, root.PersistentFlags())
	itemSection(r, "EXIT STATUS", exitRows)
	itemSection(r, "ENVIRONMENT", environmentRows)
	itemSection(r, "FILES", fileRows)
	r.section("THE SERVICE")
	for _, text := range serviceText {
		r.paragraph(text)
	}
	r.seeAlso("tgspool.toml(5)", "systemctl(1)", "journalctl(1)", "systemd.socket(5)")
	return r.b.String()
}

// visible yields the commands below c in reading order: each before those below
// it. Hidden ones and cobra's own are left out.
func visible(c *cobra.Command) func(yield func(*cobra.Command) bool) {
	var walk func(c *cobra.Command, yield func(*cobra.Command) bool) bool
	walk = func(c *cobra.Command, yield func(*cobra.Command) bool) bool {
		for _, sub := range c.Commands() {
			if sub.Hidden || slices.Contains([]string{"help", "completion"}, sub.Name()) {
				continue
			}
			if !yield(sub) || !walk(sub, yield) {
				return false
			}
		}
		return true
	}
	return func(yield func(*cobra.Command) bool) { walk(c, yield) }
}

// commandEntry writes one command: how it is called, what for, its flags.
func commandEntry(r *roff, c *cobra.Command) {
	r.subsection(strings.TrimPrefix(c.UseLine(), "tgspool "))
	text := c.Long
	if text == "" {
		text = c.Short + "."
	}
	r.paragraph(text)
	flagItems(r, c.LocalFlags())
	if c.Example != "" {
		r.verbatim(dedent(c.Example))
	}
}

// dedent takes off the two blanks that cobra's examples begin with.
func dedent(text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		b.WriteString(strings.TrimPrefix(line, "  "))
	}
	return b.String()
}

// flagItems writes the flags of a set but for --help.
func flagItems(r *roff, flags *pflag.FlagSet) {
	flags.VisitAll(func(f *pflag.Flag) {
		if f.Hidden || f.Name == "help" {
			return
		}
		value, usage := pflag.UnquoteUsage(f)
		tag := "--" + f.Name
		if f.Shorthand != "" {
			tag = "-" + f.Shorthand + ", " + tag
		}
		switch {
		case f.NoOptDefVal != "" && f.NoOptDefVal != "true":
			tag += fmt.Sprintf("[=%s]", value)
		case value != "":
			tag += " " + value
		}
		if def := f.DefValue; def != "" && !slices.Contains([]string{"false", "0", "0s", "[]"}, def) {
			usage += " (default " + def + ")"
		}
		r.item(tag, "", usage)
	})
}

// row is one entry of a list in a page.
type row struct{ tag, text string }

func itemSection(r *roff, title string, rows []row) {
	r.section(title)
	for _, row := range rows {
		r.item(row.tag, "", row.text)
	}
}
