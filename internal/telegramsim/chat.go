package telegramsim

import (
	"slices"
	"strconv"
	"strings"
	"time"
)

// Kinds of chats as Telegram spells them.
const (
	kindPrivate    = "private"
	kindGroup      = "group"
	kindSupergroup = "supergroup"
	kindChannel    = "channel"
)

// chatState is what stands between a bot and a chat.
type chatState string

const (
	stateOpen        chatState = "open"
	stateBlocked     chatState = "blocked"     // a person blocked the bot
	stateDeactivated chatState = "deactivated" // the person's account is gone
	stateKicked      chatState = "kicked"
	stateLeft        chatState = "left"
	stateDeleted     chatState = "deleted" // the group is gone
	stateMigrated    chatState = "migrated"
	stateRemoved     chatState = "removed" // never heard of it
)

// ChatSpec describes a chat to AddChat.
type ChatSpec struct {
	ID       int64  `json:"id"`
	Type     string `json:"type"` // private, group, supergroup or channel; empty: by the id
	Title    string `json:"title"`
	Username string `json:"username"` // without @; makes @username a chat_id
}

// chat is one conversation. Sim.mu guards it.
type chat struct {
	id        int64
	kind      string
	title     string // first name in a private chat
	username  string
	state     chatState
	successor int64 // the supergroup, when migrated
	messageID int64 // counter of supergroups and channels
	messages  []*message
	pinned    []int64
}

// chatKind guesses the kind of a chat from its id.
func chatKind(id int64) string {
	switch {
	case id > 0:
		return kindPrivate
	case id < -1_000_000_000_000:
		return kindSupergroup
	default:
		return kindGroup
	}
}

// AddChat makes a chat known, or changes the names of a known one.
func (s *Sim) AddChat(spec ChatSpec) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.addChatLocked(chatSpec{ID: spec.ID, Type: spec.Type, Title: spec.Title, Username: spec.Username})
}

// Chats are the ids of all chats, ascending.
func (s *Sim) Chats() []int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	ids := make([]int64, 0, len(s.chats))
	for id := range s.chats {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	return ids
}

// Block is a person blocking the bot, who is told by my_chat_member.
func (s *Sim) Block(chatID int64) { s.moveChat(chatID, stateBlocked, "member", "kicked") }

// Unblock undoes Block, Kick and Leave: the bot is a member again, and told so.
func (s *Sim) Unblock(chatID int64) { s.moveChat(chatID, stateOpen, "kicked", "member") }

// Kick throws the bot out of a group or channel, who is told by my_chat_member.
func (s *Sim) Kick(chatID int64) { s.moveChat(chatID, stateKicked, "member", "kicked") }

// Leave takes the bot out of a group or channel without a ban.
func (s *Sim) Leave(chatID int64) { s.moveChat(chatID, stateLeft, "member", "left") }

// Deactivate is a person deleting the account. Nobody is told.
func (s *Sim) Deactivate(chatID int64) { s.moveChat(chatID, stateDeactivated, "", "") }

// DeleteGroup is the end of a basic group. Nobody is told.
func (s *Sim) DeleteGroup(chatID int64) { s.moveChat(chatID, stateDeleted, "", "") }

// RemoveChat makes a chat unknown: "chat not found" from now on.
func (s *Sim) RemoveChat(chatID int64) { s.moveChat(chatID, stateRemoved, "", "") }

// moveChat changes the state of a chat and, with member statuses given, tells
// every bot.
func (s *Sim) moveChat(chatID int64, to chatState, before, after string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	ch := s.chatForFeedLocked(chatID)
	ch.state = to
	if after == "" {
		return
	}
	actor := chatID
	if chatID < 0 {
		actor = 777_000_001 // an administrator without further qualities
	}
	for _, b := range s.order {
		if b.test {
			continue
		}
		s.feedLocked(b, encode(object{{"my_chat_member", object{
			{"chat", ch.brief()},
			{"from", userObject(actor)},
			{"date", time.Now().Unix()},
			{"old_chat_member", memberObject(b, before)},
			{"new_chat_member", memberObject(b, after)},
		}}}))
	}
}

// memberObject is the bot as a ChatMember.
func memberObject(b *bot, status string) object {
	o := object{{"user", b.user()}, {"status", status}}
	if status == "kicked" {
		o = append(o, field{"until_date", 0})
	}
	return o
}

// Migrate turns a basic group into a supergroup. The old id fails for good from
// now on and names the new one; a service message stands in both chats.
func (s *Sim) Migrate(oldID, newID int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	from := s.chatForFeedLocked(oldID)
	to := s.addChatLocked(chatSpec{ID: newID, Type: kindSupergroup, Title: from.title})
	for _, b := range s.order {
		if b.test {
			continue
		}
		for _, side := range []struct {
			ch    *chat
			key   string
			other int64
		}{{from, "migrate_to_chat_id", newID}, {to, "migrate_from_chat_id", oldID}} {
			s.feedLocked(b, encode(object{{"message", object{
				{"message_id", s.nextMessageIDLocked(b, side.ch)},
				{"from", userObject(777_000_001)},
				{"chat", side.ch.brief()},
				{"date", time.Now().Unix()},
				{side.key, side.other},
			}}}))
		}
	}
	from.state, from.successor = stateMigrated, newID
}

// addChatLocked makes or updates a chat.
func (s *Sim) addChatLocked(spec chatSpec) *chat {
	ch := s.chats[spec.ID]
	if ch == nil {
		ch = &chat{id: spec.ID, kind: chatKind(spec.ID), state: stateOpen}
		s.chats[spec.ID] = ch
	}
	if ch.state == stateRemoved {
		ch.state = stateOpen
	}
	if spec.Type != "" {
		ch.kind = spec.Type
	}
	if name := spec.Title + spec.FirstName; name != "" {
		ch.title = name
	}
	if ch.title == "" {
		ch.title = "Chat " + strconv.FormatInt(spec.ID, 10)
	}
	if spec.Username != "" {
		ch.username = spec.Username
		s.names[strings.ToLower(spec.Username)] = ch.id
	}
	return ch
}

// chatForFeedLocked returns the chat, made when it is new.
func (s *Sim) chatForFeedLocked(id int64) *chat {
	if ch := s.chats[id]; ch != nil {
		return ch
	}
	return s.addChatLocked(chatSpec{ID: id})
}

// findChatLocked resolves a chat_id parameter without judging the chat's state.
func (s *Sim) findChatLocked(value string) (*chat, *apiError) {
	value = strings.TrimSpace(value)
	if value == "" {
		return nil, badRequest("chat_id is empty")
	}
	if name, ok := strings.CutPrefix(value, "@"); ok {
		if ch := s.chats[s.names[strings.ToLower(name)]]; ch != nil && ch.state != stateRemoved {
			return ch, nil
		}
		return nil, badRequest("chat not found")
	}
	id, whole := looseInt(value)
	if !whole || id == 0 {
		return nil, badRequest("chat not found")
	}
	if ch := s.chats[id]; ch != nil {
		if ch.state == stateRemoved {
			return nil, badRequest("chat not found")
		}
		return ch, nil
	}
	if s.opts.KnownChatsOnly {
		return nil, badRequest("chat not found")
	}
	return s.addChatLocked(chatSpec{ID: id}), nil
}

// openChatLocked resolves a chat that a bot wants to act in.
func (s *Sim) openChatLocked(value string) (*chat, *apiError) {
	ch, err := s.findChatLocked(value)
	if err != nil {
		return nil, err
	}
	return ch, ch.refusal()
}

// refusal is the error that the state of a chat gives, nil when it is open.
func (ch *chat) refusal() *apiError {
	name := ch.kind + " chat"
	switch ch.state {
	case stateBlocked:
		return forbidden("bot was blocked by the user")
	case stateDeactivated:
		return forbidden("user is deactivated")
	case stateKicked:
		return forbidden("bot was kicked from the " + name)
	case stateLeft:
		return forbidden("bot is not a member of the " + name)
	case stateDeleted:
		return forbidden("the group chat was deleted")
	case stateMigrated:
		e := badRequest("group chat was upgraded to a supergroup chat")
		e.migrateTo = ch.successor
		return e
	case stateRemoved:
		return badRequest("chat not found")
	case stateOpen:
	}
	return nil
}

// brief is the chat as it stands inside messages.
func (ch *chat) brief() object {
	o := object{{"id", ch.id}}
	if ch.kind == kindPrivate {
		o = append(o, field{"first_name", ch.title})
	} else {
		o = append(o, field{"title", ch.title})
	}
	if ch.username != "" {
		o = append(o, field{"username", ch.username})
	}
	return append(o, field{"type", ch.kind})
}
