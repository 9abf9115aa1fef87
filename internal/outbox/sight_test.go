package outbox_test

import (
	"encoding/json"
	"testing"

	"github.com/tgspool/tgspool/internal/outbox"
)

// TestSight_Channel: in a channel the author is the channel itself.
func TestSight_Channel(t *testing.T) {
	raw := `{"update_id":1,"channel_post":{"message_id":6,"chat":{"id":-100},"reply_to_message":{"message_id":5,"date":7,"chat":{"id":-100},
		"sender_chat":{"id":-100},"document":{"file_id":"x"},"caption":"C"}}}`
	s := outbox.Sight(42)([]byte(raw))
	if s == nil || s.Chat != -100 || s.ID != 5 || s.Date.Unix() != 7 || !json.Valid(s.Message) {
		t.Fatalf("%+v", s)
	}
	for params, want := range map[string]bool{
		`{"document":"attach://a","caption":"C"}`:                            true,
		`{"document":"attach://a","caption":"<i>C</i>","parse_mode":"HTML"}`: true,
		`{"document":"attach://a","caption":"<i>C</i>"}`:                     false,
		`{"document":"attach://a"}`:                                          false,
		`{"document":"attach://a","caption":"C <b","parse_mode":"HTML"}`:     false,
	} {
		if got := s.Is("sendDocument", json.RawMessage(params)); got != want {
			t.Errorf("%s: %v", params, got)
		}
	}
	if s.Is("sendPhoto", json.RawMessage(`{"caption":"C"}`)) || s.Is("sendMessage", json.RawMessage(`{"text":"C"}`)) {
		t.Error("a call of another kind makes it")
	}
}

// FuzzSight: strangers write updates, and the writer of the store reads them.
func FuzzSight(f *testing.F) {
	f.Add(`{"callback_query":{"message":{"message_id":5,"date":7,"chat":{"id":1},"from":{"id":42},"text":"A"}}}`, `{"text":"A"}`)
	f.Add(`{"message":{"quote":{"text":"A"},"external_reply":{"message_id":5,"chat":{"id":1},"origin":{"date":7,"sender_user":{"id":42}}}}}`, `{"text":"*A*","parse_mode":"MarkdownV2"}`)
	f.Fuzz(func(t *testing.T, raw, params string) {
		s := outbox.Sight(42)([]byte(raw))
		if s == nil {
			return
		}
		if s.ID == 0 || s.Is == nil || !json.Valid(s.Message) {
			t.Errorf("%q shows %+v", raw, s)
		}
		s.Is("sendMessage", json.RawMessage(params))
		s.Is("sendPhoto", json.RawMessage(params))
	})
}
