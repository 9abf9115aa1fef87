package text

import (
	"errors"
	"fmt"
	"strings"
)

// Mode is a parse mode.
type Mode string

// The parse modes, None for a text without one.
const (
	None       Mode = ""
	HTML       Mode = "HTML"
	MarkdownV2 Mode = "MarkdownV2"
	Markdown   Mode = "Markdown"
)

// ModeOf reads a parse_mode in any case, as Telegram does.
func ModeOf(parseMode string) (Mode, bool) {
	for _, m := range []Mode{None, HTML, MarkdownV2, Markdown} {
		if strings.EqualFold(parseMode, string(m)) {
			return m, true
		}
	}
	return None, false
}

// ErrMarkup is returned for a text that isn't valid in its parse mode, or whose
// entities don't fit it. Telegram refuses it as well.
var ErrMarkup = errors.New("the markup can't be parsed")

func malformed(at int, format string, args ...any) error {
	return fmt.Errorf("%w: %s at byte %d", ErrMarkup, fmt.Sprintf(format, args...), at)
}

// document is a text taken apart: the source in pieces, and the plain text that
// they make together.
type document struct {
	mode   Mode
	source string
	plain  string
	pieces []piece
}

// piece is a stretch of the source: a run of plain text, which stands in the
// message as it is written; one character that is written in another way; or a
// mark, which makes no text. The line break that ends a quotation is text and
// mark in one.
type piece struct {
	src, text string
	open      *mark // this begins
	shut      bool  // the innermost that is open ends

	from   int // where src begins in the source
	at     int // where text begins in the plain text
	before inside
}

// mark is formatting that is written by a beginning and an end.
type mark struct {
	name string // which kind it is, for its parser
	open string // begins it anew in a later part
	end  string // ends it at the end of a part
	tail string // follows the end unless nothing else is open
	url  string // where a link leads
	// whole marks stand for something that has no parts, like a custom emoji.
	whole bool
}

// inside is what is open at one place.
type inside struct {
	weight int // bytes to end it all and begin it anew
	whole  int // marks that are better not cut here
}

// with adds a mark, or takes it away.
func (in inside) with(m *mark, n int) inside {
	in.weight += n * (len(m.open) + len(m.end) + len(m.tail) + 2*len("**"))
	if m.whole {
		in.whole += n
	}
	return in
}

// parse takes a text apart.
func parse(mode Mode, source string) (*document, error) {
	var pieces []piece
	var err error
	switch mode {
	case HTML:
		pieces, err = parseHTML(source)
	case MarkdownV2:
		pieces, err = parseMarkdownV2(source)
	case Markdown:
		pieces, err = parseMarkdown(source)
	case None:
		pieces = []piece{{src: source, text: source}}
	default:
		return nil, fmt.Errorf("%w: unknown mode %q", ErrMarkup, mode)
	}
	if err != nil {
		return nil, err
	}
	return newDocument(mode, source, pieces), nil
}

// newDocument finds where each piece stands and what is open there.
func newDocument(mode Mode, source string, pieces []piece) *document {
	d := &document{mode: mode, source: source, pieces: pieces}
	var plain strings.Builder
	var stack []*mark
	var now inside
	from := 0
	for i := range pieces {
		p := &pieces[i]
		p.from, p.at, p.before = from, plain.Len(), now
		plain.WriteString(p.text)
		from += len(p.src)
		if p.shut {
			now = now.with(stack[len(stack)-1], -1)
		}
		stack = p.apply(stack)
		if p.open != nil {
			now = now.with(p.open, 1)
		}
	}
	d.plain = plain.String()
	return d
}

// apply is the stack of open marks behind the piece.
func (p *piece) apply(stack []*mark) []*mark {
	if p.open != nil {
		return append(stack, p.open)
	}
	if p.shut {
		return stack[:len(stack)-1]
	}
	return stack
}

// pieces are collected by the parsers.
type collector struct {
	source string
	list   []piece
	done   int // bytes of the source that stand in the list
}

// add appends the next n bytes of the source as a piece that makes text.
func (c *collector) add(n int, text string) *piece {
	c.list = append(c.list, piece{src: c.source[c.done : c.done+n], text: text})
	c.done += n
	return &c.list[len(c.list)-1]
}

// run appends the next n bytes as plain text.
func (c *collector) run(n int) {
	if n > 0 {
		c.add(n, c.source[c.done:c.done+n])
	}
}
