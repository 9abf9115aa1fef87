package botapi

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestMethodTable(t *testing.T) {
	count := map[Kind]int{}
	before := ""
	for _, m := range Methods() {
		count[m.Kind]++
		name := strings.ToLower(m.Name)
		if name <= before {
			t.Errorf("%s is out of order or twice", m.Name)
		}
		before = name
		if !m.Known || m.Returns == "" {
			t.Errorf("%s is incomplete", m.Name)
		}
		if strings.HasPrefix(m.Name, "get") != (m.Kind == KindRead) {
			t.Errorf("%s is of kind %s", m.Name, m.Kind)
		}
	}
	for kind, want := range map[Kind]int{KindSend: 34, KindWrite: 108, KindRead: 32, KindEphemeral: 11} {
		if count[kind] != want {
			t.Errorf("%d methods of kind %s, want %d", count[kind], kind, want)
		}
	}
	if len(Methods()) != 185 {
		t.Errorf("%d methods", len(Methods()))
	}
}

func TestLookupMethod(t *testing.T) {
	for name, want := range map[string]string{
		"sendMessage":         "sendMessage",
		"SENDMESSAGE":         "sendMessage",
		"sendmessage":         "sendMessage",
		"kickChatMember":      "banChatMember",
		"getChatMembersCount": "getChatMemberCount",
		"setstickersetthumb":  "setStickerSetThumbnail",
	} {
		if m, ok := LookupMethod(name); !ok || m.Name != want {
			t.Errorf("%s gave %q, %v", name, m.Name, ok)
		}
	}
	if _, ok := LookupMethod("sendTelepathy"); ok {
		t.Error("an unknown method was found")
	}
	if m := MethodFor("getThoughts"); m.Known || m.Kind != KindRead || m.Name != "getThoughts" {
		t.Errorf("unknown read: %+v", m)
	}
	for _, name := range []string{"sendTelepathy", "editThoughts"} {
		if m := MethodFor(name); m.Known || m.Kind != KindSend {
			t.Errorf("%s: %+v", name, m)
		}
	}
}

func TestSafeToRepeat(t *testing.T) {
	for _, c := range []struct {
		method, params string
		want           bool
	}{
		{"sendMessage", `{"chat_id":1,"text":"x"}`, false},
		{"copyMessages", `{}`, false},
		{"sendGift", `{}`, false},
		{"createForumTopic", `{}`, false},
		{"sendTelepathy", `{}`, false},
		{"editMessageText", `{}`, true},
		{"deleteMessage", `{}`, true},
		{"pinChatMessage", `{}`, true},
		{"getMe", ``, true},
		{"getThoughts", ``, true},
		{"answerCallbackQuery", `{}`, true},
		{"sendChatAction", `{}`, true},
		{"unpinChatMessage", `{"chat_id":1}`, false},
		{"unpinChatMessage", `{"chat_id":1,"message_id":null}`, false},
		{"unpinChatMessage", ``, false},
		{"unpinChatMessage", `{"chat_id":1,"message_id":7}`, true},
		{"unbanChatMember", `{"chat_id":1,"user_id":2}`, false},
		{"unbanChatMember", `{"chat_id":1,"user_id":2,"only_if_banned":false}`, false},
		{"unbanChatMember", `{"chat_id":1,"user_id":2,"only_if_banned":true}`, true},
		{"unbanChatMember", `{"chat_id":1,"user_id":2,"only_if_banned":"True"}`, true},
		{"exportChatInviteLink", `{"chat_id":1}`, false},
		{"replaceManagedBotToken", `{"user_id":1}`, false},
	} {
		if got := MethodFor(c.method).SafeToRepeat(json.RawMessage(c.params)); got != c.want {
			t.Errorf("%s %s: %v", c.method, c.params, got)
		}
	}
}

func TestWeight(t *testing.T) {
	for _, c := range []struct {
		method, params string
		want           int
	}{
		{"sendMessage", `{"chat_id":1}`, 1},
		{"sendTelepathy", `{"chat_id":1}`, 1},
		{"sendMediaGroup", `{"chat_id":1,"media":[{"type":"photo"},{"type":"photo"},{"type":"video"}]}`, 3},
		{"sendMediaGroup", `{"chat_id":1,"media":"[{\"type\":\"photo\"},{\"type\":\"photo\"}]"}`, 2},
		{"sendMediaGroup", `{"chat_id":1,"media":"broken"}`, 1},
		{"sendMediaGroup", `{"chat_id":1}`, 1},
		{"sendPaidMedia", `{"chat_id":1,"media":[{},{}]}`, 1},
		{"copyMessages", `{"message_ids":[1,2,3,4]}`, 4},
		{"forwardMessages", `{"message_ids":"[1,2]"}`, 2},
		{"forwardMessage", `{"message_id":5}`, 1},
		{"editMessageText", `{}`, 1},
		{"editMessageCaption", `{}`, 1},
		{"editMessageMedia", `{}`, 1},
		{"editMessageReplyMarkup", `{}`, 0},
		{"deleteMessage", `{}`, 0},
		{"deleteMessages", `{"message_ids":[1,2]}`, 0},
		{"setMessageReaction", `{}`, 0},
		{"pinChatMessage", `{}`, 0},
		{"createChatInviteLink", `{"chat_id":1}`, 0},
		{"createForumTopic", `{"chat_id":1}`, 1},
		{"addStickerToSet", `{}`, 0},
		{"sendChatAction", `{"chat_id":1}`, 0},
		{"sendMessageDraft", `{"chat_id":1}`, 0},
		{"getChat", `{"chat_id":1}`, 0},
	} {
		if got := Weight(MethodFor(c.method), json.RawMessage(c.params)); got != c.want {
			t.Errorf("%s %s weighs %d, want %d", c.method, c.params, got, c.want)
		}
	}
	if !MethodFor("editMessageText").EditsContent() || MethodFor("sendMessage").EditsContent() {
		t.Error("edits of content aren't told apart")
	}
}

func TestChatParam(t *testing.T) {
	for _, c := range []struct {
		method, params, want string
	}{
		{"sendMessage", `{"chat_id":-1001222207990,"text":"x"}`, "-1001222207990"},
		{"sendMessage", `{"text":"x","chat_id":"-1001222207990"}`, "-1001222207990"},
		{"sendMessage", `{"chat_id":"@MyChan"}`, "@MyChan"},
		{"sendMessage", `{"chat_id":" 7 "}`, "7"},
		{"sendMessage", `{"text":{"chat_id":9},"chat_id":7}`, "7"},
		{"sendMessage", `{"chat_id":7,"chat_id":8}`, "7"},
		{"sendMessage", `{"chat_id":7,"text":"cut`, "7"},
		{"sendMessage", `{"chat_id":null}`, ""},
		{"sendMessage", `{"chat_id":{}}`, ""},
		{"sendMessage", `{"chat_id":[1]}`, ""},
		{"sendMessage", `{"chat_id":true}`, ""},
		{"sendMessage", `{"chat_id":""}`, ""},
		{"sendMessage", `{"chat_id":}`, ""},
		{"sendMessage", `[]`, ""},
		{"sendMessage", ``, ""},
		{"editMessageText", `{"inline_message_id":"abc","text":"x"}`, ""},
		{"editMessageText", `{"chat_id":7,"message_id":1}`, "7"},
		{"getMe", `{"chat_id":7}`, ""},
		{"sendTelepathy", `{"chat_id":7}`, "7"},
	} {
		got, ok := ChatParam(MethodFor(c.method), json.RawMessage(c.params))
		if got != c.want || ok != (c.want != "") {
			t.Errorf("%s %s: %q, %v", c.method, c.params, got, ok)
		}
	}
	if !PaidBroadcast(json.RawMessage(`{"allow_paid_broadcast":"1"}`)) || PaidBroadcast(json.RawMessage(`{}`)) {
		t.Error("paid broadcasts aren't told apart")
	}
}
