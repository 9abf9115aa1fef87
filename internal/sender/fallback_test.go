package sender_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/tgspool/tgspool/internal/botapi"
	"github.com/tgspool/tgspool/internal/outbox"
	"github.com/tgspool/tgspool/internal/spool"
	"github.com/tgspool/tgspool/internal/telegramsim"
)

// plain is a fallback to the chat's plain text.
func plain(params string) func(*outbox.Options) {
	return func(o *outbox.Options) { o.Fallback = &outbox.Fallback{Params: json.RawMessage(params)} }
}

func rejectOnce(w *world) {
	w.fault(telegramsim.Fault{Method: "sendMessage", Chat: 1, Kind: telegramsim.FaultCode, Code: 400, Body: "Bad Request: can't parse entities", Times: 1})
}

func TestSender_FallbackGoesInTheJobsPlace(t *testing.T) {
	run(t, func(w *world) {
		rejectOnce(w)
		a := w.call("sendMessage", `{"chat_id":1,"text":"<b>A","parse_mode":"HTML"}`, plain(`{"chat_id":1,"text":"A"}`))
		b := w.send(1, "B")
		job := w.end(a, spool.Done)
		w.end(b, spool.Done)
		w.sent(1, "A", "B")
		w.class(job, botapi.ClassRejected)
		if job.Attempts != 2 || job.LastError.Description != "Bad Request: can't parse entities" || job.Result == nil {
			t.Errorf("%d attempts, %+v, result %s", job.Attempts, job.LastError, job.Result)
		}
		if f := job.Fallback; f == nil || !f.Used || f.Method != "sendMessage" || string(f.Params) != `{"chat_id":1,"text":"A"}` || !strings.Contains(string(job.Params), "HTML") {
			t.Errorf("fallback %+v of %s", f, job.Params)
		}
	})
}

func TestSender_FallbackIsMadeOnce(t *testing.T) {
	run(t, func(w *world) {
		remove := w.fault(telegramsim.Fault{Method: "sendMessage", Chat: 1, Kind: telegramsim.FaultCode, Code: 400, Body: "Bad Request: no"})
		a := w.call("sendMessage", `{"chat_id":1,"text":"<b>A"}`, plain(`{"chat_id":1,"text":"A"}`))
		job := w.end(a, spool.Dead)
		if job.Attempts != 2 || !strings.Contains(job.LastError.Description, "the first call was rejected: Bad Request: no") {
			t.Errorf("%d attempts, %+v", job.Attempts, job.LastError)
		}
		remove()
		if _, err := w.store.Retry(w.t.Context(), a); err != nil {
			t.Fatal(err)
		}
		w.end(a, spool.Done)
		w.sent(1, "<b>A") // a person's retry begins with the first call
	})
}

func TestSender_NoFallbackAfterAnUnknownOutcome(t *testing.T) {
	run(t, func(w *world) {
		w.fault(telegramsim.Fault{Method: "sendMessage", Chat: 1, Kind: telegramsim.FaultResetAfterRead, Effect: true, Times: 1})
		w.fault(telegramsim.Fault{Method: "sendMessage", Chat: 1, Kind: telegramsim.FaultCode, Code: 400, Body: "Bad Request: no", Times: 1})
		a := w.call("sendMessage", `{"chat_id":1,"text":"first"}`, plain(`{"chat_id":1,"text":"second"}`), onUncertain(spool.PolicyResend))
		w.end(a, spool.Dead)
		w.sent(1, "first")
		b := w.call("sendMessage", `{"chat_id":2,"text":"x"}`, plain(`{"chat_id":2,"text":"y"}`))
		w.end(b, spool.Done)
		w.sent(2, "x")
	})
}

func TestSender_FallbackSurvivesARestart(t *testing.T) {
	run(t, func(w *world) {
		rejectOnce(w)
		w.fault(telegramsim.Fault{Method: "sendMessage", Chat: 1, Kind: telegramsim.FaultFlood, RetryAfter: 120, Times: 1})
		long := strings.Repeat("z", 3000)
		a := w.call("sendMessage", `{"chat_id":1,"text":"A","parse_mode":"HTML"}`, plain(`{"chat_id":1,"text":"`+long+`"}`))
		w.pass(30 * time.Second)
		if job := w.now(a, spool.Pending); !job.Fallback.Used {
			t.Errorf("the fallback waits for the flood: %+v", job.Fallback)
		}
		w.stop()
		w.start()
		job := w.end(a, spool.Done)
		w.sent(1, long)
		w.class(job, botapi.ClassRejected)
	})
}

func TestSender_FallbackOfAnotherMethod(t *testing.T) {
	run(t, func(w *world) {
		a := w.call("editMessageText", `{"chat_id":1,"message_id":999,"text":"A"}`, func(o *outbox.Options) {
			o.Fallback = &outbox.Fallback{Method: "sendMessage", Params: json.RawMessage(`{"chat_id":1,"text":"A"}`)}
		})
		job := w.end(a, spool.Done)
		w.sent(1, "A")
		if job.Method != "editMessageText" || job.LastError == nil {
			t.Errorf("%s, %+v", job.Method, job.LastError)
		}
	})
}
