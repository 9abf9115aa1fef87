package botapi

import (
	"encoding/json"
	"errors"
	"strings"
)

// The scanner finds the borders of JSON values without judging what is between them: a
// raw control character, a wrong escape or a stray word in one value must not take its
// neighbours along. It works on bytes, without recursion, and copies nothing.

var (
	errCut       = errors.New("JSON ends too early")
	errNotObject = errors.New("not a JSON object")
	errNotArray  = errors.New("not a JSON array")
)

// eachField calls yield with the key and the raw value of each field of a JSON object,
// in order, until yield returns false. It returns an error when raw is no object, or is
// cut before yield has seen all of it, or is followed by something else.
func eachField(raw []byte, yield func(key string, value []byte) bool) error {
	i := skipBlank(raw, 0)
	if i >= len(raw) || raw[i] != '{' {
		return errNotObject
	}
	i = skipBlank(raw, i+1)
	if i < len(raw) && raw[i] == '}' {
		return expectEnd(raw, i+1)
	}
	for {
		if i >= len(raw) {
			return errCut
		}
		if raw[i] != '"' {
			return errNotObject
		}
		keyEnd := skipString(raw, i)
		if keyEnd < 0 {
			return errCut
		}
		key := textOf(raw[i:keyEnd])
		i = skipBlank(raw, keyEnd)
		if i >= len(raw) {
			return errCut
		}
		if raw[i] != ':' {
			return errNotObject
		}
		value, next, err := cutValue(raw, i+1)
		if err != nil {
			return err
		}
		if !yield(key, value) {
			return nil
		}
		if raw[next] == '}' {
			return expectEnd(raw, next+1)
		}
		if raw[next] != ',' {
			return errNotObject
		}
		i = skipBlank(raw, next+1)
	}
}

// elements returns the raw elements of a JSON array, as slices of raw.
func elements(raw []byte) ([]json.RawMessage, error) {
	i := skipBlank(raw, 0)
	if i >= len(raw) || raw[i] != '[' {
		return nil, errNotArray
	}
	list := []json.RawMessage{}
	if i = skipBlank(raw, i+1); i < len(raw) && raw[i] == ']' {
		return list, expectEnd(raw, i+1)
	}
	for {
		value, next, err := cutValue(raw, i)
		if err != nil {
			return nil, err
		}
		if len(value) > 0 {
			list = append(list, value)
		}
		if raw[next] == ']' {
			return list, expectEnd(raw, next+1)
		}
		if raw[next] != ',' {
			return nil, errNotArray
		}
		i = next + 1
	}
}

// cutValue returns the value that begins at or after i and the index of the comma or
// bracket that ends it.
func cutValue(raw []byte, i int) (value []byte, next int, err error) {
	i = skipBlank(raw, i)
	start, depth := i, 0
	for i < len(raw) {
		switch raw[i] {
		case '"':
			end := skipString(raw, i)
			if end < 0 {
				return nil, 0, errCut
			}
			i = end
			continue
		case '{', '[':
			depth++
		case '}', ']':
			if depth == 0 {
				return trimRight(raw[start:i:i]), i, nil
			}
			depth--
		case ',':
			if depth == 0 {
				return trimRight(raw[start:i:i]), i, nil
			}
		}
		i++
	}
	return nil, 0, errCut
}

// skipString returns the index after the string that begins at i, or -1 when it is cut.
func skipString(raw []byte, i int) int {
	for i++; i < len(raw); i++ {
		switch raw[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		}
	}
	return -1
}

func skipBlank(raw []byte, i int) int {
	for i < len(raw) && isBlank(raw[i]) {
		i++
	}
	return i
}

func trimRight(raw []byte) []byte {
	for len(raw) > 0 && isBlank(raw[len(raw)-1]) {
		raw = raw[:len(raw)-1]
	}
	return raw[:len(raw):len(raw)]
}

func isBlank(c byte) bool { return c == ' ' || c == '\n' || c == '\t' || c == '\r' }

func expectEnd(raw []byte, i int) error {
	if skipBlank(raw, i) < len(raw) {
		return errors.New("something follows the JSON value")
	}
	return nil
}

// textOf returns a value as the Bot API takes it: a string without its quotes and
// escapes, everything else as its raw text. Bytes that are no UTF-8 become U+FFFD.
func textOf(value []byte) string {
	if len(value) < 2 || value[0] != '"' {
		return string(value)
	}
	var s string
	if err := json.Unmarshal(value, &s); err != nil {
		// Not JSON by the letter, but what it says can still be read.
		return strings.ToValidUTF8(string(value[1:len(value)-1]), "\ufffd")
	}
	return s
}
