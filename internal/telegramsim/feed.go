package telegramsim

import (
	"encoding/json"
	"strconv"
	"strings"
	"time"
)

// Feed puts an update into a bot's queue (bot 0: the first bot) and returns its
// update_id. An update without update_id gets the next one; an update with one
// keeps it, and the ids go on from there, also when that is further down. An
// element that is no update at all is queued as it is, so that a client can be
// shown one. It returns 0 when the update is dropped: its kind is not asked
// for, or the queue is full.
func (s *Sim) Feed(bot int64, update json.RawMessage) int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.feedLocked(s.botLocked(bot), update)
}

// FeedText makes a text message from a user in a chat, feeds it to the first
// bot and returns its update_id.
func (s *Sim) FeedText(chatID, userID int64, text string) int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	b := s.botLocked(0)
	if b == nil {
		return 0
	}
	ch := s.chatForFeedLocked(chatID)
	body := object{
		{"message_id", s.nextMessageIDLocked(b, ch)},
		{"from", userObject(userID)},
		{"chat", ch.brief()},
		{"date", time.Now().Unix()},
		{"text", text},
	}
	if command, _, _ := strings.Cut(text, " "); len(command) > 1 && command[0] == '/' {
		body = append(body, field{"entities", []object{{
			{"offset", 0}, {"length", utf16Len(command)}, {"type", "bot_command"},
		}}})
	}
	kind := "message"
	if ch.kind == kindChannel {
		kind = "channel_post"
	}
	return s.feedLocked(b, encode(object{{kind, body}}))
}

// FeedReply is FeedText with a reply to a message that the first bot has sent, and
// a quote from it when that isn't empty.
func (s *Sim) FeedReply(chatID, userID, messageID int64, text, quote string) int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	b := s.botLocked(0)
	if b == nil {
		return 0
	}
	ch := s.chatForFeedLocked(chatID)
	body := object{
		{"message_id", s.nextMessageIDLocked(b, ch)},
		{"from", userObject(userID)},
		{"chat", ch.brief()},
		{"date", time.Now().Unix()},
	}
	if m := ch.find(b, messageID); m != nil {
		inner := *m
		inner.reply = nil
		body = append(body, field{"reply_to_message", s.render(&inner)})
	}
	if quote != "" {
		body = append(body, field{"quote", object{{"text", quote}, {"position", 0}, {"is_manual", true}}})
	}
	return s.feedLocked(b, encode(object{{"message", append(body, field{"text", text})}}))
}

// PressButton feeds the first bot a callback_query: a user pressed a button
// with that data under a message. It returns the update_id.
func (s *Sim) PressButton(chatID, userID, messageID int64, data string) int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	b := s.botLocked(0)
	if b == nil {
		return 0
	}
	ch := s.chatForFeedLocked(chatID)
	var shown any = object{{"message_id", messageID}, {"chat", ch.brief()}, {"date", 0}} // inaccessible
	if m := ch.find(b, messageID); m != nil {
		shown = s.render(m)
	}
	id := strconv.FormatInt(userID<<32|s.nextSerialLocked(), 10)
	return s.feedLocked(b, encode(object{{"callback_query", object{
		{"id", id},
		{"from", userObject(userID)},
		{"message", shown},
		{"chat_instance", strconv.FormatInt(chatID, 10)},
		{"data", data},
	}}}))
}

// JumpUpdateID sets the id of the bot's next update (bot 0: the first bot), as
// happens to a bot after a quiet week; it may be lower than the last.
func (s *Sim) JumpUpdateID(bot, next int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if b := s.botLocked(bot); b != nil {
		b.queue.next = next
	}
}

// Pending is the number of updates that wait for a bot (0: the first bot).
func (s *Sim) Pending(bot int64) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	b := s.botLocked(bot)
	if b == nil {
		return 0
	}
	b.queue.expire(time.Now())
	return b.queue.count
}

// feedLocked filters, registers and queues one update.
func (s *Sim) feedLocked(b *bot, raw json.RawMessage) int64 {
	if b == nil {
		return 0
	}
	id, hasID, kind, inside := splitUpdate(raw)
	if kind == "" { // a malformed element: it only needs a place in the queue
		id, hasID = b.queue.next, true
	}
	info, known := kindTable()[kind]
	if known && !b.wants(kind, info) {
		return 0
	}
	if !known {
		info = kindInfo{retention: day}
	}
	if !hasID {
		id = b.queue.next
		raw = withUpdateID(raw, id)
	}
	now := time.Now()
	var body updateBody
	// Fields of odd types leave the rest readable, and a bot sees odd ones too.
	_ = json.Unmarshal(inside, &body)
	s.learnLocked(b, kind, inside, &body)
	e := &event{id: id, raw: raw, kind: kind, key: body.orderKey(kind, info.order), expires: body.expiry(info, now)}
	if !b.queue.push(e) {
		return 0
	}
	b.wakeLocked()
	return id
}

// wants tells whether the bot asked for a kind. The filter works when an update
// is made, not when it is delivered.
func (b *bot) wants(kind string, info kindInfo) bool {
	if b.allowed == nil {
		return !info.optIn
	}
	return b.allowed[kind]
}

// learnLocked takes from an update what later calls may refer to: its chat, its
// message, its topic, its files and its query id.
func (s *Sim) learnLocked(b *bot, kind string, inside json.RawMessage, body *updateBody) {
	if body.Chat != nil && body.Chat.ID != 0 {
		ch := s.addChatLocked(*body.Chat)
		if body.MessageThreadID != 0 {
			b.threads[threadKey{ch.id, body.MessageThreadID}] = true
		}
		if body.MessageID != 0 && (strings.HasSuffix(kind, "message") || strings.HasSuffix(kind, "channel_post")) {
			ch.keepFed(b, inside, body)
		}
	}
	if life, ok := answerLife(kind); ok {
		var id string
		if json.Unmarshal(body.ID, &id) == nil {
			s.forgetQueriesLocked()
			s.queries[id] = &query{kind: kind, until: time.Now().Add(life)}
		}
	}
	s.learnFilesLocked(b, inside)
}

// withUpdateID puts the id in front of an update's other fields.
func withUpdateID(raw json.RawMessage, id int64) json.RawMessage {
	_, rest, _ := strings.Cut(string(raw), "{")
	head := `{"update_id":` + strconv.FormatInt(id, 10)
	if trimmed := strings.TrimSpace(rest); trimmed != "}" {
		head += ","
	}
	return json.RawMessage(head + rest)
}

// userObject is a person who exists only as an id.
func userObject(id int64) object {
	return object{
		{"id", id},
		{"is_bot", false},
		{"first_name", "User " + strconv.FormatInt(id, 10)},
		{"language_code", "en"},
	}
}
