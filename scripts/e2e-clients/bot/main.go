// Bot is the same bot on each of four Go libraries: bot NAME. What it does
// stands in ../README.md.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"
)

// env is what a bot is told.
type env struct{ base, token, document, name, photo string }

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	e := env{os.Getenv("BASE"), os.Getenv("TOKEN"), os.Getenv("DOCUMENT"), os.Getenv("NAME"), os.Getenv("PHOTO")}
	bots := map[string]func(context.Context, env) error{
		"go-telegram": goTelegram, "telego": onTelego, "telebot": onTelebot, "tgbotapi": onBotAPI,
	}
	if err := bots[os.Args[1]](ctx, e); err != nil {
		fmt.Fprintln(os.Stderr, "failed:", err)
		os.Exit(1)
	}
}

// complain tells of a call that has failed; the bot goes on.
func complain(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "failed:", err)
	}
}

// open opens a file to be sent.
func open(path string) *os.File {
	f, err := os.Open(path)
	if err != nil {
		panic(err)
	}
	return f
}
