package handler

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/tgspool/tgspool/internal/botapi"
	"github.com/tgspool/tgspool/internal/outbox"
	"github.com/tgspool/tgspool/internal/spool"
)

// errNoChat: there is a text, and nowhere to send it.
var errNoChat = errors.New("the update has no chat that a text could go to; use reply = \"calls\"")

// answer turns what a program printed into the jobs that it asks for. All
// errors are permanent: the same output would be refused again.
func (r *route) answer(u botapi.Update, raw, stdout []byte) ([]spool.NewJob, error) {
	if r.Reply == ReplyCalls {
		return r.answerCalls(stdout)
	}
	return r.answerText(u, raw, stdout)
}

// answerCalls makes a job of each line.
func (r *route) answerCalls(stdout []byte) ([]spool.NewJob, error) {
	calls, err := readCalls(stdout)
	if err != nil {
		return nil, err
	}
	jobs := make([]spool.NewJob, 0, len(calls))
	for _, c := range calls {
		job, err := r.job(c.method, c.params)
		if err != nil {
			return nil, &lineError{c.line, err}
		}
		jobs = append(jobs, job)
	}
	return jobs, nil
}

// answerText makes messages of the text, after an answer to the press of a
// button. Where the text is refused, that answer comes with the error.
func (r *route) answerText(u botapi.Update, raw, stdout []byte) ([]spool.NewJob, error) {
	where := placeOf(u, raw)
	var jobs []spool.NewJob
	if where.query != "" {
		// Without it the button shows a spinner for a minute.
		job, err := r.call("answerCallbackQuery", map[string]any{"callback_query_id": where.query})
		if err != nil {
			return nil, err
		}
		jobs = append(jobs, job)
	}
	text := printed(stdout)
	if text == "" {
		return jobs, nil
	}
	if u.ChatID == 0 {
		return jobs, errNoChat
	}
	for _, part := range cutText(text, maxText) {
		job, err := r.call("sendMessage", message{
			ChatID: u.ChatID, Thread: where.thread, Business: where.business, Text: part,
		})
		if err != nil {
			return jobs, err
		}
		jobs = append(jobs, job)
	}
	return jobs, nil
}

// message is the parameters of a sendMessage.
type message struct {
	Business string `json:"business_connection_id,omitempty"`
	ChatID   int64  `json:"chat_id"`
	Thread   int64  `json:"message_thread_id,omitempty"`
	Text     string `json:"text"`
}

// call makes the job of a call of our own.
func (r *route) call(method string, params any) (spool.NewJob, error) {
	raw, err := object(params)
	if err != nil {
		return spool.NewJob{}, err
	}
	return r.job(method, raw)
}

// job makes the job of one call. Somebody waits for it: the lane is interactive.
func (r *route) job(method string, params json.RawMessage) (spool.NewJob, error) {
	if m := botapi.MethodFor(method); m.Kind == botapi.KindRead {
		return spool.NewJob{}, fmt.Errorf("%s only reads, and nobody would get its result", m.Name)
	}
	return outbox.New(method, params, r.options())
}

// options are those of all calls of a route.
func (r *route) options() outbox.Options {
	return outbox.Options{Lane: spool.Interactive, Origin: "handler:" + r.Name}
}

// place is where in a chat an update came from, beyond the chat's id.
type place struct {
	query    string // the pressed button's query
	thread   int64  // the topic of a forum
	business string // the account in whose name the bot speaks
}

// placeOf reads the few fields that an answer must repeat to arrive where the
// question was asked. What can't be read is left out.
func placeOf(u botapi.Update, raw []byte) place {
	type msg struct {
		IsTopic  bool   `json:"is_topic_message"`
		Thread   int64  `json:"message_thread_id"`
		Business string `json:"business_connection_id"`
	}
	type payload struct {
		msg
		ID      json.RawMessage `json:"id"`
		Message msg             `json:"message"`
	}
	var kinds map[string]json.RawMessage
	var p payload
	if json.Unmarshal(raw, &kinds) != nil {
		return place{}
	}
	// A field of a wrong type is left out; the others are read all the same.
	_ = json.Unmarshal(kinds[u.Kind], &p)
	m := p.msg
	var w place
	if u.Kind == "callback_query" {
		m = p.Message
		if json.Unmarshal(p.ID, &w.query) != nil {
			w.query = string(p.ID) // a number, from servers of others
		}
	}
	if m.IsTopic {
		w.thread = m.Thread
	}
	w.business = m.Business
	return w
}

// age is how old an update is: since the event itself where Telegram dates it,
// else since it came to us.
func age(u botapi.Update, lease *spool.Lease, now time.Time) time.Duration {
	if !u.Date.IsZero() {
		return now.Sub(u.Date)
	}
	return now.Sub(lease.ReceivedAt)
}
