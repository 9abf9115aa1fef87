package config

import (
	"math"
	"reflect"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// scalar is a number in the form of its key: a duration in nanoseconds, a size
// in bytes or an integer in whole, a number in real.
type scalar struct {
	whole int64
	real  float64
}

// less reports which of two scalars of one key is the smaller one.
func (s scalar) less(t scalar) bool {
	return s.whole < t.whole || s.real < t.real
}

// boolean decodes true or false.
func (d *decoder) boolean(n *node, dst *bool, path string) {
	if n.kind != kindBool {
		d.fail(n.val, path, "want true or false, have "+n.kind.String(), "without quotes")
		return
	}
	*dst = n.text == "true"
}

// number decodes an integer, a number, a duration or a size and holds it to the
// bounds of its key; store is called when it is good.
func (d *decoder) number(n *node, f field, path string, store func(scalar)) {
	s, why, hint := f.scalar(n)
	if why == "" {
		why, hint = f.bounds(s)
	}
	if why != "" {
		d.fail(n.val, path, why, hint)
		return
	}
	store(s)
}

// scalar reads the number in the form of the key.
func (f field) scalar(n *node) (s scalar, why, hint string) {
	switch {
	case f.form == "size":
		return readSize(n)
	case f.typ == reflect.TypeFor[time.Duration]():
		return readDuration(n)
	case f.typ.Kind() == reflect.Float64:
		return readFloat(n)
	default:
		return readInt(n)
	}
}

// bounds checks the number against min and max.
func (f field) bounds(s scalar) (why, hint string) {
	if f.min != "" {
		least, _, _ := f.scalar(f.node(f.min))
		switch {
		case !s.less(least):
		case s.less(scalar{}):
			return "must not be negative", ""
		case least.whole <= 1 && f.typ != reflect.TypeFor[time.Duration]():
			return "must be more than 0", ""
		default:
			return "must be at least " + f.min, ""
		}
	}
	if f.max != "" {
		if most, _, _ := f.scalar(f.node(f.max)); most.less(s) {
			return "must be at most " + f.max, ""
		}
	}
	return "", ""
}

// readInt reads an integer of any base that TOML knows.
func readInt(n *node) (s scalar, why, hint string) {
	if n.kind != kindInteger {
		hint := ""
		if n.kind == kindString {
			hint = "without quotes"
		}
		return s, "want an integer, have " + n.kind.String(), hint
	}
	v, err := strconv.ParseInt(strings.TrimPrefix(n.text, "+"), 0, 64)
	if err != nil || v > math.MaxInt32 || v < math.MinInt32 {
		return s, "out of range", ""
	}
	return scalar{whole: v}, "", ""
}

// readFloat reads a number with or without a fraction.
func readFloat(n *node) (s scalar, why, hint string) {
	if n.kind != kindInteger && n.kind != kindFloat {
		hint := ""
		if n.kind == kindString {
			hint = "without quotes"
		}
		return s, "want a number, have " + n.kind.String(), hint
	}
	v, err := strconv.ParseFloat(strings.ReplaceAll(n.text, "_", ""), 64)
	if n.kind == kindInteger {
		var whole int64
		whole, err = strconv.ParseInt(strings.TrimPrefix(n.text, "+"), 0, 64)
		v = float64(whole)
	}
	if err != nil || math.IsNaN(v) || math.IsInf(v, 0) {
		return s, "not a usable number", ""
	}
	return scalar{real: v}, "", ""
}

// readDuration reads a duration. Empty and 0 are the only ones without a unit:
// "timeout = 30" could mean anything.
func readDuration(n *node) (s scalar, why, hint string) {
	const example = `write it with a unit, in quotes: "30s", "10m", "72h"`
	if n.kind == kindInteger || n.kind == kindFloat {
		if n.text == "0" {
			return s, "", ""
		}
		return s, "a duration needs a unit", example
	}
	if n.kind != kindString {
		return s, "want a duration, have " + n.kind.String(), example
	}
	text := strings.TrimSpace(n.text)
	if text == "" {
		return s, "", ""
	}
	v, err := time.ParseDuration(text)
	if err == nil {
		return scalar{whole: int64(v)}, "", ""
	}
	if _, err := strconv.ParseFloat(text, 64); err == nil {
		return s, "a duration needs a unit", example
	}
	if days, ok := strings.CutSuffix(text, "d"); ok {
		if v, err := strconv.Atoi(days); err == nil && v > 0 && v < 10_000 {
			return s, show(text) + " is not a duration", `in hours: "` + strconv.Itoa(v*24) + `h"`
		}
	}
	return s, show(text) + " is not a duration", example
}

// sizeUnits are the units of sizes, in lower case.
var sizeUnits = []struct {
	name string
	size int64
}{
	{"", 1},
	{"b", 1},
	{"kb", 1e3},
	{"mb", 1e6},
	{"gb", 1e9},
	{"tb", 1e12},
	{"kib", 1 << 10},
	{"mib", 1 << 20},
	{"gib", 1 << 30},
	{"tib", 1 << 40},
}

// readSize reads a size: bytes, or a number with a unit.
func readSize(n *node) (s scalar, why, hint string) {
	const example = `for example "256MiB", "50MB", or a number of bytes`
	if n.kind != kindString && n.kind != kindInteger {
		return s, "want a size, have " + n.kind.String(), example
	}
	text := strings.ToLower(strings.TrimSpace(n.text))
	digits := strings.TrimRight(text, "abcdefghijklmnopqrstuvwxyz ")
	unit := strings.TrimSpace(text[len(digits):])
	base := 10
	if n.kind == kindInteger {
		digits, unit, base = n.text, "", 0
	}
	v, err := strconv.ParseInt(strings.TrimPrefix(digits, "+"), base, 64)
	if err != nil {
		return s, show(n.text) + " is not a size", example
	}
	for _, u := range sizeUnits {
		if u.name != unit {
			continue
		}
		if v > math.MaxInt64/u.size || v < math.MinInt64/u.size {
			return s, "out of range", ""
		}
		return scalar{whole: v * u.size}, "", ""
	}
	return s, show(n.text) + " is not a size", "units: kB, MB, GB, TB, KiB, MiB, GiB, TiB"
}

// show returns a value in quotes for an error, shortened, and without what
// looks like a token. It is not for values that may be secret.
func show(s string) string {
	const limit = 40
	s = redact(s)
	if utf8.RuneCountInString(s) > limit {
		s = string([]rune(s)[:limit]) + "…"
	}
	return strconv.Quote(s)
}
