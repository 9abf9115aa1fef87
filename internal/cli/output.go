package cli

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf16"

	"github.com/tgspool/tgspool/internal/spool"
)

// output is stdout, buffered. It remembers the first error for the end.
type output struct {
	w   *bufio.Writer
	raw io.Writer
	err error
}

// Write implements io.Writer for cobra's help.
func (o *output) Write(p []byte) (int, error) {
	n, err := o.w.Write(p)
	if o.err == nil {
		o.err = err
	}
	return n, err
}

func (o *output) printf(format string, args ...any) { _, _ = fmt.Fprintf(o, format, args...) }

// colour puts a text into a colour of the terminal; anywhere else, and where
// NO_COLOR asks for none, it stays as it is.
func (a *app) colour(code, text string) string {
	if text == "" || !isTerminal(a.out.raw) || a.env("NO_COLOR") != "" || a.env("TERM") == "dumb" {
		return text
	}
	return "\x1b[" + code + "m" + text + "\x1b[0m"
}

// The colours: what needs a person, what waits for one, what is at work.
const (
	red    = "31"
	yellow = "33"
	green  = "32"
)

// stateColour is the colour of a job's state; "" for none.
func stateColour(s spool.State) string {
	switch s {
	case spool.Dead:
		return red
	case spool.Uncertain, spool.Held:
		return yellow
	case spool.Running:
		return green
	case spool.Pending, spool.Done, spool.Cancelled, spool.Expired:
	}
	return ""
}

func (o *output) flush() error {
	if err := o.w.Flush(); o.err == nil {
		o.err = err
	}
	return o.err
}

// jsonLine prints one JSON value as a line. JSON leaves some control characters
// as they are; they may stand only in strings, so that they can be escaped
// anywhere.
func (o *output) jsonLine(raw json.RawMessage) {
	var b strings.Builder
	for _, r := range string(raw) {
		if r >= 0x20 && !printable(r) {
			for _, unit := range utf16.AppendRune(nil, r) {
				fmt.Fprintf(&b, `\u%04x`, unit)
			}
			continue
		}
		if r != '\n' {
			b.WriteRune(r)
		}
	}
	o.printf("%s\n", b.String())
}

// printable reports whether a character shows itself and moves nothing else:
// no control characters, none that turn the direction of the text around.
func printable(r rune) bool {
	switch {
	case unicode.IsControl(r), r == '\u2028', r == '\u2029':
		return false
	case r >= '\u202a' && r <= '\u202e', r >= '\u2066' && r <= '\u2069', r == '\u200e', r == '\u200f', r == '\u061c':
		return false
	case r == '\ufeff':
		return false
	}
	return true
}

// safe escapes what a stranger's text could do to a terminal.
func safe(s string) string {
	if strings.IndexFunc(s, func(r rune) bool { return !printable(r) || r == unicode.ReplacementChar }) < 0 {
		return s
	}
	var b strings.Builder
	for _, r := range s {
		if printable(r) {
			b.WriteRune(r)
			continue
		}
		q := strconv.QuoteRuneToASCII(r)
		b.WriteString(q[1 : len(q)-1])
	}
	return b.String()
}

// short cuts a text for one line.
func short(s string, n int) string {
	s = safe(s)
	if runes := []rune(s); len(runes) > n {
		return string(runes[:n-1]) + "…"
	}
	return s
}

// span says how long something takes, in one or two units.
func span(d time.Duration) string {
	switch {
	case d < 0:
		return "0s"
	case d < time.Minute:
		return strconv.Itoa(int(d.Seconds())) + "s"
	case d < time.Hour:
		return strconv.Itoa(int(d.Minutes())) + "m"
	case d < 48*time.Hour:
		h, m := int(d.Hours()), int(d.Minutes())%60
		if m == 0 || h >= 10 {
			return strconv.Itoa(h) + "h"
		}
		return fmt.Sprintf("%dh%dm", h, m)
	}
	return strconv.Itoa(int(d.Hours())/24) + "d"
}

// size says how many bytes there are.
func size(n int64) string {
	const unit = 1024
	if n < unit {
		return fmt.Sprintf("%d B", n)
	}
	value, i := float64(n)/unit, 0
	for value >= unit && i < 4 {
		value, i = value/unit, i+1
	}
	return fmt.Sprintf("%.1f %ciB", value, "KMGTP"[i])
}

// plural counts things.
func plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return strconv.Itoa(n) + " " + what + "s"
}

// when shows a time: the time of day when it is near, the date too otherwise.
func when(t time.Time) string {
	t = t.Local()
	if d := time.Until(t); d > -12*time.Hour && d < 12*time.Hour {
		return t.Format("15:04:05")
	}
	return t.Format("2006-01-02 15:04:05")
}
