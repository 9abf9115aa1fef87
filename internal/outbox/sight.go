package outbox

import (
	"encoding/json"
	"strings"
	"time"

	"github.com/tgspool/tgspool/internal/spool"
	"github.com/tgspool/tgspool/internal/text"
)

// shown is a message as an update shows it.
type shown struct {
	ID         int64           `json:"message_id"`
	Date       int64           `json:"date"` // Unix seconds; 0: Telegram doesn't show it any more
	Chat       identified      `json:"chat"`
	From       *identified     `json:"from"`
	SenderChat *identified     `json:"sender_chat"`
	Text       string          `json:"text"`
	Caption    string          `json:"caption"`
	Reply      json.RawMessage `json:"reply_to_message"`
	External   json.RawMessage `json:"external_reply"`
	Quote      struct {
		Text string `json:"text"`
	} `json:"quote"`
}

type identified struct {
	ID int64 `json:"id"`
}

// Sight finds the message of a bot that an update shows: one that is replied to
// or quoted, or whose button was pressed.
func Sight(bot int64) func(raw []byte) *spool.Sighting {
	return func(raw []byte) *spool.Sighting {
		var u struct {
			Message shown `json:"message"`
			Post    shown `json:"channel_post"`
			Press   struct {
				Message json.RawMessage `json:"message"`
			} `json:"callback_query"`
		}
		_ = json.Unmarshal(raw, &u) // what can't be read shows nothing
		for _, m := range []shown{{Reply: u.Press.Message}, u.Message, u.Post} {
			if s := sighting(bot, m.Reply); s != nil {
				return s
			}
			if s := quoted(bot, m); s != nil {
				return s
			}
		}
		return nil
	}
}

// sighting reads a message that is shown whole.
func sighting(bot int64, raw json.RawMessage) *spool.Sighting {
	var m shown
	if json.Unmarshal(raw, &m) != nil || m.ID == 0 || m.Date == 0 {
		return nil
	}
	// In a channel nobody is named as the author but the channel.
	ours := m.From != nil && m.From.ID == bot || m.From == nil && m.SenderChat != nil && m.SenderChat.ID == m.Chat.ID
	if !ours {
		return nil
	}
	var fields map[string]json.RawMessage
	_ = json.Unmarshal(raw, &fields)
	return &spool.Sighting{
		Chat: m.Chat.ID, ID: m.ID, Date: time.Unix(m.Date, 0), Message: raw,
		Is: func(method string, params json.RawMessage) bool { return m.madeBy(method, params, fields) },
	}
}

// quoted reads a message of which another chat's reply shows nothing but a quote.
func quoted(bot int64, m shown) *spool.Sighting {
	var e struct {
		ID     int64      `json:"message_id"`
		Chat   identified `json:"chat"`
		Origin struct {
			Date int64      `json:"date"`
			User identified `json:"sender_user"`
		} `json:"origin"`
	}
	if m.Quote.Text == "" || json.Unmarshal(m.External, &e) != nil || e.ID == 0 || e.Origin.Date == 0 || e.Origin.User.ID != bot {
		return nil
	}
	message, err := json.Marshal(map[string]any{"message_id": e.ID, "date": e.Origin.Date, "chat": e.Chat})
	if err != nil {
		return nil
	}
	return &spool.Sighting{
		Chat: e.Chat.ID, ID: e.ID, Date: time.Unix(e.Origin.Date, 0), Message: message,
		Is: func(method string, params json.RawMessage) bool {
			c := contentOf(params)
			want, ok := c.text, method == "sendMessage"
			if media[method] != "" {
				want, ok = c.caption, true
			}
			return ok && strings.Contains(want, m.Quote.Text)
		},
	}
}

// media are the methods that send one medium, and the field of the message that
// has it.
var media = map[string]string{
	"sendPhoto": "photo", "sendDocument": "document", "sendVideo": "video", "sendAudio": "audio",
	"sendVoice": "voice", "sendAnimation": "animation", "sendVideoNote": "video_note", "sendSticker": "sticker",
	"sendLocation": "location", "sendVenue": "venue", "sendContact": "contact", "sendDice": "dice",
}

// madeBy reports whether a call makes a message with that content.
func (m *shown) madeBy(method string, params json.RawMessage, fields map[string]json.RawMessage) bool {
	c := contentOf(params)
	if method == "sendMessage" {
		return m.Text != "" && sameText(c.text, m.Text)
	}
	field := media[method]
	return field != "" && fields[field] != nil && sameText(c.caption, m.Caption)
}

// content is what a call shows, without markup.
type content struct{ text, caption string }

func contentOf(params json.RawMessage) content {
	fields, err := readFields(params)
	if err != nil {
		return content{}
	}
	mode, _ := text.ModeOf(paramText(fields["parse_mode"]))
	plain := func(name string) string {
		s, _ := text.Shown(mode, paramText(fields[name]))
		return s
	}
	return content{text: plain("text"), caption: plain("caption")}
}

// sameText compares a text with what Telegram shows of it: without blanks at its
// ends, and maybe with the note that it went out late.
func sameText(sent, shown string) bool {
	sent, shown = strings.TrimSpace(strings.ReplaceAll(sent, "\r", "")), strings.TrimSpace(shown)
	before, _, _ := strings.Cut(shown, "\n\n(written ")
	return sent == shown || sent != "" && sent == strings.TrimSpace(before)
}
