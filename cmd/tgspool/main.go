// Command tgspool is a durable spool between a Telegram bot's own code and
// Telegram. Everything it does is in internal/cli; this is the one place where
// the process ends, so that everything else can be run inside a test.
package main

import (
	"os"

	"github.com/tgspool/tgspool/internal/cli"
)

// version is set by the linker (see the Makefile); empty in a plain go build.
var version string

func main() {
	os.Exit(cli.Main(version, os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}
