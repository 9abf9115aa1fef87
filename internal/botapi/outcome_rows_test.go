package botapi

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"testing"
)

// errorRow is one row of the known errors of the Bot API. Several texts of one row mean
// the same.
type errorRow struct {
	row    int
	code   int
	texts  []string
	class  Class
	method string // "" is sendMessage
	params string // "" is a chat_id alone
}

// errorRows are the errors that the server, the core behind it and older versions are
// known to answer with.
var errorRows = []errorRow{
	{row: 1, code: 403, texts: []string{"Forbidden: bot was blocked by the user"}, class: ClassChatGone},
	{row: 2, code: 403, texts: []string{"Forbidden: user is deactivated"}, class: ClassChatGone},
	{row: 3, code: 403, texts: []string{"Forbidden: bot can't initiate conversation with a user"}, class: ClassChatGone},
	{row: 4, code: 403, texts: []string{"Forbidden: the bot can't send messages to the bot", "Forbidden: bot can't send messages to bots"}, class: ClassChatGone},
	{row: 5, code: 403, texts: []string{"Forbidden: bot was kicked from the group chat", "Forbidden: bot was kicked from the supergroup chat", "Forbidden: bot was kicked from the channel chat"}, class: ClassChatGone},
	{row: 6, code: 403, texts: []string{"Forbidden: bot is not a member of the group chat", "Forbidden: bot is not a member of the supergroup chat", "Forbidden: bot is not a member of the channel chat"}, class: ClassChatGone},
	{row: 7, code: 403, texts: []string{"Forbidden: the group chat was deleted"}, class: ClassChatGone},
	{row: 9, code: 400, texts: []string{"Bad Request: chat not found"}, class: ClassChatGone},
	{row: 10, code: 400, texts: []string{"Bad Request: private chat not found"}, class: ClassChatGone},
	{row: 11, code: 400, texts: []string{"Bad Request: chat_id is empty"}, class: ClassRejected, params: `{"text":"x"}`},
	{row: 12, code: 400, texts: []string{"Bad Request: PEER_ID_INVALID"}, class: ClassChatGone},
	{row: 13, code: 400, texts: []string{"Bad Request: user not found", "[Error]: Bad Request: user not found"}, class: ClassRejected},
	{row: 14, code: 400, texts: []string{"Bad Request: CHAT_WRITE_FORBIDDEN"}, class: ClassRejected},
	{row: 15, code: 400, texts: []string{"Bad Request: have no write access to the chat", "Bad Request: have no rights to send a message"}, class: ClassRejected},
	{row: 16, code: 400, texts: []string{"Bad Request: not enough rights to send text messages to the chat", "Bad Request: not enough rights to send photos to the chat"}, class: ClassRejected},
	{row: 17, code: 400, texts: []string{"Bad Request: need administrator rights in the channel chat"}, class: ClassRejected},
	{row: 18, code: 400, texts: []string{"Bad Request: CHAT_ADMIN_REQUIRED"}, class: ClassRejected},
	{row: 19, code: 400, texts: []string{"Bad Request: CHAT_RESTRICTED"}, class: ClassRejected},
	{row: 20, code: 400, texts: []string{"Bad Request: USER_BANNED_IN_CHANNEL"}, class: ClassRejected},
	{row: 21, code: 400, texts: []string{"Bad Request: CHANNEL_PRIVATE"}, class: ClassRejected},
	{row: 22, code: 400, texts: []string{"Bad Request: TOPIC_CLOSED"}, class: ClassRejected},
	{row: 23, code: 400, texts: []string{"Bad Request: message thread not found"}, class: ClassRejected},
	{row: 24, code: 400, texts: []string{"Bad Request: TOPIC_DELETED", "Bad Request: TOPIC_ID_INVALID"}, class: ClassRejected},
	{row: 25, code: 400, texts: []string{"Bad Request: message to be replied not found", "Bad Request: reply message not found"}, class: ClassRejected},
	{row: 26, code: 400, texts: []string{"Bad Request: QUOTE_TEXT_INVALID"}, class: ClassRejected},
	{row: 27, code: 400, method: "editMessageText", texts: []string{"Bad Request: message is not modified: specified new message content and reply markup are exactly the same as a current content and reply markup of the message", "Bad Request: message is not modified"}, class: ClassNoOp},
	{row: 28, code: 400, method: "editMessageText", texts: []string{"Bad Request: message to edit not found"}, class: ClassRejected},
	{row: 29, code: 400, method: "editMessageText", texts: []string{"Bad Request: message can't be edited"}, class: ClassRejected},
	{row: 30, code: 400, method: "editMessageText", texts: []string{"Bad Request: there is no text in the message to edit", "Bad Request: there is no caption in the message to edit", "Bad Request: there is no live location in the message to edit"}, class: ClassRejected},
	{row: 31, code: 400, method: "deleteMessage", texts: []string{"Bad Request: MESSAGE_ID_INVALID"}, class: ClassRejected},
	{row: 32, code: 400, method: "deleteMessage", texts: []string{"Bad Request: message to delete not found"}, class: ClassNoOp},
	{row: 33, code: 400, method: "deleteMessage", texts: []string{"Bad Request: message can't be deleted", "Bad Request: message can't be deleted for everyone", "Bad Request: MESSAGE_DELETE_FORBIDDEN"}, class: ClassRejected},
	{row: 34, code: 400, method: "copyMessage", texts: []string{"Bad Request: message to forward not found", "Bad Request: message to copy not found", "Bad Request: message to pin not found", "Bad Request: message to react not found"}, class: ClassRejected},
	{row: 35, code: 400, method: "forwardMessage", texts: []string{"Bad Request: message has protected content and can't be forwarded", "Bad Request: messages can't be forwarded"}, class: ClassRejected},
	{row: 36, code: 400, texts: []string{"Bad Request: can't parse entities: Can't find end of the entity starting at byte offset 12"}, class: ClassRejected},
	{row: 37, code: 400, texts: []string{"Bad Request: unsupported parse_mode"}, class: ClassRejected},
	{row: 38, code: 400, texts: []string{"Bad Request: message text is empty"}, class: ClassRejected},
	{row: 39, code: 400, texts: []string{"Bad Request: text must be non-empty"}, class: ClassRejected},
	{row: 40, code: 400, texts: []string{"Bad Request: text is too long"}, class: ClassRejected},
	{row: 41, code: 400, texts: []string{"Bad Request: message is too long", "Bad Request: MESSAGE_TOO_LONG"}, class: ClassRejected},
	{row: 42, code: 400, method: "sendPhoto", texts: []string{"Bad Request: message caption is too long"}, class: ClassRejected},
	{row: 43, code: 400, texts: []string{"Bad Request: ENTITY_BOUNDS_INVALID", "Bad Request: entity beginning at UTF-16 offset 3 ends after the end of the text"}, class: ClassRejected},
	{row: 44, code: 400, texts: []string{"Bad Request: BUTTON_DATA_INVALID", "Bad Request: BUTTON_URL_INVALID", "Bad Request: BUTTON_USER_PRIVACY_RESTRICTED", "Bad Request: BUTTON_TYPE_INVALID"}, class: ClassRejected},
	{row: 45, code: 400, texts: []string{"Bad Request: reply markup is too long"}, class: ClassRejected},
	{row: 46, code: 400, texts: []string{"Bad Request: can't parse inline keyboard button: Text buttons are unallowed in the inline keyboard", "Bad Request: object expected as reply markup", "Bad Request: can't parse reply keyboard markup JSON object"}, class: ClassRejected},
	{row: 47, code: 400, method: "sendPhoto", texts: []string{"Bad Request: wrong file identifier/HTTP URL specified"}, class: ClassRejected},
	{row: 48, code: 400, method: "sendPhoto", texts: []string{"Bad Request: wrong remote file identifier specified: wrong padding in the string", "Bad Request: invalid file_id"}, class: ClassRejected},
	{row: 49, code: 400, method: "sendPhoto", texts: []string{"Bad Request: wrong HTTP URL specified"}, class: ClassRejected},
	{row: 50, code: 400, method: "sendPhoto", texts: []string{"Bad Request: failed to get HTTP URL content"}, class: ClassTransient},
	{row: 51, code: 400, method: "sendPhoto", texts: []string{"Bad Request: wrong type of the web page content"}, class: ClassRejected},
	{row: 52, code: 400, method: "getFile", texts: []string{"Bad Request: wrong file_id or the file is temporarily unavailable"}, class: ClassTransient},
	{row: 53, code: 400, method: "getFile", texts: []string{"Bad Request: file is too big", "Bad Request: file of size 12582912 bytes is too big for a photo; the maximum size is 10485760 bytes"}, class: ClassRejected},
	{row: 54, code: 400, method: "sendDocument", texts: []string{"Bad Request: file must be non-empty"}, class: ClassRejected},
	{row: 55, code: 400, method: "sendPhoto", texts: []string{"Bad Request: there is no photo in the request", "Bad Request: there is no document in the request"}, class: ClassRejected},
	{row: 56, code: 400, method: "sendPhoto", texts: []string{"Bad Request: PHOTO_INVALID_DIMENSIONS", "Bad Request: IMAGE_PROCESS_FAILED", "Bad Request: photo has unsupported extension. Use one of .jpg, .jpeg, .gif, .png, .tif or .bmp"}, class: ClassRejected},
	{row: 57, code: 400, method: "sendMediaGroup", texts: []string{"Bad Request: can't use the media of the specified type in the album", "Bad Request: too many messages to send as an album"}, class: ClassRejected},
	{row: 58, code: 400, method: "sendMediaGroup", texts: []string{`Bad Request: failed to send message #1 with the error message "Too Many Requests: retry after 8"`, `Bad Request: failed to send message #3 with the error message "WEBPAGE_CURL_FAILED"`, "Bad Request: group send failed"}, class: ClassUnknownOutcome},
	{row: 58, code: 429, method: "sendMediaGroup", texts: []string{`Too Many Requests: failed to send message #2 with the error message "x"`}, class: ClassUnknownOutcome},
	{row: 59, code: 400, method: "sendVoice", texts: []string{"Bad Request: VOICE_MESSAGES_FORBIDDEN"}, class: ClassRejected},
	{row: 60, code: 400, texts: []string{"Bad Request: ALLOW_PAYMENT_REQUIRED_5"}, class: ClassRejected},
	{row: 61, code: 400, method: "answerCallbackQuery", params: `{"callback_query_id":"1"}`, texts: []string{"Bad Request: query is too old and response timeout expired or query ID is invalid", "Bad Request: query id is invalid", "Bad Request: QUERY_ID_INVALID"}, class: ClassTooLate},
	{row: 62, code: 400, method: "setChatDescription", texts: []string{"Bad Request: chat description is not modified", "Bad Request: CHAT_NOT_MODIFIED", "Bad Request: TOPIC_NOT_MODIFIED"}, class: ClassNoOp},
	{row: 63, code: 400, method: "setGameScore", texts: []string{"Bad Request: BOT_SCORE_NOT_MODIFIED"}, class: ClassNoOp},
	{row: 64, code: 400, method: "approveChatJoinRequest", texts: []string{"Bad Request: USER_ALREADY_PARTICIPANT", "Bad Request: HIDE_REQUESTER_MISSING"}, class: ClassNoOp},
	{row: 64, code: 400, method: "sendMessage", texts: []string{"Bad Request: USER_ALREADY_PARTICIPANT"}, class: ClassRejected},
	{row: 65, code: 400, method: "stopPoll", texts: []string{"Bad Request: poll has already been closed", "Bad Request: poll can't be stopped"}, class: ClassNoOp},
	{row: 66, code: 400, method: "createNewStickerSet", params: `{"user_id":1}`, texts: []string{"Bad Request: sticker set name is already occupied"}, class: ClassRejected},
	{row: 67, code: 400, method: "pinChatMessage", texts: []string{"Bad Request: not enough rights", "Bad Request: not enough rights to manage pinned messages in the chat", "Bad Request: not enough rights to restrict/unrestrict chat member"}, class: ClassRejected},
	{row: 68, code: 400, texts: []string{"Bad Request: method is available only for supergroups"}, class: ClassRejected},
	{row: 69, code: 400, texts: []string{"Bad Request: business connection not found"}, class: ClassRejected},
	{row: 70, code: 400, texts: []string{"Bad Request: too many message identifiers specified", "Bad Request: wrong parameter action in request", "Bad Request: invalid user_id specified"}, class: ClassRejected},
	{row: 71, code: 400, texts: []string{"Bad Request: FROZEN_METHOD_INVALID", "Bad Request: PEER_FLOOD"}, class: ClassFrozen},
	{row: 72, code: 400, texts: []string{"Logged out"}, class: ClassUnauthorized},
	{row: 73, code: 401, texts: []string{"Unauthorized", "Unauthorized: invalid token specified", "Unauthorized: invalid api-id/api-hash"}, class: ClassUnauthorized},
	{row: 74, code: 404, texts: []string{"Not Found"}, class: ClassUnauthorized},
	{row: 75, code: 404, texts: []string{"Not Found: method not found"}, class: ClassRejected},
	{row: 76, code: 421, texts: []string{"Misdirected Request: unallowed token specified"}, class: ClassUnauthorized},
	{row: 77, code: 409, method: "getUpdates", texts: []string{"Conflict: terminated by other getUpdates request; make sure that only one bot instance is running", "Conflict: can't use getUpdates method while webhook is active; use deleteWebhook to delete the webhook first", "Conflict: terminated by setWebhook request", "Conflict: terminated by other setWebhook", "Conflict: terminated by other long poll or webhook", "[Error]: Conflict: another webhook is active"}, class: ClassTransient},
	{row: 78, code: 413, method: "sendDocument", texts: []string{"Request Entity Too Large"}, class: ClassRejected},
	{row: 81, code: 500, texts: []string{"Internal Server Error: restart", "Internal Server Error: request aborted"}, class: ClassUnknownOutcome},
	{row: 82, code: 500, texts: []string{"Internal Server Error: sent message was immediately deleted and can't be returned"}, class: ClassOK},
	{row: 86, code: 400, texts: []string{"Bad Request: the moon is in the wrong house", ""}, class: ClassRejected},
	{row: 87, code: 403, texts: []string{"Forbidden: not on my watch"}, class: ClassRejected},
}

// otherRows are those that aren't one code and one text.
var otherRows = []struct {
	row   int
	seen  Seen
	class Class
}{
	{8, answer(400, `{"ok":false,"error_code":400,"description":"Bad Request: group chat was upgraded to a supergroup chat","parameters":{"migrate_to_chat_id":-1001557000000}}`), ClassMigrated},
	{78, answer(413, `<html><h1>413 Request Entity Too Large</h1></html>`), ClassRejected},
	{78, answer(413, ``), ClassRejected},
	{79, answer(415, ``), ClassRejected},
	{79, answer(431, ``), ClassRejected},
	{79, answer(501, ``), ClassRejected},
	{79, answer(505, ``), ClassRejected},
	{80, answer(429, `{"ok":false,"error_code":429,"description":"Too Many Requests: retry after 14","parameters":{"retry_after":14}}`), ClassFlood},
	{83, answer(502, `<html><h1>502 Bad Gateway</h1></html>`), ClassUnknownOutcome},
	{83, answer(503, ``), ClassUnknownOutcome},
	{83, answer(504, `{"ok":false,"error_code":504,"description":"Gateway Timeout"}`), ClassUnknownOutcome},
	{84, Seen{Phase: PhaseNone, Err: &net.DNSError{Err: "no such host"}}, ClassOffline},
	{84, Seen{Phase: PhaseResolved, Err: io.EOF}, ClassOffline},
	{84, Seen{Phase: PhaseConnected, Err: io.EOF}, ClassOffline},
	{84, Seen{Phase: PhaseTLS, Err: context.Canceled}, ClassOffline},
	{85, Seen{Phase: PhaseWritten, BytesWritten: 1, Err: io.EOF}, ClassUnknownOutcome},
	{85, Seen{Phase: PhaseWritten, Err: context.DeadlineExceeded}, ClassUnknownOutcome},
}

func answer(status int, body string) Seen {
	return Seen{Phase: PhaseResponse, BytesWritten: 200, Status: status, Body: []byte(body), BodyComplete: true}
}

func TestEveryKnownErrorHasItsClass(t *testing.T) {
	covered := map[int]bool{}
	for _, r := range errorRows {
		covered[r.row] = true
		method, params := r.method, r.params
		if method == "" {
			method = "sendMessage"
		}
		if params == "" {
			params = `{"chat_id":4444,"text":"x"}`
		}
		for _, text := range r.texts {
			quoted, err := json.Marshal(text)
			if err != nil {
				t.Fatal(err)
			}
			body := fmt.Sprintf(`{"ok":false,"error_code":%d,"description":%s}`, r.code, quoted)
			o := Classify(MethodFor(method), json.RawMessage(params), answer(r.code, body))
			if o.Class != r.class || o.Code != r.code || o.Description != text {
				t.Errorf("row %d, %s %q: %s, code %d, %q", r.row, method, text, o.Class, o.Code, o.Description)
			}
			if confirm := r.row == 9 || r.row == 10 || r.row == 12; o.Confirm != confirm {
				t.Errorf("row %d: confirm is %v", r.row, o.Confirm)
			}
			if o.Conflict != (r.code == 409) {
				t.Errorf("row %d: conflict is %v", r.row, o.Conflict)
			}
		}
	}
	for _, r := range otherRows {
		covered[r.row] = true
		if o := Classify(MethodFor("sendMessage"), json.RawMessage(`{"chat_id":1}`), r.seen); o.Class != r.class {
			t.Errorf("row %d, status %d: %s, want %s", r.row, r.seen.Status, o.Class, r.class)
		}
	}
	for row := 1; row <= 87; row++ {
		if !covered[row] {
			t.Errorf("row %d has no test", row)
		}
	}
}
