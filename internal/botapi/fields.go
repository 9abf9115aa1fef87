package botapi

import (
	"encoding/json"
	"math"
	"strconv"
	"strings"
)

// objectOf returns the fields of an object, nil when raw is none. Of equal names the
// first counts; a broken tail costs the fields behind it.
func objectOf(raw []byte) map[string]json.RawMessage {
	var fields map[string]json.RawMessage
	// An error means that there is less to see, which the callers live with.
	_ = eachField(raw, func(key string, value []byte) bool {
		if fields == nil {
			fields = make(map[string]json.RawMessage, 8)
		}
		if _, twice := fields[key]; !twice {
			fields[key] = value
		}
		return true
	})
	return fields
}

// at follows a path of names joined by dots, nil when it leads nowhere.
func at(fields map[string]json.RawMessage, path string) json.RawMessage {
	for {
		name, rest, more := strings.Cut(path, ".")
		value := fields[name]
		if !more || value == nil {
			return value
		}
		fields, path = objectOf(value), rest
	}
}

// integerOf reads an id as lenient as people write it: a number, one in quotes, or one
// with a fraction of zero.
func integerOf(value []byte) (int64, bool) {
	if !scalar(value) {
		return 0, false
	}
	text := strings.TrimSpace(textOf(value))
	if n, err := strconv.ParseInt(text, 10, 64); err == nil {
		return n, true
	}
	f, err := strconv.ParseFloat(text, 64)
	if err != nil || f != math.Trunc(f) || math.Abs(f) > 1<<53 {
		return 0, false
	}
	return int64(f), true
}

// stringOf returns the text of a string, "" for any other value.
func stringOf(value []byte) string {
	if len(value) < 2 || value[0] != '"' {
		return ""
	}
	return textOf(value)
}

// scalar reports whether a value is a string or a number.
func scalar(value []byte) bool {
	if len(value) == 0 {
		return false
	}
	c := value[0]
	return c == '"' || c == '-' || c >= '0' && c <= '9'
}
