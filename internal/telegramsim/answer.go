package telegramsim

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
)

// apiError is a refusal as the Bot API states it. A nil pointer means success.
type apiError struct {
	code        int
	description string
	retryAfter  int   // seconds; 0 = none
	migrateTo   int64 // 0 = none
}

// failure makes a refusal with the description as it stands.
func failure(code int, description string) *apiError {
	return &apiError{code: code, description: description}
}

// badRequest makes a 400 with the usual prefix.
func badRequest(format string, args ...any) *apiError {
	return failure(400, "Bad Request: "+fmt.Sprintf(format, args...))
}

// forbidden makes a 403 with the usual prefix.
func forbidden(detail string) *apiError {
	return failure(403, "Forbidden: "+detail)
}

// conflict makes a 409 with the usual prefix.
func conflict(detail string) *apiError {
	return failure(409, "Conflict: "+detail)
}

// tooMany makes a 429 that asks for a wait of some seconds.
func tooMany(seconds int) *apiError {
	return &apiError{
		code:        429,
		description: "Too Many Requests: retry after " + strconv.Itoa(seconds),
		retryAfter:  seconds,
	}
}

// answer is one whole HTTP answer.
type answer struct {
	status int
	header http.Header
	body   []byte
	close  bool // the server ends the connection after it
}

// success wraps a result in the envelope. The description is one of the few
// that come with a success; usually it is empty.
func success(result any, description string) answer {
	env := object{{"ok", true}, {"result", result}}
	if description != "" {
		env = append(env, field{"description", description})
	}
	return jsonAnswer(200, env)
}

// refusal wraps an error in the envelope. The status is the error code, always.
func refusal(e *apiError) answer {
	env := object{{"ok", false}, {"error_code", e.code}, {"description", e.description}}
	var extra object
	if e.migrateTo != 0 {
		extra = append(extra, field{"migrate_to_chat_id", e.migrateTo})
	}
	if e.retryAfter != 0 {
		extra = append(extra, field{"retry_after", e.retryAfter})
	}
	if extra != nil {
		env = append(env, field{"parameters", extra})
	}
	a := jsonAnswer(e.code, env)
	if e.retryAfter != 0 {
		a.header.Set("Retry-After", strconv.Itoa(e.retryAfter))
	}
	return a
}

// bare is the answer to a request that could not even be parsed: a status, no
// body, and the connection ends.
func bare(status int) answer {
	return answer{status: status, header: http.Header{}, close: true}
}

// jsonAnswer is an answer of the Bot API itself.
func jsonAnswer(status int, value any) answer {
	return answer{
		status: status,
		header: http.Header{"Content-Type": {"application/json"}},
		body:   encode(value),
	}
}

// encode is json.Marshal without HTML escapes. What it is given is always
// encodable except for raw JSON that was fed broken on purpose; that goes out
// as it is, which no encoder would do.
func encode(value any) []byte {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(value); err != nil {
		return []byte("null")
	}
	return bytes.TrimSuffix(buf.Bytes(), []byte("\n"))
}

// object is a JSON object whose fields keep their order, as Telegram's do.
type object []field

// field is one member of an object.
type field struct {
	key   string
	value any
}

// MarshalJSON writes the fields in order.
func (o object) MarshalJSON() ([]byte, error) {
	var buf bytes.Buffer
	buf.WriteByte('{')
	for i, f := range o {
		if i > 0 {
			buf.WriteByte(',')
		}
		buf.Write(encode(f.key))
		buf.WriteByte(':')
		buf.Write(encode(f.value))
	}
	buf.WriteByte('}')
	return buf.Bytes(), nil
}

// rawJSON is text that is JSON already.
func rawJSON(text string) json.RawMessage {
	return json.RawMessage(text)
}

// isJSONArray tells whether the text is a well-formed JSON array.
func isJSONArray(text string) bool {
	var list []json.RawMessage
	return text != "null" && json.Unmarshal([]byte(text), &list) == nil
}

// isJSONObject tells whether the text is a well-formed JSON object.
func isJSONObject(text string) bool {
	var members map[string]json.RawMessage
	return text != "null" && json.Unmarshal([]byte(text), &members) == nil
}
