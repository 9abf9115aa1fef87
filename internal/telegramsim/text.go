package telegramsim

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

const (
	maxRawText = 32_768 // bytes of the parameter, markup included
	maxText    = 4096   // code points after parsing
	maxCaption = 1024

	maxEntities = 100
)

// entity is a MessageEntity. Offsets and lengths count UTF-16 units.
type entity struct {
	Type     string `json:"type"`
	Offset   int    `json:"offset"`
	Length   int    `json:"length"`
	URL      string `json:"url,omitempty"`
	Language string `json:"language,omitempty"`
	EmojiID  string `json:"custom_emoji_id,omitempty"`
}

// utf16Len is the length of a text in UTF-16 units.
func utf16Len(text string) int {
	n := 0
	for _, r := range text {
		n++
		if r > 0xFFFF {
			n++
		}
	}
	return n
}

// readText reads the text of a message and its entities.
func readText(p *params, name, entityName string) (string, []entity, *apiError) {
	if p.get(name) == "" {
		return "", nil, badRequest("message text is empty")
	}
	text, entities, err := formatted(p.get(name), p.get("parse_mode"), p.get(entityName))
	switch {
	case err != nil:
		return "", nil, err
	case text == "":
		return "", nil, badRequest("text must be non-empty")
	case utf8.RuneCountInString(text) > maxText:
		return "", nil, badRequest("message is too long")
	}
	return text, firstOf(entities), nil
}

// readCaption reads a caption, which may be missing.
func readCaption(p *params) (string, []entity, *apiError) {
	text, entities, err := formatted(p.get("caption"), p.get("parse_mode"), p.get("caption_entities"))
	if err == nil && utf8.RuneCountInString(text) > maxCaption {
		err = badRequest("message caption is too long")
	}
	return text, firstOf(entities), err
}

// firstOf are the entities that are kept; more are dropped silently.
func firstOf(entities []entity) []entity { return entities[:min(len(entities), maxEntities)] }

// formatted turns a text with markup, or with a list of entities beside it,
// into plain text and entities.
func formatted(text, mode, list string) (string, []entity, *apiError) {
	if len(text) > maxRawText {
		return "", nil, badRequest("text is too long")
	}
	return parsed(text, mode, list)
}

// parsed does it whatever the length.
func parsed(text, mode, list string) (string, []entity, *apiError) {
	var entities []entity
	var detail string
	switch strings.ToLower(mode) {
	case "":
		if list != "" && json.Unmarshal([]byte(list), &entities) != nil {
			return "", nil, badRequest("can't parse entities JSON object")
		}
		if wrong := outOfBounds(text, entities); wrong != "" {
			return "", nil, badRequest("%s", wrong)
		}
	case "html":
		text, entities, detail = parseHTML(text)
	case "markdownv2":
		text, entities, detail = parseMarkdownV2(text)
	case "markdown":
		text, entities, detail = parseMarkdown(text)
	default:
		return "", nil, badRequest("unsupported parse_mode")
	}
	if detail != "" {
		return "", nil, badRequest("can't parse entities: %s", detail)
	}
	slices.SortStableFunc(entities, func(a, b entity) int {
		return cmp.Or(cmp.Compare(a.Offset, b.Offset), cmp.Compare(b.Length, a.Length))
	})
	text, entities = trimmed(text, entities)
	return text, entities, nil
}

// Parse reads a text as sendMessage would, without its limits of length: the text
// that a chat shows and its MessageEntity objects, or Telegram's words about what
// is wrong with it. Entities is their list for a text without a parse mode.
func Parse(text, parseMode, entities string) (string, json.RawMessage, error) {
	text, list, err := parsed(text, parseMode, entities)
	if err == nil && text == "" {
		err = badRequest("text must be non-empty")
	}
	if err != nil {
		return "", nil, errors.New(err.description)
	}
	if list == nil {
		list = []entity{}
	}
	return text, encode(list), nil
}

// outOfBounds says which entity lies beyond the text or begins or ends inside of
// a surrogate pair.
func outOfBounds(text string, entities []entity) string {
	edges := map[int]bool{0: true}
	length := 0
	for _, r := range text {
		length += utf16Len(string(r))
		edges[length] = true
	}
	for _, e := range entities {
		end := e.Offset + e.Length
		switch {
		case e.Offset < 0 || e.Offset > 1_000_000:
			return fmt.Sprintf("receive an entity with incorrect offset %d", e.Offset)
		case e.Length < 0 || e.Length > 1_000_000:
			return fmt.Sprintf("receive an entity with incorrect length %d", e.Length)
		case e.Length == 0: // dropped
		case e.Offset > length:
			return fmt.Sprintf("entity begins after the end of the text at UTF-16 offset %d", e.Offset)
		case end > length:
			return fmt.Sprintf("entity beginning at UTF-16 offset %d ends after the end of the text at UTF-16 offset %d", e.Offset, end)
		case !edges[e.Offset]:
			return fmt.Sprintf("entity begins in a middle of a UTF-16 symbol at UTF-16 offset %d", e.Offset)
		case !edges[end]:
			return fmt.Sprintf("entity beginning at UTF-16 offset %d ends in a middle of a UTF-16 symbol", e.Offset)
		}
	}
	return ""
}

// trimmed takes the white space off both ends and moves the entities along: at
// the beginning only what no entity covers.
func trimmed(text string, entities []entity) (string, []entity) {
	right := strings.TrimRight(text, blanks)
	left := strings.TrimLeft(right, blanks)
	first := utf16Len(right)
	for _, e := range entities {
		first = min(first, e.Offset)
	}
	if n := len(right) - len(left); n > first { // blanks are single bytes
		left = right[first:]
	}
	shift, length := utf16Len(right)-utf16Len(left), utf16Len(left)
	var kept []entity
	for _, e := range entities {
		end := min(e.Offset+e.Length-shift, length)
		e.Offset = max(e.Offset-shift, 0)
		e.Length = end - e.Offset
		if e.Length > 0 {
			kept = append(kept, e)
		}
	}
	if strings.Trim(left, blanks) == "" {
		return "", nil
	}
	return left, kept
}

// blanks is what Telegram cuts off: control characters count as spaces.
const blanks = "\x00\x01\x02\x03\x04\x05\x06\x07\x08\t\n\x0b\x0c\r\x0e\x0f\x10\x11\x12\x13\x14\x15\x16\x17\x18\x19\x1a\x1b\x1c\x1d\x1e\x1f "
