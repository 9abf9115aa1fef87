package handler

import (
	"context"
	"log/slog"
	"time"

	"github.com/tgspool/tgspool/internal/botapi"
	"github.com/tgspool/tgspool/internal/spool"
)

// typingEvery is how often the chat is told that somebody is typing. Telegram
// shows it for 5 s.
const typingEvery = 4 * time.Second

// answerButton is the call that takes the spinner off a pressed button.
func answerButton(u botapi.Update) map[string]any {
	return map[string]any{"callback_query_id": u.QueryID}
}

// told are the calls that tell a user who isn't handed over: a pressed button
// gets its answer, the chat the text.
func (c RouteConfig) told(u botapi.Update, text string) []spool.NewJob {
	var jobs []spool.NewJob
	if u.QueryID != "" {
		if job, err := c.call("answerCallbackQuery", answerButton(u)); err == nil {
			jobs = append(jobs, job)
		}
	}
	said, err := c.say(u, text)
	if err != nil {
		return jobs // a chat that can't be one
	}
	return append(jobs, said...)
}

// attend does what a user is to see while the handler works: the button that was
// pressed is answered, the chat shows typing until end is called. Nothing waits
// for these calls but the end of the handlers.
func (h *Handlers) attend(work context.Context, r *route, u botapi.Update, lease *spool.Lease) (end func()) {
	if r.AnswerCallbacks && u.QueryID != "" && lease.Attempts == 1 && !lease.Replayed {
		h.asides.Go(func() { h.call(work, "answerCallbackQuery", answerButton(u)) })
	}
	done := make(chan struct{})
	if r.Typing && u.ChatID != 0 {
		h.asides.Go(func() { h.keepTyping(work, done, u) })
	}
	return func() { close(done) }
}

// typing is the parameters of a sendChatAction.
type typing struct {
	Business string `json:"business_connection_id,omitempty"`
	ChatID   int64  `json:"chat_id"`
	Thread   int64  `json:"message_thread_id,omitempty"`
	Action   string `json:"action"`
}

// keepTyping shows typing until done is closed.
func (h *Handlers) keepTyping(work context.Context, done <-chan struct{}, u botapi.Update) {
	again := time.NewTicker(typingEvery)
	defer again.Stop()
	for {
		h.call(work, "sendChatAction", typing{Business: u.Business, ChatID: u.ChatID, Thread: u.Thread, Action: "typing"})
		select {
		case <-done:
			return
		case <-work.Done():
			return
		case <-again.C:
		}
	}
}

// callWithin bounds a call that is worthless later.
const callWithin = 10 * time.Second

// call makes a call that goes at once or not at all.
func (h *Handlers) call(work context.Context, method string, params any) {
	raw, err := object(params)
	if err != nil || h.atOnce == nil {
		return
	}
	ctx, cancel := context.WithTimeout(work, callWithin)
	defer cancel()
	h.atOnce(ctx, method, raw)
}

// ackKey is the dedupe key of the message that tells a user to wait: other calls
// may name its message by it while the handler works.
func ackKey(lease *spool.Lease) string {
	if lease.UpdateID == nil {
		return ""
	}
	key := "ack:" + decimal(*lease.UpdateID)
	if lease.Fresh > 0 {
		key += ":" + decimal(int64(lease.Fresh))
	}
	return key
}

// acknowledge queues the route's ack before the handler begins. Where that can't
// be stored the handler works without.
func (h *Handlers) acknowledge(work context.Context, r *route, u botapi.Update, lease *spool.Lease) (key string) {
	job, ok := r.ack(u, lease)
	if !ok {
		return ""
	}
	if _, err := h.bot.Enqueue(work, job); err != nil {
		h.log.LogAttrs(work, slog.LevelDebug, "the ack can't be queued",
			append(attrs(r, lease), slog.String("err", err.Error()))...)
		return ""
	}
	return job.DedupeKey
}

// ack makes the job of the route's ack; false where there is none to be made.
func (r *route) ack(u botapi.Update, lease *spool.Lease) (job spool.NewJob, ok bool) {
	key := ackKey(lease)
	if r.Ack == "" || u.ChatID == 0 || key == "" {
		return job, false
	}
	job, err := r.call("sendMessage", message{ChatID: u.ChatID, Thread: u.Thread, Business: u.Business, Text: r.Ack})
	// Nobody is to decide on it, and the text that takes its place isn't to wait for
	// that.
	job.DedupeKey, job.OnUncertain = key, spool.PolicyDrop
	return job, err == nil
}
