package outbox_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tgspool/tgspool/internal/outbox"
	"github.com/tgspool/tgspool/internal/spool"
)

func TestNew_DescribesTheCall(t *testing.T) {
	tests := []struct {
		name, method, params string

		wantMethod, chat, chatRaw string
		weight                    int
		repeat                    bool
	}{
		{
			"a message", "sendMessage", `{"chat_id":42,"text":"hi"}`,
			"sendMessage", "42", "42", 1, false,
		},
		{
			"any case of the method's name", "SENDMESSAGE", `{"chat_id":42}`,
			"sendMessage", "42", "42", 1, false,
		},
		{
			"an old name of a method", "kickChatMember", `{"chat_id":-5,"user_id":7}`,
			"banChatMember", "-5", "-5", 0, true,
		},
		{
			"an id above 32 bits", "sendMessage", `{"chat_id":-1001222207990}`,
			"sendMessage", "-1001222207990", "-1001222207990", 1, false,
		},
		{
			"an id as text is the same chat", "sendMessage", `{"chat_id":" -1001222207990 "}`,
			"sendMessage", "-1001222207990", `" -1001222207990 "`, 1, false,
		},
		{
			"a name in any case is the same chat", "sendMessage", `{"chat_id":"@MyChan"}`,
			"sendMessage", "@mychan", `"@MyChan"`, 1, false,
		},
		{
			"an album counts its items", "sendMediaGroup", `{"chat_id":1,"media":[{},{},{}]}`,
			"sendMediaGroup", "1", "1", 3, false,
		},
		{
			"an edit of text keeps the gap", "editMessageText", `{"chat_id":1,"message_id":2,"text":"x"}`,
			"editMessageText", "1", "1", 1, true,
		},
		{
			"a delete keeps the order only", "deleteMessage", `{"chat_id":1,"message_id":2}`,
			"deleteMessage", "1", "1", 0, true,
		},
		{
			"an inline message has a queue of its own", "editMessageText", `{"inline_message_id":"AbC","text":"x"}`,
			"editMessageText", "inline:AbC", "", 1, true,
		},
		{
			"a call without a chat", "setMyName", `{"name":"x"}`,
			"setMyName", "", "", 0, true,
		},
		{
			"no parameters", "getMe", "",
			"getMe", "", "", 0, true,
		},
		{
			"an unknown read", "getTheNewThing", `{"chat_id":9}`,
			"getTheNewThing", "9", "9", 0, true,
		},
		{
			"an unknown method may put a message", "sendTheNewThing", `{"chat_id":9}`,
			"sendTheNewThing", "9", "9", 1, false,
		},
		{
			"the first of equal names counts", "sendMessage", `{"chat_id":1,"text":"x","chat_id":2}`,
			"sendMessage", "1", "1", 1, false,
		},
		{
			"null is absent", "sendMessage", `{"chat_id":null,"text":"x"}`,
			"sendMessage", "", "", 1, false,
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			job, err := outbox.New(tt.method, json.RawMessage(tt.params), outbox.Options{})
			if err != nil {
				t.Fatal(err)
			}
			if job.Method != tt.wantMethod || job.Chat != tt.chat || string(job.ChatRaw) != tt.chatRaw {
				t.Errorf("method %q, chat %q, raw %q; want %q, %q, %q",
					job.Method, job.Chat, job.ChatRaw, tt.wantMethod, tt.chat, tt.chatRaw)
			}
			if job.Weight != tt.weight || job.SafeToRepeat != tt.repeat {
				t.Errorf("weight %d, safe to repeat %v; want %d, %v", job.Weight, job.SafeToRepeat, tt.weight, tt.repeat)
			}
			if string(job.Params) != tt.params {
				t.Errorf("the parameters were changed to %q", job.Params)
			}
			if job.Lane != "" || !job.ExpiresAt.IsZero() {
				t.Errorf("lane %q, expiry %v, want the bot's own", job.Lane, job.ExpiresAt)
			}
		})
	}
}

func TestNew_EphemeralGoesSoonOrNot(t *testing.T) {
	tests := []struct{ method, params, chat string }{
		{"answerCallbackQuery", `{"callback_query_id":"77","text":"ok"}`, "once:answerCallbackQuery:77"},
		{"answerInlineQuery", `{"inline_query_id":8,"results":[]}`, "once:answerInlineQuery:8"},
		{"answerPreCheckoutQuery", `{"ok":true,"pre_checkout_query_id":"p"}`, "once:answerPreCheckoutQuery:p"},
		{"sendChatAction", `{"chat_id":"@Room","action":"typing"}`, "once:sendChatAction:@Room"},
		{"sendMessageDraft", `{"chat_id":5,"draft_id":1}`, "once:sendMessageDraft:5"},
	}
	for _, tt := range tests {
		synctest.Test(t, func(t *testing.T) {
			for _, asked := range []time.Duration{0, time.Second, time.Hour} {
				o := outbox.Options{Lane: spool.Bulk}
				want := outbox.EphemeralTTL
				if asked > 0 {
					o.ExpiresAt = time.Now().Add(asked)
					want = min(want, asked)
				}
				job, err := outbox.New(tt.method, json.RawMessage(tt.params), o)
				if err != nil {
					t.Fatal(err)
				}
				if job.Chat != tt.chat || job.Lane != spool.Interactive || job.Weight != 0 || !job.SafeToRepeat {
					t.Errorf("%s: %+v", tt.method, job)
				}
				if got := time.Until(job.ExpiresAt); got != want {
					t.Errorf("%s: expires in %v, want %v", tt.method, got, want)
				}
			}
		})
	}
}

func TestNew_KeepsTheOptions(t *testing.T) {
	at := time.Date(2031, 2, 3, 4, 5, 6, 0, time.UTC)
	o := outbox.Options{
		Files: []spool.File{{Field: "photo"}}, Lane: spool.Bulk, NotBefore: at, ExpiresAt: at.Add(1),
		MaxAttempts: 3, OnUncertain: spool.PolicyDrop, DedupeKey: "k", DedupeFor: time.Hour,
		Origin: "cli", Force: true,
	}
	job, err := outbox.New("sendPhoto", json.RawMessage(`{"chat_id":1}`), o)
	if err != nil {
		t.Fatal(err)
	}
	got := outbox.Options{
		Files: job.Files, Lane: job.Lane, NotBefore: job.NotBefore, ExpiresAt: job.ExpiresAt,
		MaxAttempts: job.MaxAttempts, OnUncertain: job.OnUncertain, DedupeKey: job.DedupeKey,
		DedupeFor: job.DedupeFor, Origin: job.Origin, Force: job.Force,
	}
	if len(got.Files) != 1 || got.Files[0] != o.Files[0] {
		t.Errorf("files %v", got.Files)
	}
	got.Files, o.Files = nil, nil
	if gotText, want := text(got), text(o); gotText != want {
		t.Errorf("options %s, want %s", gotText, want)
	}
}

func text(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		return err.Error()
	}
	return string(b)
}

func TestNew_RefusesAndSaysWhy(t *testing.T) {
	long := strings.Repeat("x", 500)
	tests := []struct {
		name, method, params, want string
		o                          outbox.Options
	}{
		{"updates", "getupdates", "{}", "takes the updates itself", outbox.Options{}},
		{"a webhook", "setWebhook", "{}", "owns the bot's intake", outbox.Options{}},
		{"no webhook", "DeleteWebhook", "{}", "owns the bot's intake", outbox.Options{}},
		{"about the webhook", "getWebhookInfo", "{}", "status", outbox.Options{}},
		{"logging out", "LOGOUT", "{}", "10 minutes", outbox.Options{}},
		{"closing", "close", "{}", "session", outbox.Options{}},
		{"no method", "", "{}", "name of a method", outbox.Options{}},
		{"a path", "../getMe", "{}", "name of a method", outbox.Options{}},
		{"a very long method", long, "{}", "name of a method", outbox.Options{}},
		{"an array", "sendMessage", "[1]", "JSON object", outbox.Options{}},
		{"no JSON", "sendMessage", "chat_id=1", "JSON object", outbox.Options{}},
		{"cut JSON", "sendMessage", `{"chat_id":1`, "parameters", outbox.Options{}},
		{"a cut string", "sendMessage", `{"chat_id":1,"text":"secret words`, "parameters", outbox.Options{}},
		{"two objects", "sendMessage", `{"chat_id":1} {}`, "follows", outbox.Options{}},
		{"a chat that is none", "sendMessage", `{"chat_id":"` + long + `"}`, "name of a chat", outbox.Options{}},
		{"a lane", "sendMessage", `{"chat_id":1}`, "lane", outbox.Options{Lane: "fast"}},
		{"a policy", "sendMessage", `{"chat_id":1}`, "policy", outbox.Options{OnUncertain: "guess"}},
		{"attempts", "sendMessage", `{"chat_id":1}`, "max_attempts", outbox.Options{MaxAttempts: -1}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := outbox.New(tt.method, json.RawMessage(tt.params), tt.o)
			if !errors.Is(err, spool.ErrInvalid) {
				t.Fatalf("error %v, want one that is ErrInvalid", err)
			}
			if !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error %q doesn't say %q", err, tt.want)
			}
			if strings.Contains(err.Error(), "secret") || len(err.Error()) > 300 {
				t.Errorf("error repeats what it was given: %q", err)
			}
		})
	}
}
