package text_test

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/tgspool/tgspool/internal/text"
)

func x(n int) string { return strings.Repeat("x", n) }

func TestUnits(t *testing.T) {
	for s, want := range map[string]int{"": 0, "abc": 3, "é": 1, "🐚": 2, "e\u0301": 2, "👨\u200d👩": 5} {
		if got := text.Units(s); got != want {
			t.Errorf("%q has %d units, want %d", s, got, want)
		}
	}
}

// TestSplit_Places: a text is cut where a reader would cut it.
func TestSplit_Places(t *testing.T) {
	for _, tt := range []struct {
		name, in string
		mode     text.Mode
		want     []string
	}{
		{"what fits stays as it is", " a \n\n b ", "", []string{" a \n\n b "}},
		{"paragraphs", "one two.\nthree\n\nfour five six seven", "", []string{"one two.\nthree", "four five six seven"}},
		{"blank lines with spaces in them", "one two\n \t\r\n \nfour five six seven", "", []string{"one two", "four five six seven"}},
		{"lines", "one two. three\nfour five six seven", "", []string{"one two. three", "four five six seven"}},
		{"the next line keeps its indentation", "one two:\n    three four five six", "", []string{"one two:", "    three four five", "six"}},
		{"sentences", "One two three. Four five six", "", []string{"One two three.", "Four five six"}},
		{"a quoted sentence", `He said "no!" Then he went on`, "", []string{`He said "no!"`, "Then he went on"}},
		{"words", "one two three four five", "", []string{"one two three four", "five"}},
		{"many spaces", "one two three four     five", "", []string{"one two three four", "five"}},
		{"a space that doesn't fit any more", x(20) + " " + x(5), "", []string{x(20), x(5)}},
		{"a long word", x(45), "", []string{x(20), x(20), x(5)}},
		{"an early space isn't worth a part", "to " + x(45), "", []string{"to " + x(17), x(20), x(8)}},
		{"an early space before a word that fits", "to " + x(19) + " y", "", []string{"to", x(19) + " y"[:0], "y"}},
		{"a hyphen", "one-two-three-four-five-six", "", []string{"one-two-three-four-", "five-six"}},
		{"ideographs", strings.Repeat("漢", 15) + "。" + strings.Repeat("字", 15), "", []string{strings.Repeat("漢", 15) + "。", strings.Repeat("字", 15)}},
		{"an emoji of many parts", x(17) + "👨\u200d👩\u200d👧", "", []string{x(17), "👨\u200d👩\u200d👧"}},
		{"surrogate pairs", strings.Repeat("🐚", 15), "", []string{strings.Repeat("🐚", 10), strings.Repeat("🐚", 5)}},
		{"a pile of accents longer than a message", "a" + strings.Repeat("\u0301", 45), "", []string{
			"a" + strings.Repeat("\u0301", 19), strings.Repeat("\u0301", 20), strings.Repeat("\u0301", 6),
		}},
		{"white space alone isn't sent", strings.Repeat("\n", 50) + "a" + strings.Repeat(" ", 50) + "b", "", []string{"a", "b"}},
		{"nothing that shows", strings.Repeat(" \u200b", 20), "", []string{strings.Repeat(" \u200b", 20)}},

		{"a tag is ended and begun anew", "<b>one two three four five</b>", "HTML", []string{"<b>one two three four</b>", "<b>five</b>"}},
		{"tags count nothing", "<b>one</b> <i>two</i> <u>three</u> four", "HTML", []string{"<b>one</b> <i>two</i> <u>three</u> four"}},
		{"a reference counts one", strings.Repeat("&amp;", 25), "HTML", []string{strings.Repeat("&amp;", 20), strings.Repeat("&amp;", 5)}},
		{
			"attributes, as they were written", `<a  HREF='http://h.invalid/?a&amp;b'>one two three four five</A>`, "HTML",
			[]string{`<a  HREF='http://h.invalid/?a&amp;b'>one two three four</a>`, `<a  HREF='http://h.invalid/?a&amp;b'>five</A>`},
		},
		{"a tag ends before the cut", "one <b>two three four</b> five", "HTML", []string{"one <b>two three four</b>", "five"}},
		{"a tag begins behind the cut", "one two three four <b>five</b>", "HTML", []string{"one two three four", "<b>five</b>"}},
		{
			"code keeps its language", "<pre><code class=\"language-sh\">one two three\nfour five six</code></pre>", "HTML",
			[]string{"<pre><code class=\"language-sh\">one two three</code></pre>", "<pre><code class=\"language-sh\">four five six</code></pre>"},
		},
		{"a custom emoji stays whole", "<i>" + x(19) + `<tg-emoji emoji-id="5">👍🏽</tg-emoji></i>`, "HTML", []string{"<i>" + x(19) + "</i>", `<i><tg-emoji emoji-id="5">👍🏽</tg-emoji></i>`}},

		{"marks", "*one _two three four five_*", "MarkdownV2", []string{"*one _two three four_*", "*_five_*"}},
		{"italic and underline", "_one __two three four five___", "MarkdownV2", []string{"_one __two three four___", "_**__five___"}},
		{"underline and italic", "__one _two three four five_**__", "MarkdownV2", []string{"__one _two three four_**__", "___five_**__"}},
		{"escapes count one", strings.Repeat(`\.`, 25), "MarkdownV2", []string{strings.Repeat(`\.`, 20), strings.Repeat(`\.`, 5)}},
		{
			"a link", `[one two three four five](http://h.invalid/\))`, "MarkdownV2",
			[]string{`[one two three four](http://h.invalid/\))`, `[five](http://h.invalid/\))`},
		},
		{
			"a block of code", "```go\none two three\nfour five six\n```", "MarkdownV2",
			[]string{"```go\none two three```", "```go\nfour five six\n```"},
		},
		{"a quotation", ">one two three\n>four five six", "MarkdownV2", []string{">one two three", ">four five six"}},
		{"a folded quotation", ">one two three four five six||", "MarkdownV2", []string{">one two three four||", ">five six||"}},
		{"a quotation inside of bold", "*>one two three four five\n*", "MarkdownV2", []string{"*>one two three four\n*", "*>five\n*"}},
		{"a spoiler in a folded quotation", ">||one two three four five||||", "MarkdownV2", []string{">||one two three four||||", ">||five||||"}},

		{"the old Markdown", "*one two three four five*", "Markdown", []string{"*one two three four*", "*five*"}},
		{"a link of the old Markdown", "[one two three four five](http://h.invalid)", "Markdown", []string{"[one two three four](http://h.invalid)", "[five](http://h.invalid)"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			m := text.Message{Text: tt.in, Mode: tt.mode}
			var got []string
			for _, p := range must(t, m, 20, 20) {
				got = append(got, p.Text)
			}
			if !slices.Equal(got, tt.want) {
				t.Errorf("%q\n got %q\nwant %q", tt.in, got, tt.want)
			}
		})
	}
}

// TestSplit_Refuses: what Telegram wouldn't parse isn't split by force.
func TestSplit_Refuses(t *testing.T) {
	for _, tt := range []struct {
		in   string
		mode text.Mode
	}{
		{"load < 10%", text.HTML},
		{"<no value>", text.HTML},
		{"<b>x", text.HTML},
		{"x</b>", text.HTML},
		{"<b>x</i>", text.HTML},
		{"a<br>b", text.HTML},
		{"a<br/>b", text.HTML},
		{"<b/>x", text.HTML},
		{"x <b", text.HTML},
		{"<!-- x -->", text.HTML},
		{"<a href=http://h>x</a>", text.HTML},
		{"<span>x</span>", text.HTML},
		{"<tg-emoji>x</tg-emoji>", text.HTML},
		{"&#xd800;", text.HTML},
		{"1.5", text.MarkdownV2},
		{"*x", text.MarkdownV2},
		{"*x_*", text.MarkdownV2},
		{"[x](y", text.MarkdownV2},
		{"a > b", text.MarkdownV2},
		{">*a\nb*", text.MarkdownV2},
		{"![x](http://h)", text.MarkdownV2},
		{"```x", text.MarkdownV2},
		{"*x", text.Markdown},
		{"```x`", text.Markdown},
		{"x", "BBCode"},
	} {
		if parts, err := (text.Message{Text: tt.in + x(30), Mode: tt.mode}).Split(20, 20); !errors.Is(err, text.ErrMarkup) {
			t.Errorf("%s %q: %v, %v", tt.mode, tt.in, parts, err)
		}
	}
	heavy := text.Message{Mode: text.HTML, Text: `<a href="http://h.invalid/` + x(20_000) + `">` + x(5000) + "</a>"}
	if parts, err := heavy.Split(text.MaxText, text.MaxText); err == nil {
		t.Errorf("%d parts of a text whose markup fills a message", len(parts))
	}
}

// TestSplit_Entities: offsets count from each part's beginning; what is cut is in
// both parts; what isn't known is kept.
func TestSplit_Entities(t *testing.T) {
	var m text.Message
	m.Text = "🐚 one two three four five"
	if err := json.Unmarshal([]byte(`[{"offset":0,"type":"custom_emoji","length":2,"custom_emoji_id":"5368324170671202286"},
		{"type":"bold","offset":"3","length":"16","new":{"big":12345678901234567890}}, {"type":"italic","offset":22,"length":4}]`), &m.Entities); err != nil {
		t.Fatal(err)
	}
	parts := must(t, m, 17, 20)
	got, err := json.Marshal([]any{parts[0].Text, parts[0].Entities, parts[1].Text, parts[1].Entities})
	if err != nil {
		t.Fatal(err)
	}
	want := `["🐚 one two three",[{"custom_emoji_id":"5368324170671202286","length":2,"offset":0,"type":"custom_emoji"},` +
		`{"length":13,"new":{"big":12345678901234567890},"offset":3,"type":"bold"}],` +
		`"four five",[{"length":2,"new":{"big":12345678901234567890},"offset":0,"type":"bold"},{"length":4,"offset":5,"type":"italic"}]]`
	if string(got) != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	for _, bad := range []string{`[{"offset":1,"length":1}]`, `[{"offset":25,"length":5}]`, `[{"offset":-1,"length":5}]`, `[{"length":5}]`, `["x"]`} {
		m := text.Message{Text: m.Text}
		err := json.Unmarshal([]byte(bad), &m.Entities)
		if err == nil {
			_, err = m.Split(17, 20)
		}
		if !errors.Is(err, text.ErrMarkup) {
			t.Errorf("%s: %v", bad, err)
		}
	}
}

// TestSplit_Raw: markup counts against the bytes of the parameter only.
func TestSplit_Raw(t *testing.T) {
	m := text.Message{Mode: text.HTML, Text: strings.Repeat(`<a href="http://h.invalid/">x</a> `, 2000)}
	parts := must(t, m, text.MaxText, text.MaxText)
	check(t, m, parts, text.MaxText, text.MaxText)
	if len(parts) != 3 { // 66 kB
		t.Errorf("%d parts", len(parts))
	}
	m = text.Message{Mode: text.MarkdownV2, Text: strings.Repeat("*_~x~_*", 6000)}
	check(t, m, must(t, m, text.MaxText, text.MaxText), text.MaxText, text.MaxText)
}

// TestSplit_Caption: the first part is a caption, the others are texts.
func TestSplit_Caption(t *testing.T) {
	parts := must(t, text.Message{Text: x(6000)}, text.MaxCaption, text.MaxText)
	if len(parts) != 3 || len(parts[0].Text) != text.MaxCaption || len(parts[1].Text) != text.MaxText {
		t.Errorf("%d parts", len(parts))
	}
}

// BenchmarkSplit splits a megabyte of log lines.
func BenchmarkSplit(b *testing.B) {
	line := "2026-01-02T15:04:05Z host unit[123]: <info> something of interest has happened & ended\n"
	for _, m := range []text.Message{
		{Text: strings.Repeat(line, 1<<20/len(line))},
		{Text: "<pre>" + strings.Repeat(strings.NewReplacer("<", "&lt;", ">", "&gt;", "&", "&amp;").Replace(line), 1<<20/len(line)) + "</pre>", Mode: text.HTML},
		{Text: "```\n" + strings.Repeat(line, 1<<20/len(line)) + "```", Mode: text.MarkdownV2},
	} {
		b.Run("mode "+string(m.Mode), func(b *testing.B) {
			b.SetBytes(int64(len(m.Text)))
			for b.Loop() {
				must(b, m, text.MaxText, text.MaxText)
			}
		})
	}
}
