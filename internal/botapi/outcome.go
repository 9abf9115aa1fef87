package botapi

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"
)

// Class is what one call came to.
type Class string

// The classes of outcomes.
const (
	ClassOK             Class = "ok"              // done, with a result
	ClassNoOp           Class = "no_op"           // refused because it is so already
	ClassFlood          Class = "flood"           // too fast, wait Outcome.RetryAfter
	ClassFloodUndated   Class = "flood_undated"   // too fast, and nobody said until when
	ClassTransient      Class = "transient"       // failed for now
	ClassNotTelegram    Class = "not_telegram"    // somebody else answered
	ClassOffline        Class = "offline"         // nothing was sent
	ClassUnknownOutcome Class = "unknown_outcome" // sent, and nobody knows what came of it
	ClassRejected       Class = "rejected"        // refused for good
	ClassChatGone       Class = "chat_gone"       // nothing can be sent to this chat
	ClassMigrated       Class = "migrated"        // the chat has the id Outcome.MigrateTo now
	ClassTooLate        Class = "too_late"        // answer to a query that is over
	ClassUnauthorized   Class = "unauthorized"    // the token is refused
	ClassFrozen         Class = "frozen"          // the account is
)

// Classes returns all classes.
func Classes() []Class {
	return []Class{
		ClassOK, ClassNoOp, ClassFlood, ClassFloodUndated, ClassTransient, ClassNotTelegram,
		ClassOffline, ClassUnknownOutcome, ClassRejected, ClassChatGone, ClassMigrated,
		ClassTooLate, ClassUnauthorized, ClassFrozen,
	}
}

// Outcome is what one call came to, and what the answer said.
type Outcome struct {
	Class       Class
	Code        int             // error code of the Bot API, else the HTTP status; 0 without an answer
	Description string          // Telegram's own words; ours where Telegram had none
	RetryAfter  time.Duration   // flood: at least 1 s; flood_undated: lower bound, may be 0
	MigrateTo   int64           // new id of the chat, for migrated
	Result      json.RawMessage // for ok: the result, a slice of the body; nil when Telegram has none to give
	Chat        *ResultChat     // chat of a result that is a message
	MessageIDs  []int64         // ids of the messages in the result, in order
	Confirm     bool            // chat_gone: to be believed the second time only, at least 60 s later
	Conflict    bool            // transient: 409, somebody else takes the updates
}

// Unparsed reports whether a call was rejected because the text's markup can't be
// parsed: without it the text may pass.
func (o Outcome) Unparsed() bool {
	return o.Class == ClassRejected && strings.Contains(strings.ToLower(o.Description), "can't parse entities")
}

// ResultChat is the chat of a message that Telegram returned.
type ResultChat struct {
	ID       int64
	Type     string
	Username string // without @, "" for none
}

// Classify decides what a call came to: by the shape of the answer, then by its code,
// then by its text. It looks at nothing else, so the same answer always means the same.
func Classify(m Method, params json.RawMessage, seen Seen) Outcome {
	if seen.Status == 0 {
		return withoutAnswer(seen)
	}
	e, shape := readEnvelope(seen.Body, seen.BodyComplete)
	if shape != shapeEnvelope {
		return notBotAPI(seen, shape)
	}
	if e.ok {
		return accepted(m, e, seen)
	}
	return refused(m, params, e, seen)
}

func withoutAnswer(seen Seen) Outcome {
	o := Outcome{Class: ClassUnknownOutcome, Description: "no answer"}
	if seen.Err != nil {
		o.Description = seen.Err.Error()
	}
	switch {
	case seen.Phase.Reached(PhaseWritten) || seen.BytesWritten > 0:
	case errors.Is(seen.Err, ErrRequest):
		o.Class = ClassRejected
	default:
		o.Class = ClassOffline
	}
	return o
}

// notBotAPI decides on answers that aren't the Bot API's JSON.
func notBotAPI(seen Seen, s shape) Outcome {
	o := Outcome{Code: seen.Status}
	o.Description = fmt.Sprintf("answer %d isn't the Bot API's", seen.Status)
	if seen.ContentType != "" {
		o.Description += fmt.Sprintf(" (%q)", clip(seen.ContentType, 60))
	}
	switch {
	case seen.Status == http.StatusTooManyRequests:
		o.Class = ClassFloodUndated
		o.RetryAfter = max(0, floodOf(seen.RetryAfterHeader))
	case refusedByStatus[seen.Status]:
		o.Class = ClassRejected
	case seen.Status == http.StatusNetworkAuthenticationRequired:
		o.Class = ClassNotTelegram
	case seen.Status >= 500:
		o.Class = ClassUnknownOutcome
	case s == shapeCut:
		o.Class, o.Description = ClassUnknownOutcome, fmt.Sprintf("answer %d is cut", seen.Status)
	case s == shapeEmpty && (seen.Status/100 == 2 || seen.Status == http.StatusBadRequest):
		o.Class, o.Description = ClassUnknownOutcome, fmt.Sprintf("answer %d is empty", seen.Status)
	default:
		o.Class = ClassNotTelegram
	}
	if !seen.BodyComplete && seen.Err != nil {
		o.Description += ": " + seen.Err.Error()
	}
	return o
}

// refusedByStatus are answers to a request that was never taken in, by the HTTP layer of
// the server or by the one in front of it, whatever stands in them. The same request gets
// the same answer for ever, so it may not wait for a better one.
var refusedByStatus = map[int]bool{
	http.StatusRequestEntityTooLarge:       true,
	http.StatusRequestURITooLong:           true,
	http.StatusUnsupportedMediaType:        true,
	http.StatusRequestHeaderFieldsTooLarge: true,
	http.StatusNotImplemented:              true,
	http.StatusHTTPVersionNotSupported:     true,
}

// accepted decides on ok:true.
func accepted(m Method, e envelope, seen Seen) Outcome {
	o := Outcome{Class: ClassOK, Code: seen.Status, Description: e.description, Result: e.result}
	switch {
	case seen.Status/100 != 2:
		o.Class, o.Description = ClassUnknownOutcome, fmt.Sprintf("ok with status %d", seen.Status)
	case e.result == nil:
		o.Class, o.Description = ClassUnknownOutcome, "ok without a result"
	case !e.strict && m.Name != "getUpdates":
		// A batch of updates is taken apart one by one, so that the bad one of them
		// can be set aside. Nothing else can be kept when it isn't JSON.
		o.Class, o.Description = ClassUnknownOutcome, "result isn't JSON"
	}
	if o.Class != ClassOK {
		o.Result = nil
		return o
	}
	if m.Kind != KindRead {
		o.Chat, o.MessageIDs = readMessages(e.result)
	}
	return o
}

// refused decides on ok:false.
func refused(m Method, params json.RawMessage, e envelope, seen Seen) Outcome {
	o := Outcome{Code: e.code, Description: e.description}
	if o.Code == 0 && seen.Status >= 400 {
		o.Code = seen.Status
	}
	if o.Code == 0 {
		o.Class, o.Code = ClassNotTelegram, seen.Status
		return o
	}
	if class, confirm, ok := classByText(m, params, o.Code, o.Description); ok && class == ClassUnknownOutcome {
		// An album that went out in part stays so, whatever code the rest failed with.
		o.Class, o.Confirm = class, confirm
		return o
	}
	switch {
	case o.Code == http.StatusTooManyRequests:
		return flooded(o, e, seen)
	case e.migrateTo != 0 && o.Code < 500:
		o.Class, o.MigrateTo = ClassMigrated, e.migrateTo
	case refusedByStatus[o.Code]:
		o.Class = ClassRejected
	default:
		o.Class, o.Confirm, o.Conflict = classByCode(m, params, o.Code, o.Description)
	}
	return o
}

func flooded(o Outcome, e envelope, seen Seen) Outcome {
	if e.retryAfter >= 0 {
		o.Class, o.RetryAfter = ClassFlood, max(time.Second, e.retryAfter)
		return o
	}
	o.Class, o.RetryAfter = ClassFloodUndated, max(0, floodOf(seen.RetryAfterHeader))
	return o
}

// classByCode decides by the code, and by the text where the code leaves it open.
func classByCode(m Method, params json.RawMessage, code int, text string) (class Class, confirm, conflict bool) {
	if class, confirm, ok := classByText(m, params, code, text); ok {
		return class, confirm, false
	}
	switch code {
	case http.StatusUnauthorized, http.StatusNotFound, http.StatusMisdirectedRequest:
		return ClassUnauthorized, false, false
	case http.StatusConflict:
		return ClassTransient, false, true
	case http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return ClassUnknownOutcome, false, false
	}
	if code >= 500 {
		return ClassTransient, false, false
	}
	return ClassRejected, false, false
}

// readMessages returns what a result tells of the messages it holds.
func readMessages(result json.RawMessage) (*ResultChat, []int64) {
	list := []json.RawMessage{result}
	if result[0] == '[' {
		var err error
		if list, err = elements(result); err != nil {
			return nil, nil
		}
	}
	var chat *ResultChat
	var ids []int64
	for _, raw := range list {
		message := objectOf(raw)
		if id, ok := integerOf(message["message_id"]); ok {
			ids = append(ids, id)
		}
		if chat != nil {
			continue
		}
		c := objectOf(message["chat"])
		if id, ok := integerOf(c["id"]); ok {
			chat = &ResultChat{ID: id, Type: stringOf(c["type"]), Username: stringOf(c["username"])}
		}
	}
	return chat, ids
}
