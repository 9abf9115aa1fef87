package text

import (
	"slices"
	"strings"
)

// renderer writes parts of a document. What is open at the end of one is carried
// to the next.
type renderer struct {
	d     *document
	i     int // the piece that comes next
	cut   int // bytes of its text that are behind us
	stack []*mark

	out  strings.Builder
	last string // the mark that was written last, empty when text followed it
}

// render writes the parts, each valid by itself.
func (d *document) render(parts []stretch) ([]string, error) {
	r := &renderer{d: d}
	most := 4 * (len(d.source) + MaxRaw) // bytes of all
	var out []string
	for i, part := range parts {
		if i > 0 || part.from > 0 {
			r.skip(part.from)
		}
		for _, m := range r.stack {
			r.mark(m.open)
		}
		r.write(part.to)
		if i == len(parts)-1 && part.to == len(d.plain) {
			r.finish()
		} else {
			r.close()
		}
		if most -= r.out.Len(); most < 0 {
			return nil, errRepeats
		}
		out = append(out, r.out.String())
		r.out.Reset()
		r.last = ""
	}
	return out, nil
}

// skip passes over what stands before a part; the marks in it count.
func (r *renderer) skip(to int) {
	for r.i < len(r.d.pieces) {
		p := &r.d.pieces[r.i]
		if p.at >= to && p.text != "" {
			return
		}
		if p.at+len(p.text) > to {
			r.cut = to - p.at
			return
		}
		r.next(p)
	}
}

func (r *renderer) next(p *piece) {
	r.stack = p.apply(r.stack)
	r.i++
	r.cut = 0
}

// write writes the text up to a place and the ends of marks that stand there;
// what begins there belongs to the next part.
func (r *renderer) write(to int) {
	for r.i < len(r.d.pieces) {
		p := &r.d.pieces[r.i]
		switch {
		case p.at == to && (p.text != "" || !p.shut):
			return
		case p.text == "":
			r.mark(p.src)
		case p.at+len(p.text) > to:
			r.text(p.text[r.cut : to-p.at])
			r.cut = to - p.at
			return
		default:
			r.text(p.src[r.cut:])
		}
		r.next(p)
	}
}

// finish writes the marks behind the last text.
func (r *renderer) finish() {
	for ; r.i < len(r.d.pieces); r.i++ {
		r.mark(r.d.pieces[r.i].src)
	}
}

// close ends what is open.
func (r *renderer) close() {
	for i, m := range slices.Backward(r.stack) {
		r.mark(m.end)
		if i > 0 {
			r.mark(m.tail)
		}
	}
}

func (r *renderer) text(s string) {
	r.out.WriteString(s)
	r.last = ""
}

// mark writes a mark. Italic beside underline in MarkdownV2 would be read as
// underline beside italic; an empty bold stands between them then.
func (r *renderer) mark(s string) {
	if s == "" {
		return
	}
	if r.d.mode == MarkdownV2 && r.last == "_" && strings.HasPrefix(s, "_") {
		r.out.WriteString("**")
	}
	r.out.WriteString(s)
	r.last = s
}
