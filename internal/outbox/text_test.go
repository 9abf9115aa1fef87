package outbox_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/tgspool/tgspool/internal/outbox"
	"github.com/tgspool/tgspool/internal/spool"
)

// calls are the calls of a job and its parts, one a line, long runs of one
// character shortened.
func calls(job spool.NewJob) string {
	var lines []string
	for _, j := range append([]spool.NewJob{job}, job.Parts...) {
		line := j.Method + " " + string(j.Params)
		if j.Fallback != nil {
			line += " else " + j.Fallback.Method + " " + string(j.Fallback.Params)
			if j.Fallback.ForMarkup {
				line += " for markup"
			}
		}
		for _, c := range []string{"x", "y", "z"} {
			for _, n := range []string{"4096", "2000", "1024"} {
				line = strings.ReplaceAll(line, rep(c, n), c+n)
			}
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, "\n")
}

func rep(c, n string) string {
	return strings.Repeat(c, map[string]int{"4096": 4096, "2000": 2000, "1024": 1024}[n])
}

// TestNew_Split: what goes where of a call that becomes several.
func TestNew_Split(t *testing.T) {
	x, y, caption := rep("x", "4096"), rep("y", "2000"), rep("z", "1024")
	for _, tt := range []struct {
		name, method, params, want string
		plain                      bool
	}{
		{"what fits stays byte for byte", "sendMessage", `{"text":"a","chat_id": 1}`, `sendMessage {"text":"a","chat_id": 1}`, false},
		{
			"a reply first, buttons last, a topic everywhere", "sendmessage",
			`{"chat_id":1,"message_thread_id":7,"text":"` + x + ` ` + y + `","reply_parameters":{"message_id":5},"message_effect_id":"9","disable_notification":true,"reply_markup":{"inline_keyboard":[[]]}}`,
			`sendMessage {"chat_id":1,"disable_notification":true,"message_effect_id":"9","message_thread_id":7,"reply_parameters":{"message_id":5},"text":"x4096"}
sendMessage {"chat_id":1,"disable_notification":true,"message_thread_id":7,"reply_markup":{"inline_keyboard":[[]]},"text":"y2000"}`, false,
		},
		{
			"entities", "sendMessage", `{"chat_id":1,"text":"` + x + `\n` + y + `","entities":"[{\"type\":\"pre\",\"offset\":4000,\"length\":2097}]"}`,
			`sendMessage {"chat_id":1,"entities":[{"length":96,"offset":4000,"type":"pre"}],"text":"x4096"}
sendMessage {"chat_id":1,"entities":[{"length":2000,"offset":0,"type":"pre"}],"text":"y2000"}`, false,
		},
		{
			"HTML", "sendMessage", `{"chat_id":"@a","parse_mode":"html","text":"<b>` + x + ` ` + y + `</b>"}`,
			`sendMessage {"chat_id":"@a","parse_mode":"html","text":"<b>x4096</b>"} else sendMessage {"chat_id":"@a","text":"x4096"} for markup
sendMessage {"chat_id":"@a","parse_mode":"html","text":"<b>y2000</b>"} else sendMessage {"chat_id":"@a","text":"y2000"} for markup`, true,
		},
		{
			"a caption goes on as texts", "sendPhoto", `{"chat_id":1,"photo":"id","caption":"` + caption + ` ` + x + ` ` + y + `","show_caption_above_media":true,"reply_markup":{}}`,
			`sendPhoto {"caption":"z1024","chat_id":1,"photo":"id","show_caption_above_media":true}
sendMessage {"chat_id":1,"text":"x4096"}
sendMessage {"chat_id":1,"reply_markup":{},"text":"y2000"}`, false,
		},
		{
			"an edit goes on as texts", "editMessageText", `{"chat_id":1,"message_id":5,"text":"` + x + ` ` + y + `"}`,
			`editMessageText {"chat_id":1,"message_id":5,"text":"x4096"}
sendMessage {"chat_id":1,"text":"y2000"}`, false,
		},
		{"markup that can't be parsed", "sendMessage", `{"chat_id":1,"parse_mode":"HTML","text":"<b>` + x + `"}`, `sendMessage {"chat_id":1,"parse_mode":"HTML","text":"<b>x4096"} else sendMessage {"chat_id":1,"text":"x4096"} for markup`, true},
		{"the same without a plain fallback", "sendMessage", `{"chat_id":1,"parse_mode":"HTML","text":"<b>` + x + ` ` + y + `"}`, `sendMessage {"chat_id":1,"parse_mode":"HTML","text":"<b>x4096 y2000"}`, false},
		{
			"a plain text that is too long itself", "sendMessage", `{"chat_id":1,"parse_mode":"HTML","text":"<b>` + x + ` ` + y + `"}`,
			`sendMessage {"chat_id":1,"text":"x4096"}
sendMessage {"chat_id":1,"text":"y2000"}`, true,
		},
		{"an unknown mode", "sendMessage", `{"chat_id":1,"parse_mode":"BBCode","text":"` + x + ` ` + y + `"}`, `sendMessage {"chat_id":1,"parse_mode":"BBCode","text":"x4096 y2000"}`, true},
		{"broken entities", "sendMessage", `{"chat_id":1,"entities":[5],"text":"` + x + ` ` + y + `"}`, `sendMessage {"chat_id":1,"entities":[5],"text":"x4096 y2000"}`, true},
		{"no text", "sendMessage", `{"chat_id":1}`, `sendMessage {"chat_id":1}`, true},
		{"a text without markup needs no plain one", "sendMessage", `{"chat_id":1,"text":"a"}`, `sendMessage {"chat_id":1,"text":"a"}`, true},
		{"a medium without caption", "sendSticker", `{"chat_id":1,"sticker":"id"}`, `sendSticker {"chat_id":1,"sticker":"id"}`, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			job, err := outbox.New(tt.method, json.RawMessage(tt.params), outbox.Options{Split: true, PlainFallback: tt.plain})
			if err != nil {
				t.Fatal(err)
			}
			if got := calls(job); got != tt.want {
				t.Errorf("got\n%s\nwant\n%s", got, tt.want)
			}
		})
	}
}

// TestNew_SplitKeepsOneKey: the first part holds the key and the files for all.
func TestNew_SplitKeepsOneKey(t *testing.T) {
	o := outbox.Options{Split: true, DedupeKey: "k", DedupeFor: 5, Lane: spool.Bulk, Origin: "cli", Force: true, Files: []spool.File{{Field: "photo"}}}
	job, err := outbox.New("sendPhoto", json.RawMessage(`{"chat_id":1,"caption":"`+strings.Repeat("x", 6000)+`"}`), o)
	if err != nil || len(job.Parts) != 2 {
		t.Fatalf("%d parts, %v", len(job.Parts), err)
	}
	for _, p := range job.Parts {
		if p.DedupeKey != "" || p.DedupeFor != 0 || p.Files != nil || p.Lane != spool.Bulk || p.Origin != "cli" || !p.Force || p.Chat != job.Chat {
			t.Errorf("part %+v", p)
		}
	}
	if job.DedupeKey != "k" || len(job.Files) != 1 {
		t.Errorf("first %+v", job)
	}
}

func TestNew_SplitRefuses(t *testing.T) {
	long := strings.Repeat("x", 5000)
	for _, tt := range []struct {
		method, params, want string
		o                    outbox.Options
	}{
		{"sendChatAction", `{"chat_id":1}`, "has no text", outbox.Options{Split: true}},
		{"deleteMessage", `{"chat_id":1}`, "has no text", outbox.Options{PlainFallback: true}},
		{"editMessageText", `{"inline_message_id":"a","text":"` + long + `"}`, "no chat_id", outbox.Options{Split: true}},
		{"sendMessage", `{"chat_id":1,"text":"` + strings.Repeat("x", 4096*1000+1) + `"}`, "takes more than 1000 messages", outbox.Options{Split: true}},
		{"sendMessage", `{"chat_id":1,"link_preview_options":{"url":"` + strings.Repeat("x", 1<<20) + `"},"text":"` + strings.Repeat("x", 4096*20) + `"}`, "longer than 16 MiB", outbox.Options{Split: true}},
		{"sendMessage", `{"chat_id":1,"text":"a"}`, "exclude", outbox.Options{PlainFallback: true, Fallback: &outbox.Fallback{Params: json.RawMessage(`{"chat_id":1}`)}}},
		{"sendMessage", `{"chat_id":1,"text":"` + long + `"}`, "can't stand for them", outbox.Options{Split: true, Fallback: &outbox.Fallback{Params: json.RawMessage(`{"chat_id":1}`)}}},
	} {
		if _, err := outbox.New(tt.method, json.RawMessage(tt.params), tt.o); !errors.Is(err, spool.ErrInvalid) || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %q", tt.method, err, tt.want)
		}
	}
}
