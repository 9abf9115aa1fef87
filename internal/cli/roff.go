package cli

import (
	"strings"
)

// roff writes a man page with the macros of man(7). Text from outside goes
// through its methods only, which escape it: a line that begins with a dot
// would else be taken for a macro, and "-" for a hyphen that can't be copied.
type roff struct {
	b strings.Builder
}

// escapes are what roff would take for something else.
var escapes = strings.NewReplacer(`\`, `\e`, "-", `\-`, "'", `\(aq`, "`", `\(ga`, "^", `\(ha`, "~", `\(ti`)

// escape makes text safe inside a line.
func escape(text string) string {
	text = escapes.Replace(text)
	if strings.HasPrefix(text, ".") {
		text = `\&` + text
	}
	return text
}

// quote makes text one argument of a macro.
func quote(text string) string { return `"` + strings.ReplaceAll(escape(text), `"`, `\(dq`) + `"` }

func (r *roff) line(parts ...string) {
	for _, part := range parts {
		r.b.WriteString(part)
	}
	r.b.WriteByte('\n')
}

// title begins the page. date is YYYY-MM-DD, "" for none.
func (r *roff) title(name, section, date, source, manual string) {
	r.line(`.\" Made from the code; a change here is lost.`)
	r.line(".TH ", quote(strings.ToUpper(name)), " ", section, " ", quote(date), " ", quote(source), " ", quote(manual))
	r.line(".nh") // names and flags must not be broken
	r.line(".ad l")
}

func (r *roff) section(title string)    { r.line(".SH ", quote(title)) }
func (r *roff) subsection(title string) { r.line(".SS ", quote(title)) }

// paragraph writes text that the reader's terminal breaks; an empty line in it
// begins a new paragraph.
func (r *roff) paragraph(text string) {
	for block := range strings.SplitSeq(text, "\n\n") {
		if strings.HasPrefix(block, "  ") { // a table
			r.verbatim(dedent(block + "\n"))
			continue
		}
		r.line(".PP")
		r.text(block)
	}
}

// text writes text into the paragraph that has begun.
func (r *roff) text(text string) {
	for line := range strings.Lines(strings.TrimSpace(text)) {
		r.line(escape(strings.TrimSpace(line)))
	}
}

// item begins a paragraph with a bold tag beside it, the text follows.
func (r *roff) item(tag, note, text string) {
	r.line(".TP")
	tag = `\fB` + escape(tag) + `\fR`
	if note != "" {
		tag += " " + escape(note)
	}
	r.line(tag)
	r.text(text)
}

// verbatim writes lines as they are, indented.
func (r *roff) verbatim(text string) {
	r.line(".PP")
	r.line(".RS 4")
	r.line(".EX")
	for line := range strings.Lines(text) {
		r.line(escape(strings.TrimRight(line, "\n")))
	}
	r.line(".EE")
	r.line(".RE")
}

// seeAlso lists other pages, given as name(section).
func (r *roff) seeAlso(pages ...string) {
	r.section("SEE ALSO")
	for i, page := range pages {
		name, section, _ := strings.Cut(strings.TrimSuffix(page, ")"), "(")
		end := ","
		if i == len(pages)-1 {
			end = ""
		}
		r.line(".BR ", escape(name), " (", section, ")", end)
	}
}
