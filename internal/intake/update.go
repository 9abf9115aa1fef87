package intake

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"time"

	"github.com/tgspool/tgspool/internal/botapi"
	"github.com/tgspool/tgspool/internal/spool"
)

// How long an update of a kind that goes stale is of use, from its arrival on.
// Telegram itself drops them after that time.
const (
	staleQuery  = 150 * time.Second
	staleInline = 30 * time.Second
)

// NewUpdate makes an update to be taken in from the bytes that Telegram sent.
// It never fails: what can't be read is marked as malformed, to be kept as it
// came. Where only the routing failed, ID is filled in though HasID is false.
func NewUpdate(raw json.RawMessage, route func(botapi.Update) spool.Route) (n spool.NewUpdate) {
	id := int64(0)
	defer func() {
		// A bug in reading one update must not lose it, nor those around it.
		if p := recover(); p != nil {
			n = spool.NewUpdate{ID: id, Kind: "", Raw: raw, Error: fmt.Sprintf("panic while reading the update: %v", p)}
		}
	}()
	u, err := botapi.ParseUpdate(raw)
	if err != nil {
		return spool.NewUpdate{Kind: u.Kind, Raw: raw, Error: err.Error()}
	}
	id = u.ID
	n = spool.NewUpdate{
		ID: u.ID, HasID: true, Kind: u.Kind, Raw: raw,
		OrderKey: u.OrderKey, Route: route(u), UserID: u.UserID, StaleAt: staleAt(u.Kind),
	}
	if u.ChatID != 0 && !foreignChat[u.Kind] {
		n.Chat = &spool.ChatSeen{ID: u.ChatID, Type: u.ChatType, Username: u.ChatUsername}
		n.MigrateTo, n.MigrateFrom = groupID(u, u.MigrateTo), groupID(u, u.MigrateFrom)
		n.Gone = gone(u)
		n.Active = n.Gone == "" && active(u, raw)
	}
	return n
}

// groupID is the other id of a group that migrates, 0 when it can't be one: a
// chat becomes neither another kind of chat nor itself.
func groupID(u botapi.Update, other int64) int64 {
	if u.ChatID >= 0 || other >= 0 || other == u.ChatID {
		return 0
	}
	return other
}

// foreignChat are the kinds whose chat isn't one of the bot's: it is the chat of
// a business account with somebody, or one that the bot was called into as a
// guest. The bot can't write there by the chat's id alone.
var foreignChat = map[string]bool{
	"business_connection":       true,
	"business_message":          true,
	"edited_business_message":   true,
	"deleted_business_messages": true,
	"guest_message":             true,
}

// showsChat are the kinds that a bot gets only from chats that it is in.
var showsChat = map[string]bool{
	"message":                true,
	"edited_message":         true,
	"channel_post":           true,
	"edited_channel_post":    true,
	"callback_query":         true,
	"message_reaction":       true,
	"message_reaction_count": true,
}

// active reports whether the update shows that its chat can be written to.
func active(u botapi.Update, raw []byte) bool {
	switch {
	case u.Kind == "my_chat_member":
		return u.MemberStatus == "member" || u.MemberStatus == "administrator" || u.MemberStatus == "creator"
	case u.MigrateTo != 0:
		return false // the group of this message is no more
	case bytes.Contains(raw, []byte(`"left_chat_member"`)):
		return false // the one who left may have been the bot
	default:
		return showsChat[u.Kind]
	}
}

// gone says in words that the bot can't write to the chat any more; empty when
// the update doesn't show that.
func gone(u botapi.Update) string {
	switch {
	case u.Kind != "my_chat_member":
		return ""
	case u.MemberStatus == "kicked" && u.ChatType == "private":
		return "bot was blocked by the user"
	case u.MemberStatus == "kicked":
		return "bot was kicked from the chat"
	case u.MemberStatus == "left":
		return "bot is not a member of the chat"
	default:
		return ""
	}
}

// staleAt is when an update of the kind, arriving now, is of no use any more.
func staleAt(kind string) time.Time {
	switch kind {
	case "callback_query", "shipping_query", "pre_checkout_query":
		return time.Now().Add(staleQuery)
	case "inline_query":
		return time.Now().Add(staleInline)
	default:
		return time.Time{}
	}
}

// nextOffset is the offset that acknowledges a batch: the id of the last update
// that has one, plus one. The offset stays where no id may be acknowledged: a
// negative offset would make Telegram drop updates.
func nextOffset(offset int64, batch []spool.NewUpdate) int64 {
	for _, u := range batch {
		if (u.HasID || u.ID != 0) && u.ID >= 0 && u.ID < math.MaxInt64 {
			offset = u.ID + 1
		}
	}
	return offset
}
