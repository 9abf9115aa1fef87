package telegramsim_test

import (
	"encoding/json"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tgspool/tgspool/internal/telegramsim"
)

const (
	groupID = int64(-70200001)
	superID = int64(-1001700300001)
)

func TestChatStates(t *testing.T) {
	for name, c := range map[string]struct {
		chat        int64
		act         func(*telegramsim.Sim, int64)
		code        int
		description string
		told        bool
	}{
		"blocked":      {5, (*telegramsim.Sim).Block, 403, "Forbidden: bot was blocked by the user", true},
		"deactivated":  {5, (*telegramsim.Sim).Deactivate, 403, "Forbidden: user is deactivated", false},
		"kicked group": {groupID, (*telegramsim.Sim).Kick, 403, "Forbidden: bot was kicked from the group chat", true},
		"kicked super": {superID, (*telegramsim.Sim).Kick, 403, "Forbidden: bot was kicked from the supergroup chat", true},
		"left":         {superID, (*telegramsim.Sim).Leave, 403, "Forbidden: bot is not a member of the supergroup chat", true},
		"deleted":      {groupID, (*telegramsim.Sim).DeleteGroup, 403, "Forbidden: the group chat was deleted", false},
		"removed":      {5, (*telegramsim.Sim).RemoveChat, 400, "Bad Request: chat not found", false},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSim(t, telegramsim.Options{})
			must[message](t, s, "sendMessage", args{"chat_id": c.chat, "text": "before"})
			c.act(s, c.chat)
			refused(t, s, "sendMessage", args{"chat_id": c.chat, "text": "after"}, c.code, c.description)
			if told := s.Pending(0) == 1; told != c.told {
				t.Errorf("told by my_chat_member: %v, want %v", told, c.told)
			}
			j := s.Journal()
			if last := j[len(j)-1]; last.Effect || last.Status != c.code {
				t.Errorf("on record: %+v", last)
			}
		})
	}
}

func TestUnblock(t *testing.T) {
	s := newSim(t, telegramsim.Options{})
	s.Block(5)
	s.Unblock(5)
	must[message](t, s, "sendMessage", args{"chat_id": 5, "text": "x"})
	list := must[[]struct {
		Member struct {
			New struct{ Status string } `json:"new_chat_member"`
		} `json:"my_chat_member"`
	}](t, s, "getUpdates", args{})
	if len(list) != 2 || list[0].Member.New.Status != "kicked" || list[1].Member.New.Status != "member" {
		t.Errorf("told %+v", list)
	}
}

func TestMigration(t *testing.T) {
	s := newSim(t, telegramsim.Options{})
	must[message](t, s, "sendMessage", args{"chat_id": groupID, "text": "before"})
	s.Migrate(groupID, superID)
	got := refused(t, s, "sendMessage", args{"chat_id": groupID, "text": "x"}, 400,
		"Bad Request: group chat was upgraded to a supergroup chat")
	if got.Parameters.MigrateTo != superID {
		t.Errorf("migrate_to_chat_id %d, want %d", got.Parameters.MigrateTo, superID)
	}
	if sent := must[message](t, s, "sendMessage", args{"chat_id": superID, "text": "after"}); sent.Chat.Type != "supergroup" {
		t.Errorf("sent to a %s", sent.Chat.Type)
	}
	type service struct {
		Message struct {
			message
			To   int64 `json:"migrate_to_chat_id"`
			From int64 `json:"migrate_from_chat_id"`
		} `json:"message"`
	}
	list := must[[]service](t, s, "getUpdates", args{})
	if len(list) != 2 || list[0].Message.To != superID || list[0].Message.Chat.ID != groupID ||
		list[1].Message.From != groupID || list[1].Message.Chat.ID != superID {
		t.Errorf("service messages: %+v", list)
	}
}

func TestChatIDForms(t *testing.T) {
	s := newSim(t, telegramsim.Options{})
	s.AddChat(telegramsim.ChatSpec{ID: -1001700400001, Type: "channel", Title: "Tides", Username: "Sample_Tides"})
	got := must[message](t, s, "sendMessage", args{"chat_id": "@sample_TIDES", "text": "x"})
	if got.Chat.ID != -1001700400001 || got.Chat.Type != "channel" {
		t.Errorf("sent to %+v", got.Chat)
	}
	refused(t, s, "sendMessage", args{"chat_id": "@nobody", "text": "x"}, 400, "Bad Request: chat not found")
	refused(t, s, "sendMessage", args{"text": "x"}, 400, "Bad Request: chat_id is empty")
	refused(t, s, "sendMessage", args{"chat_id": "five", "text": "x"}, 400, "Bad Request: chat not found")
	big := must[message](t, s, "sendMessage", args{"chat_id": int64(7654321098), "text": "x"})
	if big.Chat.ID != 7654321098 {
		t.Errorf("a large id became %d", big.Chat.ID)
	}
}

func TestKnownChatsOnly(t *testing.T) {
	s := newSim(t, telegramsim.Options{KnownChatsOnly: true})
	refused(t, s, "sendMessage", args{"chat_id": 5, "text": "x"}, 400, "Bad Request: chat not found")
	s.FeedText(5, 5, "hello")
	must[message](t, s, "sendMessage", args{"chat_id": 5, "text": "x"})
}

func TestTopics(t *testing.T) {
	s := newSim(t, telegramsim.Options{})
	topic := must[struct {
		Thread int64 `json:"message_thread_id"`
	}](t, s, "createForumTopic", args{"chat_id": superID, "name": "Beans"})
	in := args{"chat_id": superID, "text": "x", "message_thread_id": topic.Thread}
	must[message](t, s, "sendMessage", in)
	must[bool](t, s, "deleteForumTopic", args{"chat_id": superID, "message_thread_id": topic.Thread})
	refused(t, s, "sendMessage", in, 400, "Bad Request: message thread not found")
	s.Feed(0, json.RawMessage(`{"message":{"message_id":9,"message_thread_id":31,"chat":{"id":-1001700300001,"type":"supergroup"},"date":1,"text":"x"}}`))
	must[message](t, s, "sendMessage", args{"chat_id": superID, "text": "x", "message_thread_id": 31})
}

func TestAccountStates(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSim(t, telegramsim.Options{})
		if got := call(t, s, "close", nil); got.Status != 429 || got.Parameters.RetryAfter != 600 || got.Header.Get("Retry-After") != "600" {
			t.Errorf("close at once: %d, %+v", got.Status, got.Parameters)
		}
		time.Sleep(10 * time.Minute)
		must[bool](t, s, "close", nil)
		must[bool](t, s, "setMyCommands", args{"commands": []args{{"command": "a", "description": "b"}}})
		if got := must[[]any](t, s, "getMyCommands", nil); len(got) != 1 {
			t.Errorf("getMyCommands: %v", got)
		}
		must[bool](t, s, "logOut", nil)
		refused(t, s, "getMe", nil, 400, "Logged out")
	})
}

func TestReadsOfChats(t *testing.T) {
	s := newSim(t, telegramsim.Options{})
	must[json.RawMessage](t, s, "getChat", args{"chat_id": 5})
	must[int](t, s, "getChatMemberCount", args{"chat_id": superID})
	must[json.RawMessage](t, s, "getChatMember", args{"chat_id": superID, "user_id": 5})
	must[[]any](t, s, "getChatAdministrators", args{"chat_id": superID})
	must[bool](t, s, "leaveChat", args{"chat_id": superID})
	refused(t, s, "getChat", args{"chat_id": superID}, 403, "Forbidden: bot is not a member of the supergroup chat")
	must[bool](t, s, "banChatMember", args{"chat_id": groupID, "user_id": 5})
	for _, a := range s.Journal() {
		if reads := a.Method[:3] == "get"; reads == a.Effect {
			t.Errorf("%s has effect %v", a.Method, a.Effect)
		}
	}
}
