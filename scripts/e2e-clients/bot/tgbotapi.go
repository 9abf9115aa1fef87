package main

import (
	"context"
	"strings"

	tgbotapi "github.com/go-telegram-bot-api/telegram-bot-api/v5"
)

// onBotAPI is the bot on go-telegram-bot-api.
func onBotAPI(ctx context.Context, e env) error {
	b, err := tgbotapi.NewBotAPIWithAPIEndpoint(e.token, e.base+"/bot%s/%s")
	if err != nil {
		return err
	}
	config := tgbotapi.NewUpdate(0)
	config.Timeout = 30
	updates := b.GetUpdatesChan(config)
	for {
		select {
		case <-ctx.Done():
			return nil
		case u := <-updates:
			if q := u.CallbackQuery; q != nil {
				_, err := b.Request(tgbotapi.NewCallback(q.ID, "toast"))
				complain(err)
			}
			if u.Message != nil {
				complain(botAPIText(e, b, u.Message))
			}
		}
	}
}

func botAPIText(e env, b *tgbotapi.BotAPI, m *tgbotapi.Message) error {
	chat := m.Chat.ID
	switch text := m.Text; {
	case strings.HasPrefix(text, "echo "):
		_, err := b.Send(tgbotapi.NewMessage(chat, "re "+text[5:]))
		return err
	case text == "document":
		f := open(e.document)
		defer f.Close()
		_, err := b.Send(tgbotapi.NewDocument(chat, tgbotapi.FileReader{Name: e.name, Reader: f}))
		return err
	case text == "photo":
		_, err := b.Send(tgbotapi.NewPhoto(chat, tgbotapi.FilePath(e.photo)))
		return err
	case text == "album":
		_, err := b.SendMediaGroup(tgbotapi.NewMediaGroup(chat, []any{
			tgbotapi.NewInputMediaPhoto(tgbotapi.FilePath(e.photo)), tgbotapi.NewInputMediaPhoto(tgbotapi.FilePath(e.photo)),
		}))
		return err
	case text == "edit":
		sent, err := b.Send(tgbotapi.NewMessage(chat, "first"))
		if err == nil {
			_, err = b.Send(tgbotapi.NewEditMessageText(chat, sent.MessageID, "edited"))
		}
		return err
	}
	return nil
}
