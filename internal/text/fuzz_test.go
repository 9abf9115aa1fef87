package text_test

import (
	"errors"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/tgspool/tgspool/internal/telegramsim"
	"github.com/tgspool/tgspool/internal/text"
)

var modes = []text.Mode{text.None, text.HTML, text.MarkdownV2, text.Markdown}

// FuzzSplit: whatever comes, a text that the simulator takes is split into parts
// that it takes, and one that it refuses isn't split.
func FuzzSplit(f *testing.F) {
	for i, s := range []string{
		"plain text of words. And more\n\nlines", `<b>x <a href="http://h.invalid">y</a></b> &amp; <pre><code class="language-x">z</code></pre>`,
		"*b _i __u___ ~s~ ||p||* `c` ```go\nx``` [a](http://h) ![e](tg://emoji?id=5)\n>q\n**>r||", "*a* _b_ `c` [d](e)",
		"👨\u200d👩\u200d👧🇩🇪🇫🇷e\u0301", "<tg-emoji emoji-id=\"5\">x</tg-emoji></>", ">a\n>*b*||\n\\\nc",
	} {
		f.Add(s, byte(i), byte(3))
	}
	f.Fuzz(func(t *testing.T, s string, modeNo, most byte) {
		if !utf8.ValidString(s) || len(s) > 2000 {
			return
		}
		m := text.Message{Text: s, Mode: modes[int(modeNo)%len(modes)]}
		limit := int(most)%60 + 12 // an emoji of a family fits
		_, _, refused := telegramsim.Parse(s, string(m.Mode), "")
		parts, err := m.Split(limit, limit)
		empty := refused != nil && strings.Contains(refused.Error(), "non-empty")
		switch {
		case err != nil && refused == nil && !tolerated(m, err):
			t.Fatalf("%s %q is valid, but: %v", m.Mode, s, err)
		case err == nil && refused != nil && !empty && !strings.ContainsRune(s, 0):
			t.Fatalf("%s %q is refused (%v), but split: %v", m.Mode, s, refused, parts)
		}
		for _, p := range parts {
			if _, _, err := telegramsim.Parse(p.Text, string(p.Mode), ""); err != nil && refused == nil {
				t.Fatalf("%s %q: part %q is refused: %v", m.Mode, s, p.Text, err)
			}
		}
		text.Plain(m.Mode, s)
	})
}

// tolerated are the valid texts that we leave whole: tags in a form that only
// Telegram takes for tags, and what can't be cut.
func tolerated(m text.Message, err error) bool {
	return m.Mode == text.HTML && errors.Is(err, text.ErrMarkup) || strings.Contains(err.Error(), "can't be cut")
}

// FuzzEntities: parts of a text keep their entities inside of them.
func FuzzEntities(f *testing.F) {
	f.Add("one two 🐚 three four five", 2, 9, byte(5))
	f.Fuzz(func(t *testing.T, s string, offset, length int, most byte) {
		if !utf8.ValidString(s) || len(s) > 2000 {
			return
		}
		m := text.Message{Text: s, Entities: []text.Entity{{Offset: offset, Length: length}}}
		parts, err := m.Split(int(most)+12, int(most)+12)
		if err != nil {
			return
		}
		for _, p := range parts {
			for _, e := range p.Entities {
				if e.Offset < 0 || e.Length < 1 && len(parts) > 1 || e.Offset+e.Length > text.Units(p.Text) {
					t.Fatalf("%q: entity %d+%d in %q", s, e.Offset, e.Length, p.Text)
				}
			}
		}
	})
}
