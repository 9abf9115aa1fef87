package telegramsim

import (
	"encoding/json"
	"slices"
	"time"
)

// Message is a message as it now stands in a chat.
type Message struct {
	ID     int64     `json:"message_id"`
	Bot    int64     `json:"bot"` // the account in whose eyes it exists
	Out    bool      `json:"out"` // sent by the bot
	Kind   string    `json:"kind"`
	Text   string    `json:"text"` // text or caption
	At     time.Time `json:"at"`
	Edited bool      `json:"edited"`
	Pinned bool      `json:"pinned"`
	// Raw is the Message object as Telegram shows it.
	Raw json.RawMessage `json:"raw"`
}

// message is a message in a chat. Sim.mu guards it.
type message struct {
	id       int64
	bot      *bot
	ch       *chat
	out      bool // by the bot
	date     time.Time
	edited   time.Time
	thread   int64
	kind     string // text, photo, …, as the field of the Message object
	content  any    // value of that field, nil for text
	file     *file  // of media kinds
	text     string // text or caption
	entities []entity
	markup   string // reply_markup as JSON
	reply    *message
	origin   object // forward_origin
	album    string
	protect  bool
	raw      json.RawMessage // a message that was fed, as it came
}

// Chat returns the messages that now stand in a chat, oldest first, whether fed
// or sent.
func (s *Sim) Chat(chatID int64) []Message {
	s.mu.Lock()
	defer s.mu.Unlock()
	ch := s.chats[chatID]
	if ch == nil {
		return nil
	}
	list := make([]Message, 0, len(ch.messages))
	for _, m := range ch.messages {
		list = append(list, Message{
			ID: m.id, Bot: m.bot.id, Out: m.out, Kind: m.kind, Text: m.text, At: m.date,
			Edited: !m.edited.IsZero(), Pinned: slices.Contains(ch.pinned, m.id),
			Raw: encode(s.render(m)),
		})
	}
	return list
}

// nextMessageIDLocked takes the next message id: private chats and basic groups
// share one counter per account, supergroups and channels have their own.
func (s *Sim) nextMessageIDLocked(b *bot, ch *chat) int64 {
	counter := ch.counter(b)
	*counter++
	return *counter
}

// counter is where the chat's message ids come from.
func (ch *chat) counter(b *bot) *int64 {
	if ch.kind == kindPrivate || ch.kind == kindGroup {
		return &b.messageID
	}
	return &ch.messageID
}

// find returns a message by its id as the bot sees it, nil when there is none.
func (ch *chat) find(b *bot, id int64) *message {
	shared := ch.kind == kindSupergroup || ch.kind == kindChannel
	for _, m := range slices.Backward(ch.messages) {
		if m.id == id && (shared || m.bot == b) {
			return m
		}
	}
	return nil
}

// drop takes a message out of the chat.
func (ch *chat) drop(m *message) {
	ch.messages = slices.DeleteFunc(ch.messages, func(x *message) bool { return x == m })
	ch.pinned = slices.DeleteFunc(ch.pinned, func(id int64) bool { return id == m.id })
}

// keepFed stores a message that came in an update, so that it can be answered,
// copied and forwarded. An edit replaces it.
func (ch *chat) keepFed(b *bot, inside json.RawMessage, body *updateBody) {
	counter := ch.counter(b)
	*counter = max(*counter, body.MessageID)
	m := ch.find(b, body.MessageID)
	if m == nil {
		m = &message{id: body.MessageID, bot: b, ch: ch, date: time.Unix(body.Date, 0)}
		ch.messages = append(ch.messages, m)
	} else if m.out {
		return
	}
	m.raw, m.text, m.thread, m.kind = inside, body.Text+body.Caption, body.MessageThreadID, "text"
	if body.EditDate != 0 {
		m.edited = time.Unix(body.EditDate, 0)
	}
	m.kind, m.content = fedContent(inside)
}

// fedContent finds what kind of message was fed and the value of its field.
func fedContent(inside json.RawMessage) (string, any) {
	var members map[string]json.RawMessage
	if json.Unmarshal(inside, &members) != nil {
		return "text", nil
	}
	for _, kind := range contentKinds() {
		if value, ok := members[kind]; ok {
			return kind, value
		}
	}
	return "text", nil
}

// contentKinds are the fields of a Message that hold its content.
func contentKinds() []string {
	return []string{
		"animation", "photo", "document", "video", "audio", "voice", "video_note", "sticker",
		"venue", "location", "contact", "poll", "dice",
	}
}

// render is the message as Telegram shows it to the bot.
func (s *Sim) render(m *message) any {
	if m.raw != nil {
		return m.raw
	}
	o := object{{"message_id", m.id}}
	if m.thread != 0 {
		o = append(o, field{"message_thread_id", m.thread}, field{"is_topic_message", true})
	}
	if m.ch.kind == kindChannel {
		o = append(o, field{"sender_chat", m.ch.brief()})
	} else {
		o = append(o, field{"from", m.bot.user()})
	}
	o = append(o, field{"chat", m.ch.brief()}, field{"date", m.date.Unix()})
	if !m.edited.IsZero() {
		o = append(o, field{"edit_date", m.edited.Unix()})
	}
	if m.origin != nil {
		o = append(o, field{"forward_origin", m.origin})
	}
	if m.reply != nil {
		inner := *m.reply
		inner.reply = nil // replies are shown one level deep
		o = append(o, field{"reply_to_message", s.render(&inner)})
	}
	if m.album != "" {
		o = append(o, field{"media_group_id", m.album})
	}
	if m.protect {
		o = append(o, field{"has_protected_content", true})
	}
	o = append(o, m.body()...)
	if m.markup != "" && isInline(m.markup) {
		o = append(o, field{"reply_markup", rawJSON(m.markup)})
	}
	return o
}

// body is the content of the message: text, or a medium with its caption.
func (m *message) body() object {
	var o object
	textKey, entityKey := "text", "entities"
	if m.kind != "text" {
		textKey, entityKey = "caption", "caption_entities"
		if m.kind == "animation" { // old clients look for a document
			o = append(o, field{"document", m.content})
		}
		if venue, ok := m.content.(object); ok && m.kind == "venue" {
			o = append(o, field{"location", venue[0].value})
		}
		o = append(o, field{m.kind, m.content})
	}
	if m.text != "" {
		o = append(o, field{textKey, m.text})
	}
	if len(m.entities) > 0 {
		o = append(o, field{entityKey, m.entities})
	}
	return o
}

// isInline tells whether a markup is an inline keyboard, the only one that a
// Message shows.
func isInline(markup string) bool {
	var members map[string]json.RawMessage
	return json.Unmarshal([]byte(markup), &members) == nil && members["inline_keyboard"] != nil
}
