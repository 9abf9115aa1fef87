package handler

import (
	"encoding/json"
	"strconv"

	"github.com/tgspool/tgspool/internal/botapi"
	"github.com/tgspool/tgspool/internal/outbox"
	"github.com/tgspool/tgspool/internal/spool"
)

// inAnEdit are the parameters of a text message that its edit has, too. Others
// say how the message arrives, and it has arrived.
var inAnEdit = map[string]bool{
	"business_connection_id": true, "chat_id": true, "text": true, "parse_mode": true, "entities": true,
	"link_preview_options": true, "disable_web_page_preview": true, "reply_markup": true,
}

// instead puts the handler's first text for the chat in the place of the ack: an
// edit of it, or the text itself where the edit is refused or the ack never came.
func (r *route) instead(u botapi.Update, key string, jobs []spool.NewJob) []spool.NewJob {
	for i, job := range jobs {
		if job.Method != "sendMessage" || job.Chat != decimal(u.ChatID) || len(job.Files) > 0 || elsewhere(u, job) {
			continue
		}
		if edit, ok := r.edit(key, job); ok {
			jobs[i] = edit
		}
		break
	}
	return jobs
}

// elsewhere reports whether a message goes to another topic of the chat than the
// ack, or on behalf of another: its edit would be in the wrong place.
func elsewhere(u botapi.Update, job spool.NewJob) bool {
	var at struct {
		Business any         `json:"business_connection_id"`
		Thread   json.Number `json:"message_thread_id"` // a number, or one in a string
	}
	if json.Unmarshal(job.Params, &at) != nil {
		return true
	}
	business, _ := at.Business.(string)
	return business != u.Business || at.Thread != "" && at.Thread.String() != decimal(u.Thread)
}

// edit makes the edit of the ack out of a text message; false for one that can't
// be the edit of another.
func (r *route) edit(key string, job spool.NewJob) (spool.NewJob, bool) {
	members, err := splitObject(job.Params)
	if err != nil {
		return spool.NewJob{}, false
	}
	ref, err := object(map[string]string{"$job": key})
	if err != nil {
		return spool.NewJob{}, false
	}
	params := append([]byte(`{"message_id":`), ref...)
	for _, m := range members {
		if m.name == "reply_markup" && !isInline(m.value) {
			return spool.NewJob{}, false
		}
		if inAnEdit[m.name] {
			params = append(append(params, ','), m.text...)
		}
	}
	o := r.options()
	o.Fallback = &outbox.Fallback{Method: job.Method, Params: job.Params}
	edit, err := outbox.New("editMessageText", append(params, '}'), o)
	edit.Parts = job.Parts // what follows a long text follows its beginning
	return edit, err == nil
}

// isInline reports whether a reply markup is a keyboard under the message, the
// only one that an edit may have.
func isInline(value json.RawMessage) bool {
	var text string
	if json.Unmarshal(value, &text) == nil {
		value = json.RawMessage(text)
	}
	var markup map[string]json.RawMessage
	if json.Unmarshal(value, &markup) != nil {
		return false
	}
	_, ok := markup["inline_keyboard"]
	return ok
}

func decimal(n int64) string { return strconv.FormatInt(n, 10) }
