package text_test

import (
	"encoding/json"
	"fmt"
	"html"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/tgspool/tgspool/internal/text"
)

// words make texts of what splitting has to get right.
var words = []string{
	"word", "a", "Mr.", "end.", "really?", "(yes!)", "x*y_z", "[0]", "1.5", "a<b", "R&D", "back\\slash", "`tick", "||", "~", ">", "#+-=|{}!",
	"naïve", "e\u0301\u0302", "日本語。", "漢字", "한국어", "مرحبا", "🐚", "👨\u200d👩\u200d👧\u200d👦", "🇩🇪🇫🇷", "👍🏽", "\U00020000",
	"http://h.invalid/a-b/c?d=e", "snake_case_name", "averyverylongwordthatdoesnotfitanywhere0123456789",
	" ", " ", " ", "  ", "\t", "\n", "\n", "\n\n", "\n\n", "\r\n", "\n    ", "\u00a0", "\u200b",
}

func genText(t *rapid.T, label string, most int) string {
	return strings.Join(rapid.SliceOfN(rapid.SampledFrom(words), 1, most).Draw(t, label), "")
}

// node is a stretch of a made-up message.
type node struct {
	kind     string // a tag of HTML, empty for text
	text     string
	arg      string
	children []node
}

// genNodes makes stretches nested in one another.
func genNodes(t *rapid.T, depth int, open string) []node {
	var list []node
	for range rapid.IntRange(1, 5).Draw(t, "nodes") {
		kinds := []string{"", ""}
		if depth > 0 {
			for _, k := range []string{"b", "i", "u", "s", "tg-spoiler", "a", "tg-emoji", "code", "pre", "blockquote"} {
				if !strings.Contains(open, "<"+k+">") && (open == "" || k != "blockquote") {
					kinds = append(kinds, k)
				}
			}
		}
		n := node{kind: rapid.SampledFrom(kinds).Draw(t, "kind")}
		switch n.kind {
		case "":
			n.text = genText(t, "text", 30)
		case "tg-emoji":
			n.text = rapid.SampledFrom([]string{"🐚", "👍🏽", "x"}).Draw(t, "emoji")
		case "code", "pre":
			n.text = genText(t, "code", 30)
			n.arg = rapid.SampledFrom([]string{"", "go"}).Draw(t, "language")
		default:
			n.arg = rapid.SampledFrom([]string{"", "1"}).Draw(t, "argument")
			n.children = genNodes(t, depth-1, open+"<"+n.kind+">")
		}
		list = append(list, n)
	}
	return list
}

// toHTML writes stretches as HTML.
func toHTML(list []node) string {
	var out strings.Builder
	for _, n := range list {
		inside := html.EscapeString(n.text) + toHTML(n.children)
		switch {
		case n.kind == "":
			out.WriteString(inside)
		case n.kind == "a":
			fmt.Fprintf(&out, `<a href="http://h.invalid/?a=1&amp;b=%s">%s</a>`, n.arg, inside)
		case n.kind == "tg-emoji":
			fmt.Fprintf(&out, `<tg-emoji emoji-id="5">%s</tg-emoji>`, inside)
		case n.kind == "pre" && n.arg != "":
			fmt.Fprintf(&out, `<pre><code class="language-%s">%s</code></pre>`, n.arg, inside)
		case n.kind == "blockquote" && n.arg != "":
			fmt.Fprintf(&out, `<blockquote expandable>%s</blockquote>`, inside)
		default:
			fmt.Fprintf(&out, `<%s>%s</%s>`, n.kind, inside, n.kind)
		}
	}
	return out.String()
}

// v2 writes stretches as MarkdownV2. An empty bold keeps marks apart that would
// be read as others, but not inside of bold.
type v2 struct {
	out   strings.Builder
	bold  bool
	quote bool
}

func (w *v2) escape(s, special string) {
	for _, r := range s {
		if strings.ContainsRune(special, r) {
			w.out.WriteByte('\\')
		}
		w.out.WriteRune(r)
		if r == '\n' && w.quote {
			w.out.WriteByte('>')
		}
	}
}

func (w *v2) mark(s string) {
	if strings.HasSuffix(w.out.String(), "_") && strings.HasPrefix(s, "_") {
		if w.bold {
			w.out.WriteString("\u200b")
		} else {
			w.out.WriteString("**")
		}
	}
	w.out.WriteString(s)
}

var v2Marks = map[string]string{"b": "*", "i": "_", "u": "__", "s": "~", "tg-spoiler": "||"}

func (w *v2) write(list []node) {
	const special = "_*[]()~`>#+-=|{}.!\\"
	for _, n := range list {
		switch n.kind {
		case "":
			w.escape(n.text, special)
		case "a":
			w.mark("[")
			w.write(n.children)
			w.mark("](http://h.invalid/\\)" + n.arg + ")")
		case "tg-emoji":
			w.mark("![" + n.text + "](tg://emoji?id=5)")
		case "code", "pre":
			mark := "`"
			if n.kind == "pre" {
				mark = "```"
			}
			w.mark(mark)
			if n.kind == "pre" {
				w.out.WriteString(n.arg + "\n")
			}
			quote := w.quote
			w.quote = false
			w.escape(strings.ReplaceAll(n.text, "\r", ""), "`\\")
			w.quote = quote
			w.mark(mark)
		case "blockquote":
			if s := w.out.String(); s != "" && !strings.HasSuffix(s, "\n") {
				w.out.WriteString("\n")
			}
			w.out.WriteString("**") // the line before may be quoted as well
			w.mark(">")
			w.quote = true
			w.write(n.children)
			w.quote = false
			if n.arg != "" {
				w.mark("||")
			}
			w.out.WriteString("\n")
		default:
			w.mark(v2Marks[n.kind])
			bold := w.bold
			w.bold = w.bold || n.kind == "b"
			w.write(n.children)
			w.mark(v2Marks[n.kind])
			w.bold = bold
		}
	}
}

func toV2(list []node) string {
	w := &v2{}
	w.write(list)
	return w.out.String()
}

// toLegacy writes stretches as the old Markdown, without those that it doesn't know.
func toLegacy(list []node) string {
	var out strings.Builder
	for _, n := range list {
		plain := strings.NewReplacer("_", "", "*", "", "`", "", "[", "", "]", "").Replace(flat(n))
		switch n.kind {
		case "b":
			out.WriteString("*" + plain + "*")
		case "i":
			out.WriteString("_" + plain + "_")
		case "a":
			out.WriteString("[" + plain + "](http://h.invalid/" + n.arg + ")")
		case "code":
			out.WriteString("`" + plain + "`")
		case "pre":
			out.WriteString("```" + n.arg + "\n" + plain + "```")
		default:
			out.WriteString(strings.NewReplacer("_", "\\_", "*", "\\*", "`", "\\`", "[", "\\[").Replace(flat(n)))
		}
	}
	return out.String()
}

func flat(n node) string {
	var out strings.Builder
	out.WriteString(n.text)
	for _, c := range n.children {
		out.WriteString(flat(c))
	}
	return out.String()
}

// TestSplit_Properties: whatever the text, its parts are valid in its mode, within
// the limits, cut between graphemes, and show the same characters in the same
// formatting, but for white space between the parts.
func TestSplit_Properties(t *testing.T) {
	write := map[text.Mode]func([]node) string{
		text.None: func(list []node) string {
			return flat(node{children: list})
		},
		text.HTML: toHTML, text.MarkdownV2: toV2, text.Markdown: toLegacy,
	}
	for mode, source := range write {
		t.Run("mode "+string(mode), func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				m := text.Message{Mode: mode, Text: source(append([]node{{text: "x"}}, genNodes(t, 3, "")...))}
				if mode == text.None {
					m.Entities = genEntities(t, m.Text)
				}
				first := rapid.IntRange(40, 200).Draw(t, "first")
				later := rapid.IntRange(40, 400).Draw(t, "later")
				parts, err := m.Split(first, later)
				if err != nil {
					t.Fatalf("%v\n%q", err, m.Text)
				}
				check(t, m, parts, first, later)
			})
		})
	}
}

// genEntities makes entities that begin and end between characters.
func genEntities(t *rapid.T, s string) []text.Entity {
	edges := []int{0}
	for _, r := range s {
		edges = append(edges, edges[len(edges)-1]+text.Units(string(r)))
	}
	var list []text.Entity
	for range rapid.IntRange(0, 8).Draw(t, "entities") {
		a := rapid.IntRange(0, len(edges)-1).Draw(t, "begin")
		b := rapid.IntRange(a, len(edges)-1).Draw(t, "end")
		kind := rapid.SampledFrom([]string{`"bold"`, `"italic"`, `"text_link","url":"http://h.invalid"`, `"pre","language":"go"`}).Draw(t, "kind")
		var e text.Entity
		raw := fmt.Sprintf(`{"type":%s,"offset":%d,"length":%d}`, kind, edges[a], edges[b]-edges[a])
		if err := json.Unmarshal([]byte(raw), &e); err != nil {
			t.Fatal(err)
		}
		list = append(list, e)
	}
	return list
}
