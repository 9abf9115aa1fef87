package main

import (
	"context"
	"strings"

	"github.com/mymmrac/telego"
	tu "github.com/mymmrac/telego/telegoutil"
)

// onTelego is the bot on telego.
func onTelego(ctx context.Context, e env) error {
	b, err := telego.NewBot(e.token, telego.WithAPIServer(e.base))
	if err != nil {
		return err
	}
	updates, err := b.UpdatesViaLongPolling(ctx, nil)
	if err != nil {
		return err
	}
	for u := range updates {
		if q := u.CallbackQuery; q != nil {
			complain(b.AnswerCallbackQuery(ctx, tu.CallbackQuery(q.ID).WithText("toast")))
		}
		if u.Message != nil {
			complain(telegoText(ctx, e, b, u.Message))
		}
	}
	return nil
}

func telegoText(ctx context.Context, e env, b *telego.Bot, m *telego.Message) error {
	chat := tu.ID(m.Chat.ID)
	switch text := m.Text; {
	case strings.HasPrefix(text, "echo "):
		_, err := b.SendMessage(ctx, tu.Message(chat, "re "+text[5:]))
		return err
	case text == "document":
		f := open(e.document)
		defer f.Close()
		_, err := b.SendDocument(ctx, tu.Document(chat, tu.File(tu.NameReader(f, e.name))))
		return err
	case text == "photo":
		f := open(e.photo)
		defer f.Close()
		_, err := b.SendPhoto(ctx, tu.Photo(chat, tu.File(f)))
		return err
	case text == "album":
		one, two := open(e.photo), open(e.photo)
		defer one.Close()
		defer two.Close()
		_, err := b.SendMediaGroup(ctx, tu.MediaGroup(chat,
			tu.MediaPhoto(tu.File(tu.NameReader(one, "a.png"))), tu.MediaPhoto(tu.File(tu.NameReader(two, "b.png")))))
		return err
	case text == "edit":
		sent, err := b.SendMessage(ctx, tu.Message(chat, "first"))
		if err == nil {
			_, err = b.EditMessageText(ctx, &telego.EditMessageTextParams{ChatID: chat, MessageID: sent.MessageID, Text: "edited"})
		}
		return err
	}
	return nil
}
