package sender

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestAddressed_ChangesTheMigratedIdOnly(t *testing.T) {
	tests := []struct{ name, params, given, chat, want string }{
		{"same id", `{"chat_id": -5 }`, "-5", "-5", `{"chat_id": -5 }`},
		{
			"a number", "{ \"text\" : \"chat_id\\ud83d\",\n \"chat_id\" :  -4444 , \"x\":[1, 2]}", "-4444", "-1001557000000",
			"{ \"text\" : \"chat_id\\ud83d\",\n \"chat_id\" :  -1001557000000 , \"x\":[1, 2]}",
		},
		{"text stays text", `{"chat_id":"-4444"}`, `"-4444"`, "-1001557000000", `{"chat_id":"-1001557000000"}`},
		{"the first of two", `{"chat_id":-4,"chat_id":-4}`, "-4", "-100", `{"chat_id":-100,"chat_id":-4}`},
		{"not one further down", `{"reply_parameters":{"chat_id":-4},"chat_id":-4}`, "-4", "-100", `{"reply_parameters":{"chat_id":-4},"chat_id":-100}`},
		{"a name", `{"chat_id":"@MyChan"}`, `"@MyChan"`, "-100123", `{"chat_id":"@MyChan"}`},
		{"a name in another case", `{"chat_id":"@MyChan"}`, `"@MyChan"`, "@mychan", `{"chat_id":"@MyChan"}`},
		{"no chat", `{"name":"x"}`, "", "", `{"name":"x"}`},
		{"a queue of its own", `{"chat_id":5}`, "5", "once:sendChatAction:5", `{"chat_id":5}`},
		{"no parameters", ``, "5", "6", ``},
		{"cut off parameters", `{"chat_id":5,"text":"a`, "5", "6", `{"chat_id":6,"text":"a`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			before := strings.Clone(tt.params)
			params := json.RawMessage(tt.params)
			got := addressed(params, json.RawMessage(tt.given), tt.chat)
			if string(got) != tt.want {
				t.Errorf("got %s, want %s", got, tt.want)
			}
			if string(params) != before {
				t.Errorf("the job's own parameters were changed to %s", params)
			}
		})
	}
}

func TestMarked(t *testing.T) {
	long := strings.Repeat("a", 4090)
	emoji := strings.Repeat("😀", 2048) // 4096 UTF-16 units
	tests := []struct{ name, method, params, want string }{
		{"a text", "sendMessage", `{"text":"a<b> \u00e9","chat_id":1}`, `{"text":"a<b> \u00e9\n\n(may be a repeat)","chat_id":1}`},
		{"a caption", "sendPhoto", `{"photo":"x","caption":""}`, `{"photo":"x","caption":"\n\n(may be a repeat)"}`},
		{"MarkdownV2 wants escapes", "sendMessage", `{"text":"*a*","parse_mode":"MarkdownV2"}`, `{"text":"*a*\n\n\\(may be a repeat\\)","parse_mode":"MarkdownV2"}`},
		{"HTML doesn't", "sendMessage", `{"text":"<b>a</b>","parse_mode":"HTML"}`, `{"text":"<b>a</b>\n\n(may be a repeat)","parse_mode":"HTML"}`},
		{"no text", "sendPhoto", `{"photo":"x"}`, ""},
		{"a text that isn't this method's", "sendPoll", `{"question":"x","text":"y"}`, ""},
		{"marked already", "sendMessage", `{"text":"a\n\n(may be a repeat)"}`, ""},
		{"a number", "sendMessage", `{"text":5}`, ""},
		{"long", "sendMessage", `{"text":"` + long + `"}`, `{"text":"` + long[:4096-19-1] + `…\n\n(may be a repeat)"}`},
		{"long in surrogate pairs", "sendMessage", `{"text":"` + emoji + `"}`, `{"text":"` + strings.Repeat("😀", 2038) + `…\n\n(may be a repeat)"}`},
		{"long with markup", "sendMessage", `{"text":"` + long + `","parse_mode":"HTML"}`, ""},
		{"long with entities", "sendMessage", `{"text":"` + long + `","entities":[]}`, ""},
		{"a caption's limit", "sendPhoto", `{"caption":"` + long[:1024] + `"}`, `{"caption":"` + long[:1024-19-1] + `…\n\n(may be a repeat)"}`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := marked(tt.method, json.RawMessage(tt.params))
			if string(got) != tt.want {
				t.Fatalf("got %q, want %q", got, tt.want)
			}
			var text struct{ Text, Caption string }
			if got != nil {
				if err := json.Unmarshal(got, &text); err != nil {
					t.Fatal(err)
				}
			}
			if units(text.Text) > textLimit || units(text.Caption) > captionLimit {
				t.Errorf("%d units of text, %d of caption", units(text.Text), units(text.Caption))
			}
		})
	}
}
