package manage

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net/http"
	"strings"
	"unicode/utf8"
)

const (
	jsonType   = "application/json"
	ndjsonType = "application/x-ndjson"
)

// readBody reads the whole body and says whether it holds many values, one a
// line. What curl sends without being told otherwise counts as JSON.
func readBody(r *http.Request) (body []byte, many bool, err error) {
	kind := r.Header.Get("Content-Type")
	media, _, err := mime.ParseMediaType(kind)
	if err != nil && kind != "" {
		return nil, false, problemf(http.StatusUnsupportedMediaType, "content type %q can't be read", kind)
	}
	switch media {
	case "", jsonType, "application/x-www-form-urlencoded":
	case ndjsonType, "application/ndjson", "application/jsonl":
		many = true
	default:
		return nil, false, problemf(http.StatusUnsupportedMediaType,
			"content type %q is not taken; send %s, or %s for many", media, jsonType, ndjsonType)
	}
	body, err = io.ReadAll(r.Body)
	if err != nil {
		if _, large := errors.AsType[*http.MaxBytesError](err); large {
			return nil, false, err
		}
		return nil, false, problemf(http.StatusBadRequest, "the body ended early")
	}
	arrived(r)
	if !utf8.Valid(body) {
		return nil, false, problemf(http.StatusBadRequest, "the body is not UTF-8")
	}
	return body, many, nil
}

// member is one member of a JSON object, its value as it was written.
type member struct {
	name  string
	value json.RawMessage
	end   int64 // offset just behind the value
}

// null reports whether the value says "not given".
func (m member) null() bool { return string(m.value) == "null" }

// readObject takes a JSON object apart. Names are exact, unlike those of
// encoding/json's structs; a name given twice is refused because readers
// disagree about which one counts.
func readObject(data []byte) ([]member, error) {
	dec := json.NewDecoder(bytes.NewReader(data))
	if start, err := dec.Token(); err != nil || start != json.Delim('{') {
		return nil, problemf(http.StatusBadRequest, "the body is not a JSON object")
	}
	var all []member
	seen := map[string]bool{}
	for dec.More() {
		key, err := dec.Token()
		if err != nil {
			return nil, malformed(dec, err)
		}
		m := member{}
		m.name, _ = key.(string) // an object's keys are strings
		if err := dec.Decode(&m.value); err != nil {
			return nil, malformed(dec, err)
		}
		if seen[m.name] {
			return nil, problemf(http.StatusBadRequest, "%q is given twice", m.name)
		}
		seen[m.name] = true
		m.end = dec.InputOffset()
		all = append(all, m)
	}
	if _, err := dec.Token(); err != nil {
		return nil, malformed(dec, err)
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return nil, problemf(http.StatusBadRequest,
			"something follows the JSON object; for many of them send %s", ndjsonType)
	}
	return all, nil
}

func malformed(dec *json.Decoder, err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return problemf(http.StatusBadRequest, "the JSON ends too early")
	}
	// encoding/json's words may quote one character of the input, never more.
	return problemf(http.StatusBadRequest, "the JSON is malformed near byte %d: %s", dec.InputOffset(), err)
}

// decode reads the value of a member, and says what was wanted when it is of
// another type.
func decode[T any](m member, want string) (T, error) {
	var v T
	if err := json.Unmarshal(m.value, &v); err != nil {
		return v, problemf(http.StatusUnprocessableEntity, "%q must be %s", m.name, want)
	}
	return v, nil
}

// noBody refuses a body where there is nothing to say.
func noBody(r *http.Request) error {
	body, _, err := readBody(r)
	if err != nil {
		return err
	}
	if len(bytes.TrimSpace(body)) == 0 {
		return nil
	}
	all, err := readObject(body)
	if err != nil {
		return err
	}
	if len(all) > 0 {
		return unknownMember(all[0].name, nil)
	}
	return nil
}

func unknownMember(name string, known []string) error {
	return problemf(http.StatusUnprocessableEntity, "unknown member %q; known here: %s", short(name), listed(known))
}

// short bounds a stranger's name in an error.
func short(name string) string {
	if len(name) > 64 {
		name = strings.ToValidUTF8(name[:64], "") + "…"
	}
	return name
}
