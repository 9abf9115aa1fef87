package text

import (
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Plain is a text without its markup, for where that is refused. It also makes
// the best of what isn't valid in its mode: what is clearly markup goes, all else
// stays as it is written. A link keeps its address, in brackets.
func Plain(mode Mode, source string) string {
	if d, err := parse(mode, source); err == nil {
		return d.readable()
	}
	switch mode {
	case HTML:
		return plainHTML(source)
	case MarkdownV2, Markdown:
		return plainMarkdown(source)
	case None:
	}
	return source
}

// Shown is a text as it is shown, links without their addresses; false when it
// isn't valid in its mode.
func Shown(mode Mode, source string) (string, bool) {
	d, err := parse(mode, source)
	if err != nil {
		return "", false
	}
	return d.plain, true
}

// readable is the plain text with the addresses of links.
func (d *document) readable() string {
	type opened struct {
		*mark
		at int
	}
	var out strings.Builder
	var stack []opened
	for i := range d.pieces {
		p := &d.pieces[i]
		if p.shut {
			last := stack[len(stack)-1]
			stack = stack[:len(stack)-1]
			out.WriteString(address(last.url, d.plain[last.at:p.at]))
		}
		out.WriteString(p.text)
		if p.open != nil {
			stack = append(stack, opened{p.open, p.at})
		}
	}
	return out.String()
}

// address is what stands behind the text of a link, nothing when the text says it
// already or nobody could follow it.
func address(url, text string) string {
	scheme, rest, ok := strings.Cut(url, ":")
	if !ok || strings.EqualFold(scheme, "tg") || strings.Contains(url, text) && strings.TrimRight(strings.TrimPrefix(rest, "//"), "/") == text || url == text {
		return ""
	}
	return " (" + url + ")"
}

var (
	// anyTag finds what looks like a tag.
	anyTag = regexp.MustCompile(`</?([a-zA-Z][a-zA-Z0-9-]*)(\s[^<>]*)?\s*/?>`)
	anyRef = regexp.MustCompile(`&(#x?[0-9a-fA-F]+|[a-z]+);?`)
	href   = regexp.MustCompile(`(?is)\shref\s*=\s*("[^"]*"|'[^']*')`)
)

// otherTags are tags of HTML that Telegram refuses, and what stands for them in
// a plain text. "/" means the end tag.
var otherTags = map[string]string{
	"br": "\n", "hr": "\n", "/p": "\n", "/div": "\n", "/li": "\n", "/tr": "\n", "/h1": "\n", "/h2": "\n",
	"/h3": "\n", "/h4": "\n", "/h5": "\n", "/h6": "\n", "li": "- ", "/td": " ", "/th": " ", "p": "", "div": "",
	"ul": "", "/ul": "", "ol": "", "/ol": "", "tr": "", "td": "", "th": "", "table": "", "/table": "",
	"h1": "", "h2": "", "h3": "", "h4": "", "h5": "", "h6": "", "font": "", "/font": "", "small": "",
	"/small": "", "big": "", "/big": "", "center": "", "/center": "", "sub": "", "/sub": "", "sup": "", "/sup": "",
}

// plainHTML drops the tags that it knows; <no value> stays.
func plainHTML(s string) string {
	var out strings.Builder
	var link string
	at, linkText := 0, 0
	for _, m := range anyTag.FindAllStringSubmatchIndex(s, -1) {
		name := strings.ToLower(s[m[2]:m[3]])
		if s[m[0]+1] == '/' {
			name = "/" + name
		}
		instead, known := otherTags[name]
		if !known && !slices.Contains(htmlTags, strings.TrimPrefix(name, "/")) {
			continue
		}
		out.WriteString(unescape(s[at:m[0]]))
		at = m[1]
		switch name {
		case "a":
			link, linkText = "", out.Len()
			if v := href.FindStringSubmatch(s[m[0]:m[1]]); v != nil {
				link = unescape(v[1][1 : len(v[1])-1])
			}
		case "/a":
			out.WriteString(address(link, out.String()[linkText:]))
			link = ""
		}
		out.WriteString(instead)
	}
	out.WriteString(unescape(s[at:]))
	return out.String()
}

// unescape replaces the character references that Telegram knows.
func unescape(s string) string {
	return anyRef.ReplaceAllStringFunc(s, func(ref string) string {
		r, n := reference(ref)
		if n == 0 || !utf8.ValidRune(r) {
			return ref
		}
		return string(r) + ref[n:]
	})
}

var (
	codeSpan = regexp.MustCompile("(?s)```.*?```|`[^`\n]+`")
	linkSpan = regexp.MustCompile(`!?\[([^\]\n]+)\]\(([^)\s]*)\)`)
	escaped  = regexp.MustCompile(`\\([\x21-\x2f\x3a-\x40\x5b-\x60\x7b-\x7e])`)
)

// plainMarkdown drops the marks that stand where marks do: snake_case and 3*4
// stay. Code stays as it is but for its marks.
func plainMarkdown(s string) string {
	var out strings.Builder
	at := 0
	for _, m := range codeSpan.FindAllStringIndex(s, -1) {
		out.WriteString(plainProse(s[at:m[0]]))
		code := s[m[0]:m[1]]
		if strings.HasPrefix(code, "```") {
			n, _ := codeStart(code)
			code = code[min(n, len(code)-3) : len(code)-3]
		} else {
			code = code[1 : len(code)-1]
		}
		out.WriteString(escaped.ReplaceAllString(code, "$1"))
		at = m[1]
	}
	out.WriteString(plainProse(s[at:]))
	return out.String()
}

// plainProse drops the marks of what isn't code.
func plainProse(s string) string {
	s = linkSpan.ReplaceAllStringFunc(s, func(link string) string {
		m := linkSpan.FindStringSubmatch(link)
		return m[1] + address(m[2], m[1])
	})
	for _, mark := range []string{"**", "__", "||", "*", "_", "~"} {
		s = unpair(s, mark)
	}
	return escaped.ReplaceAllString(s, "$1")
}

// unpair drops a mark where it stands around words: before the first and behind
// the last, on one line.
func unpair(s, mark string) string {
	var out strings.Builder
	for line := range strings.Lines(s) {
		at := 0
		for {
			begin, end := pair(line, mark, at)
			if begin < 0 {
				break
			}
			out.WriteString(line[at:begin])
			out.WriteString(line[begin+len(mark) : end])
			at = end + len(mark)
		}
		out.WriteString(line[at:])
	}
	return out.String()
}

// pair finds the next beginning and end of a mark.
func pair(line, mark string, from int) (begin, end int) {
	begin = -1
	for i := from; ; {
		n := strings.Index(line[i:], mark)
		if n < 0 {
			return -1, 0
		}
		i += n
		before, _ := utf8.DecodeLastRuneInString(line[:i])
		after, size := utf8.DecodeRuneInString(line[i+len(mark):])
		switch {
		case before == '\\':
		case begin < 0 && !isWord(before) && size > 0 && !unicode.IsSpace(after):
			begin = i
		case begin >= 0 && i > begin+len(mark) && !unicode.IsSpace(before) && (size == 0 || !isWord(after)):
			return begin, i
		}
		i += len(mark)
	}
}

func isWord(r rune) bool {
	return r != utf8.RuneError && (unicode.IsLetter(r) || unicode.IsDigit(r))
}
