package telegramsim

import (
	"encoding/json"
	"strconv"
	"time"
)

// draft reads what all sending methods have in common and makes a message that
// does not yet stand in its chat. The chat is checked before all else, as the
// real server does.
func (s *Sim) draft(c *call) (*message, *apiError) {
	ch, err := s.openChatLocked(c.params.get("chat_id"))
	if err != nil {
		return nil, err
	}
	m := &message{
		bot: c.bot, ch: ch, out: true, date: time.Now(), kind: "text",
		thread: c.params.integer("message_thread_id"), protect: c.params.truth("protect_content"),
	}
	if m.thread != 0 && !c.bot.threads[threadKey{ch.id, m.thread}] {
		return nil, badRequest("message thread not found")
	}
	if m.reply, err = s.replyTarget(c, ch); err != nil {
		return nil, err
	}
	m.markup, err = readMarkup(c.params.get("reply_markup"))
	return m, err
}

// replyTarget finds the message that is replied to, nil when there is none.
func (s *Sim) replyTarget(c *call, ch *chat) (*message, *apiError) {
	id := c.params.integer("reply_to_message_id")
	lenient := c.params.truth("allow_sending_without_reply")
	if text := c.params.get("reply_parameters"); text != "" {
		var p struct {
			MessageID int64           `json:"message_id"`
			ChatID    json.RawMessage `json:"chat_id"`
			Lenient   bool            `json:"allow_sending_without_reply"`
		}
		if json.Unmarshal([]byte(text), &p) != nil {
			return nil, badRequest("can't parse reply parameters JSON object")
		}
		id, lenient = p.MessageID, p.Lenient
		if len(p.ChatID) > 0 {
			other, err := s.findChatLocked(unquoted(p.ChatID))
			if err != nil {
				return nil, err
			}
			ch = other
		}
	}
	if id == 0 {
		return nil, nil
	}
	if m := ch.find(c.bot, id); m != nil {
		return m, nil
	}
	if lenient {
		return nil, nil
	}
	return nil, badRequest("message to be replied not found")
}

// unquoted is the text of a JSON string, or the raw text of anything else.
func unquoted(raw json.RawMessage) string {
	var text string
	if json.Unmarshal(raw, &text) == nil {
		return text
	}
	return string(raw)
}

// readMarkup checks a reply_markup.
func readMarkup(text string) (string, *apiError) {
	if text == "" {
		return "", nil
	}
	if !isJSONObject(text) {
		if json.Valid([]byte(text)) {
			return "", badRequest("object expected as reply markup")
		}
		return "", badRequest("can't parse reply keyboard markup JSON object")
	}
	if len(text) > 10<<10 {
		return "", badRequest("reply markup is too long")
	}
	var markup struct {
		Inline [][]struct {
			Text string  `json:"text"`
			Data *string `json:"callback_data"`
		} `json:"inline_keyboard"`
	}
	if json.Unmarshal([]byte(text), &markup) != nil {
		return "", badRequest("can't parse inline keyboard button: InlineKeyboardButton must be an Object")
	}
	for _, row := range markup.Inline {
		for _, button := range row {
			if button.Text == "" {
				return "", badRequest("can't parse inline keyboard button: Text buttons are unallowed in the inline keyboard")
			}
			if button.Data != nil && (len(*button.Data) == 0 || len(*button.Data) > 64) {
				return "", badRequest("BUTTON_DATA_INVALID")
			}
		}
	}
	return text, nil
}

// post puts a finished message into its chat and returns it as the result.
func (s *Sim) post(c *call, m *message) any {
	m.id = s.nextMessageIDLocked(m.bot, m.ch)
	m.ch.messages = append(m.ch.messages, m)
	c.touch(m)
	return s.render(m)
}

// methodSendMessage answers sendMessage.
func methodSendMessage(s *Sim, c *call) (any, *apiError) {
	m, err := s.draft(c)
	if err != nil {
		return nil, err
	}
	m.text, m.entities, err = readText(c.params, "text", "entities")
	if err != nil {
		return nil, err
	}
	return s.post(c, m), nil
}

// contentFunc makes the content of a message from parameters.
type contentFunc func(s *Sim, c *call) (any, *apiError)

// sendPlain is a sending method whose content needs no file.
func sendPlain(kind string, content contentFunc) methodFunc {
	return func(s *Sim, c *call) (any, *apiError) {
		m, err := s.draft(c)
		if err != nil {
			return nil, err
		}
		if m.content, err = content(s, c); err != nil {
			return nil, err
		}
		m.kind = kind
		return s.post(c, m), nil
	}
}

// locationContent reads a point on the map.
func locationContent(_ *Sim, c *call) (any, *apiError) {
	latitude, errLat := strconv.ParseFloat(c.params.get("latitude"), 64)
	longitude, errLong := strconv.ParseFloat(c.params.get("longitude"), 64)
	switch {
	case !c.params.has("latitude"):
		return nil, badRequest("latitude is empty")
	case !c.params.has("longitude"):
		return nil, badRequest("longitude is empty")
	case errLat != nil || errLong != nil:
		return nil, badRequest("wrong latitude or longitude specified")
	}
	o := object{{"latitude", latitude}, {"longitude", longitude}}
	if period := c.params.integer("live_period"); period > 0 {
		o = append(o, field{"live_period", period})
	}
	return o, nil
}

// venueContent reads a place.
func venueContent(s *Sim, c *call) (any, *apiError) {
	location, err := locationContent(s, c)
	if err != nil {
		return nil, err
	}
	for _, name := range []string{"title", "address"} {
		if c.params.get(name) == "" {
			return nil, badRequest("%s is empty", name)
		}
	}
	return object{
		{"location", location}, {"title", c.params.get("title")}, {"address", c.params.get("address")},
	}, nil
}

// contactContent reads a contact.
func contactContent(_ *Sim, c *call) (any, *apiError) {
	if c.params.get("phone_number") == "" {
		return nil, badRequest("phone number is empty")
	}
	if c.params.get("first_name") == "" {
		return nil, badRequest("first name is empty")
	}
	return object{
		{"phone_number", c.params.get("phone_number")}, {"first_name", c.params.get("first_name")},
	}, nil
}

// diceContent throws.
func diceContent(s *Sim, c *call) (any, *apiError) {
	emoji, sides := c.params.get("emoji"), 6
	switch emoji {
	case "":
		emoji = "🎲"
	case "🏀", "⚽":
		sides = 5
	case "🎰":
		sides = 64
	}
	return object{{"emoji", emoji}, {"value", s.rng.IntN(sides) + 1}}, nil
}

// pollState is a poll that was sent.
type pollState struct {
	id        string
	question  string
	options   []string
	anonymous bool
	closed    bool
}

// MarshalJSON is the Poll object.
func (p *pollState) MarshalJSON() ([]byte, error) {
	options := make([]object, 0, len(p.options))
	for _, text := range p.options {
		options = append(options, object{{"text", text}, {"voter_count", 0}})
	}
	return object{
		{"id", p.id},
		{"question", p.question},
		{"options", options},
		{"total_voter_count", 0},
		{"is_closed", p.closed},
		{"is_anonymous", p.anonymous},
		{"type", "regular"},
		{"allows_multiple_answers", false},
	}.MarshalJSON()
}

// pollContent reads a poll. Options are texts or objects with a text.
func pollContent(s *Sim, c *call) (any, *apiError) {
	p := &pollState{question: c.params.get("question"), anonymous: true}
	if p.question == "" {
		return nil, badRequest("poll question must be non-empty")
	}
	if len([]rune(p.question)) > 300 {
		return nil, badRequest("poll question length must not exceed 300")
	}
	if c.params.has("is_anonymous") {
		p.anonymous = c.params.truth("is_anonymous")
	}
	var raw []json.RawMessage
	if json.Unmarshal([]byte(c.params.get("options")), &raw) != nil {
		return nil, badRequest("can't parse options JSON object")
	}
	for _, option := range raw {
		var shaped struct {
			Text string `json:"text"`
		}
		if json.Unmarshal(option, &shaped.Text) != nil && json.Unmarshal(option, &shaped) != nil {
			return nil, badRequest("expected an option of type String")
		}
		p.options = append(p.options, shaped.Text)
	}
	if len(p.options) < 1 {
		return nil, badRequest("poll must have at least 1 answer option")
	}
	if len(p.options) > 12 {
		return nil, badRequest("poll can't have more than 12 answer options")
	}
	p.id = strconv.FormatInt(5_000_000_000_000_000_000+s.nextSerialLocked(), 10)
	return p, nil
}

// methodSendChatAction answers sendChatAction.
func methodSendChatAction(s *Sim, c *call) (any, *apiError) {
	if _, err := s.openChatLocked(c.params.get("chat_id")); err != nil {
		return nil, err
	}
	switch c.params.get("action") {
	case "typing", "upload_photo", "record_video", "upload_video", "record_voice", "upload_voice",
		"record_audio", "upload_audio", "upload_document", "choose_sticker", "find_location",
		"record_video_note", "upload_video_note":
		return true, nil
	}
	return nil, badRequest("wrong parameter action in request")
}
