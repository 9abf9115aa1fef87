package telegramsim_test

import (
	"encoding/json"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tgspool/tgspool/internal/telegramsim"
)

func TestSendMessageResult(t *testing.T) {
	s := newSim(t, telegramsim.Options{})
	got := must[message](t, s, "sendMessage", args{
		"chat_id": 5, "text": "  Tide: <b>high 🌊</b> &amp; rising \n", "parse_mode": "HTML",
		"reply_markup": args{"inline_keyboard": [][]args{{{"text": "ok", "callback_data": "x"}}}},
	})
	if got.Text != "Tide: high 🌊 & rising" {
		t.Errorf("text %q", got.Text)
	}
	if len(got.Entities) != 1 || got.Entities[0].Type != "bold" || got.Entities[0].Offset != 6 || got.Entities[0].Length != 7 {
		t.Errorf("entities %+v, want one bold at 6 of 7 UTF-16 units", got.Entities)
	}
	if got.Chat.ID != 5 || got.Chat.Type != "private" || got.Date == 0 || got.ID == 0 || got.Markup == nil {
		t.Errorf("message %+v", got)
	}
	reply := must[message](t, s, "sendMessage", args{"chat_id": "5", "text": "b", "reply_parameters": args{"message_id": got.ID}})
	if reply.ReplyTo == nil || reply.ReplyTo.ID != got.ID || reply.ReplyTo.Text != got.Text {
		t.Errorf("reply_to_message %+v", reply.ReplyTo)
	}
	texts := s.Chat(5)
	if len(texts) != 2 || texts[0].Text != got.Text || texts[1].Text != "b" || !texts[1].Out {
		t.Errorf("the chat holds %+v", texts)
	}
}

func TestMessageIDCounters(t *testing.T) {
	s := newSim(t, telegramsim.Options{})
	next := func(chat int64) int64 {
		return must[message](t, s, "sendMessage", args{"chat_id": chat, "text": "x"}).ID
	}
	first := next(5)
	if a, b := next(6), next(-77); a != first+1 || b != first+2 {
		t.Errorf("private chats and basic groups got %d, %d, %d: they share a counter", first, a, b)
	}
	if a, b := next(-1001700300001), next(-1001700300002); a != 1 || b != 1 {
		t.Errorf("supergroups got %d and %d: they have counters of their own", a, b)
	}
}

func TestTextRefusals(t *testing.T) {
	s := newSim(t, telegramsim.Options{})
	for name, c := range map[string]struct {
		in   args
		want string
	}{
		"missing":       {args{}, "message text is empty"},
		"space":         {args{"text": " \n "}, "text must be non-empty"},
		"long":          {args{"text": strings.Repeat("ж", 4097)}, "message is too long"},
		"bytes":         {args{"text": strings.Repeat("x", 32_769)}, "text is too long"},
		"mode":          {args{"text": "x", "parse_mode": "BBCode"}, "unsupported parse_mode"},
		"null mode":     {args{"text": "x", "parse_mode": nil}, "unsupported parse_mode"},
		"open tag":      {args{"text": "<b>x", "parse_mode": "HTML"}, `can't parse entities: Can't find end tag corresponding to start tag "b"`},
		"wrong end":     {args{"text": "<b>x</i>", "parse_mode": "html"}, `can't parse entities: Unmatched end tag at byte offset 4, expected "</b>", found "</i>"`},
		"end alone":     {args{"text": "x</i>", "parse_mode": "HTML"}, "can't parse entities: Unexpected end tag at byte offset 1"},
		"unknown tag":   {args{"text": "a <table>", "parse_mode": "HTML"}, `can't parse entities: Unsupported start tag "table" at byte offset 2`},
		"reserved":      {args{"text": "a.b", "parse_mode": "MarkdownV2"}, `can't parse entities: Character '.' is reserved and must be escaped with the preceding '\'`},
		"open mark":     {args{"text": "a *b", "parse_mode": "MarkdownV2"}, "can't parse entities: Can't find end of Bold entity at byte offset 2"},
		"old open mark": {args{"text": "a *b", "parse_mode": "Markdown"}, "can't parse entities: Can't find end of the entity starting at byte offset 2"},
		"entities":      {args{"text": "x", "entities": "{"}, "can't parse entities JSON object"},
		"markup":        {args{"text": "x", "reply_markup": "5"}, "object expected as reply markup"},
		"broken markup": {args{"text": "x", "reply_markup": "{"}, "can't parse reply keyboard markup JSON object"},
		"long data":     {args{"text": "x", "reply_markup": `{"inline_keyboard":[[{"text":"a","callback_data":"` + strings.Repeat("d", 65) + `"}]]}`}, "BUTTON_DATA_INVALID"},
		"reply":         {args{"text": "x", "reply_to_message_id": 99}, "message to be replied not found"},
		"thread":        {args{"text": "x", "message_thread_id": 4}, "message thread not found"},
	} {
		t.Run(name, func(t *testing.T) {
			c.in["chat_id"] = 5
			refused(t, s, "sendMessage", c.in, 400, "Bad Request: "+c.want)
		})
	}
	if got := s.Chat(5); len(got) != 0 {
		t.Errorf("refused messages stand in the chat: %+v", got)
	}
	must[message](t, s, "sendMessage", args{"chat_id": 5, "text": strings.Repeat("🐚", 4096)})
	must[message](t, s, "sendMessage", args{"chat_id": 5, "text": "x", "reply_to_message_id": 99, "allow_sending_without_reply": true})
}

func TestMarkdown(t *testing.T) {
	s := newSim(t, telegramsim.Options{})
	for _, c := range []struct{ mode, in, text, types string }{
		{"MarkdownV2", `*bold _both_* \*plain\* ||s|| ~x~ __u__`, "bold both *plain* s x u", "bold italic spoiler strikethrough underline"},
		{"MarkdownV2", "`a*b` [link](http://h.invalid/)", "a*b link", "code text_link"},
		{"Markdown", "*b* _i_ `c_d` [t](http://h.invalid)", "b i c_d t", "bold italic code text_link"},
		{"HTML", `<a href="http://h.invalid">t</a><pre>x</pre><tg-spoiler>y</tg-spoiler>`, "txy", "text_link pre spoiler"},
		{"", "*a* <b>", "*a* <b>", ""},
	} {
		got := must[message](t, s, "sendMessage", args{"chat_id": 5, "text": c.in, "parse_mode": c.mode})
		var types []string
		for _, e := range got.Entities {
			types = append(types, e.Type)
		}
		if got.Text != c.text || strings.Join(types, " ") != c.types {
			t.Errorf("%s %q: got %q with %v", c.mode, c.in, got.Text, types)
		}
	}
}

func TestEdits(t *testing.T) {
	s := newSim(t, telegramsim.Options{})
	sent := must[message](t, s, "sendMessage", args{"chat_id": 5, "text": "one"})
	at := args{"chat_id": 5, "message_id": sent.ID, "text": "two"}
	if got := must[message](t, s, "editMessageText", at); got.Text != "two" || got.EditDate == 0 || got.ID != sent.ID {
		t.Errorf("edited: %+v", got)
	}
	refused(t, s, "editMessageText", at, 400, "Bad Request: message is not modified: specified new message content and "+
		"reply markup are exactly the same as a current content and reply markup of the message")
	refused(t, s, "editMessageText", args{"chat_id": 5, "message_id": 9999, "text": "x"}, 400, "Bad Request: message to edit not found")
	refused(t, s, "editMessageCaption", args{"chat_id": 5, "message_id": sent.ID, "caption": "x"}, 400,
		"Bad Request: there is no caption in the message to edit")
	s.FeedText(5, 5, "not the bot's")
	chat := s.Chat(5)
	refused(t, s, "editMessageText", args{"chat_id": 5, "message_id": chat[1].ID, "text": "x"}, 400, "Bad Request: message can't be edited")
	must[bool](t, s, "editMessageText", args{"inline_message_id": "abc", "text": "x"})
	markup := args{"chat_id": 5, "message_id": sent.ID, "reply_markup": `{"inline_keyboard":[[{"text":"a","callback_data":"b"}]]}`}
	if got := must[message](t, s, "editMessageReplyMarkup", markup); got.Text != "two" || got.Markup == nil {
		t.Errorf("markup edited: %+v", got)
	}
	if got := s.Chat(5)[0]; got.Text != "two" || !got.Edited {
		t.Errorf("the chat shows %+v", got)
	}
}

func TestDeletes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSim(t, telegramsim.Options{})
		var ids []int64
		for range 4 {
			ids = append(ids, must[message](t, s, "sendMessage", args{"chat_id": 5, "text": "x"}).ID)
		}
		must[bool](t, s, "deleteMessage", args{"chat_id": 5, "message_id": ids[0]})
		refused(t, s, "deleteMessage", args{"chat_id": 5, "message_id": ids[0]}, 400, "Bad Request: message to delete not found")
		must[bool](t, s, "deleteMessages", args{"chat_id": 5, "message_ids": []int64{ids[0], ids[1], 777}})
		refused(t, s, "deleteMessages", args{"chat_id": 5, "message_ids": make([]int64, 101)}, 400,
			"Bad Request: too many message identifiers specified")
		time.Sleep(48*time.Hour + time.Second)
		refused(t, s, "deleteMessage", args{"chat_id": 5, "message_id": ids[2]}, 400, "Bad Request: message can't be deleted for everyone")
		if left := s.Chat(5); len(left) != 2 {
			t.Errorf("%d messages are left, want 2", len(left))
		}
	})
}

func TestCopyAndForward(t *testing.T) {
	s := newSim(t, telegramsim.Options{})
	s.FeedText(5, 5, "from a user")
	source := s.Chat(5)[0].ID
	copied := must[message](t, s, "copyMessage", args{"chat_id": 6, "from_chat_id": 5, "message_id": source})
	forwarded := must[message](t, s, "forwardMessage", args{"chat_id": 6, "from_chat_id": 5, "message_id": source})
	if forwarded.Text != "from a user" || forwarded.Origin == nil || forwarded.Origin.Type != "user" {
		t.Errorf("forwarded: %+v", forwarded)
	}
	list := must[[]message](t, s, "copyMessages", args{"chat_id": 6, "from_chat_id": 6, "message_ids": []int64{copied.ID, forwarded.ID, 9000}})
	if len(list) != 2 {
		t.Errorf("copied %d, want 2: missing ones are skipped", len(list))
	}
	refused(t, s, "copyMessage", args{"chat_id": 6, "from_chat_id": 5, "message_id": 9000}, 400, "Bad Request: message to copy not found")
	refused(t, s, "forwardMessage", args{"chat_id": 6, "from_chat_id": 5, "message_id": 9000}, 400, "Bad Request: message to forward not found")
	refused(t, s, "copyMessages", args{"chat_id": 6, "from_chat_id": 6, "message_ids": []int64{2, 1}}, 400,
		"Bad Request: message identifiers must be in a strictly increasing order")
	must[message](t, s, "sendMessage", args{"chat_id": 5, "text": "secret", "protect_content": true})
	refused(t, s, "forwardMessage", args{"chat_id": 6, "from_chat_id": 5, "message_id": s.Chat(5)[1].ID}, 400,
		"Bad Request: message has protected content and can't be forwarded")
	if got := s.Chat(6); len(got) != 4 || got[0].Text != "from a user" || got[3].Text != "from a user" {
		t.Errorf("chat 6 holds %+v", got)
	}
}

func TestPlainSends(t *testing.T) {
	s := newSim(t, telegramsim.Options{})
	for method, in := range map[string]args{
		"sendLocation": {"latitude": 54.1, "longitude": 12.1},
		"sendVenue":    {"latitude": 54.1, "longitude": 12.1, "title": "a", "address": "b"},
		"sendContact":  {"phone_number": "+1", "first_name": "a"},
		"sendPoll":     {"question": "a?", "options": []any{"yes", args{"text": "no"}}},
		"sendDice":     {},
	} {
		in["chat_id"] = 5
		got := must[map[string]json.RawMessage](t, s, method, in)
		field := strings.ToLower(strings.TrimPrefix(method, "send"))
		if got[field] == nil {
			t.Errorf("%s: no %s in %v", method, field, got)
		}
		must[message](t, s, "copyMessage", args{"chat_id": 6, "from_chat_id": 5, "message_id": got["message_id"]})
	}
	refused(t, s, "sendLocation", args{"chat_id": 5}, 400, "Bad Request: latitude is empty")
	refused(t, s, "sendChatAction", args{"chat_id": 5, "action": "dance"}, 400, "Bad Request: wrong parameter action in request")
	must[bool](t, s, "sendChatAction", args{"chat_id": 5, "action": "typing"})
	poll := must[message](t, s, "sendPoll", args{"chat_id": 5, "question": "a?", "options": []string{"x"}})
	must[json.RawMessage](t, s, "stopPoll", args{"chat_id": 5, "message_id": poll.ID})
	refused(t, s, "stopPoll", args{"chat_id": 5, "message_id": poll.ID}, 400, "Bad Request: poll has already been closed")
}

func TestQueryLifetimes(t *testing.T) {
	const tooOld = "Bad Request: query is too old and response timeout expired or query ID is invalid"
	for _, c := range []struct {
		update, method, key string
		life                time.Duration
	}{
		{`{"callback_query":{"id":"q","from":{"id":5},"data":"x"}}`, "answerCallbackQuery", "callback_query_id", 150 * time.Second},
		{`{"shipping_query":{"id":"q","from":{"id":5}}}`, "answerShippingQuery", "shipping_query_id", 150 * time.Second},
		{`{"inline_query":{"id":"q","from":{"id":5},"query":""}}`, "answerInlineQuery", "inline_query_id", 30 * time.Second},
		{`{"pre_checkout_query":{"id":"q","from":{"id":5}}}`, "answerPreCheckoutQuery", "pre_checkout_query_id", 10 * time.Second},
	} {
		synctest.Test(t, func(t *testing.T) {
			s := newSim(t, telegramsim.Options{})
			in := args{c.key: "q", "results": []any{}}
			refused(t, s, c.method, in, 400, tooOld)
			s.Feed(0, json.RawMessage(c.update))
			time.Sleep(c.life)
			must[bool](t, s, c.method, in)
			time.Sleep(time.Second)
			refused(t, s, c.method, in, 400, tooOld)
		})
	}
}

func TestPressButton(t *testing.T) {
	s := newSim(t, telegramsim.Options{})
	sent := must[message](t, s, "sendMessage", args{"chat_id": 5, "text": "choose"})
	id := s.PressButton(5, 5, sent.ID, "day:7")
	list := must[[]struct {
		ID    int64 `json:"update_id"`
		Query struct {
			ID      string  `json:"id"`
			Data    string  `json:"data"`
			Message message `json:"message"`
		} `json:"callback_query"`
	}](t, s, "getUpdates", args{})
	if len(list) != 1 || list[0].ID != id || list[0].Query.Data != "day:7" || list[0].Query.Message.Text != "choose" {
		t.Fatalf("got %+v", list)
	}
	must[bool](t, s, "answerCallbackQuery", args{"callback_query_id": list[0].Query.ID})
}

func TestPinAndReact(t *testing.T) {
	s := newSim(t, telegramsim.Options{})
	sent := must[message](t, s, "sendMessage", args{"chat_id": 5, "text": "x"})
	at := args{"chat_id": 5, "message_id": sent.ID}
	must[bool](t, s, "pinChatMessage", at)
	if !s.Chat(5)[0].Pinned {
		t.Error("the message is not pinned")
	}
	must[bool](t, s, "unpinChatMessage", args{"chat_id": 5})
	refused(t, s, "unpinChatMessage", args{"chat_id": 5}, 400, "Bad Request: message to unpin not found")
	refused(t, s, "pinChatMessage", args{"chat_id": 5, "message_id": 999}, 400, "Bad Request: message to pin not found")
	must[bool](t, s, "setMessageReaction", args{"chat_id": 5, "message_id": sent.ID, "reaction": []args{{"type": "emoji", "emoji": "👍"}}})
	refused(t, s, "setMessageReaction", args{"chat_id": 5, "message_id": 999}, 400, "Bad Request: message to react not found")
}
