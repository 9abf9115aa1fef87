package telegramsim

import (
	"fmt"
	"strconv"
	"strings"
)

// v2Kinds are the entities that a mark of MarkdownV2 begins, longer marks first:
// the mark, the entity, how errors call it, and the mark that ends it.
func v2Kinds() [][4]string {
	return [][4]string{
		{"```", "pre", "Pre", "```"},
		{"||", "spoiler", "Spoiler", "||"},
		{"__", "underline", "Underline", "__"},
		{"![", "custom_emoji", "CustomEmoji", "]"},
		{"*", "bold", "Bold", "*"},
		{"_", "italic", "Italic", "_"},
		{"~", "strikethrough", "Strikethrough", "~"},
		{"`", "code", "Code", "`"},
		{"[", "text_link", "TextUrl", "]"},
	}
}

// v2Reader reads parse_mode MarkdownV2.
type v2Reader struct {
	builder
	source  string
	at      int
	quoting bool
	atStart bool // nothing that shows stands before this on its line
}

// parseMarkdownV2 reads parse_mode MarkdownV2. The last result is what is
// wrong, empty when nothing is.
func parseMarkdownV2(source string) (string, []entity, string) {
	r := &v2Reader{source: source, atStart: true}
	for r.at < len(source) {
		if detail := r.next(); detail != "" {
			return "", nil, detail
		}
	}
	if r.quoting {
		if r.folded(len(source) - 2) {
			r.fold()
		}
		if r.innermost() == ">" {
			r.end()
		}
	}
	if len(r.open) > 0 {
		return "", nil, r.endless()
	}
	return r.text.String(), r.entities, ""
}

// next reads one character or mark.
func (r *v2Reader) next() string {
	rest := r.source[r.at:]
	in := r.innermost()
	verbatim := in == "`" || in == "```"
	switch {
	case len(rest) > 1 && rest[0] == '\\' && rest[1] > 0 && rest[1] <= 126:
		r.write(rest[1:2])
		r.at += 2
		if rest[1] != '\r' {
			r.atStart = rest[1] == '\n'
		}
		return ""
	case verbatim && rest[0] != '`', strings.IndexByte("_*[]()~`>#+-=|{}.!\n", rest[0]) < 0:
		r.write(rest[:1])
		r.at++
		r.atStart = r.atStart && rest[0] == '\r'
		return ""
	case rest[0] == '\n' && r.quoting && !strings.HasPrefix(rest[1:], ">"):
		return r.endQuote()
	case rest[0] == '\n':
		r.write("\n")
		r.at++
		r.atStart = true
		return ""
	}
	for _, k := range v2Kinds() {
		if k[0] == in && strings.HasPrefix(rest, k[3]) && (in != "_" || !strings.HasPrefix(rest, "__")) {
			r.at += len(k[3])
			return r.endMark(k[1])
		}
	}
	return r.beginMark(rest)
}

// beginMark opens an entity.
func (r *v2Reader) beginMark(rest string) string {
	if rest[0] == '>' && r.atStart {
		r.at++
		if !r.quoting {
			r.quoting = true
			r.begin(">", r.at-1, entity{Type: "blockquote"})
		}
		return ""
	}
	for _, k := range v2Kinds() {
		if !strings.HasPrefix(rest, k[0]) {
			continue
		}
		e := entity{Type: k[1]}
		used := len(k[0])
		if k[0] == "```" {
			e.Language, used = codeHead(rest)
		}
		r.begin(k[0], r.at, e)
		r.at += used
		return ""
	}
	return fmt.Sprintf("Character '%c' is reserved and must be escaped with the preceding '\\'", rest[0])
}

// codeHead is the language of a block of code and how many bytes stand before
// the code itself.
func codeHead(s string) (string, int) {
	word := strings.IndexAny(s[3:], "` \t\r\n\v")
	used, language := 3, ""
	if word > 0 && s[3+word] != '`' {
		language, used = s[3:3+word], 3+word
	}
	for _, line := range []string{"\r\n", "\n\r", "\n", "\r"} {
		if strings.HasPrefix(s[used:], line) {
			return language, used + len(line)
		}
	}
	return language, used
}

// endMark closes the innermost entity. A link's address may follow.
func (r *v2Reader) endMark(kind string) string {
	e := &r.open[len(r.open)-1].entity
	if kind != "text_link" && kind != "custom_emoji" {
		r.end()
		return ""
	}
	url, begin := "", r.at+1
	if r.at < len(r.source) && r.source[r.at] == '(' {
		for r.at++; ; r.at++ {
			rest := r.source[r.at:]
			if rest == "" {
				return fmt.Sprintf("Can't find end of a URL at byte offset %d", begin)
			}
			if rest[0] == ')' {
				r.at++
				break
			}
			if len(rest) > 1 && rest[0] == '\\' && rest[1] > 0 && rest[1] <= 126 {
				r.at++
			}
			url += r.source[r.at : r.at+1]
		}
	} else if kind == "custom_emoji" {
		return "The entity must contain a tg://emoji or tg://time URL"
	}
	e.URL = url
	if kind == "custom_emoji" {
		id, ok := strings.CutPrefix(url, "tg://emoji?id=")
		if n, err := strconv.ParseInt(id, 10, 64); !strings.HasPrefix(url, "tg://time?") && (!ok || err != nil || n == 0) {
			return "Invalid tg://emoji or tg://time URL specified"
		}
		e.EmojiID, e.URL = id, ""
	}
	r.end()
	return ""
}

// endQuote ends a quotation with its last line. A spoiler that begins at its end
// says that it is folded.
func (r *v2Reader) endQuote() string {
	if r.folded(r.at-2) || r.folded(r.at-3) && r.source[r.at-1] == '\r' {
		r.fold()
	}
	if r.innermost() != ">" {
		return r.endless()
	}
	r.write("\n")
	r.at++
	r.end()
	r.quoting, r.atStart = false, true
	return ""
}

func (r *v2Reader) folded(at int) bool {
	return r.innermost() == "||" && r.open[len(r.open)-1].at == at
}

func (r *v2Reader) fold() {
	r.open = r.open[:len(r.open)-1]
	if r.innermost() == ">" {
		r.open[len(r.open)-1].entity.Type = "expandable_blockquote"
	}
}

// endless says which entity has no end.
func (r *v2Reader) endless() string {
	last := r.open[len(r.open)-1]
	name := "BlockQuote"
	for _, k := range v2Kinds() {
		if k[0] == last.tag {
			name = k[2]
		}
	}
	return fmt.Sprintf("Can't find end of %s entity at byte offset %d", name, last.at)
}
