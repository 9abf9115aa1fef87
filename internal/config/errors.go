package config

import (
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode"
)

// ErrNothingConfigured is what the error of Load is when neither the settings
// nor the environment name a bot. The text of that error says in two lines what
// is missing and what to do.
var ErrNothingConfigured = errors.New("no bot is configured")

// nothing is an ErrNothingConfigured that knows the settings file that sets
// nothing; "" where there is none.
type nothing struct{ path string }

// Error returns two lines: what is missing, and what to do.
func (e nothing) Error() string {
	s := "no bot is configured: there are no settings"
	if e.path != "" {
		s = e.path + " names no bot"
	}
	return s + ", and TELEGRAM_BOT_TOKEN is not set\n" +
		"run tgspool setup, or set TELEGRAM_BOT_TOKEN to the token that @BotFather gave you"
}

// Is makes it an ErrNothingConfigured.
func (e nothing) Is(target error) bool { return target == ErrNothingConfigured }

// ErrNoToken is what every error of ReadToken and ReadSecret is, whatever the
// cause: the bot can't start, other bots can.
var ErrNoToken = errors.New("no usable token")

// Position is a place in a settings file. Lines and columns count from 1,
// columns in characters.
type Position struct {
	File   string
	Line   int
	Column int

	order int // the file's place in the order of reading, for sorting
}

// String returns file:line:column, or the file alone where there is no line.
func (p Position) String() string {
	if p.Line == 0 {
		return p.File
	}
	return fmt.Sprintf("%s:%d:%d", p.File, p.Line, p.Column)
}

// Error is one thing wrong with the settings.
type Error struct {
	// File, Line and Column say where. Line is 0 for a file as a whole.
	File   string
	Line   int
	Column int
	// Key is the dotted path of the key, "" when the trouble is no key's.
	Key string
	// Why says what is wrong; it never holds a secret.
	Why string
	// Hint says what to do about it; may be "".
	Hint string

	order int
}

// Error returns the whole in one line: file:line:column: key: why (hint).
func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString(Position{File: e.File, Line: e.Line, Column: e.Column}.String())
	b.WriteString(": ")
	if e.Key != "" {
		b.WriteString(e.Key)
		b.WriteString(": ")
	}
	b.WriteString(e.Why)
	if e.Hint != "" {
		b.WriteString(" (" + e.Hint + ")")
	}
	return b.String()
}

// Errors is everything found wrong in one reading, in the order of the files
// and the places in them.
type Errors []*Error

// Error returns one line for each.
func (e Errors) Error() string {
	lines := make([]string, len(e))
	for i, one := range e {
		lines[i] = one.Error()
	}
	return strings.Join(lines, "\n")
}

// Unwrap gives errors.As and errors.Is the single errors.
func (e Errors) Unwrap() []error {
	out := make([]error, len(e))
	for i, one := range e {
		out[i] = one
	}
	return out
}

// sorted returns the errors in the order in which a reader finds the places.
// What TOML says about a value is left out where its key says it better.
func (e Errors) sorted() Errors {
	slices.SortStableFunc(e, func(a, b *Error) int {
		return cmp.Or(cmp.Compare(a.order, b.order), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
	var out Errors
	for i, one := range e {
		if i+1 < len(e) && one.Key == "" && e[i+1].Key != "" && one.Line == e[i+1].Line && one.Column == e[i+1].Column && one.File == e[i+1].File {
			continue
		}
		out = append(out, one)
	}
	return out
}

// Problem is something that is allowed in the settings but hardly meant.
type Problem struct {
	// Position says where; it is zero when no file sets the key.
	Position Position
	// Key is the dotted path of the key.
	Key string
	// Why says what will happen, Hint what to do about it.
	Why  string
	Hint string
}

// String returns the whole in one line, as Error.Error does.
func (p Problem) String() string {
	s := p.Key + ": " + p.Why
	if p.Hint != "" {
		s += " (" + p.Hint + ")"
	}
	if p.Position.Line != 0 {
		s = p.Position.String() + ": " + s
	}
	return s
}

// newError makes an Error whose parts show no token, even where someone put one
// in the place of a key or a name.
func newError(at Position, key, why, hint string) *Error {
	return &Error{
		File: at.File, Line: at.Line, Column: at.Column, order: at.order,
		Key: oneLine(redact(key)), Why: oneLine(redact(why)), Hint: oneLine(redact(hint)),
	}
}

// oneLine replaces control characters: an error stays in its line, and can't
// play with the terminal.
func oneLine(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, s)
}

// redact replaces what looks like a bot token: digits, a colon, and at least 20
// letters.
func redact(s string) string {
	return tokenLike.ReplaceAllString(s, "<token>")
}

// tokenLike finds bot tokens, also cut ones.
var tokenLike = regexp.MustCompile(`[0-9]{3,}:[A-Za-z0-9_-]{20,}`)
