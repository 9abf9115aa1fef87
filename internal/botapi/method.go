package botapi

import (
	"encoding/json"
	"strings"
)

// Kind says what a repeat of a method does.
type Kind string

// The kinds of methods.
const (
	KindSend      Kind = "send"             // a repeat makes a second message, topic, payment …
	KindWrite     Kind = "idempotent-write" // a repeat leaves the same end state
	KindRead      Kind = "read"             // changes nothing
	KindEphemeral Kind = "ephemeral"        // worthless later: answers to queries, chat actions
)

// Method is what is known about one method of the Bot API.
type Method struct {
	Name    string // as the Bot API spells it
	Kind    Kind
	HasChat bool   // has a chat_id parameter, maybe an optional one
	Upload  bool   // a new file may travel with it
	Returns string // type of the result, "" when unknown
	Known   bool   // stands in the table
}

// methodIndex finds methods and aliases by lower-case name. It is never written again.
var methodIndex = indexMethods()

func indexMethods() map[string]Method {
	index := make(map[string]Method, len(methodTable)+len(methodAliases))
	for _, m := range methodTable {
		index[strings.ToLower(m.Name)] = m
	}
	for alias, name := range methodAliases {
		index[strings.ToLower(alias)] = index[strings.ToLower(name)]
	}
	return index
}

// LookupMethod finds a method by its name in any case, or by an old name that the Bot
// API still accepts; the Method bears the present name.
func LookupMethod(name string) (Method, bool) {
	m, ok := methodIndex[strings.ToLower(name)]
	return m, ok
}

// MethodFor is LookupMethod for names that may be newer than the table: an unknown one
// that begins with "get" is taken for a read, any other for a send with a chat, which is
// the assumption that can't double anything.
func MethodFor(name string) Method {
	if m, ok := LookupMethod(name); ok {
		return m
	}
	if strings.HasPrefix(strings.ToLower(name), "get") {
		return Method{Name: name, Kind: KindRead, HasChat: true}
	}
	return Method{Name: name, Kind: KindSend, HasChat: true, Upload: true}
}

// Methods returns all methods of the table by name.
func Methods() []Method { return append([]Method(nil), methodTable...) }

// SafeToRepeat reports whether the call may be made again when nobody knows whether it
// took effect. Everything but sends is, apart from a few methods whose repeat undoes or
// takes more than was asked for.
func (m Method) SafeToRepeat(params json.RawMessage) bool {
	switch m.Name {
	case "unpinChatMessage":
		// Without an id each call takes off one more pin.
		_, given := param(params, "message_id")
		return given
	case "unbanChatMember":
		// Without the flag it also removes somebody who has come back meanwhile.
		v, _ := param(params, "only_if_banned")
		return isTrue(v)
	case "exportChatInviteLink", "replaceManagedBotToken":
		// Each call revokes what the one before returned.
		return false
	}
	return m.Kind != KindSend
}
