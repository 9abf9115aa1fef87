package telegramsim

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// builder collects plain text and the entities over it.
type builder struct {
	text     strings.Builder
	units    int // UTF-16 units so far
	entities []entity
	open     []opened
}

// opened is an entity whose end has not come yet.
type opened struct {
	tag    string // as written
	at     int    // byte offset of the mark in the source
	entity entity
}

// write appends plain text, or one byte of it. The first byte of a character
// tells how many units it has.
func (b *builder) write(text string) {
	b.text.WriteString(text)
	for i := range len(text) {
		if text[i]&0xC0 != 0x80 {
			b.units++
			if text[i] >= 0xF0 {
				b.units++
			}
		}
	}
}

// begin opens an entity at the present place.
func (b *builder) begin(tag string, at int, e entity) {
	e.Offset = b.units
	b.open = append(b.open, opened{tag, at, e})
}

// end closes the innermost entity. A link without an address leads where its
// text says, and is plain text when that leads nowhere.
func (b *builder) end() {
	last := b.open[len(b.open)-1].entity
	b.open = b.open[:len(b.open)-1]
	last.Length = b.units - last.Offset
	if last.Type == "text_link" {
		if last.URL == "" {
			last.URL = tail16(b.text.String(), last.Length)
		}
		if !strings.ContainsAny(last.URL, ".:") {
			return
		}
	}
	if last.Length > 0 {
		b.entities = append(b.entities, last)
	}
}

// tail16 is the end of a text, in UTF-16 units.
func tail16(text string, units int) string {
	at := len(text)
	for units > 0 && at > 0 {
		r, size := utf8.DecodeLastRuneInString(text[:at])
		at -= size
		if units--; r > 0xFFFF {
			units--
		}
	}
	return text[at:]
}

// innermost is the tag of the entity that is open, empty when none is.
func (b *builder) innermost() string {
	if len(b.open) == 0 {
		return ""
	}
	return b.open[len(b.open)-1].tag
}

// parseMarkdown reads the old parse_mode Markdown, which knows no nesting.
func parseMarkdown(source string) (string, []entity, string) {
	var b builder
	kinds := map[byte]entity{'*': {Type: "bold"}, '_': {Type: "italic"}, '`': {Type: "code"}, '[': {Type: "text_link"}}
	for at := 0; at < len(source); {
		rest := source[at:]
		e, isMark := kinds[rest[0]]
		switch {
		case rest[0] == '\\' && len(rest) > 1 && strings.IndexByte("_*`[", rest[1]) >= 0:
			b.write(rest[1:2])
			at += 2
			continue
		case !isMark:
			b.write(rest[:1])
			at++
			continue
		}
		used, end := 1, rest[:1]
		switch {
		case strings.HasPrefix(rest, "```"):
			end = "```"
			e.Type = "pre"
			e.Language, used = codeHead(rest)
		case rest[0] == '[':
			end = "]"
		}
		length := strings.Index(rest[used:], end)
		if length < 0 {
			return "", nil, fmt.Sprintf("Can't find end of the entity starting at byte offset %d", at)
		}
		b.begin(rest[:1], at, e)
		b.write(rest[used : used+length])
		at += used + length + len(end)
		if end == "]" && strings.HasPrefix(source[at:], "(") {
			url, _, _ := strings.Cut(source[at+1:], ")")
			b.open[0].entity.URL = url
			at = min(at+len(url)+2, len(source))
		}
		b.end()
	}
	return b.text.String(), b.entities, ""
}
