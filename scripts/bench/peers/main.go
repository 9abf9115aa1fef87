// Command peers is every contestant of the benchmarks but the spool itself.
// Its only argument names one.
package main

import (
	"fmt"
	"os"

	"github.com/tgspool/tgspool/scripts/bench/kit"
)

func main() {
	all := map[string]kit.Contestant{
		"floor":        &floor{},
		"floor-merged": &floor{merged: true},
		"sqlite":       &tutorial{sync: "FULL", grouped: true},
		"tutorial":     &tutorial{sync: "NORMAL"},
		"goqite":       &goqiteQueue{},
		"nats":         &natsQueue{},
		"river":        &riverQueue{},
	}
	if len(os.Args) == 2 {
		if c, ok := all[os.Args[1]]; ok {
			kit.Serve(c)
			return
		}
	}
	fmt.Fprintln(os.Stderr, "usage: peers NAME")
	os.Exit(64)
}
