package wire

import (
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

const (
	// MaxParams bounds all parameters of a call, in bytes, as at Telegram.
	MaxParams = 1 << 20
	maxFiles  = 64 // of one call
	// FormSlack is what a form may take beside its files, in bytes.
	FormSlack = MaxParams + 256<<10
)

// Files takes the files of a form.
type Files interface {
	// Limit is how many bytes all of them may have.
	Limit() int64
	// Has reports whether one came under that name.
	Has(field string) bool
	// Take takes one in while it comes.
	Take(field, name string, content io.Reader) error
}

// Keeper takes files and is told when all of them have come.
type Keeper interface {
	Files
	// Finish returns once the files are sure to be there.
	Finish() error
}

// Discard reads files and forgets them. It is the Keeper of a trial.
type Discard struct{ fields []string }

// Limit is generous: nothing is kept.
func (*Discard) Limit() int64 { return 1 << 30 }

// Has reports whether a file came under that name.
func (d *Discard) Has(field string) bool { return slices.Contains(d.fields, field) }

// Take reads a file to its end.
func (d *Discard) Take(field, _ string, content io.Reader) error {
	d.fields = append(d.fields, field)
	_, err := io.Copy(io.Discard, content)
	return err
}

// Finish has nothing to do.
func (*Discard) Finish() error { return nil }

// AddForm takes the parameters of a query or of an urlencoded body. What isn't
// escaped as it should be is taken as it stands.
func (g *Gathering) AddForm(text string) error {
	for pair := range strings.SplitSeq(text, "&") {
		if pair == "" {
			continue
		}
		name, value, _ := strings.Cut(pair, "=")
		if err := g.addText(unescaped(name), unescaped(value)); err != nil {
			return err
		}
	}
	return nil
}

func unescaped(s string) string {
	if plain, err := url.QueryUnescape(s); err == nil {
		return plain
	}
	return s
}

// TooLarge says that there is more than limit bytes.
func TooLarge(limit int64) *Error {
	return errorf(http.StatusRequestEntityTooLarge, "more than %d bytes", limit)
}

// Error is what is wrong with a call, in words that its caller may see.
type Error struct {
	Code int    // the HTTP status that goes with it
	Text string // without the word that the Bot API puts before it
}

// Error is the text.
func (e *Error) Error() string { return e.Text }

func errorf(code int, format string, args ...any) *Error {
	return &Error{code, fmt.Sprintf(format, args...)}
}

// Limit is a reader that fails, unlike io.LimitReader, when there is more than
// limit bytes.
func Limit(r io.Reader, limit int64) io.Reader {
	return &limitedReader{r: r, left: limit, limit: limit}
}

type limitedReader struct {
	r           io.Reader
	left, limit int64
}

// Read reads on, as long as the limit isn't passed.
func (l *limitedReader) Read(p []byte) (int, error) {
	if int64(len(p)) > l.left+1 {
		p = p[:l.left+1]
	}
	n, err := l.r.Read(p)
	if l.left -= int64(n); l.left < 0 {
		return 0, TooLarge(l.limit)
	}
	return n, err
}
