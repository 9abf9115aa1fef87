package telegramsim

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// htmlTypes are the tags that may stand in a text, with the entities they make.
func htmlTypes() map[string]string {
	return map[string]string{
		"b": "bold", "strong": "bold", "i": "italic", "em": "italic", "u": "underline", "ins": "underline",
		"s": "strikethrough", "strike": "strikethrough", "del": "strikethrough", "tg-spoiler": "spoiler",
		"span": "spoiler", "a": "text_link", "code": "code", "pre": "pre", "blockquote": "blockquote",
		"tg-emoji": "custom_emoji", "tg-time": "date_time",
	}
}

// htmlReader reads parse_mode HTML byte by byte.
type htmlReader struct {
	builder
	source string
	at     int
}

// parseHTML reads parse_mode HTML. The last result is what is wrong, empty when
// nothing is.
func parseHTML(source string) (string, []entity, string) {
	r := &htmlReader{source: source}
	for r.at < len(source) {
		detail := ""
		switch c := source[r.at]; {
		case c == '&':
			r.reference()
		case c != '<':
			r.write(source[r.at : r.at+1])
			r.at++
		case strings.HasPrefix(source[r.at:], "</"):
			detail = r.endTag()
		default:
			detail = r.startTag()
		}
		if detail != "" {
			return "", nil, detail
		}
	}
	if len(r.open) > 0 {
		return "", nil, fmt.Sprintf("Can't find end tag corresponding to start tag \"%s\"", r.innermost())
	}
	text := r.text.String()
	if !utf8.ValidString(text) {
		return "", nil, "Text contains invalid Unicode characters after decoding HTML entities, check for unmatched surrogate code units"
	}
	for i := range r.entities {
		if r.entities[i].Type == "code" {
			r.entities[i].Language = "" // only a block has one
		}
	}
	return text, r.entities, ""
}

// peek is the byte under the reader, 0 at the end.
func (r *htmlReader) peek() byte {
	if r.at < len(r.source) {
		return r.source[r.at]
	}
	return 0
}

// while passes over bytes and returns them.
func (r *htmlReader) while(is func(byte) bool) string {
	from := r.at
	for r.at < len(r.source) && is(r.source[r.at]) {
		r.at++
	}
	return r.source[from:r.at]
}

func isSpace(c byte) bool { return strings.IndexByte(" \t\r\n\v", c) >= 0 }

// reference writes a character reference, or the ampersand when it is none of
// the few that are known.
func (r *htmlReader) reference() {
	value, n := decodeReference(r.source[r.at:])
	if n == 0 {
		value, n = "&", 1
	}
	r.write(value)
	r.at += n
}

// decodeReference returns the character and the length of a reference, 0 when
// it isn't known.
func decodeReference(s string) (string, int) {
	for name, value := range map[string]string{"lt": "<", "gt": ">", "amp": "&", "quot": "\""} {
		if rest, ok := strings.CutPrefix(s, "&"+name); ok && (rest == "" || !isAlpha(rest[0])) {
			return value, len(s) - len(strings.TrimPrefix(rest, ";"))
		}
	}
	digits, base := "0123456789", 10
	rest, ok := strings.CutPrefix(s, "&#x")
	if ok {
		digits, base = "0123456789abcdefABCDEF", 16
	} else if rest, ok = strings.CutPrefix(s, "&#"); !ok {
		return "", 0
	}
	number := rest[:len(rest)-len(strings.TrimLeft(rest, digits))]
	code, err := strconv.ParseUint(number, base, 32)
	if err != nil || code == 0 || code >= 0x10ffff || len(s)-len(rest)+len(number) >= 10 {
		return "", 0
	}
	value := string(rune(code))
	if code >= 0xd800 && code <= 0xdfff {
		value = "\xed" // no character: the text is refused at its end
	}
	return value, len(s) - len(strings.TrimPrefix(rest[len(number):], ";"))
}

func isAlpha(c byte) bool { return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' }

// endTag closes the innermost tag, which it names or not.
func (r *htmlReader) endTag() string {
	begin := r.at
	if len(r.open) == 0 {
		return fmt.Sprintf("Unexpected end tag at byte offset %d", begin)
	}
	r.at += len("</")
	name := strings.ToLower(r.while(func(c byte) bool { return !isSpace(c) && c != '>' }))
	r.while(isSpace)
	if r.peek() != '>' {
		return fmt.Sprintf("Unclosed end tag at byte offset %d", begin)
	}
	r.at++
	if name != "" && name != r.innermost() {
		return fmt.Sprintf("Unmatched end tag at byte offset %d, expected \"</%s>\", found \"</%s>\"", begin, r.innermost(), name)
	}
	last := &r.open[len(r.open)-1].entity
	if last.Type == "custom_emoji" && r.units > last.Offset {
		if id, err := strconv.ParseInt(last.EmojiID, 10, 64); err != nil || id == 0 {
			return "Invalid custom emoji identifier specified"
		}
	}
	r.end()
	r.join()
	return ""
}

// join makes one entity of a block of code and the code with a language that
// fills it.
func (r *htmlReader) join() {
	n := len(r.entities)
	if n < 2 {
		return
	}
	a, b := &r.entities[n-2], r.entities[n-1]
	if a.Offset != b.Offset || a.Length != b.Length || a.Type+b.Type != "codepre" && a.Type+b.Type != "precode" ||
		a.Language+b.Language == "" {
		return
	}
	a.Type, a.Language = "pre", a.Language+b.Language
	r.entities = r.entities[:n-1]
}

// startTag opens a tag.
func (r *htmlReader) startTag() string {
	begin := r.at
	r.at++
	name := strings.ToLower(r.while(func(c byte) bool { return !isSpace(c) && c != '>' }))
	if r.peek() == 0 {
		return fmt.Sprintf("Unclosed start tag at byte offset %d", begin)
	}
	kind, known := htmlTypes()[name]
	if !known {
		return fmt.Sprintf("Unsupported start tag \"%s\" at byte offset %d", name, begin)
	}
	e := entity{Type: kind}
	spoiler := false
	for {
		r.while(isSpace)
		if r.peek() == '>' {
			break
		}
		key, value, detail := r.attribute(name, begin)
		if detail != "" {
			return detail
		}
		spoiler = spoiler || value == "tg-spoiler"
		e.set(name, key, value)
	}
	r.at++
	if name == "span" && !spoiler {
		return fmt.Sprintf("Tag \"span\" must have class \"tg-spoiler\" at byte offset %d", begin)
	}
	r.begin(name, begin, e)
	return ""
}

// attribute reads one attribute of a tag.
func (r *htmlReader) attribute(tag string, begin int) (key, value, detail string) {
	unclosed := fmt.Sprintf("Unclosed start tag \"%s\" at byte offset %d", tag, begin)
	key = r.while(func(c byte) bool { return !isSpace(c) && strings.IndexByte(`=>/"'`, c) < 0 })
	if key == "" {
		return "", "", fmt.Sprintf("Empty attribute name in the tag \"%s\" at byte offset %d", tag, begin)
	}
	r.while(isSpace)
	if r.peek() == 0 {
		return "", "", unclosed
	}
	if r.peek() != '=' {
		return key, "", ""
	}
	r.at++
	r.while(isSpace)
	switch quote := r.peek(); quote {
	case 0:
		return "", "", unclosed
	case '"', '\'':
		r.at++
		value = decodeAll(r.while(func(c byte) bool { return c != quote }))
		if r.at++; r.peek() == 0 {
			return "", "", fmt.Sprintf("Unclosed start tag at byte offset %d", begin)
		}
	default:
		token := r.at
		value = strings.ToLower(r.while(func(c byte) bool {
			return isAlpha(c) || c >= '0' && c <= '9' || c == '.' || c == '-'
		}))
		if c := r.peek(); c != '>' && !isSpace(c) {
			return "", "", fmt.Sprintf("Unexpected end of name token at byte offset %d", token)
		}
	}
	return key, value, ""
}

// decodeAll replaces the references in the value of an attribute.
func decodeAll(s string) string {
	var out strings.Builder
	for s != "" {
		value, n := s[:1], 1
		if s[0] == '&' {
			if v, m := decodeReference(s); m > 0 {
				value, n = v, m
			}
		}
		out.WriteString(value)
		s = s[n:]
	}
	return out.String()
}

// set takes an attribute over that means something for its tag.
func (e *entity) set(tag, key, value string) {
	switch tag + " " + key {
	case "a href":
		e.URL = value
	case "tg-emoji emoji-id":
		e.EmojiID = value
	case "code class":
		if language, ok := strings.CutPrefix(value, "language-"); ok {
			e.Language = language
		}
	case "blockquote expandable":
		e.Type = "expandable_blockquote"
	}
}
