package sender_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"testing"
	"time"

	"github.com/tgspool/tgspool/internal/botapi"
	"github.com/tgspool/tgspool/internal/intake"
	"github.com/tgspool/tgspool/internal/outbox"
	"github.com/tgspool/tgspool/internal/spool"
	"github.com/tgspool/tgspool/internal/telegramsim"
)

// takeIn takes the simulator's updates in as the poller does.
func (w *world) takeIn() {
	w.t.Helper()
	r, err := http.NewRequestWithContext(w.t.Context(), http.MethodPost, "http://sim/bot"+token+"/getUpdates?offset="+strconv.FormatInt(w.bot.Offset(), 10), http.NoBody)
	w.must(err)
	res, err := w.sim.Transport().RoundTrip(r)
	w.must(err)
	var body struct {
		Result []json.RawMessage `json:"result"`
	}
	w.must(json.NewDecoder(res.Body).Decode(&body))
	w.must(res.Body.Close())
	batch := spool.Batch{SetOffset: true}
	for _, raw := range body.Result {
		batch.Updates = append(batch.Updates, intake.NewUpdate(raw, func(botapi.Update) spool.Route { return spool.Route{} }))
		batch.Offset = batch.Updates[len(batch.Updates)-1].ID + 1
	}
	_, err = w.bot.Intake(w.t.Context(), batch)
	w.must(err)
}

// lost sends a message whose answer is lost, and returns its job and its number.
func (w *world) lost(method, params string) (job, message int64) {
	w.t.Helper()
	w.fault(telegramsim.Fault{Method: method, Kind: telegramsim.FaultResetAfterRead, Effect: true, Times: 1})
	job = w.call(method, params, func(o *outbox.Options) { o.DedupeKey = "k" })
	w.end(job, spool.Uncertain)
	all := w.sim.Chat(1)
	return job, all[len(all)-1].ID
}

const buttons = `"reply_markup":{"inline_keyboard":[[{"text":"a","callback_data":"a"}]]}`

func TestSender_UncertainIsSettledByASight(t *testing.T) {
	for _, c := range []struct {
		name, method, params string
		show                 func(w *world, message int64)
	}{
		{"a reply", "sendMessage", `{"chat_id":1,"text":" A \n"}`, func(w *world, m int64) { w.sim.FeedReply(1, 9, m, "yes", "") }},
		{"a quote", "sendMessage", `{"chat_id":1,"text":"A and B"}`, func(w *world, m int64) { w.sim.FeedReply(1, 9, m, "yes", "and") }},
		{"a button", "sendMessage", `{"chat_id":1,"text":"<b>A</b> &amp; <a href=\"http://x.example\">B</a>","parse_mode":"html",` + buttons + `}`, func(w *world, m int64) { w.sim.PressButton(1, 9, m, "a") }},
		{"a picture", "sendPhoto", `{"chat_id":1,"photo":"https://x.example/a.png","caption":"*C*","parse_mode":"MarkdownV2"}`, func(w *world, m int64) { w.sim.FeedReply(1, 9, m, "yes", "") }},
		{"a quote elsewhere", "sendMessage", `{"chat_id":1,"text":"A and B"}`, func(w *world, m int64) {
			w.sim.Feed(0, fmt.Appendf(nil, `{"message":{"message_id":1,"date":1,"chat":{"id":5,"type":"private"},"text":"x","quote":{"text":"and B","position":2},
				"external_reply":{"origin":{"type":"user","date":%d,"sender_user":{"id":%d}},"chat":{"id":1},"message_id":%d}}}`, time.Now().Add(-3*time.Minute).Unix(), botID, m))
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			run(t, func(w *world) {
				w.end(w.send(1, "before"), spool.Done)
				job, message := w.lost(c.method, c.params)
				waiting := w.call("deleteMessage", `{"chat_id":1,"message_id":{"$job":"k"}}`)
				w.pass(3 * time.Minute)
				c.show(w, message)
				w.takeIn()
				done := w.now(job, spool.Done)
				var m struct {
					ID int64 `json:"message_id"`
				}
				if err := json.Unmarshal(done.Result, &m); err != nil || m.ID != message || done.LastError != nil || done.Evidence == nil {
					t.Errorf("result %s, want message %d; %+v", done.Result, message, done.LastError)
				}
				w.end(waiting, spool.Done) // who needed the number goes on
				for _, m := range w.sim.Chat(1) {
					if m.ID == message {
						t.Error("who needed the message's number had another one")
					}
				}
			})
		})
	}
}

// TestSender_WhatShowsAnotherMessageSettlesNothing: of others, of another
// content, chat or time, or of a message that another job has made.
func TestSender_WhatShowsAnotherMessageSettlesNothing(t *testing.T) {
	run(t, func(w *world) {
		same := w.send(1, "A")
		w.end(same, spool.Done)
		owned := w.sim.Chat(1)[0].ID
		job, message := w.lost("sendMessage", `{"chat_id":1,"text":"A"}`)
		w.end(w.send(1, "B"), spool.Done)
		w.end(w.send(2, "A"), spool.Done)
		w.pass(time.Hour)
		w.end(w.send(1, "A"), spool.Done)
		all := w.sim.Chat(1)
		show := `{"message":{"message_id":70,"date":1,"chat":{"id":1,"type":"private"},"text":"x","reply_to_message":%s}}`
		now := time.Now().Add(-time.Hour).Unix()
		for _, shown := range []string{
			fmt.Sprintf(`{"message_id":%d,"date":%d,"chat":{"id":1},"from":{"id":9},"text":"A"}`, message, now),
			fmt.Sprintf(`{"message_id":%d,"date":0,"chat":{"id":1},"from":{"id":%d},"text":"A"}`, message, botID),
			fmt.Sprintf(`{"message_id":%d,"date":%d,"chat":{"id":1},"from":{"id":%d},"text":"A"}`, message, now-600, botID),
			fmt.Sprintf(`{"message_id":%d,"date":%d,"chat":{"id":2},"from":{"id":%d},"text":"A"}`, message, now, botID),
			fmt.Sprintf(`{"message_id":%d,"date":%d,"chat":{"id":1},"from":{"id":%d},"text":"a"}`, message, now, botID),
			`{"message_id":"x"}`, `[]`,
		} {
			w.sim.Feed(0, fmt.Appendf(nil, show, shown))
		}
		w.sim.FeedReply(1, 9, owned, "x", "")
		w.sim.FeedReply(1, 9, all[2].ID, "x", "")
		w.sim.FeedReply(1, 9, all[3].ID, "x", "")
		w.takeIn()
		w.now(job, spool.Uncertain)
		w.sim.FeedReply(1, 9, message, "x", "")
		w.stop() // the sign is taken in by another process
		w.start()
		w.takeIn()
		w.now(job, spool.Done)
	})
}
