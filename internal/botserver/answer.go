package botserver

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"strconv"
	"time"
)

// apiError is an error as the Bot API words it.
type apiError struct {
	code        int // HTTP status and error_code
	description string
	retryAfter  time.Duration // with 429: rounded up to whole seconds; 0: none
	migrateTo   int64         // 0: none
}

// Error is the description.
func (e *apiError) Error() string { return e.description }

// errorf makes an error with the word that the Bot API puts before the text of
// each status.
func errorf(code int, format string, args ...any) *apiError {
	return &apiError{code: code, description: statusWord(code) + ": " + fmt.Sprintf(format, args...)}
}

func statusWord(code int) string {
	if code == http.StatusInternalServerError {
		return "Internal Server Error"
	}
	return http.StatusText(code)
}

// later is a 429 of our own: the caller is to come again after d.
func later(d time.Duration, format string, args ...any) *apiError {
	e := errorf(http.StatusTooManyRequests, format, args...)
	e.retryAfter = max(d, time.Second)
	return e
}

type errorParameters struct {
	RetryAfter int64 `json:"retry_after,omitempty"`
	MigrateTo  int64 `json:"migrate_to_chat_id,omitempty"`
}

type errorBody struct {
	OK          bool             `json:"ok"`
	ErrorCode   int              `json:"error_code"`
	Description string           `json:"description"`
	Parameters  *errorParameters `json:"parameters,omitempty"`
}

// fail answers with an error.
func fail(w http.ResponseWriter, e *apiError) {
	body := errorBody{ErrorCode: e.code, Description: e.description}
	p := errorParameters{MigrateTo: e.migrateTo}
	if e.retryAfter > 0 {
		p.RetryAfter = int64(math.Ceil(e.retryAfter.Seconds()))
		w.Header().Set("Retry-After", strconv.FormatInt(p.RetryAfter, 10))
	}
	if p != (errorParameters{}) {
		body.Parameters = &p
	}
	write(w, e.code, marshal(body))
}

// succeed answers with a result, a JSON value whose bytes go out as they are.
func succeed(w http.ResponseWriter, result json.RawMessage) { succeedWith(w, http.StatusOK, result) }

func succeedWith(w http.ResponseWriter, status int, result json.RawMessage) {
	body := make([]byte, 0, len(result)+24)
	body = append(body, `{"ok":true,"result":`...)
	body = append(body, result...)
	write(w, status, append(body, '}'))
}

// write is the one place from which answers leave. An error of writing means
// that nobody is there any more.
func write(w http.ResponseWriter, status int, body []byte) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(status)
	_, _ = w.Write(body)
}

// marshal writes JSON without making <, > and & unreadable. What is handed in
// always has a JSON form.
func marshal(v any) []byte {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return []byte(`{"ok":false,"error_code":500,"description":"Internal Server Error"}`)
	}
	return bytes.TrimRight(b.Bytes(), "\n")
}
