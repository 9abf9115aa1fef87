// Package text knows how Telegram measures and marks up a text: it counts its
// length, splits what is too long into messages, and strips markup where a text
// must go out plain.
//
// A split never cuts a surrogate pair or a grapheme. Each part is valid in the
// parse mode of the whole: what is open at its end is closed there and opened
// anew, attributes included, at the beginning of the next. Between two parts only
// the white space is dropped at which they were cut: line breaks, blank lines
// among them, where it is cut between lines (the next line keeps its indentation),
// spaces and tabs where it is cut between words; and a stretch so long that it
// would be a message of nothing visible. All else stays as it was written.
//
// The parsers read what Telegram reads and refuse what it refuses, as far as its
// sources show. What they refuse isn't split: Telegram's own words say best what
// is wrong with it.
package text

import "unicode/utf8"

// Limits of a message. Telegram counts code points after it has parsed the
// markup; as many UTF-16 units are never more.
const (
	MaxText    = 4096     // UTF-16 units of a text
	MaxCaption = 1024     // UTF-16 units of a caption
	MaxRaw     = 32 << 10 // bytes of the parameter, markup included
)

// Units is the length of a text in UTF-16 units, the measure of entities.
func Units(s string) int {
	n := 0
	for _, r := range s {
		n += unitsOf(r)
	}
	return n
}

func unitsOf(r rune) int {
	if r > 0xFFFF {
		return 2
	}
	return 1
}

// runes cuts s after at most n UTF-16 units, for the pile of accents that is
// longer than a message and so can't be kept whole.
func runes(s string, n int) int {
	for i, r := range s {
		if n -= unitsOf(r); n < 0 {
			return max(i, utf8.RuneLen(r))
		}
	}
	return len(s)
}
