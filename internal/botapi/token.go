package botapi

import (
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/url"
	"strconv"
	"strings"
)

const (
	maxTokenLen   = 80
	maxBotID      = 1 << 54
	redacted      = "[redacted]"
	minSecretPart = 8 // a shorter secret half could be a plain word, and is only cut as part of the whole
)

// Token is a bot token that shows only the bot's id however it is printed, logged or
// encoded. The zero Token is no token.
//
// The text stands behind a pointer, so that a struct that holds a Token in an
// unexported field prints an address instead of it.
type Token struct {
	id   int64
	text *string
}

// ParseToken reads a bot token as people paste it: blanks, line ends, a byte order mark
// and quotes around it are dropped. Its errors never repeat what was given.
func ParseToken(s string) (Token, error) {
	s = trimToken(s)
	switch {
	case s == "":
		return Token{}, errors.New("token is empty")
	case len(s) > maxTokenLen:
		return Token{}, fmt.Errorf("token is longer than %d characters", maxTokenLen)
	}
	number, secret, found := strings.Cut(s, ":")
	if !found {
		return Token{}, errors.New("this is no bot token; @BotFather gives one like 123456:ABC…")
	}
	id, err := strconv.ParseInt(number, 10, 64)
	if err != nil || number[0] < '1' || number[0] > '9' || id > maxBotID {
		return Token{}, errors.New("token doesn't begin with a bot id")
	}
	if secret == "" {
		return Token{}, errors.New("token has nothing after the colon")
	}
	if strings.ContainsFunc(secret, unfitForToken) {
		return Token{}, errors.New("token holds a character that no token has")
	}
	return Token{id: id, text: &s}, nil
}

// trimToken peels off what editors, shells and Windows leave around a token.
func trimToken(s string) string {
	for {
		cut := strings.TrimSpace(s)
		cut = strings.TrimPrefix(cut, "\ufeff")
		cut = strings.Trim(cut, "\"'`\x00")
		if cut == s {
			return s
		}
		s = cut
	}
}

// unfitForToken reports the characters that would change the path of the URL or can't
// stand in one.
func unfitForToken(r rune) bool {
	return r <= ' ' || r >= 0x7f || strings.ContainsRune(`/?#%\"'`, r)
}

// BotID returns the id of the bot, 0 for the zero Token.
func (t Token) BotID() int64 { return t.id }

// IsZero reports whether there is no token.
func (t Token) IsZero() bool { return t.text == nil }

// Equal reports whether s is this token, in a time that doesn't depend on where they
// differ. The zero Token equals nothing.
func (t Token) Equal(s string) bool {
	if t.text == nil {
		return false
	}
	mine, theirs := sha256.Sum256([]byte(*t.text)), sha256.Sum256([]byte(s))
	return subtle.ConstantTimeCompare(mine[:], theirs[:]) == 1
}

// Reveal returns the token itself. It is for the one place that stores the token or
// hands it over; everything else prints the Token.
func (t Token) Reveal() string {
	if t.text == nil {
		return ""
	}
	return *t.text
}

// Redact returns s without the token, whether it stands there plainly, percent-encoded,
// or as its secret half alone.
func (t Token) Redact(s string) string {
	if t.text == nil || s == "" {
		return s
	}
	whole, shown := *t.text, t.String()
	_, secret, _ := strings.Cut(whole, ":")
	id := strconv.FormatInt(t.id, 10)
	escaped := url.QueryEscape(secret)
	for _, separator := range []string{":", "%3A", "%3a", "%253A", "%253a"} {
		s = strings.ReplaceAll(s, id+separator+secret, shown)
		s = strings.ReplaceAll(s, id+separator+escaped, shown)
	}
	if len(secret) >= minSecretPart {
		s = strings.ReplaceAll(s, secret, redacted)
		s = strings.ReplaceAll(s, escaped, redacted)
	}
	return s
}

// String returns "<bot id>:[redacted]", or "" for the zero Token.
func (t Token) String() string {
	if t.text == nil {
		return ""
	}
	return strconv.FormatInt(t.id, 10) + ":" + redacted
}

// GoString is String, for the verb %#v.
func (t Token) GoString() string { return t.String() }

// Format writes String whatever the verb, since verbs like %d would else walk the fields.
func (t Token) Format(s fmt.State, _ rune) {
	// A write that fails here is the business of whoever owns the writer.
	_, _ = io.WriteString(s, t.String())
}

// LogValue is String, for slog.
func (t Token) LogValue() slog.Value { return slog.StringValue(t.String()) }

// MarshalText is String, for encoders of text.
func (t Token) MarshalText() ([]byte, error) { return []byte(t.String()), nil }

// MarshalJSON is String in quotes.
func (t Token) MarshalJSON() ([]byte, error) { return []byte(strconv.Quote(t.String())), nil }
