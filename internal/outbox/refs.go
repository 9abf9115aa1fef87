package outbox

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"

	"github.com/tgspool/tgspool/internal/spool"
)

// refNames are the parameters in which {"$job": "<dedupe key>"} stands for the
// number of a message that another job makes: where it stands as their value, as
// an element of it, or as the message_id of reply_parameters.
var refNames = map[string]bool{
	"message_id": true, "message_ids": true, "reply_to_message_id": true, "reply_parameters": true,
}

// maxMessages is how many messages Telegram takes in one call.
const maxMessages = 100

// refsOf finds the references of a call, in order. One in another parameter is
// an error: Telegram would refuse the call, or worse, take it for something else.
func refsOf(params json.RawMessage) (refs []spool.Ref, err error) {
	if !bytes.Contains(params, []byte("$")) && !bytes.Contains(params, []byte(`\u0024`)) {
		return nil, nil
	}
	seen := map[string]bool{}
	for m := range members(params) {
		if seen[m.name] {
			continue
		}
		seen[m.name] = true
		found := m.refs()
		if len(found) > 0 && !refNames[m.name] {
			return nil, invalid("%q can't name another job's result; %s can", cut(m.name, 64), "message_id, message_ids, reply_to_message_id and reply_parameters.message_id")
		}
		for _, r := range found {
			if r.Key == "" {
				return nil, invalid(`%q: {"$job": …} needs the dedupe key of a job, a string`, m.name)
			}
			r.List = m.name == "message_ids" && m.value[0] == '{'
			refs = append(refs, r)
		}
		if len(refs) > maxMessages {
			return nil, invalid("more than %d results of other jobs in one call", maxMessages)
		}
	}
	return refs, nil
}

// part is a value within some JSON and where it stands in all of it.
type part struct {
	name       string // empty within an array
	value      json.RawMessage
	start, end int
}

// members walks the members of an object or the elements of an array, for as
// long as they can be read.
func members(data json.RawMessage) func(yield func(part) bool) {
	return func(yield func(part) bool) {
		dec := json.NewDecoder(bytes.NewReader(data))
		open, err := dec.Token()
		object := open == json.Delim('{')
		if err != nil || !object && open != json.Delim('[') {
			return
		}
		for dec.More() {
			p := part{}
			if object {
				key, err := dec.Token()
				if err != nil {
					return
				}
				p.name, _ = key.(string)
			}
			if dec.Decode(&p.value) != nil {
				return
			}
			p.end = int(dec.InputOffset())
			p.start = p.end - len(p.value)
			if !yield(p) {
				return
			}
		}
	}
}

// refs are the references in a parameter: itself, an element, or a member that
// is called message_id.
func (p part) refs() []spool.Ref {
	if key, ok := reference(p.value); ok {
		return []spool.Ref{{Key: key, Start: p.start, End: p.end}}
	}
	var list []spool.Ref
	for inner := range members(p.value) {
		if key, ok := reference(inner.value); ok && (inner.name == "" || inner.name == "message_id") {
			list = append(list, spool.Ref{Key: key, Start: p.start + inner.start, End: p.start + inner.end})
		}
	}
	return list
}

// reference reads {"$job": "<key>"}. The key is empty where it is no string.
func reference(value json.RawMessage) (key string, ok bool) {
	if len(value) == 0 || value[0] != '{' {
		return "", false
	}
	n := 0
	for m := range members(value) {
		n++
		ok = m.name == "$job"
		if json.Unmarshal(m.value, &key) != nil {
			key = ""
		}
	}
	return key, ok && n == 1
}

// foldable are the methods whose queued calls give way to a newer one for the
// same message.
var foldable = map[string]bool{
	"editMessageText": true, "editMessageCaption": true, "editMessageMedia": true,
	"editMessageReplyMarkup": true, "editMessageLiveLocation": true, "editMessageChecklist": true,
}

// touches names the message that a call edits, and those that it deletes.
func touches(job *spool.NewJob, fields map[string]json.RawMessage) {
	name := func(message string) string {
		if message == "" {
			return ""
		}
		return paramText(fields["business_connection_id"]) + "/" + job.Chat + "/" + message
	}
	switch {
	case foldable[job.Method] && paramText(fields["inline_message_id"]) != "":
		job.Edits = "inline/" + paramText(fields["inline_message_id"])
	case foldable[job.Method]:
		job.Edits = name(messageOf(fields["message_id"], job.Refs))
	case job.Method == "deleteMessage":
		if m := name(messageOf(fields["message_id"], job.Refs)); m != "" {
			job.Deletes = []string{m}
		}
	case job.Method == "deleteMessages":
		var ids []json.RawMessage
		if json.Unmarshal([]byte(paramText(fields["message_ids"])), &ids) != nil || len(ids) > maxMessages {
			return
		}
		for _, id := range ids {
			if m := name(messageOf(id, nil)); m != "" {
				job.Deletes = append(job.Deletes, m)
			}
		}
	}
}

// messageOf spells the number of a message so that one message has one name.
func messageOf(value json.RawMessage, refs []spool.Ref) string {
	if _, ref := reference(value); ref && len(refs) > 0 {
		return spool.RefMark
	}
	id, err := strconv.ParseInt(strings.TrimSpace(paramText(value)), 10, 64)
	if err != nil {
		return ""
	}
	return strconv.FormatInt(id, 10)
}
