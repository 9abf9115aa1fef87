package botapi

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// Update is what routing, order and bookkeeping need of an update. What an update
// doesn't have, or has in a form that can't be read, is left zero.
type Update struct {
	ID    int64
	HasID bool   // there is an integer update_id
	Kind  string // "message", "callback_query", …; an unknown kind by its own name

	ChatID       int64
	ChatType     string // private, group, supergroup, channel
	ChatTitle    string
	ChatUsername string // without @
	UserID       int64  // who caused it: a user, or the chat in whose name it was sent

	// OrderKey is equal for updates that must be handled one after the other:
	// "chat:<id>", "user:<id>", "poll:<id>", else "id:<update id>".
	OrderKey string

	Text       string // text or caption, data of a button, text of an inline query
	Command    string // "/word" as typed, of a new message only; without bot name
	CommandBot string // name after the @ of a command, "" for none
	Args       string // what follows a command, trimmed

	Date time.Time // of the event itself; zero where the kind has none, as for a pressed button
	New  bool      // a new message, not an edit or anything else

	// Where an answer must go to arrive where the question was asked, beyond ChatID.
	QueryID  string // of a pressed button's query
	Message  string // the message that its button belongs to: message_id or inline_message_id
	Thread   int64  // the topic of a forum, 0 when it is in none
	Business string // id of the connection in whose name the bot speaks

	MigrateTo    int64  // the group of this message has the new id
	MigrateFrom  int64  // the supergroup of this message had the old id
	MemberStatus string // my_chat_member: the new status of the bot
}

// longestPollID bounds what is taken for the id of a poll.
const longestPollID = 64

// ParseUpdate reads one update. Only a missing update_id, or one that is no integer of
// 64 bits, is an error; the Update is then filled as far as it goes, HasID false.
func ParseUpdate(raw []byte) (Update, error) {
	u := Update{}
	var kind updateKind
	var payload []byte
	idErr := errors.New("update has no update_id")
	// A broken tail costs the fields behind it, not the update.
	scanErr := eachField(raw, func(key string, value []byte) bool {
		if key == "update_id" {
			u.ID, u.HasID, idErr = readUpdateID(value)
			return true
		}
		known, isKnown := updateKinds[key]
		if u.Kind == "" || isKnown && !kind.known {
			u.Kind, payload, kind = key, value, known
		}
		return true
	})
	if !u.HasID && errors.Is(scanErr, errNotObject) {
		idErr = errors.New("update is no JSON object")
	}
	u.read(kind, payload)
	u.OrderKey = u.orderKey(kind, payload)
	if idErr != nil {
		return u, fmt.Errorf("reading update: %w", idErr)
	}
	return u, nil
}

// SplitUpdates returns the elements of the result of getUpdates, each with its bytes as
// they came (slices of body), whatever they are. The body may be the array, or the whole
// answer with the array as its result.
func SplitUpdates(body []byte) ([]json.RawMessage, error) {
	array := body
	if i := skipBlank(body, 0); i < len(body) && body[i] == '{' {
		array = nil
		err := eachField(body, func(key string, value []byte) bool {
			if key == "result" {
				array = value
			}
			return true
		})
		if err != nil {
			return nil, fmt.Errorf("splitting updates: %w", err)
		}
	}
	list, err := elements(array)
	if err != nil {
		return nil, fmt.Errorf("splitting updates: %w", err)
	}
	return list, nil
}

func readUpdateID(value []byte) (int64, bool, error) {
	id, err := strconv.ParseInt(string(value), 10, 64)
	switch {
	case errors.Is(err, strconv.ErrRange):
		return 0, false, errors.New("update_id doesn't fit 64 bits")
	case err != nil:
		return 0, false, errors.New("update_id is no integer")
	}
	return id, true, nil
}

// read fills the fields that lie in the payload.
func (u *Update) read(kind updateKind, payload []byte) {
	if !kind.known {
		return
	}
	top := objectOf(payload)
	u.readChat(kind, top)
	for _, path := range kind.user {
		if id, ok := integerOf(at(top, path)); ok {
			u.UserID = id
			break
		}
	}
	for _, path := range kind.date {
		if seconds, ok := integerOf(at(top, path)); ok && seconds > 0 && seconds < 1<<40 {
			u.Date = time.Unix(seconds, 0).UTC()
			break
		}
	}
	for _, path := range kind.text {
		if text := stringOf(at(top, path)); text != "" {
			u.Text = text
			break
		}
	}
	u.readPlace(top)
	u.New = kind.isNew
	if kind.commands {
		u.Command, u.CommandBot, u.Args = splitCommand(u.Text)
	}
	if kind.isNew {
		u.MigrateTo, _ = integerOf(top["migrate_to_chat_id"])
		u.MigrateFrom, _ = integerOf(top["migrate_from_chat_id"])
	}
	if u.Kind == "my_chat_member" {
		u.MemberStatus = stringOf(at(top, "new_chat_member.status"))
	}
}

// readPlace fills in where in the chat the update came from.
func (u *Update) readPlace(top map[string]json.RawMessage) {
	if u.Kind == "callback_query" {
		u.QueryID = textOf(top["id"]) // servers of others write numbers
		if u.Message = textOf(at(top, "message.message_id")); u.Message == "" {
			u.Message = textOf(top["inline_message_id"])
		}
		top = objectOf(top["message"])
	}
	if string(top["is_topic_message"]) == "true" {
		u.Thread, _ = integerOf(top["message_thread_id"])
	}
	u.Business = stringOf(top["business_connection_id"])
}

func (u *Update) readChat(kind updateKind, top map[string]json.RawMessage) {
	for _, path := range kind.chat {
		id, ok := integerOf(at(top, path))
		if !ok {
			continue
		}
		u.ChatID = id
		if parent, isObject := strings.CutSuffix(path, ".id"); isObject {
			chat := objectOf(at(top, parent))
			u.ChatType = stringOf(chat["type"])
			u.ChatTitle = stringOf(chat["title"])
			u.ChatUsername = stringOf(chat["username"])
		}
		return
	}
}

func (u *Update) orderKey(kind updateKind, payload []byte) string {
	own := "id:" + strconv.FormatInt(u.ID, 10)
	if kind.order == "" {
		return own
	}
	top := objectOf(payload)
	for _, path := range kind.orderID {
		value := at(top, path)
		if kind.order == orderPoll {
			if id := textOf(value); id != "" && len(id) <= longestPollID && scalar(value) {
				return string(orderPoll) + ":" + id
			}
			continue
		}
		if id, ok := integerOf(value); ok {
			return string(kind.order) + ":" + strconv.FormatInt(id, 10)
		}
	}
	return own
}

// splitCommand takes a text like "/word@bot some text" apart, as Telegram itself marks
// commands: up to 64 ASCII letters, digits and underscores, not followed by what would
// make it a path.
func splitCommand(text string) (command, bot, args string) {
	if !strings.HasPrefix(text, "/") {
		return "", "", ""
	}
	end := 1 + wordLen(text[1:])
	if end == 1 || end > 65 {
		return "", "", ""
	}
	command, rest := text[:end], text[end:]
	if strings.HasPrefix(rest, "@") {
		if n := wordLen(rest[1:]); n > 0 {
			bot, rest = rest[1:1+n], rest[1+n:]
		}
	}
	if next, _ := utf8.DecodeRuneInString(rest); rest != "" &&
		(unicode.IsLetter(next) || unicode.IsDigit(next) || strings.ContainsRune("/<>@", next)) {
		return "", "", ""
	}
	return command, bot, strings.TrimSpace(rest)
}

// wordLen is the length of the letters, digits and underscores that s begins with.
func wordLen(s string) int {
	for i := range len(s) {
		if !isWordByte(s[i]) {
			return i
		}
	}
	return len(s)
}

// isWordByte reports the characters of commands and of names of methods.
func isWordByte(c byte) bool {
	switch {
	case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', c == '_':
		return true
	}
	return false
}
