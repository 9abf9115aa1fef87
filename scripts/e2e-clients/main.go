// E2e-clients runs bots on unmodified libraries, each in a process of its own,
// against the real tgspool and the simulator, and breaks things meanwhile.
//
//	e2e-clients -tgspool BIN -bot BIN -node DIR [NAME…]
package main

import (
	"cmp"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"
)

const (
	token  = "123456:SIMULATOR-SIMULATOR-SIMULATOR-SIMUL" // the bot's own, which no client sees
	client = "123456:ccccccccccccccccccccccccccccccccccc"
	chat   = 7
	name   = "mÿ file (1), \"odd\".txt"
)

// library is one of those that are tried.
type library struct {
	name string
	args func(node, bot string) []string
}

func libraries() []library {
	js := func(file string) func(string, string) []string {
		return func(node, _ string) []string { return []string{"node", filepath.Join(node, file+".js")} }
	}
	golang := func(name string) func(string, string) []string {
		return func(_, bot string) []string { return []string{bot, name} }
	}
	return []library{
		{"grammY", js("grammy")}, {"telegraf", js("telegraf")}, {"gramio", js("gramio")},
		{"node-telegram-bot-api-2", js("ntba2")}, {"node-telegram-bot-api-0.66", js("ntba066")},
		{"go-telegram/bot", golang("go-telegram")}, {"telego", golang("telego")},
		{"telebot.v4", golang("telebot")}, {"go-telegram-bot-api", golang("tgbotapi")},
	}
}

func main() {
	tgspool := flag.String("tgspool", "bin/tgspool", "the program")
	bot := flag.String("bot", "", "the bot on the Go libraries")
	node := flag.String("node", "", "the folder of the bots on the libraries for Node")
	parallel := flag.Int("parallel", 3, "how many libraries are tried at a time")
	most := flag.Duration("most", 10*time.Minute, "the longest that all may take")
	flag.Parse()
	time.AfterFunc(*most, func() {
		fmt.Fprintln(os.Stderr, "e2e-clients: not done within", *most)
		os.Exit(1)
	})
	var wanted []library
	for _, l := range libraries() {
		if flag.NArg() == 0 || slices.Contains(flag.Args(), l.name) {
			wanted = append(wanted, l)
		}
	}
	if len(wanted) < cmp.Or(flag.NArg(), len(libraries())) {
		fmt.Fprintln(os.Stderr, "e2e-clients: some of these libraries aren't known:", flag.Args())
		os.Exit(2)
	}
	if !tryAll(wanted, *parallel, func(l library) (string, error) { return try(*tgspool, l.args(*node, *bot)) }) {
		os.Exit(1)
	}
}

// tryAll tries some libraries at a time, and says how each has done.
func tryAll(wanted []library, parallel int, try func(library) (string, error)) (passed bool) {
	passed = true
	var mu sync.Mutex // guards passed and the lines
	var all sync.WaitGroup
	free := make(chan struct{}, max(1, parallel))
	fmt.Printf("%-28s %s\n", "LIBRARY", "RESULT")
	for _, l := range wanted {
		all.Go(func() {
			free <- struct{}{}
			notes, err := try(l)
			<-free
			result := "passed" + notes
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				passed, result = false, "FAILED: "+err.Error()
			}
			fmt.Printf("%-28s %s\n", l.name, result)
		})
	}
	all.Wait()
	return passed
}
