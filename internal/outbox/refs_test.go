package outbox_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/tgspool/tgspool/internal/outbox"
	"github.com/tgspool/tgspool/internal/spool"
)

func TestNew_Refs(t *testing.T) {
	for _, c := range []struct {
		params string
		want   string // each reference: its key, the bytes, and whether it is a list
	}{
		{`{"chat_id":1,"message_id":{"$job":"k"}}`, `k={"$job":"k"} false`},
		{`{"chat_id":1,"message_id" : { "$job" : "a b" } ,"text":"$job"}`, `a b={ "$job" : "a b" } false`},
		{`{"chat_id":1,"message_ids":{"$job":"k"}}`, `k={"$job":"k"} true`},
		{`{"chat_id":1,"message_ids":[1,{"$job":"k"},{"$job":"l"}]}`, `k={"$job":"k"} false; l={"$job":"l"} false`},
		{`{"chat_id":1,"reply_parameters":{"quote":"x","message_id":{"$job":"k"}}}`, `k={"$job":"k"} false`},
		{`{"chat_id":1,"reply_to_message_id":{"\u0024job":"k"},"message_id":{"$job":"l"}}`, `k={"\u0024job":"k"} false; l={"$job":"l"} false`},
		{`{"chat_id":1,"message_id":{"$job":"k","x":1}}`, ``},
		{`{"chat_id":1,"message_id":5,"text":"{\"$job\":\"k\"}"}`, ``},
		{`{"chat_id":1,"message_id":{"$job":"k"},"message_id":{"$job":"l"}}`, `k={"$job":"k"} false`}, // the first counts
	} {
		job, err := outbox.New("copyMessage", json.RawMessage(c.params), outbox.Options{})
		if err != nil {
			t.Errorf("%s: %v", c.params, err)
		}
		var got []string
		for _, r := range job.Refs {
			got = append(got, fmt.Sprintf("%s=%s %v", r.Key, c.params[r.Start:r.End], r.List))
		}
		if strings.Join(got, "; ") != c.want {
			t.Errorf("%s: %q, want %q", c.params, got, c.want)
		}
		if job, err = outbox.New("copyMessage", json.RawMessage(c.params), outbox.Options{Verbatim: true}); err != nil || job.Refs != nil {
			t.Errorf("%s verbatim: %v %v", c.params, job.Refs, err)
		}
	}
	for _, bad := range []string{
		`{"chat_id":{"$job":"k"}}`, `{"chat_id":1,"message_id":{"$job":5}}`, `{"chat_id":1,"message_id":{"$job":""}}`,
		`{"chat_id":1,"entities":[{"$job":"k"}]}`,
		`{"chat_id":1,"message_ids":[` + strings.Repeat(`{"$job":"k"},`, 100) + `{"$job":"k"}]}`,
	} {
		if _, err := outbox.New("copyMessage", json.RawMessage(bad), outbox.Options{}); !errors.Is(err, spool.ErrInvalid) {
			t.Errorf("%s: %v", bad, err)
		}
	}
}

func TestNew_TouchedMessages(t *testing.T) {
	for _, c := range []struct{ method, params, edits, deletes string }{
		{"editmessagetext", `{"chat_id":"-100","message_id":" 05 ","text":"x"}`, "/-100/5", "[]"},
		{"editMessageCaption", `{"chat_id":"@News","message_id":5}`, "/@news/5", "[]"},
		{"editMessageMedia", `{"chat_id":1,"message_id":5,"business_connection_id":"b"}`, "b/1/5", "[]"},
		{"editMessageReplyMarkup", `{"inline_message_id":"q"}`, "inline/q", "[]"},
		{"editMessageText", `{"chat_id":1,"message_id":{"$job":"k"}}`, "/1/$", "[]"},
		{"editMessageText", `{"chat_id":1,"message_id":"x"}`, "", "[]"},
		{"editMessageText", `{"chat_id":1}`, "", "[]"},
		{"editForumTopic", `{"chat_id":1,"message_id":5}`, "", "[]"},
		{"deleteMessage", `{"chat_id":1,"message_id":5}`, "", "[/1/5]"},
		{"deleteMessage", `{"chat_id":1,"message_id":{"$job":"k"}}`, "", "[/1/$]"},
		{"deleteMessages", `{"chat_id":1,"message_ids":[5,"6",{}]}`, "", "[/1/5 /1/6]"},
		{"deleteMessages", `{"chat_id":1,"message_ids":"[5]"}`, "", "[/1/5]"},
		{"deleteMessages", `{"chat_id":1,"message_ids":[` + strings.Repeat("5,", 100) + `6]}`, "", "[]"}, // Telegram refuses it
		{"sendMessage", `{"chat_id":1,"message_id":5}`, "", "[]"},
	} {
		job, err := outbox.New(c.method, json.RawMessage(c.params), outbox.Options{})
		if err != nil || job.Edits != c.edits || fmt.Sprint(job.Deletes) != c.deletes {
			t.Errorf("%s %s edits %q and deletes %v, %v; want %q and %s", c.method, c.params, job.Edits, job.Deletes, err, c.edits, c.deletes)
		}
	}
}

// FuzzRefs: whatever the parameters hold, references lie in them, in order.
func FuzzRefs(f *testing.F) {
	f.Add(`{"chat_id":1,"message_ids":[1,{"$job":"k"},{"$job":"l"}],"reply_parameters":{"message_id":{"$job":"k"}}}`)
	f.Add(`{"message_id":{"$job":"k"},"message_id":{"$job":7}}`)
	f.Add(`{"a":[{"$job":[]}],"message_id":"$"}`)
	f.Fuzz(func(t *testing.T, params string) {
		job, err := outbox.New("editMessageText", json.RawMessage(params), outbox.Options{})
		if err != nil {
			return
		}
		at := 0
		for _, r := range job.Refs {
			var ref map[string]string
			if r.Start < at || json.Unmarshal([]byte(params[r.Start:r.End]), &ref) != nil || ref["$job"] != r.Key {
				t.Errorf("%q: %+v", params, r)
			}
			at = r.End
		}
	})
}
