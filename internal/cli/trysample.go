package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/tgspool/tgspool/internal/telegramsim"
)

// triedUpdateID is the id of every made-up update; Telegram's own are far away.
const triedUpdateID = 1

// sampleUpdate makes an update of a kind from a sample, with the sender, the
// chat and the text of the caller, as if it had just happened.
func sampleUpdate(kind, text string, from, chat int64, now time.Time) ([]byte, error) {
	var known []string
	for _, sample := range telegramsim.SampleUpdates() {
		var u map[string]json.RawMessage
		if err := json.Unmarshal(sample, &u); err != nil {
			return nil, fmt.Errorf("reading a sample: %w", err)
		}
		for name := range u {
			if !slices.Contains(known, name) {
				known = append(known, name)
			}
		}
		payload, ok := u[kind]
		if !ok {
			continue
		}
		fields, err := object(payload)
		if err != nil {
			return nil, fmt.Errorf("reading a sample: %w", err)
		}
		fill(fields, text, from, chat, now)
		return json.Marshal(map[string]any{"update_id": triedUpdateID, kind: fields})
	}
	slices.Sort(known)
	return nil, withHint(usagef("--kind: there is no sample of kind %q", kind), "there are: "+strings.Join(known, ", "))
}

// object decodes a JSON object so that its numbers stay as they are.
func object(raw []byte) (map[string]any, error) {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	var m map[string]any
	err := d.Decode(&m)
	return m, err
}

// fill puts what the caller wants into the places where a kind has it.
func fill(fields map[string]any, text string, from, chat int64, now time.Time) {
	for _, name := range []string{"from", "user"} {
		if person, ok := fields[name].(map[string]any); ok {
			person["id"] = from
		}
	}
	if place, ok := fields["chat"].(map[string]any); ok {
		place["id"] = chat
		switch {
		case place["type"] == "channel":
		case chat < 0:
			place["type"] = "supergroup"
		default:
			place["type"] = "private"
		}
	}
	if _, ok := fields["date"]; ok {
		fields["date"] = now.Unix()
	}
	if under, ok := fields["message"].(map[string]any); ok { // the message with the button
		fill(under, "", from, chat, now)
	}
	if text == "" {
		return
	}
	for _, name := range []string{"data", "query", "caption", "text"} {
		if _, ok := fields[name]; ok {
			fields[name] = text
			for _, marks := range []string{"entities", "caption_entities"} {
				delete(fields, marks) // they would mark the sample's text
			}
			return
		}
	}
}
