package telegramsim_test

import (
	"encoding/json"
	"maps"
	"slices"
	"testing"
	"unicode/utf8"

	"github.com/tgspool/tgspool/internal/telegramsim"
)

func TestSamplesCoverEveryKind(t *testing.T) {
	missing := map[string]bool{"kind_of_the_future": true}
	for _, kind := range []string{
		"message", "edited_message", "channel_post", "edited_channel_post", "business_connection",
		"business_message", "edited_business_message", "deleted_business_messages", "guest_message",
		"message_reaction", "message_reaction_count", "inline_query", "chosen_inline_result",
		"callback_query", "shipping_query", "pre_checkout_query", "purchased_paid_media", "poll",
		"poll_answer", "my_chat_member", "chat_member", "chat_join_request", "chat_boost",
		"removed_chat_boost", "managed_bot", "subscription",
	} {
		missing[kind] = true
	}
	longest, largest := 0, int64(0)
	for _, raw := range telegramsim.SampleUpdates() {
		var members map[string]json.RawMessage
		if err := json.Unmarshal(raw, &members); err != nil || len(members) != 1 {
			t.Fatalf("%.80s: %v, %d members", raw, err, len(members))
		}
		for kind, inside := range members {
			delete(missing, kind)
			var m struct {
				Text string
				From struct{ ID int64 }
			}
			_ = json.Unmarshal(inside, &m)
			longest = max(longest, utf8.RuneCountInString(m.Text))
			largest = max(largest, m.From.ID)
		}
	}
	if len(missing) > 0 {
		t.Errorf("no sample of %v", slices.Sorted(maps.Keys(missing)))
	}
	if longest != 4096 || largest <= 1<<32 {
		t.Errorf("longest text %d, largest id %d; want 4096 and more than 32 bits", longest, largest)
	}
}

func TestSamplesCanBeFed(t *testing.T) {
	s := newSim(t, telegramsim.Options{})
	must[json.RawMessage](t, s, "setMyCommands", args{"commands": []args{}})
	all := []string{"message_reaction", "message_reaction_count", "chat_member"}
	taken, optIn := 0, 0
	for _, raw := range telegramsim.SampleUpdates() {
		if s.Feed(0, raw) != 0 {
			taken++
			continue
		}
		if !slices.ContainsFunc(all, func(kind string) bool { return json.Valid(raw) && string(raw[2:2+len(kind)]) == kind }) {
			t.Errorf("dropped %.80s", raw)
		}
		optIn++
	}
	if optIn != len(all) {
		t.Errorf("%d were dropped, want the %d kinds that have to be asked for", optIn, len(all))
	}
	if got := updates(t, s, args{}); len(got) != taken {
		t.Errorf("%d came out of %d", len(got), taken)
	}
}
