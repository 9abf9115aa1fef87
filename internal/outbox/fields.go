package outbox

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
)

// readFields returns the parameters of a call by name. Of equal names the first
// counts, and null is the same as absent, as Telegram has it.
func readFields(params json.RawMessage) (map[string]json.RawMessage, error) {
	fields := map[string]json.RawMessage{}
	if len(params) == 0 {
		return fields, nil
	}
	dec := json.NewDecoder(bytes.NewReader(params))
	if start, err := dec.Token(); err != nil || start != json.Delim('{') {
		return nil, invalid("the parameters must be a JSON object")
	}
	for dec.More() {
		key, err := dec.Token()
		if err != nil {
			return nil, invalid("the parameters are no JSON object: %s", err)
		}
		var value json.RawMessage
		if err := dec.Decode(&value); err != nil {
			return nil, invalid("the parameters are no JSON object: %s", err)
		}
		name, _ := key.(string) // an object's keys are strings
		if _, seen := fields[name]; seen {
			continue
		}
		if string(value) == "null" {
			value = nil
		}
		fields[name] = value
	}
	if _, err := dec.Token(); err != nil {
		return nil, invalid("the parameters end too early")
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return nil, invalid("something follows the parameters")
	}
	return fields, nil
}

// paramText returns a parameter as Telegram reads it: a string without its quotes,
// anything else as it stands.
func paramText(value json.RawMessage) string {
	var s string
	if err := json.Unmarshal(value, &s); err == nil {
		return s
	}
	return string(value)
}
