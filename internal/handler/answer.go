package handler

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"

	"github.com/tgspool/tgspool/internal/botapi"
	"github.com/tgspool/tgspool/internal/outbox"
	"github.com/tgspool/tgspool/internal/spool"
	"github.com/tgspool/tgspool/internal/wire"
)

// errBinary: what was printed is no text.
var errBinary = errors.New("standard output is binary, no text")

// errNoChat: there is a text, and nowhere to send it.
var errNoChat = errors.New("the update has no chat that a text could go to; use reply = \"calls\"")

// answer turns what a program printed into the jobs that it asks for, and into
// its session. All errors are permanent: the same output would be refused again.
func (r *route) answer(u botapi.Update, lease *spool.Lease, stdout []byte) (h spool.Handling, err error) {
	if r.Reply == ReplyCalls {
		return r.answerCalls(u, lease, stdout)
	}
	text, err := printed(stdout)
	if err != nil {
		return h, err
	}
	if text != "" && u.ChatID == 0 {
		return h, errNoChat
	}
	h.Jobs, err = r.say(u, text)
	return h, err
}

// answerCalls makes a job of each line that is a call.
func (r *route) answerCalls(u botapi.Update, lease *spool.Lease, stdout []byte) (h spool.Handling, err error) {
	calls, session, err := readCalls(stdout)
	if err != nil {
		return h, err
	}
	h.Jobs = make([]spool.NewJob, 0, len(calls))
	for _, c := range calls {
		job, err := r.asked(u, c.method, c.params)
		if err != nil {
			return h, &lineError{c.line, err}
		}
		h.Jobs = append(h.Jobs, job)
	}
	if session != nil {
		h.Session = &spool.SessionChange{Data: session, Version: lease.Session.Version}
	}
	return h, nil
}

// say sends a text to the chat where the update came from, in parts when it is
// long; nothing of an empty one, or where there is no chat.
func (c RouteConfig) say(u botapi.Update, text string) ([]spool.NewJob, error) {
	if u.ChatID == 0 || text == "" {
		return nil, nil
	}
	raw, err := object(message{ChatID: u.ChatID, Thread: u.Thread, Business: u.Business, Text: text})
	if err != nil {
		return nil, err
	}
	o := c.options()
	o.Split = true
	job, err := outbox.New("sendMessage", raw, o)
	if err != nil {
		return nil, err
	}
	return []spool.NewJob{job}, nil
}

// message is the parameters of a sendMessage.
type message struct {
	Business string `json:"business_connection_id,omitempty"`
	ChatID   int64  `json:"chat_id"`
	Thread   int64  `json:"message_thread_id,omitempty"`
	Text     string `json:"text"`
}

// call makes the job of a call of our own.
func (c RouteConfig) call(method string, params any) (spool.NewJob, error) {
	raw, err := object(params)
	if err != nil {
		return spool.NewJob{}, err
	}
	return outbox.New(method, raw, c.options())
}

// options are those of all calls of a route. Somebody waits for them: the lane
// is interactive.
func (c RouteConfig) options() outbox.Options {
	return outbox.Options{Lane: spool.Interactive, Origin: "handler:" + c.Name}
}

// asked makes the job of a call that a program asks for.
func (r *route) asked(u botapi.Update, method string, params json.RawMessage) (spool.NewJob, error) {
	m := botapi.MethodFor(method)
	switch {
	case !m.Known:
		return spool.NewJob{}, fmt.Errorf("unknown method %q", plain([]byte(method)))
	case m.Kind == botapi.KindRead:
		return spool.NewJob{}, fmt.Errorf("%s only reads, and nobody would get its result", m.Name)
	}
	if err := r.allowsChats(u, m.Name, params); err != nil {
		return spool.NewJob{}, err
	}
	return outbox.New(method, params, r.options())
}

// allowsChats refuses a call for a chat outside of allow_chats. The chat that
// the update came from is among them, or the program wouldn't have run.
func (c RouteConfig) allowsChats(u botapi.Update, method string, params json.RawMessage) error {
	if !c.AllowChats.given() || c.AllowChats.All {
		return nil
	}
	chats := map[string]bool{}
	for _, id := range c.AllowChats.IDs {
		chats[strconv.FormatInt(id, 10)] = true
	}
	if u.ChatID != 0 {
		chats[strconv.FormatInt(u.ChatID, 10)] = true
	}
	if err := wire.CheckChats(method, params, chats, true); err != nil {
		return fmt.Errorf("%w names a chat outside of allow_chats", err)
	}
	return nil
}
