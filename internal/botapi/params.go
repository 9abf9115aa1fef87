package botapi

import (
	"encoding/json"
	"strings"
)

// silentSends are sends that have a chat and yet put no message into it.
var silentSends = map[string]bool{
	"createChatInviteLink":             true,
	"createChatSubscriptionInviteLink": true,
}

// contentEdits are the edits that change what a message says, which Telegram limits like
// messages; edits of the markup alone aren't among them.
var contentEdits = map[string]bool{
	"editEphemeralMessageCaption": true,
	"editEphemeralMessageMedia":   true,
	"editEphemeralMessageText":    true,
	"editMessageCaption":          true,
	"editMessageChecklist":        true,
	"editMessageLiveLocation":     true,
	"editMessageMedia":            true,
	"editMessageText":             true,
}

// EditsContent reports whether the method changes text, caption or media of a message:
// such a call keeps the gap of its chat, though it puts no new message there.
func (m Method) EditsContent() bool { return contentEdits[m.Name] }

// Weight returns how many messages the call counts for in the gates of its chat: 1 for a
// send or an edit of content, the number of items for an album and for copies and
// forwards of many, 0 for all that puts no message.
func Weight(method Method, params json.RawMessage) int {
	switch {
	case method.EditsContent():
		return 1
	case method.Kind != KindSend || !method.HasChat || silentSends[method.Name]:
		return 0
	case method.Name == "sendMediaGroup":
		return max(1, countItems(params, "media"))
	case method.Name == "copyMessages" || method.Name == "forwardMessages":
		return max(1, countItems(params, "message_ids"))
	}
	return 1
}

// countItems counts the elements of an array parameter, which may also be given as the
// text of one.
func countItems(params json.RawMessage, name string) int {
	value, ok := param(params, name)
	if !ok {
		return 0
	}
	items, err := elements([]byte(textOf(value)))
	if err != nil {
		return 0
	}
	return len(items)
}

// ChatParam returns the chat_id of a call as the caller gave it, a quoted number without
// its quotes. It is "" and false where there is none, as for an edit by
// inline_message_id.
func ChatParam(method Method, params json.RawMessage) (chat string, ok bool) {
	if !method.HasChat {
		return "", false
	}
	value, ok := param(params, "chat_id")
	if !ok {
		return "", false
	}
	switch value[0] {
	case '{', '[', 't', 'f':
		return "", false
	}
	chat = strings.TrimSpace(textOf(value))
	return chat, chat != ""
}

// PaidBroadcast reports whether the call asks for the paid rate.
func PaidBroadcast(params json.RawMessage) bool {
	v, _ := param(params, "allow_paid_broadcast")
	return isTrue(v)
}

// param returns the raw value of one parameter. The first of equal names counts, as it
// does for Telegram; null is the same as absent.
func param(params json.RawMessage, name string) (value []byte, ok bool) {
	// A broken tail doesn't matter: the Bot API uses the fields read so far, too.
	_ = eachField(params, func(key string, v []byte) bool {
		if key == name {
			value = v
			return false
		}
		return true
	})
	return value, len(value) > 0 && string(value) != "null"
}

// isTrue reads a boolean as the Bot API does.
func isTrue(value []byte) bool {
	switch strings.ToLower(strings.TrimSpace(textOf(value))) {
	case "true", "yes", "1":
		return true
	}
	return false
}
