package cli

import (
	"bufio"
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/tgspool/tgspool/internal/spool"
)

// TestSafe: nothing that a stranger writes moves the cursor, changes colours,
// turns the text around or ends the line.
func TestSafe(t *testing.T) {
	for in, want := range map[string]string{
		"plain äöü 日本 😀 👨\u200d👩\u200d👧": "plain äöü 日本 😀 👨\u200d👩\u200d👧",
		"a\x1b[31mred": `a\x1b[31mred`,
		"a\rb\nc\td":   `a\rb\nc\td`,
		"a\x00b\x7fc":  `a\x00b\x7fc`,
		"a\u009b31m":   `a\u009b31m`,
		"abc\u202edef": `abc\u202edef`,
		"a\u2028b":     `a\u2028b`,
		"a\xffb":       "a\ufffdb",
	} {
		if got := safe(in); got != want {
			t.Errorf("%q shows as %q, want %q", in, got, want)
		}
	}
	if got := short("0123456789", 5); got != "0123…" {
		t.Errorf("cut to %q", got)
	}
}

// TestJSONLine: a line stays one line, means the same, and holds no control
// character.
func TestJSONLine(t *testing.T) {
	raw := json.RawMessage("{\"a\":\"x\u009b\u202e\u2028\x7f é 😀 \\n\",\n\"n\":9007199254740993}")
	var buf strings.Builder
	o := &output{w: bufio.NewWriter(&buf)}
	o.jsonLine(raw)
	if err := o.flush(); err != nil {
		t.Fatal(err)
	}
	got := buf.String()
	if strings.Count(got, "\n") != 1 || strings.ContainsAny(got, "\u009b\u202e\u2028\x7f") || !strings.Contains(got, "9007199254740993") {
		t.Errorf("line %q", got)
	}
	var want, have any
	if err := json.Unmarshal(raw, &want); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal([]byte(got), &have); err != nil || !reflect.DeepEqual(have, want) {
		t.Errorf("it means %v now, %v before (%v)", have, want, err)
	}
}

func TestSpan(t *testing.T) {
	for d, want := range map[time.Duration]string{
		-time.Second: "0s", 0: "0s", 59 * time.Second: "59s", 61 * time.Second: "1m", 90 * time.Minute: "1h30m", 2 * time.Hour: "2h",
		30 * time.Hour: "30h", 72 * time.Hour: "3d",
	} {
		if got := span(d); got != want {
			t.Errorf("%s is %q, want %q", d, got, want)
		}
	}
	for n, want := range map[int64]string{0: "0 B", 1023: "1023 B", 1536: "1.5 KiB", 1 << 30: "1.0 GiB", 1 << 62: "4096.0 PiB"} {
		if got := size(n); got != want {
			t.Errorf("%d is %q, want %q", n, got, want)
		}
	}
}

func TestParseAt(t *testing.T) {
	berlin := time.FixedZone("CET", 3600)
	now := time.Date(2026, 1, 31, 22, 30, 0, 0, berlin)
	for in, want := range map[string]string{
		"23:00":                     "2026-01-31T23:00:00+01:00",
		"22:30":                     "2026-02-01T22:30:00+01:00", // has just begun: tomorrow's
		"07:15":                     "2026-02-01T07:15:00+01:00",
		"2026-03-01 10:00":          "2026-03-01T10:00:00+01:00",
		"2026-03-01T10:00:00Z":      "2026-03-01T10:00:00Z",
		"2026-03-01T10:00:00-05:00": "2026-03-01T10:00:00-05:00",
	} {
		got, err := parseAt(in, now)
		if err != nil || got.Format(time.RFC3339) != want {
			t.Errorf("%q is %s, %v; want %s", in, got.Format(time.RFC3339), err, want)
		}
	}
	for _, in := range []string{"", "noon", "25:00", "tomorrow 10:00"} {
		if got, err := parseAt(in, now); err == nil {
			t.Errorf("%q is taken for %s", in, got)
		}
	}
}

func TestEndCode(t *testing.T) {
	for _, s := range spool.States() {
		want := map[spool.State]int{spool.Done: 0, spool.Dead: 65, spool.Cancelled: 65, spool.Expired: 65}
		code, over := want[s]
		if !over {
			code = 75
		}
		if got := endCode(s); got != code {
			t.Errorf("%s ends with %d, want %d", s, got, code)
		}
	}
}

// TestMaskNegative: a negative number is never a flag, and always comes out as
// it went in.
func TestMaskNegative(t *testing.T) {
	root := (&app{}).root()
	for _, tt := range []struct{ in, masked string }{
		{"chat activate -100", "chat activate 0-100"},
		{"send --chat -100 hi", "send --chat -100 hi"},
		{"send --silent -100", "send --silent 0-100"},
		{"send --wait -100", "send --wait 0-100"},
		{"send -- -100", "send -- -100"},
		{"-100", "0-100"},
		{"send -1x", "send -1x"},
		{"send --chat=-100 -5", "send --chat=-100 0-5"},
	} {
		in := strings.Fields(tt.in)
		got := maskNegative(root, in)
		if shown := strings.ReplaceAll(strings.Join(got, " "), mask, "0"); shown != tt.masked {
			t.Errorf("%q becomes %q, want %q", tt.in, shown, tt.masked)
		}
		if back := unmask(got); !reflect.DeepEqual(back, in) {
			t.Errorf("%q comes out as %q", tt.in, back)
		}
	}
}
