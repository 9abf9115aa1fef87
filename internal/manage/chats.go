package manage

import (
	"net/http"

	"github.com/tgspool/tgspool/internal/spool"
)

// listChats lists the chats that a bot has met, in that order.
func (a *api) listChats(r *http.Request) (int, any, error) {
	bot, err := a.bot(r)
	if err != nil {
		return 0, nil, err
	}
	q, err := readQuery(r, "limit", "after")
	if err != nil {
		return 0, nil, err
	}
	limit, after, err := q.page()
	if err != nil {
		return 0, nil, err
	}
	return list(limit, after, func(after int64, limit int) ([]spool.Chat, int64, error) {
		page, err := bot.Chats(after, limit)
		return page.Items, page.Next, err
	}, func(spool.Chat) (int64, int) { return 0, 0 })
}

// chat finds the bot and the chat of the path.
func (a *api) chat(r *http.Request) (*spool.Bot, string, error) {
	bot, err := a.bot(r)
	if err != nil {
		return nil, "", err
	}
	if _, err := readQuery(r); err != nil {
		return nil, "", err
	}
	chat, err := a.resolveChat(bot.Name(), r.PathValue("chat"))
	return bot, chat, err
}

// activateChat lets jobs go to a chat again.
func (a *api) activateChat(r *http.Request) (int, any, error) {
	bot, chat, err := a.chat(r)
	if err != nil {
		return 0, nil, err
	}
	if err := noBody(r); err != nil {
		return 0, nil, err
	}
	ctx, cancel := change(r.Context())
	defer cancel()
	c, err := bot.ActivateChat(ctx, chat)
	return http.StatusOK, c, err
}

// deactivateChat refuses further jobs to a chat; a reason may be given.
func (a *api) deactivateChat(r *http.Request) (int, any, error) {
	bot, chat, err := a.chat(r)
	if err != nil {
		return 0, nil, err
	}
	reason, err := readReason(r)
	if err != nil {
		return 0, nil, err
	}
	ctx, cancel := change(r.Context())
	defer cancel()
	c, err := bot.DeactivateChat(ctx, chat, reason)
	return http.StatusOK, c, err
}

// readReason reads {"reason":…} or nothing.
func readReason(r *http.Request) (string, error) {
	reason := "deactivated by a person"
	body, _, err := readBody(r)
	if err != nil || len(body) == 0 {
		return reason, err
	}
	all, err := readObject(body)
	if err != nil {
		return "", err
	}
	for _, m := range all {
		if m.name != "reason" {
			return "", unknownMember(m.name, []string{"reason"})
		}
		if reason, err = decode[string](m, "a string"); err != nil {
			return "", err
		}
		if reason == "" || len(reason) > 500 {
			return "", problemf(http.StatusUnprocessableEntity, `"reason" must have 1 to 500 bytes`)
		}
	}
	return reason, nil
}
