package text

import "strings"

// parseMarkdown reads the old parse_mode Markdown, which knows no nesting and no
// escapes inside of its marks.
func parseMarkdown(source string) ([]piece, error) {
	c := &collector{source: source}
	for c.done < len(source) {
		rest := source[c.done:]
		n := strings.IndexAny(rest, "\\_*`[")
		switch {
		case n < 0:
			c.run(len(rest))
		case n > 0:
			c.run(n)
		case rest[0] == '\\' && len(rest) > 1 && strings.IndexByte("_*`[", rest[1]) >= 0:
			c.add(2, rest[1:2])
		case rest[0] == '\\':
			c.run(1)
		default:
			if err := c.legacy(rest); err != nil {
				return nil, err
			}
		}
	}
	return c.list, nil
}

// legacy takes one mark with all that it holds.
func (c *collector) legacy(rest string) error {
	m := &mark{name: rest[:1], open: rest[:1], end: rest[:1]}
	n := 1
	switch {
	case strings.HasPrefix(rest, "```"):
		var language string
		n, language = codeStart(rest)
		m.open, m.end = "```"+language+"\n", "```"
	case rest[0] == '[':
		m.end, m.whole = "]", true
	}
	length := strings.Index(rest[n:], m.end)
	if length < 0 {
		return malformed(c.done, "no end of %q", m.open)
	}
	tail := len(m.end)
	if after := rest[n+length:]; strings.HasPrefix(after, "](") {
		end := strings.IndexByte(after, ')')
		if end < 0 {
			end = len(after) - 1 // Telegram lets the address end with the text
		}
		tail = end + 1
		m.url = strings.TrimSuffix(after[2:tail], ")")
		m.end, m.whole = "]("+m.url+")", false
	}
	c.add(n, "").open = m
	c.run(length)
	c.add(tail, "").shut = true
	return nil
}
