package telegramsim

import (
	"encoding/json"
	"strings"
	"unicode"
	"unicode/utf8"
)

const (
	maxRawText = 32_768 // bytes of the parameter, markup included
	maxText    = 4096   // code points after parsing
	maxCaption = 1024
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
	return text, entities, nil
}

// readCaption reads a caption, which may be missing.
func readCaption(p *params) (string, []entity, *apiError) {
	text, entities, err := formatted(p.get("caption"), p.get("parse_mode"), p.get("caption_entities"))
	if err == nil && utf8.RuneCountInString(text) > maxCaption {
		err = badRequest("message caption is too long")
	}
	return text, entities, err
}

// formatted turns a text with markup, or with a list of entities beside it,
// into plain text and entities.
func formatted(text, mode, list string) (string, []entity, *apiError) {
	if len(text) > maxRawText {
		return "", nil, badRequest("text is too long")
	}
	var entities []entity
	var detail string
	switch strings.ToLower(mode) {
	case "":
		if list != "" && json.Unmarshal([]byte(list), &entities) != nil {
			return "", nil, badRequest("can't parse entities JSON object")
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
	text, entities = trimmed(text, entities)
	return text, entities, nil
}

// trimmed takes the white space off both ends and moves the entities along.
// Only the first hundred entities are kept, silently.
func trimmed(text string, entities []entity) (string, []entity) {
	right := strings.TrimRightFunc(text, unicode.IsSpace)
	left := strings.TrimLeftFunc(right, unicode.IsSpace)
	shift, length := utf16Len(right)-utf16Len(left), utf16Len(left)
	var kept []entity
	for _, e := range entities {
		end := min(e.Offset+e.Length-shift, length)
		e.Offset = max(e.Offset-shift, 0)
		e.Length = end - e.Offset
		if e.Length > 0 && len(kept) < 100 {
			kept = append(kept, e)
		}
	}
	return left, kept
}
