package main

import (
	"context"
	"strings"
	"time"

	tele "gopkg.in/telebot.v4"
)

// onTelebot is the bot on telebot.v4.
func onTelebot(ctx context.Context, e env) error {
	b, err := tele.NewBot(tele.Settings{
		URL: e.base, Token: e.token, Poller: &tele.LongPoller{Timeout: 10 * time.Second}, Synchronous: true,
		OnError: func(err error, _ tele.Context) { complain(err) },
	})
	if err != nil {
		return err
	}
	b.Handle(tele.OnText, func(c tele.Context) error {
		switch text := c.Text(); {
		case strings.HasPrefix(text, "echo "):
			return c.Send("re " + text[5:])
		case text == "document":
			return c.Send(&tele.Document{File: tele.FromDisk(e.document), FileName: e.name})
		case text == "photo":
			return c.Send(&tele.Photo{File: tele.FromDisk(e.photo)})
		case text == "album":
			return c.SendAlbum(tele.Album{&tele.Photo{File: tele.FromDisk(e.photo)}, &tele.Photo{File: tele.FromDisk(e.photo)}})
		case text == "edit":
			sent, err := b.Send(c.Chat(), "first")
			if err == nil {
				_, err = b.Edit(sent, "edited")
			}
			return err
		}
		return nil
	})
	b.Handle(tele.OnCallback, func(c tele.Context) error { return c.Respond(&tele.CallbackResponse{Text: "toast"}) })
	context.AfterFunc(ctx, b.Stop)
	b.Start()
	return nil
}
