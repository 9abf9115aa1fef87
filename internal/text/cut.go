package text

import (
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/rivo/uniseg"
)

// The places at which a text may be cut, the best first. The last two are for
// what has no better one: a word that is longer than a message, and an emoji of
// many parts or a link's own address.
const (
	atParagraph = iota
	atLine
	atSentence
	atWord
	atSoft // where a line may be broken without a space: after a hyphen, between ideographs
	atGrapheme
	atAny
	places
)

// MaxParts is the most messages that one text may become: what a chat takes in
// about a quarter of an hour.
const MaxParts = 1000

// ErrTooMany is returned for a text that takes more than MaxParts messages.
var ErrTooMany = fmt.Errorf("the text takes more than %d messages", MaxParts)

var (
	// errTooDense is returned when markup leaves no room for text in a part.
	errTooDense = errors.New("the markup alone is longer than a message may be")
	// errRepeats is returned where the parts would be many times the text, because
	// each of them must begin and end all that is open.
	errRepeats = errors.New("the markup would be repeated in too many messages")
)

// stretch is a part's bytes in the plain text.
type stretch struct{ from, to int }

// place is where a part may end and where the next begins; what lies between is
// dropped.
type place struct{ end, next int }

// view is what can be seen from the beginning of a part.
type view struct {
	places  [places]place // the last of each kind that fits, all zero when there is none
	rest    int           // where the part ends when all the rest fits, 0 when it doesn't
	visible int           // where the text begins when only white space fits
}

// cut divides the plain text into parts, the first of at most first units, the
// others of at most later.
func (d *document) cut(first, later int) ([]stretch, error) {
	var parts []stretch
	most := first
	for from := 0; from < len(d.plain); {
		if len(parts) == MaxParts {
			if unseen(d.plain[from:]) {
				break
			}
			return nil, ErrTooMany
		}
		v := d.look(from, most)
		if v.rest > 0 {
			return d.keep(parts, from, v.rest), nil
		}
		p, ok := d.choose(&v, from, most, later)
		switch {
		case ok:
			before := len(parts)
			if parts = d.keep(parts, from, p.end); len(parts) > before {
				most = later
			}
			from = p.next
		case v.visible > from:
			from = v.visible
		default:
			return nil, errTooDense
		}
	}
	return parts, nil
}

// keep adds a part unless nobody could see it: Telegram refuses such a message.
func (d *document) keep(parts []stretch, from, to int) []stretch {
	if unseen(d.plain[from:to]) {
		return parts
	}
	return append(parts, stretch{from, to})
}

// choose takes the best place. One early in the part is taken only when what
// comes after it up to the next of its kind fits into a part: otherwise that must
// be cut anyway, and the short part would be for nothing.
func (d *document) choose(v *view, from, most, later int) (place, bool) {
	for kind, p := range v.places {
		if p.next == 0 || unseen(d.plain[from:p.end]) {
			continue
		}
		if kind >= atGrapheme || Units(d.plain[from:p.end]) >= most/4 {
			return p, true
		}
		next := d.look(p.next, later)
		if next.rest > 0 {
			return p, true
		}
		for _, q := range next.places[:kind+1] {
			if q.next > 0 {
				return p, true
			}
		}
	}
	p := v.places[atAny]
	return p, p.next > 0
}

// look finds the places at which a part that begins at from may end.
func (d *document) look(from, most int) (v view) {
	s := scan{d: d, from: from, pos: from, gap: -1, now: d.cursor(from)}
	s.start, s.reopen = s.now.source(), d.pieces[s.now.i].before.weight
	rest, state := d.plain[from:], -1
	for rest != "" {
		if len(rest) > 1 && isBlank(rest[:2]) {
			s.blank(rest[:1])
			rest, state = rest[1:], -1
			continue
		}
		var cluster string
		var edges int
		cluster, edges, state = grapheme(rest, state, most)
		rest = rest[len(cluster):]
		if isBlank(cluster) {
			s.blank(cluster)
			continue
		}
		s.closeGap(&v)
		if !s.take(cluster, most) {
			if s.pos == from && Units(cluster) > most {
				end := from + runes(cluster, most)
				v.places[atAny] = place{end, end}
			}
			return v
		}
		s.note(&v, cluster, edges)
	}
	v.rest = s.pos
	if s.gap >= 0 && (s.units > most || s.bytes() > MaxRaw) {
		v.rest = max(s.gap, from+1)
	}
	return v
}

// firstSight is how many bytes are looked at for a grapheme at first: more than
// all but freaks have.
const firstSight = 64

// grapheme is the first grapheme of s; of one that is longer than most units, so
// much that this is sure. It looks at no more of the text than it must: uniseg
// searches for the ends of sentences, too, as far as it can see, again for each
// grapheme, and a pile of accents would be measured whole for each part of it.
func grapheme(s string, state, most int) (cluster string, edges, next int) {
	const ahead = 2 * utf8.UTFMax // what follows decides
	for sight := min(firstSight, 3*most+ahead); ; sight = min(2*sight, 3*most+ahead) {
		near := s
		if len(s) > sight {
			near = s[:sight]
			for !utf8.RuneStart(s[len(near)]) && len(near) > sight-utf8.UTFMax {
				near = near[:len(near)-1]
			}
		}
		cluster, _, edges, next = uniseg.StepString(near, state)
		if len(near) == len(s) || len(cluster)+ahead <= len(near) || sight == 3*most+ahead {
			return cluster, edges, next
		}
	}
}

// isBlank reports whether s is all white space.
func isBlank(s string) bool { return strings.Trim(s, " \t\r\n\f\v") == "" }

// scan is the state of a look.
type scan struct {
	d         *document
	from, pos int // bytes in the plain text
	units     int // between the two
	now       cursor
	start     int // the place of from in the source
	reopen    int // bytes of the marks that are open there

	gap       int // where the white space before pos begins, -1 when there is none
	lines     int // line breaks in it
	afterLine int // behind the last of them
}

// bytes is the most that the part up to pos can take in the source.
func (s *scan) bytes() int {
	s.now.to(s.pos)
	return s.now.source() - s.start + s.now.inside().weight + s.reopen
}

// blank takes white space. How much doesn't matter yet: it may be dropped.
func (s *scan) blank(cluster string) {
	if s.gap < 0 {
		s.gap, s.lines = s.pos, 0
	}
	s.pos += len(cluster)
	s.units += len(cluster)
	if strings.HasSuffix(cluster, "\n") {
		s.lines++
		s.afterLine = s.pos
	}
}

// closeGap notes the white space that has ended as a place.
func (s *scan) closeGap(v *view) {
	gap := s.gap
	s.gap = -1
	switch {
	case gap < 0:
	case gap == s.from:
		v.visible = s.pos
	case s.cursorAt(gap).whole > 0:
	case s.lines > 1:
		v.places[atParagraph] = place{gap, s.afterLine}
	case s.lines == 1:
		v.places[atLine] = place{gap, s.afterLine}
	case endsSentence(s.d.plain[s.from:gap]):
		v.places[atSentence] = place{gap, s.pos}
	default:
		v.places[atWord] = place{gap, s.pos}
	}
}

func (s *scan) cursorAt(pos int) inside {
	c := s.d.cursor(pos)
	return c.inside()
}

// take takes one grapheme and reports whether the part still fits.
func (s *scan) take(cluster string, most int) bool {
	before := *s
	s.pos += len(cluster)
	s.units += Units(cluster)
	if s.units <= most && s.bytes() <= MaxRaw {
		return true
	}
	*s = before
	return false
}

// note notes the places behind the grapheme that was taken.
func (s *scan) note(v *view, cluster string, edges int) {
	here := place{s.pos, s.pos}
	v.places[atAny] = here
	if s.now.inside().whole > 0 {
		return
	}
	v.places[atGrapheme] = here
	switch {
	case edges&uniseg.MaskLine != uniseg.LineCanBreak:
	case strings.ContainsAny(cluster, "。！？｡"):
		v.places[atSentence] = here
	default:
		v.places[atSoft] = here
	}
}

// endsSentence reports whether the text before a space ends a sentence, quotes
// and brackets behind the full stop included.
func endsSentence(s string) bool {
	s = strings.TrimRight(s, "\"')]}»”’")
	return strings.HasSuffix(s, ".") || strings.HasSuffix(s, "!") || strings.HasSuffix(s, "?") || strings.HasSuffix(s, "…")
}

// unseen reports whether a text shows nothing.
func unseen(s string) bool { return strings.TrimLeftFunc(s, invisible) == "" }

// invisible reports whether Telegram takes a character for none.
func invisible(r rune) bool {
	switch {
	case r <= ' ', r >= 0x2000 && r <= 0x200F, r >= 0x2028 && r <= 0x202F, r >= 0xE0000 && r <= 0xE007F:
		return true
	}
	return strings.ContainsRune("\u00A0\u030A\u0333\u033F\u1680\u180E\u205F\u2800\u3000\uFEFF\uFFFC", r)
}

// cursor is a place in the plain text with the piece that stands there. It only
// moves forward.
type cursor struct {
	d   *document
	i   int
	pos int
}

// cursor finds the last piece that begins at pos or before.
func (d *document) cursor(pos int) cursor {
	low, high := 0, len(d.pieces)
	for high-low > 1 {
		if mid := (low + high) / 2; d.pieces[mid].at <= pos {
			low = mid
		} else {
			high = mid
		}
	}
	return cursor{d, low, pos}
}

func (c *cursor) to(pos int) {
	for c.i+1 < len(c.d.pieces) && c.d.pieces[c.i+1].at <= pos {
		c.i++
	}
	c.pos = pos
}

// source is the place in the source, behind all marks that stand there.
func (c *cursor) source() int {
	p := &c.d.pieces[c.i]
	if c.pos >= p.at+len(p.text) {
		return p.from + len(p.src)
	}
	return p.from + c.pos - p.at
}

// inside is what is open here once all has ended that ends here: what begins here
// belongs to the next part.
func (c *cursor) inside() inside {
	list := c.d.pieces
	i := c.i
	for i > 0 && list[i].at == c.pos && list[i-1].at == c.pos {
		i--
	}
	for i < c.i && list[i].shut {
		i++
	}
	return list[i].before
}
