package handler

import (
	"encoding/json"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tgspool/tgspool/internal/outbox"
	"github.com/tgspool/tgspool/internal/spool"
)

// TestAck_BecomesTheFirstText: the first text for the chat edits the ack; what
// can't be an edit is sent as it is.
func TestAck_BecomesTheFirstText(t *testing.T) {
	const (
		key   = `{"message_id":{"$job":"ack:1001"}`
		plain = `{"method":"sendMessage","chat_id":7,"text":"done"}`
	)
	for name, tt := range map[string]struct {
		reply  Reply
		stdout string
		want   []string // calls after the ack
	}{
		"a text":  {ReplyText, "done\n", []string{`editMessageText ` + key + `,"chat_id":7,"text":"done"}`}},
		"nothing": {ReplyText, "", nil},
		"a call":  {ReplyCalls, plain, []string{`editMessageText ` + key + `,"chat_id":7,"text":"done"}`}},
		"only the first": {ReplyCalls, plain + "\n" + plain, []string{
			`editMessageText ` + key + `,"chat_id":7,"text":"done"}`, `sendMessage {"chat_id":7,"text":"done"}`,
		}},
		"markup": {
			ReplyCalls, `{"method":"sendMessage","chat_id":"7","disable_notification":true,"reply_parameters":{"message_id":3},"parse_mode":"HTML","text":"<b>x</b>","reply_markup":{"inline_keyboard":[]}}`,
			[]string{`editMessageText ` + key + `,"chat_id":"7","parse_mode":"HTML","text":"<b>x</b>","reply_markup":{"inline_keyboard":[]}}`},
		},
		"a keyboard below": {
			ReplyCalls, `{"method":"sendMessage","chat_id":7,"text":"x","reply_markup":{"keyboard":[]}}`,
			[]string{`sendMessage {"chat_id":7,"text":"x","reply_markup":{"keyboard":[]}}`},
		},
		"another chat": {ReplyCalls, `{"method":"sendMessage","chat_id":8,"text":"x"}`, []string{`sendMessage {"chat_id":8,"text":"x"}`}},
		"a photo":      {ReplyCalls, `{"method":"sendPhoto","chat_id":7,"photo":"id"}`, []string{`sendPhoto {"chat_id":7,"photo":"id"}`}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := does(t, "it", tt.reply, "print", tt.stdout)
				r.Ack = "one moment"
				h := openHouse(t, r)
				defer h.close()
				h.run()
				defer h.stop()
				h.want(h.feedAndWait(said(7, "hi")), spool.UpdateHandled, 1, "")
				jobs := h.wantCalls(append([]string{`sendMessage {"chat_id":7,"text":"one moment"}`}, tt.want...)...)
				if *jobs[0].DedupeKey != "ack:1001" || jobs[0].OnUncertain != spool.PolicyDrop {
					t.Errorf("the ack is %+v", jobs[0])
				}
				for _, j := range jobs {
					if j.Method == "editMessageText" && (j.Fallback == nil || j.Fallback.Method != "sendMessage") {
						t.Errorf("the edit has no text to fall back on: %+v", j)
					}
				}
			})
		})
	}
}

// TestAck_OnceForAllAttempts: an update that is tried again has one ack, which
// becomes what the user is told at the end.
func TestAck_OnceForAllAttempts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := RouteConfig{Name: "it", Exec: []string{"/bin/false"}, AllowFrom: everyone, Ack: "one moment", OnError: "that went wrong", Attempts: 3}
		h := openHouse(t, r)
		defer h.close()
		h.run()
		defer h.stop()
		seq := h.feed(said(7, "hi"))
		<-time.After(time.Minute)
		synctest.Wait()
		h.want(seq, spool.UpdateDead, 3, "exit status 1")
		h.wantCalls(`sendMessage {"chat_id":7,"text":"one moment"}`, `editMessageText {"message_id":{"$job":"ack:1001"},"chat_id":7,"text":"that went wrong"}`)
		// Brought back for new messages, it has a new ack.
		if _, err := h.bot.Replay(t.Context(), seq, true); err != nil {
			t.Fatal(err)
		}
		<-time.After(time.Minute)
		if jobs := h.jobs(); len(jobs) != 4 || *jobs[2].DedupeKey != "ack:1001:1" {
			t.Errorf("there are %d jobs", len(jobs))
		}
	})
}

// TestAck_ThatNeverCame: the text doesn't wait for an ack that is dead or whose
// end nobody knows.
func TestAck_ThatNeverCame(t *testing.T) {
	for name, verdict := range map[string]spool.Verdict{
		"rejected":  {State: spool.Dead, Error: &spool.JobError{Class: "rejected"}},
		"uncertain": {State: spool.Cancelled, MaybeSent: true, Error: &spool.JobError{Class: "unknown_outcome"}}, // as drop has it
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := does(t, "it", ReplyText, "print", "done")
				r.Ack = "one moment"
				h := openHouse(t, r)
				defer h.close()
				h.run()
				defer h.stop()
				h.feedAndWait(said(7, "hi"))
				claim, err := h.bot.Claim(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				if _, err := h.bot.Settle(t.Context(), claim, verdict); err != nil {
					t.Fatal(err)
				}
				next, err := h.bot.Claim(t.Context())
				if err != nil || next.Method != "sendMessage" || string(next.Params) != `{"chat_id":7,"text":"done"}` {
					t.Errorf("then comes %s %s, %v", next.Method, next.Params, err)
				}
			})
		})
	}
}

// FuzzAck_Edit makes the edit of any message: it is an object of JSON, names the
// ack, and falls back on the message as it was.
func FuzzAck_Edit(f *testing.F) {
	f.Add([]byte(`{"chat_id":7,"text":"x"}`))
	f.Add([]byte(`{"chat_id":7,"text":"x","reply_markup":"{\"inline_keyboard\":[]}"}`))
	f.Add([]byte(`{ "chat_id" : 7 , "message_id" : 9, "text":"x" }`))
	r := &route{RouteConfig: RouteConfig{Name: "it"}}
	f.Fuzz(func(t *testing.T, params []byte) {
		job, err := outbox.New("sendMessage", params, r.options())
		if err != nil {
			return
		}
		edit, ok := r.edit("ack:1", job)
		if !ok {
			return
		}
		var got map[string]json.RawMessage
		if err := json.Unmarshal(edit.Params, &got); err != nil || string(got["message_id"]) != `{"$job":"ack:1"}` {
			t.Fatalf("%q becomes %q: %v", params, edit.Params, err)
		}
		if edit.Fallback == nil || string(edit.Fallback.Params) != string(params) || edit.Chat != job.Chat {
			t.Fatalf("%q falls back on %+v in %q", params, edit.Fallback, edit.Chat)
		}
	})
}
