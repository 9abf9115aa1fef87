package main

import (
	"context"
	"strings"

	"github.com/go-telegram/bot"
	"github.com/go-telegram/bot/models"
)

// goTelegram is the bot on go-telegram/bot.
func goTelegram(ctx context.Context, e env) error {
	b, err := bot.New(e.token, bot.WithServerURL(e.base), bot.WithDefaultHandler(func(ctx context.Context, b *bot.Bot, u *models.Update) {
		var err error
		if q := u.CallbackQuery; q != nil {
			_, err = b.AnswerCallbackQuery(ctx, &bot.AnswerCallbackQueryParams{CallbackQueryID: q.ID, Text: "toast"})
		}
		if u.Message != nil {
			err = goTelegramText(ctx, e, b, u.Message)
		}
		complain(err)
	}))
	if err != nil {
		return err
	}
	b.Start(ctx)
	return nil
}

func goTelegramText(ctx context.Context, e env, b *bot.Bot, m *models.Message) error {
	chat := m.Chat.ID
	switch text := m.Text; {
	case strings.HasPrefix(text, "echo "):
		_, err := b.SendMessage(ctx, &bot.SendMessageParams{ChatID: chat, Text: "re " + text[5:]})
		return err
	case text == "document":
		f := open(e.document)
		defer f.Close()
		_, err := b.SendDocument(ctx, &bot.SendDocumentParams{ChatID: chat, Document: &models.InputFileUpload{Filename: e.name, Data: f}})
		return err
	case text == "photo":
		f := open(e.photo)
		defer f.Close()
		_, err := b.SendPhoto(ctx, &bot.SendPhotoParams{ChatID: chat, Photo: &models.InputFileUpload{Filename: "p.png", Data: f}})
		return err
	case text == "album":
		one, two := open(e.photo), open(e.photo)
		defer one.Close()
		defer two.Close()
		_, err := b.SendMediaGroup(ctx, &bot.SendMediaGroupParams{ChatID: chat, Media: []models.InputMedia{
			&models.InputMediaPhoto{Media: "attach://a.png", MediaAttachment: one},
			&models.InputMediaPhoto{Media: "attach://b.png", MediaAttachment: two},
		}})
		return err
	case text == "edit":
		sent, err := b.SendMessage(ctx, &bot.SendMessageParams{ChatID: chat, Text: "first"})
		if err == nil {
			_, err = b.EditMessageText(ctx, &bot.EditMessageTextParams{ChatID: chat, MessageID: sent.ID, Text: "edited"})
		}
		return err
	}
	return nil
}
