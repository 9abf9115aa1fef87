package sender

import (
	"bytes"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf16"

	"github.com/tgspool/tgspool/internal/botapi"
	"github.com/tgspool/tgspool/internal/spool"
)

// chatOf is the chat that a job goes to, empty for calls that have none: their
// queues bear names with a colon, which no chat has.
func chatOf(c *spool.Claim) string {
	if strings.Contains(c.Chat, ":") {
		return ""
	}
	return c.Chat
}

func chatID(name string) (int64, bool) {
	id, err := strconv.ParseInt(name, 10, 64)
	return id, err == nil
}

// addressed returns the parameters with the chat's present id in place of the
// one that the caller gave, if the chat has migrated since, and everything else
// byte for byte. A @name goes on meaning what it means to Telegram.
func addressed(params, given json.RawMessage, chat string) json.RawMessage {
	text := strings.TrimSpace(strings.Trim(string(given), `"`))
	was, ok := chatID(text)
	is, isID := chatID(chat)
	if !ok || !isID || was == is {
		return params
	}
	start, end, ok := findField(params, "chat_id")
	if !ok {
		return params
	}
	value := strconv.FormatInt(is, 10)
	if params[start] == '"' {
		value = strconv.Quote(value)
	}
	return splice(params, start, end, value)
}

const (
	textLimit    = 4096 // UTF-16 units of a text
	captionLimit = 1024 // UTF-16 units of a caption
	repeatNote   = "(may be a repeat)"
)

// marked returns the parameters with a note at the end of the text or caption
// that it may be a repeat; nil when there is nothing to mark, or when it bears
// the note already.
func marked(method string, params json.RawMessage) json.RawMessage {
	return noted(method, params, repeatNote, true)
}

// lateNote is what the text of a job ends with that goes out later than it should;
// empty for one that is on time. The day is named where the hour alone would
// mislead.
func (s *Sender) lateNote(c *spool.Claim, now time.Time) string {
	due := c.CreatedAt
	if c.NotBefore != nil && c.NotBefore.After(due) {
		due = *c.NotBefore
	}
	if !c.LateNote || s.options.LateNote <= 0 || now.Sub(due) <= s.options.LateNote {
		return ""
	}
	layout := "15:04"
	if now.Sub(c.CreatedAt) >= 24*time.Hour {
		layout = "2006-01-02 15:04"
	}
	return "(written " + c.CreatedAt.Local().Format(layout) + ")"
}

// forMarkdown escapes what a note may hold and MarkdownV2 would take for markup.
var forMarkdown = strings.NewReplacer("(", `\(`, ")", `\)`, "-", `\-`)

// noted returns the parameters with a note at the end of the text or caption, cut
// so that it fits where that is wanted; nil when there is nothing to note it on,
// no room, or when it bears the note already.
func noted(method string, params json.RawMessage, note string, cut bool) json.RawMessage {
	field, limit := "caption", captionLimit
	if m := botapi.MethodFor(method); m.Name == "sendMessage" {
		field, limit = "text", textLimit
	}
	start, end, ok := findField(params, field)
	if !ok || params[start] != '"' {
		return nil
	}
	if mode, _ := stringField(params, "parse_mode"); strings.EqualFold(mode, "MarkdownV2") {
		note = forMarkdown.Replace(note)
	}
	var text string
	if err := json.Unmarshal(params[start:end], &text); err != nil || strings.HasSuffix(text, note) {
		return nil
	}
	note = "\n\n" + note
	if over := units(text) + units(note) - limit; over > 0 {
		short, ok := shortened(text, over, params)
		if !ok || !cut {
			return nil
		}
		return splice(params, start, end, quoted(short+note))
	}
	// Before the closing quote, so that all before it stays as it was written.
	return splice(params, end-1, end-1, strings.Trim(quoted(note), `"`))
}

// shortened cuts at least over units off the end of a text. A text with markup
// or entities is left alone: a cut could break it, and then it goes unmarked.
func shortened(text string, over int, params json.RawMessage) (string, bool) {
	for _, field := range []string{"parse_mode", "entities", "caption_entities"} {
		if _, _, ok := findField(params, field); ok {
			return "", false
		}
	}
	runes := []rune(text)
	for over++; over > 0 && len(runes) > 0; { // one more, for the ellipsis
		last := len(runes) - 1
		over -= utf16.RuneLen(runes[last])
		runes = runes[:last]
	}
	return string(runes) + "…", len(runes) > 0
}

func units(s string) (n int) {
	for _, r := range s {
		n += utf16.RuneLen(r)
	}
	return n
}

// quoted writes a string as JSON without the escapes that only HTML needs.
func quoted(s string) string {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(s); err != nil {
		return `""` // a string can always be encoded
	}
	return strings.TrimSuffix(b.String(), "\n")
}

func stringField(params json.RawMessage, name string) (s string, ok bool) {
	start, end, ok := findField(params, name)
	if !ok {
		return "", false
	}
	return s, json.Unmarshal(params[start:end], &s) == nil
}

// findField finds the bytes of a parameter's value. Of equal names the first
// counts, as it does for Telegram; null is the same as absent.
func findField(params json.RawMessage, name string) (start, end int, ok bool) {
	dec := json.NewDecoder(bytes.NewReader(params))
	if open, err := dec.Token(); err != nil || open != json.Delim('{') {
		return 0, 0, false
	}
	for dec.More() {
		key, err := dec.Token()
		if err != nil {
			return 0, 0, false
		}
		var value json.RawMessage
		if err := dec.Decode(&value); err != nil {
			return 0, 0, false
		}
		if key == name {
			end = int(dec.InputOffset())
			start = end - len(value)
			return start, end, string(value) != "null" && bytes.Equal(params[start:end], value)
		}
	}
	return 0, 0, false
}

func splice(params json.RawMessage, start, end int, with string) json.RawMessage {
	return slices.Concat(params[:start], json.RawMessage(with), params[end:])
}

// clip bounds a text that is kept.
func clip(s string, most int) string {
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "") + "…"
}
