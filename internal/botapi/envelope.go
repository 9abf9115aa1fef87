package botapi

import (
	"bytes"
	"encoding/json"
	"errors"
	"strconv"
	"strings"
	"time"
)

// longestFlood is the longest retry_after that is believed.
const longestFlood = 30 * 24 * time.Hour

// envelope is an answer of the Bot API taken apart. Fields of a wrong type count as absent.
type envelope struct {
	ok          bool
	result      json.RawMessage // nil when absent or null
	code        int             // error_code, 0 when absent
	description string
	retryAfter  time.Duration // -1 when absent or unusable
	migrateTo   int64         // 0 when absent
	strict      bool          // the whole body is JSON by the letter
}

// shape says what a body is, before anything in it is looked at.
type shape int

const (
	shapeEnvelope shape = iota // the Bot API's JSON, whole
	shapeEmpty                 // nothing
	shapeCut                   // began like the Bot API's JSON and isn't whole
	shapeForeign               // something else
)

// readEnvelope tells the shape of a body and takes it apart when it is the Bot API's.
func readEnvelope(body []byte, complete bool) (envelope, shape) {
	trimmed := bytes.TrimSpace(body)
	switch {
	case len(trimmed) == 0:
		return envelope{}, shapeEmpty
	case trimmed[0] != '{':
		return envelope{}, shapeForeign
	case !complete:
		return envelope{}, shapeCut
	}
	e := envelope{retryAfter: -1, strict: json.Valid(trimmed)}
	var said bool // ok is there, and a boolean
	err := eachField(trimmed, func(key string, value []byte) bool {
		switch key {
		case "ok":
			said = string(value) == "true" || string(value) == "false"
			e.ok = string(value) == "true"
		case "result":
			e.result = nil
			if len(value) > 0 && string(value) != "null" {
				e.result = value
			}
		case "error_code":
			e.code = codeOf(value)
		case "description":
			e.description = ""
			if len(value) > 0 && value[0] == '"' {
				e.description = textOf(value)
			}
		case "parameters":
			e.readParameters(value)
		}
		return true
	})
	switch {
	case errors.Is(err, errCut):
		return envelope{}, shapeCut
	case err != nil || !said:
		return envelope{}, shapeForeign
	}
	return e, shapeEnvelope
}

func (e *envelope) readParameters(raw []byte) {
	// Parameters of a wrong type are the same as none.
	_ = eachField(raw, func(key string, value []byte) bool {
		switch key {
		case "retry_after":
			e.retryAfter = floodOf(string(value))
		case "migrate_to_chat_id":
			e.migrateTo, _ = strconv.ParseInt(string(value), 10, 64)
		}
		return true
	})
}

// codeOf reads an error code, 0 for anything that is no code of an error.
func codeOf(value []byte) int {
	code, err := strconv.Atoi(string(value))
	if err != nil || code < 400 || code > 599 {
		return 0
	}
	return code
}

// floodOf reads a delay in whole seconds, -1 when it can't be used.
func floodOf(text string) time.Duration {
	text = strings.TrimSpace(text)
	if text == "" || strings.Trim(text, "0123456789") != "" {
		return -1
	}
	seconds, err := strconv.ParseInt(text, 10, 64)
	if err != nil || seconds > int64(longestFlood/time.Second) {
		return -1
	}
	return time.Duration(seconds) * time.Second
}
