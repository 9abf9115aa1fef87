package telegramsim_test

import (
	"testing"

	"github.com/tgspool/tgspool/internal/telegramsim"
)

// TestParse reads what Telegram's own parsers read, and refuses what they refuse.
func TestParse(t *testing.T) {
	for _, tt := range []struct{ mode, in, text, entities string }{
		{"HTML", "a &lt;b&gt; &amp &#65;&#x1F600; &nbsp; & &#0;", "a <b> & A\U0001F600 &nbsp; & &#0;", `[]`},
		{"HTML", `<B>x</b><i >y</ i>`, "", "Bad Request: can't parse entities: Unclosed end tag at byte offset 13"},
		{"HTML", `<B>x</b><i >y</>`, "xy", `[{"type":"bold","offset":0,"length":1},{"type":"italic","offset":1,"length":1}]`},
		{"HTML", `<pre><code class="language-go">x</code></pre>`, "x", `[{"type":"pre","offset":0,"length":1,"language":"go"}]`},
		{"HTML", `<code class="language-go">x</code>`, "x", `[{"type":"code","offset":0,"length":1}]`},
		{"HTML", `<a href='http://h.invalid/?a=1&amp;b=">"'>x</a>`, "x", `[{"type":"text_link","offset":0,"length":1,"url":"http://h.invalid/?a=1&b=\">\""}]`},
		{"HTML", `<a>h.invalid</a>`, "h.invalid", `[{"type":"text_link","offset":0,"length":9,"url":"h.invalid"}]`},
		{"HTML", `<blockquote expandable>x</blockquote>`, "x", `[{"type":"expandable_blockquote","offset":0,"length":1}]`},
		{"HTML", `<tg-emoji emoji-id="5">x</tg-emoji>`, "x", `[{"type":"custom_emoji","offset":0,"length":1,"custom_emoji_id":"5"}]`},
		{"HTML", `<tg-emoji>x</tg-emoji>`, "", "Bad Request: can't parse entities: Invalid custom emoji identifier specified"},
		{"HTML", `<span>x</span>`, "", "Bad Request: can't parse entities: Tag \"span\" must have class \"tg-spoiler\" at byte offset 0"},
		{"HTML", `<a href=http://h>x</a>`, "", "Bad Request: can't parse entities: Unexpected end of name token at byte offset 8"},
		{"HTML", `a<br/>b`, "", "Bad Request: can't parse entities: Unsupported start tag \"br/\" at byte offset 1"},
		{"HTML", `load < 10%`, "", "Bad Request: can't parse entities: Unsupported start tag \"\" at byte offset 5"},
		{"HTML", `a <b`, "", "Bad Request: can't parse entities: Unclosed start tag at byte offset 2"},
		{"HTML", `&#xd800;`, "", "Bad Request: can't parse entities: Text contains invalid Unicode characters after decoding HTML entities, check for unmatched surrogate code units"},
		{"HTML", "<b> </b>", "", "Bad Request: text must be non-empty"},
		{"HTML", "  <b> x</b> \n", " x", `[{"type":"bold","offset":0,"length":2}]`},

		{"MarkdownV2", "_i___u__", "", "Bad Request: can't parse entities: Can't find end of Underline entity at byte offset 6"},
		{"MarkdownV2", "_a __b__ c_", "a b c", `[{"type":"italic","offset":0,"length":5},{"type":"underline","offset":2,"length":1}]`},
		{"MarkdownV2", "__u _ui_**__", "u ui", `[{"type":"underline","offset":0,"length":4},{"type":"italic","offset":2,"length":2}]`},
		{"MarkdownV2", "_a __b___", "a b", `[{"type":"italic","offset":0,"length":3},{"type":"underline","offset":2,"length":1}]`},
		{"MarkdownV2", "```go\nx.y()\n```", "x.y()", `[{"type":"pre","offset":0,"length":5,"language":"go"}]`},
		{"MarkdownV2", "```x```", "x", `[{"type":"pre","offset":0,"length":1}]`},
		{"MarkdownV2", "`a_b*\\`c`", "a_b*`c", `[{"type":"code","offset":0,"length":6}]`},
		{"MarkdownV2", "[t\\]](http://h.invalid/\\)a)", "t]", `[{"type":"text_link","offset":0,"length":2,"url":"http://h.invalid/)a"}]`},
		{"MarkdownV2", "![x](tg://emoji?id=5)", "x", `[{"type":"custom_emoji","offset":0,"length":1,"custom_emoji_id":"5"}]`},
		{"MarkdownV2", "![x](http://h.invalid)", "", "Bad Request: can't parse entities: Invalid tg://emoji or tg://time URL specified"},
		{"MarkdownV2", ">a\n>b\nc", "a\nb\nc", `[{"type":"blockquote","offset":0,"length":4}]`},
		{"MarkdownV2", ">a\n**>b\n>c||", "a\nb\nc", `[{"type":"blockquote","offset":0,"length":2},{"type":"expandable_blockquote","offset":2,"length":3}]`},
		{"MarkdownV2", ">a||\nb", "a\nb", `[{"type":"expandable_blockquote","offset":0,"length":2}]`},
		{"MarkdownV2", ">||a||\nb", "a\nb", `[{"type":"blockquote","offset":0,"length":2},{"type":"spoiler","offset":0,"length":1}]`},
		{"MarkdownV2", "*>a\n*b", "a\nb", `[{"type":"blockquote","offset":0,"length":2},{"type":"bold","offset":0,"length":2}]`},
		{"MarkdownV2", ">*a\nb*", "", "Bad Request: can't parse entities: Can't find end of Bold entity at byte offset 1"},
		{"MarkdownV2", "a>b", "", `Bad Request: can't parse entities: Character '>' is reserved and must be escaped with the preceding '\'`},
		{"MarkdownV2", "a\\", "a\\", `[]`},
		{"MarkdownV2", "[a](b", "", "Bad Request: can't parse entities: Can't find end of a URL at byte offset 4"},

		{"Markdown", "*a_b* \\*c", "a_b *c", `[{"type":"bold","offset":0,"length":3}]`},
		{"Markdown", "```sh\nls `x`\n```", "ls `x`", `[{"type":"pre","offset":0,"length":6,"language":"sh"}]`},
		{"Markdown", "[a](http://h.invalid", "a", `[{"type":"text_link","offset":0,"length":1,"url":"http://h.invalid"}]`},
	} {
		text, entities, err := telegramsim.Parse(tt.in, tt.mode, "")
		got := string(entities)
		if err != nil {
			got = err.Error()
		}
		if text != tt.text || got != tt.entities {
			t.Errorf("%s %q:\n got %q %s\nwant %q %s", tt.mode, tt.in, text, got, tt.text, tt.entities)
		}
	}
}

func TestParse_Entities(t *testing.T) {
	for _, tt := range []struct{ in, entities, want string }{
		{"a\U0001F600b", `[{"type":"bold","offset":1,"length":2}]`, ""},
		{"a\U0001F600b", `[{"type":"bold","offset":1,"length":1}]`, "Bad Request: entity beginning at UTF-16 offset 1 ends in a middle of a UTF-16 symbol"},
		{"a\U0001F600b", `[{"type":"bold","offset":2,"length":1}]`, "Bad Request: entity begins in a middle of a UTF-16 symbol at UTF-16 offset 2"},
		{"ab", `[{"type":"bold","offset":1,"length":2}]`, "Bad Request: entity beginning at UTF-16 offset 1 ends after the end of the text at UTF-16 offset 3"},
		{"ab", `[{"type":"bold","offset":3,"length":2}]`, "Bad Request: entity begins after the end of the text at UTF-16 offset 3"},
		{"ab", `[{"type":"bold","offset":-1,"length":2}]`, "Bad Request: receive an entity with incorrect offset -1"},
	} {
		got := ""
		if _, _, err := telegramsim.Parse(tt.in, "", tt.entities); err != nil {
			got = err.Error()
		}
		if got != tt.want {
			t.Errorf("%q with %s: %q, want %q", tt.in, tt.entities, got, tt.want)
		}
	}
}
