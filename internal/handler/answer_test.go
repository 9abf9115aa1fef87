package handler

import (
	"strings"
	"testing"
	"testing/synctest"

	"github.com/tgspool/tgspool/internal/spool"
)

// Each answer goes through a real program and the real spool.
func TestHandlers_Answer(t *testing.T) {
	const (
		topic = `{"message":{"message_id":9,"message_thread_id":5,"is_topic_message":true,"date":1,"from":{"id":7},"chat":{"id":-1001,"type":"supergroup","is_forum":true},"text":"a"}}`
		reply = `{"message":{"message_id":9,"message_thread_id":5,"date":1,"from":{"id":7},"chat":{"id":-1001,"type":"supergroup"},"text":"a"}}`
		work  = `{"business_message":{"business_connection_id":"bc","message_id":9,"date":1,"from":{"id":7},"chat":{"id":7,"type":"private"},"text":"a"}}`
		press = `{"callback_query":{"id":"77","from":{"id":7},"message":{"message_id":9,"date":1,"chat":{"id":-1001,"type":"supergroup"}},"chat_instance":"c","data":"d"}}`
		odd   = `{"callback_query":{"id":"77","from":{"id":7},"inline_message_id":"x","chat_instance":"c","data":"d"}}`
		vote  = `{"poll":{"id":"p","question":"q"}}`
	)
	long := strings.Repeat("0123456789", 1000)
	tests := []struct {
		name, update string
		reply        Reply
		stdout       string
		calls        []string
		state        spool.UpdateState
		why          string
	}{
		{name: "text", update: said(7, "hi"), stdout: "hello <you> & \"me\"\n", calls: []string{`sendMessage {"chat_id":7,"text":"hello <you> & \"me\""}`}},
		{name: "nothing", update: said(7, "hi"), stdout: "\n"},
		{name: "binary", update: said(7, "hi"), stdout: "caf\xe9 \xff", calls: []string{`sendMessage {"chat_id":7,"text":"caf` + "\uFFFD \uFFFD" + `"}`}},
		{
			name: "long", update: said(7, "hi"), stdout: long,
			calls: []string{`sendMessage {"chat_id":7,"text":"` + long[:4096] + `"}`, `sendMessage {"chat_id":7,"text":"` + long[4096:8192] + `"}`, `sendMessage {"chat_id":7,"text":"` + long[8192:] + `"}`},
		},
		{name: "into the topic", update: topic, stdout: "a", calls: []string{`sendMessage {"chat_id":-1001,"message_thread_id":5,"text":"a"}`}},
		{name: "a thread that is no topic", update: reply, stdout: "a", calls: []string{`sendMessage {"chat_id":-1001,"text":"a"}`}},
		{name: "in a business's name", update: work, stdout: "a", calls: []string{`sendMessage {"business_connection_id":"bc","chat_id":7,"text":"a"}`}},
		{name: "button", update: press, stdout: "a", calls: []string{`sendMessage {"chat_id":-1001,"text":"a"}`}},
		{name: "button, nothing said", update: press},
		{name: "button without a chat", update: odd, stdout: "a", state: spool.UpdateDead, why: "no chat"},
		{name: "a picture", update: said(7, "hi"), stdout: "\x89PNG\r\n\x1a\n\xff\xfe\xfd\xfc\xfb\xfa\xf9\xf8\xf7\xf6", state: spool.UpdateDead, why: "standard output is binary, no text"},
		{name: "noise", update: said(7, "hi"), stdout: "\xff\xfe\xfd\n", state: spool.UpdateDead, why: "standard output is binary, no text"},
		{
			name: "a misspelled method", update: said(7, "hi"), reply: ReplyCalls, stdout: `{"method":"sendMesage","chat_id":7,"text":"a"}`,
			state: spool.UpdateDead, why: `line 1 of the calls: unknown method "sendMesage"`,
		},
		{name: "no chat", update: vote, stdout: "a", state: spool.UpdateDead, why: "no chat"},
		{name: "no chat, nothing said", update: vote},
		{
			name: "calls", update: vote, reply: ReplyCalls,
			stdout: `{"chat_id":"@Channel","method":"sendMessage","text":"a","reply_markup":{"inline_keyboard":[[ {"text":"b"} ]]}}` + "\n\n" + `{"method":"sendchataction","chat_id":7,"action":"typing"}`,
			calls:  []string{`sendMessage {"chat_id":"@Channel","text":"a","reply_markup":{"inline_keyboard":[[ {"text":"b"} ]]}}`, `sendChatAction {"chat_id":7,"action":"typing"}`},
		},
		{name: "button, calls answer it themselves", update: press, reply: ReplyCalls},
		{
			name: "half a line", update: said(7, "hi"), reply: ReplyCalls, stdout: `{"method":"sendMessage","chat_id":7,"text":"a"}` + "\n" + `{"method":"sendMess`,
			state: spool.UpdateDead, why: "line 2 of the calls",
		},
		{
			name: "a text where calls should be", update: said(7, "hi"), reply: ReplyCalls, stdout: "hello\n",
			state: spool.UpdateDead, why: "line 1 of the calls",
		},
		{
			name: "binary where calls should be", update: said(7, "hi"), reply: ReplyCalls, stdout: "\xff\xfe\n",
			state: spool.UpdateDead, why: "line 1 of the calls: not valid UTF-8",
		},
		{
			name: "a call that only reads", update: said(7, "hi"), reply: ReplyCalls, stdout: `{"method":"getMe"}`,
			state: spool.UpdateDead, why: "line 1 of the calls: getMe only reads",
		},
		{
			name: "a call against the spool", update: said(7, "hi"), reply: ReplyCalls, stdout: "\n" + `{"method":"deleteWebhook"}`,
			state: spool.UpdateDead, why: "line 2 of the calls",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := openHouse(t, does(t, "it", tt.reply, "print", tt.stdout))
				defer h.close()
				h.run()
				defer h.stop()
				seq := h.feed(tt.update)
				synctest.Wait()
				if tt.state == "" {
					tt.state = spool.UpdateHandled
				}
				u := h.want(seq, tt.state, 1, tt.why)
				jobs := h.wantCalls(tt.calls...)
				if len(u.Jobs) != len(jobs) {
					t.Errorf("the update names jobs %v", u.Jobs)
				}
				for i, j := range jobs {
					if j.Lane != spool.Interactive || j.Origin != "handler:it" {
						t.Errorf("job %d has lane %s, origin %q", i, j.Lane, j.Origin)
					}
					// A long text is one call, whose first part has the key.
					want := "reply:1001:" + string(rune('1'+i))
					if part := j.Part != nil && j.Part.Number > 1; part != (j.DedupeKey == nil) || !part && *j.DedupeKey != want {
						t.Errorf("job %d has the key %v", i, j.DedupeKey)
					}
				}
				if tt.state == spool.UpdateDead && (u.Output == nil || !strings.HasPrefix(*u.Output, "stdout: ")) {
					t.Errorf("output kept: %v", u.Output)
				}
			})
		})
	}
}
