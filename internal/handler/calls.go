package handler

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"unicode/utf8"

	"github.com/tgspool/tgspool/internal/spool"
)

// maxCalls is the most calls that one run may ask for. All of them go into one
// commit, and one chat takes about that many messages in a quarter of an hour.
const maxCalls = 1000

// call is one method call as a program asked for it.
type call struct {
	line   int
	method string
	params json.RawMessage // the line without its method, else byte for byte

	session json.RawMessage // the line is no call: what the session is to be
}

// lineError is what is wrong with one line of calls. Nothing of the run's
// output is used then.
type lineError struct {
	line int
	err  error
}

// Error names the line, counted from 1.
func (e *lineError) Error() string {
	if errors.Is(e.err, errNoObject) {
		return fmt.Sprintf("line %d of the calls is %v", e.line, e.err)
	}
	return fmt.Sprintf("line %d of the calls: %v", e.line, e.err)
}

// Unwrap returns what is wrong.
func (e *lineError) Unwrap() error { return e.err }

// readCalls reads a program's standard output as one method call a line, and what
// the session is to be; of several such lines the last one counts. Blank lines are
// skipped; the last line needs no end.
func readCalls(stdout []byte) (calls []call, session json.RawMessage, err error) {
	n := 0
	for line := range bytes.Lines(stdout) {
		n++
		line = bytes.TrimSpace(line)
		if len(line) == 0 {
			continue
		}
		c, err := readCall(line)
		if err != nil {
			return nil, nil, &lineError{n, err}
		}
		if c.session != nil {
			session = c.session
			continue
		}
		if len(calls) == maxCalls {
			return nil, nil, &lineError{n, fmt.Errorf("more than %d calls", maxCalls)}
		}
		c.line = n
		calls = append(calls, c)
	}
	return calls, session, nil
}

// readCall reads one line. Its members are cut out of the line and not printed
// anew: big numbers, escapes and the order of nested members stay as they are.
func readCall(line []byte) (call, error) {
	if !utf8.Valid(line) {
		return call{}, errors.New("not valid UTF-8")
	}
	members, err := splitObject(line)
	if err != nil {
		return call{}, err
	}
	var c call
	params := make([]byte, 0, len(line))
	params = append(params, '{')
	for _, m := range members {
		switch m.name {
		case "method":
			if c.method != "" {
				return call{}, errors.New("method is given twice")
			}
			if err := json.Unmarshal(m.value, &c.method); err != nil || c.method == "" {
				return call{}, errors.New("method is no name")
			}
		case "session":
			return readSession(members)
		default:
			if len(params) > 1 {
				params = append(params, ',')
			}
			params = append(params, m.text...)
		}
	}
	if c.method == "" {
		return call{}, errors.New("no method")
	}
	c.params = append(params, '}')
	return c, nil
}

// readSession reads a line that says what the session is to be; null ends it.
func readSession(members []member) (call, error) {
	if len(members) > 1 {
		return call{}, errors.New("a session stands in a line of its own")
	}
	value := members[0].value
	if string(value) == "null" {
		value = []byte("{}")
	}
	data, err := spool.CompactSession(value)
	return call{session: data}, err
}

// member is one member of an object: its name, its value, and the bytes of
// both as they stand there.
type member struct {
	name        string
	value, text []byte
}

// errNoObject doesn't say at which character: whoever printed a text where calls
// are read would look for a mistake in it.
var errNoObject = errors.New("not a JSON object")

// splitObject splits a line that holds one JSON object, and nothing else, into
// its members.
func splitObject(line []byte) ([]member, error) {
	if !json.Valid(line) || line[0] != '{' {
		return nil, errNoObject
	}
	dec := json.NewDecoder(bytes.NewReader(line))
	if _, err := dec.Token(); err != nil {
		return nil, errNoObject
	}
	var members []member
	for from := dec.InputOffset(); dec.More(); from = dec.InputOffset() {
		name, err := dec.Token()
		if err != nil {
			return nil, errNoObject
		}
		var value json.RawMessage
		if err := dec.Decode(&value); err != nil {
			return nil, errNoObject
		}
		key, _ := name.(string) // an object's members have no other names
		text := bytes.TrimLeft(line[from:dec.InputOffset()], ", \t\r\n")
		members = append(members, member{name: key, value: value, text: text})
	}
	return members, nil
}
