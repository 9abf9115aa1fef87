package text

import (
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"golang.org/x/net/html"
)

// htmlTags are the tags that Telegram takes.
var htmlTags = []string{
	"a", "b", "blockquote", "code", "del", "em", "i", "ins", "pre", "s", "span", "strike", "strong",
	"tg-emoji", "tg-spoiler", "tg-time", "u",
}

// htmlSpace is what may stand between the parts of a tag.
const htmlSpace = " \t\r\n\f\v"

// htmlParser reads parse_mode HTML.
type htmlParser struct {
	collector
	stack []*mark
}

func parseHTML(source string) ([]piece, error) {
	p := &htmlParser{collector: collector{source: source}}
	z := html.NewTokenizer(strings.NewReader(source))
	for {
		kind := z.Next()
		n := len(z.Raw())
		if kind == html.ErrorToken {
			break
		}
		if err := p.token(z, kind, n); err != nil {
			return nil, err
		}
	}
	switch {
	case p.done < len(source): // the tokenizer drops a tag that has no end
		return nil, malformed(p.done, "unclosed tag")
	case len(p.stack) > 0:
		return nil, malformed(len(source), "no end tag for <%s>", p.stack[len(p.stack)-1].name)
	}
	return p.list, nil
}

// token takes the next token of n bytes.
func (p *htmlParser) token(z *html.Tokenizer, kind html.TokenType, n int) error {
	raw := p.source[p.done : p.done+n]
	switch {
	case kind == html.TextToken:
		return p.text(raw)
	case kind == html.StartTagToken:
		return p.start(z, raw)
	case kind == html.EndTagToken, raw == "</>":
		return p.end(raw)
	}
	return malformed(p.done, "unsupported tag")
}

// text takes plain text with character references.
func (p *htmlParser) text(raw string) error {
	for raw != "" {
		n := strings.IndexAny(raw, "&<")
		if n < 0 {
			n = len(raw)
		}
		p.run(n)
		if raw = raw[n:]; raw == "" {
			return nil
		}
		if raw[0] == '<' {
			return malformed(p.done, "unsupported tag")
		}
		r, n := reference(raw)
		if n == 0 {
			p.run(1) // a reference that Telegram doesn't know is text
			raw = raw[1:]
			continue
		}
		if !utf8.ValidRune(r) {
			return malformed(p.done, "half of a surrogate pair")
		}
		p.add(n, string(r))
		raw = raw[n:]
	}
	return nil
}

// reference reads the character reference at the beginning of s and its length,
// 0 when there is none that Telegram knows. The semicolon may be missing.
func reference(s string) (rune, int) {
	name, digits := s[1:], ""
	var r rune
	if strings.HasPrefix(name, "#") {
		base, from := 10, 2
		if strings.HasPrefix(name, "#x") {
			base, from = 16, 3
		}
		digits = s[from : from+span(s[from:], func(c byte) bool { return isDigit(c, base) })]
		v, err := strconv.ParseUint(digits, base, 32)
		if err != nil || v == 0 || v >= 0x10FFFF || from+len(digits) >= 10 {
			return 0, 0
		}
		r, name = rune(v), s[1:from+len(digits)]
	} else {
		name = name[:span(name, isLetter)]
		var known bool
		if r, known = map[string]rune{"lt": '<', "gt": '>', "amp": '&', "quot": '"'}[name]; !known {
			return 0, 0
		}
	}
	n := 1 + len(name)
	if strings.HasPrefix(s[n:], ";") {
		n++
	}
	return r, n
}

// span is the length of the prefix whose bytes are all of a kind.
func span(s string, is func(byte) bool) int {
	n := 0
	for n < len(s) && is(s[n]) {
		n++
	}
	return n
}

func isLetter(c byte) bool { return c|0x20 >= 'a' && c|0x20 <= 'z' }

func isDigit(c byte, base int) bool {
	return c >= '0' && c <= '9' || base == 16 && c|0x20 >= 'a' && c|0x20 <= 'f'
}

// start takes a start tag.
func (p *htmlParser) start(z *html.Tokenizer, raw string) error {
	tag, more := z.TagName()
	name := string(tag)
	if !slices.Contains(htmlTags, name) {
		return malformed(p.done, "unsupported tag")
	}
	m := &mark{name: name, open: raw, end: "</" + name + ">", whole: name == "tg-emoji" || name == "tg-time"}
	class, emoji := "", ""
	for more {
		var key, value []byte
		key, value, more = z.TagAttr()
		switch name + " " + string(key) {
		case "a href":
			m.url = string(value)
		case "span class":
			class = string(value)
		case "tg-emoji emoji-id":
			emoji = string(value)
		}
	}
	if bad := badAttribute(raw[1+len(name) : len(raw)-1]); bad != "" {
		return malformed(p.done, "%s in the tag %q", bad, name)
	}
	if name == "span" && class != "tg-spoiler" {
		return malformed(p.done, `a span that isn't class="tg-spoiler"`)
	}
	if name == "tg-emoji" && !isEmojiID(emoji) {
		return malformed(p.done, "no valid emoji-id")
	}
	if name == "a" && m.url == "" {
		m.whole = true // its text is the address
	}
	p.add(len(raw), "").open = m
	p.stack = append(p.stack, m)
	return nil
}

func isEmojiID(s string) bool {
	id, err := strconv.ParseInt(s, 10, 64)
	return err == nil && id != 0
}

// badAttribute says what Telegram, which is stricter than HTML, refuses in the
// attributes of a tag. It is empty when there is nothing.
func badAttribute(s string) string {
	for s = strings.TrimLeft(s, htmlSpace); s != ""; s = strings.TrimLeft(s, htmlSpace) {
		n := strings.IndexAny(s, htmlSpace+`=/"'`)
		if n == 0 {
			return "an attribute without a name"
		}
		if n < 0 {
			return ""
		}
		s = strings.TrimLeft(s[n:], htmlSpace)
		if !strings.HasPrefix(s, "=") {
			continue
		}
		s = strings.TrimLeft(s[1:], htmlSpace)
		switch {
		case s == "":
			return ""
		case s[0] == '"', s[0] == '\'':
			end := strings.IndexByte(s[1:], s[0])
			if end < 0 {
				return "an unclosed value"
			}
			s = s[end+2:]
		default:
			s = s[span(s, func(c byte) bool { return isLetter(c) || isDigit(c, 10) || c == '.' || c == '-' }):]
			if s != "" && !strings.ContainsRune(htmlSpace, rune(s[0])) {
				return "a value that needs quotes"
			}
		}
	}
	return ""
}

// end takes an end tag. Telegram lets it be without a name.
func (p *htmlParser) end(raw string) error {
	if len(p.stack) == 0 {
		return malformed(p.done, "unexpected end tag")
	}
	last := p.stack[len(p.stack)-1]
	name := strings.TrimRight(raw[2:len(raw)-1], htmlSpace)
	if name != "" && !strings.EqualFold(name, last.name) {
		return malformed(p.done, "end tag of another than <%s>", last.name)
	}
	p.stack = p.stack[:len(p.stack)-1]
	p.add(len(raw), "").shut = true
	return nil
}
