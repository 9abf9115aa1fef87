package outbox

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/tgspool/tgspool/internal/botapi"
	"github.com/tgspool/tgspool/internal/spool"
	"github.com/tgspool/tgspool/internal/text"
)

// maxGroup is the most that the jobs of one text may take together, in bytes of
// parameters: parts repeat what stands beside their text.
const maxGroup = 16 << 20

// carried are the parameters of a call that the further parts of its text have,
// too. What is not here belongs to the first message, or to the medium.
var carried = []string{
	"business_connection_id", "chat_id", "message_thread_id", "direct_messages_topic_id",
	"parse_mode", "link_preview_options", "disable_web_page_preview",
	"disable_notification", "protect_content", "allow_paid_broadcast",
}

// textCall is a call with the text that it brings.
type textCall struct {
	method botapi.Method
	fields map[string]json.RawMessage
	params json.RawMessage // as they came; nil once the fields have changed

	name, entities string // the parameters of the text
	most           int    // UTF-16 units of it
	text           text.Message
	whole          bool // the text can't be read: Telegram says what is wrong with it
}

// newText makes the job of a call whose text tgspool was asked to send as a text:
// one job, or the first of a group with the others as its parts.
func newText(m botapi.Method, params json.RawMessage, fields map[string]json.RawMessage, o Options) (spool.NewJob, error) {
	if o.PlainFallback && o.Fallback != nil {
		return spool.NewJob{}, invalid("a fallback and a plain fallback exclude each other")
	}
	c, err := readTextCall(m, params, fields)
	if err != nil {
		return spool.NewJob{}, err
	}
	calls := []textCall{c}
	if o.Split {
		calls, err = c.split(o.PlainFallback)
	}
	switch {
	case err != nil:
		return spool.NewJob{}, err
	case len(calls) > 1 && len(fields["chat_id"]) == 0:
		return spool.NewJob{}, invalid("the text takes %d messages, and there is no chat_id for them", len(calls))
	case len(calls) > 1 && o.Fallback != nil:
		return spool.NewJob{}, invalid("the text takes %d messages, and a fallback can't stand for them", len(calls))
	}
	first, err := calls[0].job(o)
	if err != nil {
		return spool.NewJob{}, err
	}
	o.Files, o.DedupeKey, o.DedupeFor, o.Replace = nil, "", 0, false
	left := maxGroup
	for _, call := range calls[1:] {
		part, err := call.job(o)
		if err != nil {
			return spool.NewJob{}, err
		}
		if left -= len(part.Params); left < 0 {
			return spool.NewJob{}, invalid("the messages that the text takes are together longer than %d MiB", maxGroup>>20)
		}
		first.Parts = append(first.Parts, part)
	}
	return first, nil
}

// readTextCall finds the text of a call. One that isn't a string, or whose
// entities aren't a list, is left for Telegram to refuse.
func readTextCall(m botapi.Method, params json.RawMessage, fields map[string]json.RawMessage) (textCall, error) {
	c := textCall{method: m, fields: fields, params: params}
	switch {
	case m.Name == "sendMessage" || m.Name == "editMessageText":
		c.name, c.entities, c.most = "text", "entities", text.MaxText
	case m.Name == "editMessageCaption", m.Name == "copyMessage",
		strings.HasPrefix(m.Name, "send") && m.Kind == botapi.KindSend && fields["text"] == nil:
		c.name, c.entities, c.most = "caption", "caption_entities", text.MaxCaption
	default:
		return c, invalid("%s has no text that could be split or sent plain", m.Name)
	}
	mode, known := text.ModeOf(paramText(fields["parse_mode"]))
	c.text.Mode = mode
	c.whole = !known || json.Unmarshal(fields[c.name], &c.text.Text) != nil
	if list := paramText(fields[c.entities]); list != "" && mode == text.None && json.Unmarshal([]byte(list), &c.text.Entities) != nil {
		c.whole = true
	}
	return c, nil
}

// split makes the calls that bring the whole text. A text that isn't valid in its
// mode stays one call, so that Telegram says what is wrong with it; but where a
// plain text is to follow that, and it would be too long, it is what is split.
func (c textCall) split(plainFallback bool) ([]textCall, error) {
	if c.whole {
		return []textCall{c}, nil
	}
	parts, err := c.text.Split(c.most, text.MaxText)
	if err != nil && plainFallback {
		if plain := text.Plain(c.text.Mode, c.text.Text); text.Units(plain) > c.most {
			parts, err = text.Message{Text: plain}.Split(c.most, text.MaxText)
		}
	}
	switch {
	case errors.Is(err, text.ErrTooMany):
		return nil, invalid("%w", err)
	case len(parts) < 2: // none of what can't be split
		return []textCall{c}, nil
	}
	first := c
	first.fields = maps.Clone(c.fields)
	delete(first.fields, "reply_markup")
	calls := []textCall{first.with(parts[0])}
	for _, part := range parts[1:] {
		next := textCall{method: botapi.MethodFor("sendMessage"), name: "text", entities: "entities", most: text.MaxText}
		next.fields = map[string]json.RawMessage{}
		for _, name := range carried {
			if v, ok := c.fields[name]; ok {
				next.fields[name] = v
			}
		}
		calls = append(calls, next.with(part))
	}
	if markup, ok := c.fields["reply_markup"]; ok {
		calls[len(calls)-1].fields["reply_markup"] = markup
	}
	return calls, nil
}

// with is the call with another text.
func (c textCall) with(m text.Message) textCall {
	c.fields = maps.Clone(c.fields)
	c.params, c.text = nil, m
	c.fields[c.name] = encode(m.Text)
	delete(c.fields, c.entities)
	if len(m.Entities) > 0 {
		c.fields[c.entities] = encode(m.Entities)
	}
	if m.Mode == text.None {
		delete(c.fields, "parse_mode")
	}
	return c
}

// job makes the job of one call.
func (c textCall) job(o Options) (spool.NewJob, error) {
	if c.params == nil {
		c.params = c.encode()
	}
	plain, hasPlain := c.plain()
	if o.PlainFallback && hasPlain {
		o.Fallback = &Fallback{Params: plain.encode()}
	}
	job, err := newJob(c.method, c.params, c.fields, o)
	if err == nil && o.PlainFallback && job.Fallback != nil {
		job.Fallback.ForMarkup = true
	}
	return job, err
}

// plain is the call with a plain text, if it has markup and that text fits.
func (c textCall) plain() (textCall, bool) {
	if c.whole || c.text.Mode == text.None {
		return c, false
	}
	plain := text.Plain(c.text.Mode, c.text.Text)
	if units := text.Units(plain); units > c.most || strings.TrimSpace(plain) == "" {
		return c, false
	}
	return c.with(text.Message{Text: plain}), true
}

// encode writes the parameters, in the order of their names. What is null is
// left out.
func (c textCall) encode() json.RawMessage {
	var b bytes.Buffer
	b.WriteByte('{')
	for _, name := range slices.Sorted(maps.Keys(c.fields)) {
		if c.fields[name] == nil {
			continue
		}
		if b.Len() > 1 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, "%s:%s", encode(name), c.fields[name])
	}
	b.WriteByte('}')
	return b.Bytes()
}

// encode writes JSON in which <, > and & stay readable.
func encode(v any) json.RawMessage {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(v) // strings and lists of what was JSON before
	return bytes.TrimRight(b.Bytes(), "\n")
}
