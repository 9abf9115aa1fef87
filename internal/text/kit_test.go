package text_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/rivo/uniseg"
	"pgregory.net/rapid"

	"github.com/tgspool/tgspool/internal/telegramsim"
	"github.com/tgspool/tgspool/internal/text"
)

// The tests read texts by the simulator's parsers, which share nothing with ours.

// shown is a text as a chat shows it: its characters, each with the formatting
// over it.
type shown struct {
	text  string
	runes []string
}

// read reads a text as Telegram would.
func read(m text.Message) (shown, error) {
	var s shown
	list := ""
	if m.Mode == text.None && m.Entities != nil {
		raw, err := json.Marshal(m.Entities)
		if err != nil {
			return s, err
		}
		list = string(raw)
	}
	plain, raw, err := telegramsim.Parse(m.Text, string(m.Mode), list)
	if err != nil {
		return s, err
	}
	var entities []struct {
		Type, URL, Language string
		Offset, Length      int
		CustomEmojiID       string `json:"custom_emoji_id"`
	}
	if err := json.Unmarshal(raw, &entities); err != nil {
		return s, err
	}
	s.text = plain
	unit := 0
	for _, r := range plain {
		one := string(r)
		styles := map[string]bool{}
		for _, e := range entities {
			if style := e.Type + e.URL + e.Language + e.CustomEmojiID; unit >= e.Offset && unit < e.Offset+e.Length && !styles[style] {
				styles[style] = true
			}
		}
		unit += text.Units(one)
		if !isBlank(r) {
			s.runes = append(s.runes, one+fmt.Sprint(styles))
		}
	}
	return s, nil
}

// isBlank reports what shows nothing among the characters of these tests.
func isBlank(r rune) bool { return r <= ' ' || r == '\u00a0' || r == '\u200b' }

// check holds the parts of a text against the whole.
func check(t rapid.TB, whole text.Message, parts []text.Message, first, later int) {
	t.Helper()
	want, err := read(whole)
	if err != nil {
		t.Fatalf("the whole isn't valid: %v", err)
	}
	edges := graphemes(want.text)
	at := 0
	var runes []string
	for i, part := range parts {
		got, err := read(part)
		if err != nil {
			t.Fatalf("part %d is refused: %v\n%q", i+1, err, part.Text)
		}
		most := later
		if i == 0 {
			most = first
		}
		if n := text.Units(got.text); n > most || len(part.Text) > text.MaxRaw {
			t.Fatalf("part %d has %d units of %d, %d bytes", i+1, n, most, len(part.Text))
		}
		runes = append(runes, got.runes...)
		// What stands between the parts is white space.
		body := strings.TrimFunc(got.text, isBlank)
		at += len(want.text[at:]) - len(strings.TrimLeftFunc(want.text[at:], isBlank))
		if !strings.HasPrefix(want.text[at:], body) {
			t.Fatalf("part %d isn't what comes next:\n%q\n%q", i+1, body, want.text[at:min(len(want.text), at+len(body)+20)])
		}
		at += len(body)
		if !edges[at] {
			t.Fatalf("part %d ends inside of a grapheme: …%q", i+1, want.text[max(0, at-20):min(len(want.text), at+20)])
		}
	}
	if rest := strings.TrimFunc(want.text[at:], isBlank); rest != "" {
		t.Fatalf("the end is lost: %q", rest)
	}
	if a, b := strings.Join(runes, "\n"), strings.Join(want.runes, "\n"); a != b {
		t.Fatalf("the formatting has changed:\n%s\n%v", firstDifference(runes, want.runes), parts)
	}
}

func firstDifference(a, b []string) string {
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			return fmt.Sprintf("character %d: %s, want %s", i, a[i], b[i])
		}
	}
	return fmt.Sprintf("%d characters, want %d", len(a), len(b))
}

// graphemes are the ends of the graphemes of a text.
func graphemes(s string) map[int]bool {
	edges := map[int]bool{0: true}
	at, state := 0, -1
	for s != "" {
		var cluster string
		cluster, s, _, state = uniseg.FirstGraphemeClusterInString(s, state)
		at += len(cluster)
		edges[at] = true
	}
	return edges
}

func must(t testing.TB, m text.Message, first, later int) []text.Message {
	t.Helper()
	parts, err := m.Split(first, later)
	if err != nil {
		t.Fatalf("splitting %.80q: %v", m.Text, err)
	}
	return parts
}
