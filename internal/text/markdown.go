package text

import "strings"

// v2Marks are the marks of MarkdownV2 that have a beginning and an end, longer
// ones first. Quotations and links need more than this and stand in the code.
var v2Marks = []struct{ open, end string }{
	{"```", "```"},
	{"__", "__"},
	{"||", "||"},
	{"![", "]"},
	{"*", "*"},
	{"_", "_"},
	{"~", "~"},
	{"`", "`"},
	{"[", "]"},
}

// v2Reserved are the characters that mean something or must be escaped.
const v2Reserved = "_*[]()~`>#+-=|{}.!\n"

// quoteMark is the name of quotations among the open marks.
const quoteMark = ">"

// v2Parser reads parse_mode MarkdownV2.
type v2Parser struct {
	collector
	stack []v2Open
	quote bool // a quotation is open
	fresh bool // a quotation may begin here
}

// v2Open is a mark whose end has not come yet.
type v2Open struct {
	*mark
	at    int // byte offset
	piece int // index of the piece that opens it
}

func parseMarkdownV2(source string) ([]piece, error) {
	p := &v2Parser{collector: collector{source: source}, fresh: true}
	for p.done < len(source) {
		if err := p.step(source[p.done:]); err != nil {
			return nil, err
		}
	}
	if p.quote { // ends with the text
		p.expandable(0)
		if p.innermost() == quoteMark {
			p.stack = p.stack[:len(p.stack)-1]
		}
	}
	if len(p.stack) > 0 {
		return nil, malformed(p.stack[len(p.stack)-1].at, "no end of %q, which stands", p.innermost())
	}
	return p.list, nil
}

// step takes the next piece.
func (p *v2Parser) step(rest string) error {
	reserved := v2Reserved
	if in := p.innermost(); in == "`" || in == "```" {
		reserved = "`"
	}
	switch n := strings.IndexAny(rest, reserved+`\`); {
	case rest[0] == '\\' && len(rest) > 1 && rest[1] > 0 && rest[1] < 127:
		if rest[1] != '\r' {
			p.fresh = rest[1] == '\n'
		}
		p.add(2, rest[1:2])
		return nil
	case n != 0 || rest[0] == '\\':
		p.plain(rest, n)
		return nil
	case p.ends(rest):
		return p.end(rest)
	}
	return p.begin(rest)
}

// plain takes text up to the next special character, at least one.
func (p *v2Parser) plain(rest string, n int) {
	if n < 0 {
		n = len(rest)
	}
	n = max(n, 1)
	if strings.Trim(rest[:n], "\r") != "" {
		p.fresh = false
	}
	p.run(n)
}

// innermost is the name of the mark that is open, empty when none is.
func (p *v2Parser) innermost() string {
	if len(p.stack) == 0 {
		return ""
	}
	return p.stack[len(p.stack)-1].name
}

// ends reports whether the innermost mark ends here. A line that isn't quoted
// ends the quotation before it.
func (p *v2Parser) ends(rest string) bool {
	if p.quote && rest[0] == '\n' && !strings.HasPrefix(rest[1:], ">") {
		return true
	}
	in := p.innermost()
	if in == "_" && strings.HasPrefix(rest, "__") {
		return false // taken for an underline first
	}
	for _, m := range v2Marks {
		if m.open == in {
			return strings.HasPrefix(rest, m.end)
		}
	}
	return false
}

// begin takes the beginning of a mark, or a line break.
func (p *v2Parser) begin(rest string) error {
	switch {
	case rest[0] == '\n':
		p.run(1)
		p.fresh = true
		return nil
	case rest[0] == '>' && p.fresh:
		if p.quote {
			p.add(1, "") // the same quotation goes on
			return nil
		}
		p.quote = true
		p.push(1, &mark{name: quoteMark, open: ">", tail: "\n"})
		return nil
	case strings.HasPrefix(rest, "```"):
		n, language := codeStart(rest)
		p.push(n, &mark{name: "```", open: "```" + language + "\n", end: "```"})
		return nil
	}
	for _, m := range v2Marks {
		if strings.HasPrefix(rest, m.open) {
			p.push(len(m.open), &mark{name: m.open, open: m.open, end: m.end, whole: m.open == "!["})
			return nil
		}
	}
	return malformed(p.done, "%q, which is reserved and must be escaped,", rest[:1])
}

// codeStart reads the beginning of a block of code: its language, if it has one,
// and one line break belong to it.
func codeStart(s string) (n int, language string) {
	n = 3
	end := n
	for end < len(s) && s[end] != '`' && !strings.ContainsRune(htmlSpace, rune(s[end])) {
		end++
	}
	if end > n && end < len(s) && s[end] != '`' {
		language, n = s[n:end], end
	}
	if n < len(s) && (s[n] == '\n' || s[n] == '\r') {
		n++
		if n < len(s) && (s[n] == '\n' || s[n] == '\r') && s[n] != s[n-1] {
			n++
		}
	}
	return n, language
}

func (p *v2Parser) push(n int, m *mark) {
	p.stack = append(p.stack, v2Open{m, p.done, len(p.list)})
	p.add(n, "").open = m
}

// end takes the end of the innermost mark.
func (p *v2Parser) end(rest string) error {
	n, text := 0, ""
	switch rest[0] {
	case '\n':
		p.expandable(strings.Count(p.source[max(0, p.done-1):p.done], "\r"))
		if p.innermost() != quoteMark {
			return malformed(p.stack[len(p.stack)-1].at, "no end of %q before the end of the quotation, which stands", p.innermost())
		}
		n, text = 1, "\n"
		p.quote, p.fresh = false, true
	case ']':
		var err error
		if n, err = p.link(rest); err != nil {
			return err
		}
	default:
		n = len(p.stack[len(p.stack)-1].end)
	}
	p.stack = p.stack[:len(p.stack)-1]
	p.add(n, text).shut = true
	return nil
}

// expandable takes a spoiler that begins at the very end of a quotation for what
// it means there: the quotation is folded. A carriage return may follow it.
func (p *v2Parser) expandable(returns int) {
	if len(p.stack) < 2 || p.innermost() != "||" {
		return
	}
	last, quote := p.stack[len(p.stack)-1], p.stack[len(p.stack)-2]
	if last.at != p.done-2-returns || quote.name != quoteMark {
		return
	}
	p.list[last.piece].open = nil
	quote.end = "||"
	p.stack = p.stack[:len(p.stack)-1]
}

// link reads the end of a link or of a custom emoji. A link without an address
// leads where its text says.
func (p *v2Parser) link(rest string) (int, error) {
	m := p.stack[len(p.stack)-1].mark
	n := 1
	if strings.HasPrefix(rest, "](") {
		var url strings.Builder
		for n = 2; n < len(rest) && rest[n] != ')'; n++ {
			if rest[n] == '\\' && n+1 < len(rest) && rest[n+1] > 0 && rest[n+1] < 127 {
				n++
			}
			url.WriteByte(rest[n])
		}
		if n == len(rest) {
			return 0, malformed(p.done, "no end of the address")
		}
		n++
		m.url = url.String()
		m.end = rest[:n]
	} else {
		m.whole = true
	}
	if m.name != "![" {
		return n, nil
	}
	id, isEmoji := strings.CutPrefix(m.url, "tg://emoji?id=")
	if isEmoji && isEmojiID(id) || strings.HasPrefix(m.url, "tg://time?") {
		return n, nil
	}
	return 0, malformed(p.done, "no tg://emoji or tg://time address")
}
