package text_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/tgspool/tgspool/internal/text"
)

// TestSplit_Bounded: time and memory grow with the text only, whatever it is. A
// megabyte of any of these took from many seconds to hours, or gigabytes.
func TestSplit_Bounded(t *testing.T) {
	fill := func(s string) string { return strings.Repeat(s, 1<<20/len(s)) }
	nested := strings.Repeat("<b>", 1480)
	for _, tt := range []struct {
		name string
		m    text.Message
		err  error // nil: it is split
	}{
		{"accents", text.Message{Text: "a" + fill("\u0301")}, nil},
		{"one emoji without an end", text.Message{Text: fill("👩\u200d")}, nil},
		{"brackets behind a full stop", text.Message{Text: "a." + fill(")")}, nil},
		{"spaces behind a full stop", text.Message{Text: "a." + fill(" ") + "B" + strings.Repeat("a", 5000)}, nil},
		{"wide spaces behind a full stop", text.Message{Text: "a." + fill("\u3000") + "B" + strings.Repeat("a", 5000)}, nil},
		{"deep", text.Message{Mode: text.HTML, Text: nested + strings.Repeat("a", 1<<20) + strings.ReplaceAll(nested, "<", "</")}, text.ErrTooMany},
		{"less deep", text.Message{Mode: text.HTML, Text: nested[:3*1400] + strings.Repeat("a", 1<<20) + strings.ReplaceAll(nested[:3*1400], "<", "</")}, errAny},
		{"entities", text.Message{Text: fill("a"), Entities: manyEntities(20_000, 1<<20)}, errAny},
	} {
		t.Run(tt.name, func(t *testing.T) {
			begin := time.Now()
			parts, err := tt.m.Split(text.MaxText, text.MaxText)
			took := time.Since(begin)
			switch {
			case took > 20*time.Second:
				t.Errorf("took %s", took)
			case tt.err == nil && (err != nil || len(parts) < 2):
				t.Errorf("%d parts, %v", len(parts), err)
			case tt.err != nil && err == nil, !errors.Is(tt.err, errAny) && !errors.Is(err, tt.err):
				t.Errorf("%d parts, error %v, want %v", len(parts), err, tt.err)
			}
		})
	}
}

var errAny = errors.New("an error")

func manyEntities(n, length int) []text.Entity {
	list := make([]text.Entity, n)
	for i := range list {
		list[i].Length = length
	}
	return list
}

// TestSplit_MaxParts: a text of just so many messages is split; what follows and
// shows nothing doesn't count.
func TestSplit_MaxParts(t *testing.T) {
	full := strings.Repeat("x", 20*text.MaxParts)
	for _, s := range []string{full, full + " \u200b\n"} {
		if parts, err := (text.Message{Text: s}).Split(20, 20); err != nil || len(parts) != text.MaxParts {
			t.Errorf("%d parts, %v", len(parts), err)
		}
	}
	if parts, err := (text.Message{Text: full + "x"}).Split(20, 20); !errors.Is(err, text.ErrTooMany) {
		t.Errorf("%d parts, %v", len(parts), err)
	}
}
