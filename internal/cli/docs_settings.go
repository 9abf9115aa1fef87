package cli

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tgspool/tgspool/internal/config"
)

const settingsText = `The settings of tgspool(8) are TOML: this file, then conf.d/*.toml beside it in the order of
their names. As installed it is all comments; what you set is better put into a file of your own in
conf.d, which no upgrade touches. A key that is set twice is an error, and so are unknown keys and
values of the wrong kind; "tgspool config check" names file, line and column.

"tgspool reload" (systemctl reload tgspool) applies what can change without a restart. Bad settings
are refused as a whole, and the running ones stay.

In the paths below NAME is a name that you choose, and [] stands for the tables of a list, written
[[like this]].`

var settingsFiles = []row{
	{"/etc/tgspool/tgspool.toml", "This file. Another one is named by --config or TGSPOOL_CONFIG."},
	{"/etc/tgspool/conf.d/*.toml", "Read after it."},
	{"/etc/tgspool/credentials/NAME.token", "The token of the bot NAME. Tokens don't belong into the settings."},
}

const settingsExample = `[bots.home.chats]
me = 12345
[[bots.home.handlers]]
name = "uptime"
match = { command = "/uptime" }
exec = ["/usr/bin/uptime"]
allow_from = ["me"]
`

// settingsPage is tgspool.toml(5).
func (a *app) settingsPage(_ *cobra.Command, date string) string {
	r := &roff{}
	r.title("tgspool.toml", "5", date, a.source(), "File Formats")
	r.section("NAME")
	r.line(`tgspool.toml \- settings of tgspool`)
	r.section("SYNOPSIS")
	for _, row := range settingsFiles[:2] {
		r.line(`.br`)
		r.line(`.I `, escape(row.tag))
	}
	r.section("DESCRIPTION")
	r.paragraph(settingsText)
	table := ""
	for _, key := range config.Keys() {
		if t := tableOf(key.Path); t != table {
			table = t
			r.section("[" + table + "]")
		}
		keyItem(r, key, table)
	}
	itemSection(r, "FILES", settingsFiles)
	r.section("EXAMPLE")
	r.verbatim(settingsExample)
	r.seeAlso("tgspool(8)")
	return r.b.String()
}

// tableOf is the table that a key's section is about: the inner tables written
// in one line (match, keep) belong to the one around them.
func tableOf(path string) string {
	parts := strings.Split(path, ".")
	parts = parts[:len(parts)-1]
	if n := len(parts); n > 1 && slices.Contains([]string{"keep", "match"}, parts[n-1]) {
		parts = parts[:n-1]
	}
	return strings.Join(parts, ".")
}

// keyItem writes one key with its kind, its default and what it is for.
func keyItem(r *roff, key config.Key, table string) {
	text := key.Doc
	if key.Values != nil {
		text += " One of " + strings.Join(key.Values, ", ") + "."
	}
	if key.Default != "" {
		text += "\nDefault: " + key.Default + "."
	}
	if key.Restart {
		text += "\nA change needs a restart."
	}
	r.item(strings.TrimPrefix(key.Path, table+"."), "("+key.Type+")", text)
}
