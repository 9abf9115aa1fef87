package botapi

import (
	"encoding/json"
	"strings"
)

// textRule says what an error means by its text. Telegram calls its texts no contract:
// they refine what the code says, and one that isn't known falls to the code.
type textRule struct {
	from, to int    // codes that the rule is for
	text     string // part of the description, lower case
	class    Class
	methods  string // begins of the methods it is for, lower case, by blanks; "" is all
	confirm  bool   // see Outcome.Confirm
	target   bool   // a parameter other than chat_id may be meant; see meansOther
}

// textRules are looked through in order; the first that fits decides.
var textRules = []textRule{
	// Some of it may be there: not even the code of the part that failed matters.
	{400, 599, "failed to send message #", ClassUnknownOutcome, "", false, false},
	{400, 499, "group send failed", ClassUnknownOutcome, "", false, false},

	// Done, and gone again before it could be returned.
	{500, 599, "sent message was immediately deleted", ClassOK, "", false, false},
	// The server closes, with what it had taken in still under way.
	{500, 599, "restart", ClassUnknownOutcome, "", false, false},
	{500, 599, "request aborted", ClassUnknownOutcome, "", false, false},

	{404, 404, "method not found", ClassRejected, "", false, false},
	{400, 499, "logged out", ClassUnauthorized, "", false, false},
	{400, 499, "frozen_method_invalid", ClassFrozen, "", false, false},
	{400, 499, "peer_flood", ClassFrozen, "", false, false},

	{400, 400, "query is too old", ClassTooLate, "", false, false},
	{400, 400, "query id is invalid", ClassTooLate, "", false, false},
	{400, 400, "query_id_invalid", ClassTooLate, "", false, false},

	{400, 400, "temporarily unavailable", ClassTransient, "", false, false},
	{400, 400, "failed to get http url content", ClassTransient, "", false, false},
	{400, 400, "webpage_curl_failed", ClassTransient, "", false, false},

	{400, 400, "is not modified", ClassNoOp, "", false, false},
	{400, 400, "_not_modified", ClassNoOp, "", false, false},
	{400, 400, "message to delete not found", ClassNoOp, "", false, false},
	{400, 400, "user_already_participant", ClassNoOp, "approvechatjoin declinechatjoin", false, false},
	{400, 400, "hide_requester_missing", ClassNoOp, "approvechatjoin declinechatjoin", false, false},
	{400, 400, "poll has already been closed", ClassNoOp, "stoppoll", false, false},
	{400, 400, "poll can't be stopped", ClassNoOp, "stoppoll", false, false},

	{400, 403, "bot was blocked by the user", ClassChatGone, "", false, false},
	{400, 403, "user_is_blocked", ClassChatGone, "", false, false},
	{400, 403, "user is deactivated", ClassChatGone, "", false, false},
	{400, 403, "user_deactivated", ClassChatGone, "", false, false},
	{400, 403, "group is deactivated", ClassChatGone, "", false, false},
	{403, 403, "bot can't initiate conversation", ClassChatGone, "", false, false},
	{403, 403, "bot can't send messages to", ClassChatGone, "", false, false},
	{403, 403, "can't send messages to the bot", ClassChatGone, "", false, false},
	{400, 403, "bot was kicked from", ClassChatGone, "", false, false},
	{400, 403, "bot is not a member of", ClassChatGone, "", false, false},
	{400, 403, "chat was deleted", ClassChatGone, "", false, false},
	{400, 403, "chat not found", ClassChatGone, "", true, true},
	{400, 403, "peer_id_invalid", ClassChatGone, "", true, true},
}

// classByText looks a description up in the rules.
func classByText(m Method, params json.RawMessage, code int, description string) (Class, bool, bool) {
	text, name := strings.ToLower(description), strings.ToLower(m.Name)
	for _, r := range textRules {
		if code < r.from || code > r.to || !strings.Contains(text, r.text) || !r.fits(name) {
			continue
		}
		if r.class == ClassChatGone && (r.target && meansOther(params) || !namesChat(params)) {
			return ClassRejected, false, true
		}
		return r.class, r.confirm, true
	}
	return "", false, false
}

func (r textRule) fits(method string) bool {
	if r.methods == "" {
		return true
	}
	for begin := range strings.FieldsSeq(r.methods) {
		if strings.HasPrefix(method, begin) {
			return true
		}
	}
	return false
}

// meansOther reports whether "not found" may speak of another chat than the one that the
// call goes to: taking the goal for gone would throw away all that waits for it.
func meansOther(params json.RawMessage) bool {
	for _, name := range []string{"from_chat_id", "user_id", "sender_chat_id"} {
		if _, ok := param(params, name); ok {
			return true
		}
	}
	for _, name := range []string{"reply_parameters", "suggested_post_parameters"} {
		value, _ := param(params, name)
		if _, ok := param([]byte(textOf(value)), "chat_id"); ok {
			return true
		}
	}
	return false
}

// namesChat reports whether the call goes to a chat that could be gone. Without any
// parameters the method alone decides.
func namesChat(params json.RawMessage) bool {
	if len(params) == 0 {
		return true
	}
	_, ok := param(params, "chat_id")
	return ok
}
