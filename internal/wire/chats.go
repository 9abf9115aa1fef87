package wire

import (
	"bytes"
	"encoding/json"
	"errors"
	"strconv"
	"strings"

	"github.com/tgspool/tgspool/internal/botapi"
)

// ErrBroken is said of parameters that can't be looked through.
var ErrBroken = errors.New("tgspool: the parameters can't be read")

// named looks through the parameters of a call for what names a chat, however
// deep: a chat that is only quoted, forwarded from or answered in counts, too.
// Where a name is given twice, both count.
type named struct {
	chats map[string]bool
	full  bool

	// What names a chat only when chat_id doesn't: the user whom a call is about,
	// and the account of a business, in whose every chat it may be.
	users    []string
	business bool
	hasChat  bool
}

// maxNesting bounds how deep parameters may be nested.
const maxNesting = 32

// CheckChats returns an error that says what of a call's parameters names a chat
// outside of chats: ids as plain decimals, @names in lower case, "*" for all.
// With full, the server's own files may be named, too.
func CheckChats(method string, params json.RawMessage, chats map[string]bool, full bool) error {
	n := &named{chats: chats, full: full}
	if len(params) == 0 {
		return nil
	}
	if err := n.object(params, 0); err != nil {
		return err
	}
	// Where Telegram makes nothing of a chat_id it says nothing of the others: a
	// gift goes to a user or to a chat.
	if m := botapi.MethodFor(method); n.hasChat && m.HasChat && m.Name != "sendGift" {
		return nil
	}
	if n.business && !n.chats["*"] {
		return errors.New("business_connection_id")
	}
	for _, user := range n.users {
		if !n.allows(user) {
			return errors.New("user_id")
		}
	}
	return nil
}

func (n *named) object(raw json.RawMessage, depth int) error {
	members, err := ReadObject(raw)
	if err != nil || depth > maxNesting {
		return n.unreadable(string(raw))
	}
	for _, m := range members {
		if err := n.member(m.Name, m.Value, depth); err != nil {
			return err
		}
	}
	return nil
}

func (n *named) member(name string, value json.RawMessage, depth int) error {
	value = bytes.TrimSpace(value)
	if string(value) == "null" {
		return nil
	}
	lower := strings.ToLower(name)
	switch {
	case lower == "chat_id" || strings.HasSuffix(lower, "_chat_id"):
		if depth == 0 && lower == "chat_id" {
			n.hasChat = true
		}
		if !n.allows(TextOf(value)) {
			return errors.New(name)
		}
		return nil
	case lower == "chat_ids" || strings.HasSuffix(lower, "_chat_ids"):
		return n.list(name, value)
	case lower == "inline_message_id" && !n.chats["*"]:
		return errors.New(name) // it may be in any chat
	case lower == "user_id" || strings.HasSuffix(lower, "_user_id"):
		if depth == 0 {
			n.users = append(n.users, TextOf(value))
		}
		return nil
	case lower == "business_connection_id":
		n.business = n.business || depth == 0
		return nil
	case isProse[lower]:
		return nil
	}
	return n.value(name, value, depth)
}

// list checks a list of chats.
func (n *named) list(name string, value json.RawMessage) error {
	var chats []json.RawMessage
	if json.Unmarshal([]byte(TextOf(value)), &chats) != nil {
		return errors.New(name)
	}
	for _, chat := range chats {
		if !n.allows(TextOf(bytes.TrimSpace(chat))) {
			return errors.New(name)
		}
	}
	return nil
}

// value looks into objects and lists, also into those written as a string.
func (n *named) value(name string, value json.RawMessage, depth int) error {
	text := strings.TrimSpace(TextOf(value))
	switch {
	case strings.HasPrefix(text, "{"):
		return n.object(json.RawMessage(text), depth+1)
	case strings.HasPrefix(text, "["):
		var list []json.RawMessage
		if json.Unmarshal([]byte(text), &list) != nil || depth > maxNesting {
			return n.unreadable(text)
		}
		for _, v := range list {
			if err := n.value(name, bytes.TrimSpace(v), depth+1); err != nil {
				return err
			}
		}
	case !n.full && len(text) >= 5 && strings.EqualFold(text[:5], "file:"):
		return errors.New(name + " of the server's own files")
	}
	return nil
}

// unreadable refuses what can't be looked through where it may name a chat:
// somebody else may read it all the same. So it is where it may name a file of
// the server's, be it by escapes.
func (n *named) unreadable(text string) error {
	file := strings.Contains(strings.ToLower(text), "file:") || strings.Contains(text, `\`)
	if n.chats["*"] && (n.full || !file) {
		return nil
	}
	return ErrBroken
}

// isProse names the parameters that hold text for people, or for the bot itself,
// whatever it looks like.
var isProse = map[string]bool{
	"text": true, "caption": true, "question": true, "explanation": true, "description": true, "short_description": true,
	"title": true, "name": true, "payload": true, "message": true, "custom_title": true, "provider_data": true,
	"callback_data": true,
}

// allows reports whether a chat may be named. Only the spellings that can be
// told for sure count.
func (n *named) allows(chat string) bool {
	if n.chats["*"] {
		return true
	}
	chat = strings.ToLower(strings.TrimSpace(chat))
	if id, err := strconv.ParseInt(chat, 10, 64); err == nil {
		return n.chats[strconv.FormatInt(id, 10)]
	}
	return strings.HasPrefix(chat, "@") && n.chats[chat]
}
