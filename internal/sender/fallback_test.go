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

func plainFallback(o *outbox.Options) { o.Split, o.PlainFallback = true, true }

// TestSender_PlainFallback: the simulator itself refuses the markup.
func TestSender_PlainFallback(t *testing.T) {
	run(t, func(w *world) {
		a := w.call("sendMessage", `{"chat_id":1,"text":"<b>load</b> < 10% &amp; more","parse_mode":"HTML"}`, plainFallback)
		b := w.call("sendMessage", `{"chat_id":1,"text":"*Disk* at 95.5%","parse_mode":"MarkdownV2"}`, plainFallback)
		c := w.call("sendMessage", `{"chat_id":1,"text":"<b>fine</b>","parse_mode":"HTML"}`, plainFallback)
		w.end(c, spool.Done)
		w.sent(1, "load < 10% & more", "Disk at 95.5%", "<b>fine</b>")
		for _, id := range []int64{a, b} {
			job := w.end(id, spool.Done)
			w.class(job, botapi.ClassRejected)
			if job.Attempts != 2 || !job.Fallback.Used {
				t.Errorf("%d attempts, fallback %+v", job.Attempts, job.Fallback)
			}
		}
		if job := w.job(c); job.Attempts != 1 || job.Fallback.Used {
			t.Errorf("%d attempts, fallback %+v", job.Attempts, job.Fallback)
		}
	})
}

// TestSender_PlainFallbackIsForMarkupOnly: another rejection would meet the plain
// text as well, and after an unknown outcome it could be a second message.
func TestSender_PlainFallbackIsForMarkupOnly(t *testing.T) {
	run(t, func(w *world) {
		w.fault(telegramsim.Fault{Method: "sendMessage", Chat: 1, Kind: telegramsim.FaultCode, Code: 400, Body: "Bad Request: TOPIC_CLOSED", Times: 1})
		a := w.call("sendMessage", `{"chat_id":1,"text":"<b>a</b>","parse_mode":"HTML"}`, plainFallback)
		if job := w.end(a, spool.Dead); job.Attempts != 1 || job.Fallback.Used {
			t.Errorf("%d attempts, %+v", job.Attempts, job.Fallback)
		}
		w.fault(telegramsim.Fault{Method: "sendMessage", Chat: 1, Kind: telegramsim.FaultResetAfterRead, Effect: true, Times: 1})
		b := w.call("sendMessage", `{"chat_id":1,"text":"<b>b</b>","parse_mode":"HTML"}`, plainFallback)
		w.end(b, spool.Uncertain)
		w.sent(1, "<b>b</b>")
	})
}

// TestSender_LongText: parts in order, and none behind one that is refused.
func TestSender_LongText(t *testing.T) {
	run(t, func(w *world) {
		long := func(c string) string { return strings.Repeat(c, 4096) }
		x, y, z := "<i>"+long("x")+"</i>", "<i>"+long("y")+"</i>", "<i>z</i>"
		text := `{"chat_id":1,"parse_mode":"HTML","text":"<i>` + long("x") + ` ` + long("y") + ` z</i>"}`
		w.fault(telegramsim.Fault{Method: "sendMessage", Chat: 1, Kind: telegramsim.FaultFlood, RetryAfter: 3, Times: 1})
		a := w.call("sendMessage", text, plainFallback)
		b := w.send(1, "after")
		w.end(b, spool.Done)
		w.sent(1, x, y, z, "after")
		if job := w.job(a); job.Part == nil || job.Part.Of != 3 || job.Attempts != 1 {
			t.Errorf("part %+v, %d attempts", job.Part, job.Attempts)
		}
		w.fault(telegramsim.Fault{Method: "sendMessage", Chat: 1, Kind: telegramsim.FaultCode, Code: 400, Body: "Bad Request: TOPIC_CLOSED", Times: 1})
		c := w.call("sendMessage", text, plainFallback)
		last := w.end(c+2, spool.Dead)
		if !strings.Contains(last.LastError.Description, "part 1 of 3") || last.Attempts != 0 {
			t.Errorf("%d attempts, %+v", last.Attempts, last.LastError)
		}
		w.send(1, "more")
		w.pass(10 * time.Second)
		w.sent(1, x, y, z, "after", "more")
	})
}
