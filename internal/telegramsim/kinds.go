package telegramsim

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"
	"time"
)

const day = 24 * time.Hour

// kindInfo is what the server knows about one kind of update.
type kindInfo struct {
	retention time.Duration
	order     string // what orders the kind: "chat", "user", "poll" or "member"
	optIn     bool   // only sent when asked for by name
}

// kindTable lists the official kinds.
func kindTable() map[string]kindInfo {
	chat := kindInfo{retention: day, order: "chat"}
	user := kindInfo{retention: day, order: "user"}
	poll := kindInfo{retention: day, order: "poll"}
	return map[string]kindInfo{
		"message": chat, "edited_message": chat, "channel_post": chat, "edited_channel_post": chat,
		"business_connection": user, "business_message": chat, "edited_business_message": chat,
		"deleted_business_messages": chat, "guest_message": chat,
		"message_reaction":       {retention: day, order: "chat", optIn: true},
		"message_reaction_count": {retention: day, order: "chat", optIn: true},
		"inline_query":           {retention: inlineLife, order: "user"},
		"chosen_inline_result":   {retention: 600 * time.Second, order: "user"},
		"callback_query":         {retention: queryLife, order: "user"},
		"shipping_query":         {retention: queryLife, order: "user"},
		"pre_checkout_query":     {retention: queryLife, order: "user"},
		"purchased_paid_media":   user,
		"poll":                   poll, "poll_answer": poll,
		"my_chat_member":    chat,
		"chat_member":       {retention: day, order: "member", optIn: true},
		"chat_join_request": user,
		"chat_boost":        chat, "removed_chat_boost": chat,
		"managed_bot": user, "subscription": user,
		"custom_event": {retention: 600 * time.Second}, "custom_query": {retention: day},
	}
}

// peer is any object of which only the id matters here.
type peer struct {
	ID int64 `json:"id"`
}

// updateBody is what the simulator reads of the inside of an update.
type updateBody struct {
	ID              json.RawMessage `json:"id"`
	PollID          string          `json:"poll_id"`
	Date            int64           `json:"date"`
	EditDate        int64           `json:"edit_date"`
	MessageID       int64           `json:"message_id"`
	MessageThreadID int64           `json:"message_thread_id"`
	Text            string          `json:"text"`
	Caption         string          `json:"caption"`
	Chat            *chatSpec       `json:"chat"`
	From            *peer           `json:"from"`
	User            *peer           `json:"user"`
	Message         *struct {
		Chat *chatSpec `json:"chat"`
	} `json:"message"`
	NewChatMember *struct {
		User peer `json:"user"`
	} `json:"new_chat_member"`
}

// chatSpec is the chat object of an update.
type chatSpec struct {
	ID        int64  `json:"id"`
	Type      string `json:"type"`
	Title     string `json:"title"`
	Username  string `json:"username"`
	FirstName string `json:"first_name"`
}

// splitUpdate finds the update_id, the kind and the inside of an update. An
// element that is no such object has an empty kind and goes through untouched.
func splitUpdate(raw json.RawMessage) (id int64, hasID bool, kind string, body json.RawMessage) {
	dec := json.NewDecoder(bytes.NewReader(raw))
	if start, err := dec.Token(); err != nil || start != json.Delim('{') {
		return 0, true, "", nil
	}
	for dec.More() {
		name, err := dec.Token()
		if err != nil {
			return 0, true, "", nil
		}
		var value json.RawMessage
		if err := dec.Decode(&value); err != nil {
			return 0, true, "", nil
		}
		if name == "update_id" {
			id, err = strconv.ParseInt(string(value), 10, 64)
			if err != nil {
				return 0, true, "", nil
			}
			hasID = true
			continue
		}
		if key, ok := name.(string); ok && kind == "" {
			kind, body = key, value
		}
	}
	return id, hasID, kind, body
}

// orderKey is the queue in which the webhook sender puts an update: one key,
// one update at a time.
func (b *updateBody) orderKey(kind, order string) string {
	number := func(prefix string, p *peer) string {
		if p == nil {
			return kind
		}
		return prefix + strconv.FormatInt(p.ID, 10)
	}
	switch order {
	case "chat":
		if b.Chat != nil {
			return "chat:" + strconv.FormatInt(b.Chat.ID, 10)
		}
	case "user":
		if b.From != nil {
			return number("user:", b.From)
		}
		return number("user:", b.User)
	case "poll":
		if b.PollID != "" {
			return "poll:" + b.PollID
		}
		return "poll:" + strings.Trim(string(b.ID), `"`)
	case "member":
		if b.NewChatMember != nil {
			return number("user:", &b.NewChatMember.User)
		}
	}
	return kind
}

// expiry is when the server forgets an update. Messages count from their own
// date; dates that lie outside the last day belong to a fixture, not to this
// clock, and count from now.
func (b *updateBody) expiry(info kindInfo, now time.Time) time.Time {
	if info.retention != day {
		return now.Add(info.retention)
	}
	at := time.Unix(max(b.Date, b.EditDate), 0)
	if at.After(now) || now.Sub(at) >= day {
		at = now
	}
	return at.Add(day)
}
