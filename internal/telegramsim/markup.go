package telegramsim

import (
	"fmt"
	"html"
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

// write appends plain text.
func (b *builder) write(text string) {
	b.text.WriteString(text)
	b.units += utf16Len(text)
}

// begin opens an entity at the present place.
func (b *builder) begin(tag string, at int, e entity) {
	e.Offset = b.units
	b.open = append(b.open, opened{tag, at, e})
}

// end closes the innermost entity and returns it.
func (b *builder) end() {
	last := b.open[len(b.open)-1]
	b.open = b.open[:len(b.open)-1]
	last.entity.Length = b.units - last.entity.Offset
	if last.entity.Length > 0 && last.entity.Type != "" {
		b.entities = append(b.entities, last.entity)
	}
}

// innermost is the tag of the entity that is open, empty when none is.
func (b *builder) innermost() string {
	if len(b.open) == 0 {
		return ""
	}
	return b.open[len(b.open)-1].tag
}

// htmlTypes are the tags that may stand in a text, with the entities they make.
func htmlTypes() map[string]string {
	return map[string]string{
		"b": "bold", "strong": "bold", "i": "italic", "em": "italic", "u": "underline", "ins": "underline",
		"s": "strikethrough", "strike": "strikethrough", "del": "strikethrough", "tg-spoiler": "spoiler",
		"span": "spoiler", "a": "text_link", "code": "code", "pre": "pre", "blockquote": "blockquote",
		"tg-emoji": "custom_emoji",
	}
}

// parseHTML reads parse_mode HTML. The last result is what is wrong, empty when
// nothing is.
func parseHTML(source string) (string, []entity, string) {
	var b builder
	types := htmlTypes()
	for at := 0; at < len(source); {
		if source[at] != '<' {
			next := strings.IndexByte(source[at:], '<')
			if next < 0 {
				next = len(source) - at
			}
			b.write(html.UnescapeString(source[at : at+next]))
			at += next
			continue
		}
		end := strings.IndexByte(source[at:], '>')
		if end < 0 {
			return "", nil, fmt.Sprintf("Unclosed start tag at byte offset %d", at)
		}
		inside := source[at+1 : at+end]
		name, attrs, _ := strings.Cut(inside, " ")
		name = strings.ToLower(name)
		if closing, ok := strings.CutPrefix(name, "/"); ok {
			switch {
			case len(b.open) == 0:
				return "", nil, fmt.Sprintf("Unexpected end tag at byte offset %d", at)
			case closing != b.innermost():
				return "", nil, fmt.Sprintf("Unmatched end tag at byte offset %d, expected \"</%s>\", found \"</%s>\"",
					at, b.innermost(), closing)
			}
			b.end()
		} else {
			kind, known := types[name]
			if !known {
				return "", nil, fmt.Sprintf("Unsupported start tag \"%s\" at byte offset %d", name, at)
			}
			b.begin(name, at, htmlEntity(kind, attrs))
		}
		at += end + 1
	}
	if len(b.open) > 0 {
		return "", nil, fmt.Sprintf("Can't find end tag corresponding to start tag \"%s\"", b.innermost())
	}
	return b.text.String(), b.entities, ""
}

// htmlEntity makes the entity of a start tag.
func htmlEntity(kind, attrs string) entity {
	e := entity{Type: kind}
	key, value, _ := strings.Cut(attrs, "=")
	value = html.UnescapeString(strings.Trim(strings.TrimSpace(value), `"'`))
	switch strings.TrimSpace(key) {
	case "href":
		e.URL = value
	case "emoji-id":
		e.EmojiID = value
	case "class":
		e.Language = strings.TrimPrefix(value, "language-")
	}
	if kind != "code" && kind != "pre" {
		e.Language = ""
	}
	if kind == "text_link" && e.URL == "" {
		e.Type = "" // a link to nowhere is plain text
	}
	return e
}

// markdownMarks are the marks of MarkdownV2, longer ones first.
func markdownMarks() []struct{ mark, kind, name string } {
	return []struct{ mark, kind, name string }{
		{"```", "pre", "Pre"},
		{"||", "spoiler", "Spoiler"},
		{"__", "underline", "Underline"},
		{"*", "bold", "Bold"},
		{"_", "italic", "Italic"},
		{"~", "strikethrough", "Strikethrough"},
		{"`", "code", "Code"},
	}
}

// parseMarkdownV2 reads parse_mode MarkdownV2. The last result is what is
// wrong, empty when nothing is.
func parseMarkdownV2(source string) (string, []entity, string) {
	var b builder
	for at := 0; at < len(source); {
		rest := source[at:]
		verbatim := b.innermost() == "`" || b.innermost() == "```"
		if rest[0] == '\\' && len(rest) > 1 && rest[1] > 0 && rest[1] < 127 {
			b.write(rest[1:2])
			at += 2
			continue
		}
		if used := b.markdownMark(rest, at, verbatim); used > 0 {
			at += used
			continue
		}
		if used := b.markdownLink(rest, at, verbatim); used > 0 {
			at += used
			continue
		}
		if !verbatim && strings.IndexByte("()[]#+-=|{}.!>", rest[0]) >= 0 && !startsQuote(source, at) {
			return "", nil, fmt.Sprintf("Character '%c' is reserved and must be escaped with the preceding '\\'", rest[0])
		}
		_, size := utf8.DecodeRuneInString(rest)
		if rest[0] != '>' || verbatim {
			b.write(rest[:size])
		}
		at += size
	}
	if len(b.open) > 0 {
		last := b.open[len(b.open)-1]
		return "", nil, fmt.Sprintf("Can't find end of %s entity at byte offset %d", markName(last.tag), last.at)
	}
	return b.text.String(), b.entities, ""
}

// markdownMark opens or closes an entity when a mark stands here, and returns
// how many bytes it took.
func (b *builder) markdownMark(rest string, at int, verbatim bool) int {
	for _, m := range markdownMarks() {
		if !strings.HasPrefix(rest, m.mark) || verbatim && m.mark != b.innermost() {
			continue
		}
		if m.mark == b.innermost() {
			b.end()
		} else {
			b.begin(m.mark, at, entity{Type: m.kind})
		}
		return len(m.mark)
	}
	return 0
}

// markdownLink opens a link at '[' and closes it at '](address)'.
func (b *builder) markdownLink(rest string, at int, verbatim bool) int {
	switch {
	case verbatim:
		return 0
	case rest[0] == '[':
		b.begin("[", at, entity{Type: "text_link"})
		return 1
	case strings.HasPrefix(rest, "](") && b.innermost() == "[":
		end := strings.IndexByte(rest, ')')
		if end < 0 {
			return 0
		}
		b.open[len(b.open)-1].entity.URL = rest[2:end]
		b.end()
		return end + 1
	}
	return 0
}

// startsQuote tells whether a '>' stands at the start of a line.
func startsQuote(source string, at int) bool {
	return source[at] == '>' && (at == 0 || source[at-1] == '\n')
}

// markName is how errors call a mark.
func markName(mark string) string {
	for _, m := range markdownMarks() {
		if m.mark == mark {
			return m.name
		}
	}
	return "TextUrl"
}

// parseMarkdown reads the old parse_mode Markdown, which knows no nesting.
func parseMarkdown(source string) (string, []entity, string) {
	var b builder
	kinds := map[string]string{"*": "bold", "_": "italic", "`": "code", "```": "pre"}
	for at := 0; at < len(source); {
		rest := source[at:]
		mark := rest[:1]
		if strings.HasPrefix(rest, "```") {
			mark = "```"
		}
		switch {
		case mark == b.innermost():
			b.end()
			at += len(mark)
		case b.innermost() == "" && kinds[mark] != "":
			b.begin(mark, at, entity{Type: kinds[mark]})
			at += len(mark)
		case b.innermost() == "" && rest[0] == '\\' && len(rest) > 1 && strings.IndexByte("_*`[", rest[1]) >= 0:
			b.write(rest[1:2])
			at += 2
		default:
			if used := b.markdownLink(rest, at, b.innermost() != "" && b.innermost() != "["); used > 0 {
				at += used
				continue
			}
			_, size := utf8.DecodeRuneInString(rest)
			b.write(rest[:size])
			at += size
		}
	}
	if len(b.open) > 0 {
		return "", nil, fmt.Sprintf("Can't find end of the entity starting at byte offset %d", b.open[len(b.open)-1].at)
	}
	return b.text.String(), b.entities, ""
}
