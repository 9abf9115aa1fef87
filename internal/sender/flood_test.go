package sender_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/tgspool/tgspool/internal/botapi"
	"github.com/tgspool/tgspool/internal/gate"
	"github.com/tgspool/tgspool/internal/sender"
	"github.com/tgspool/tgspool/internal/spool"
	"github.com/tgspool/tgspool/internal/telegramsim"
)

func TestSender_LongFloodHoldsOneChatAcrossARestart(t *testing.T) {
	run(t, func(w *world) {
		w.fault(telegramsim.Fault{Kind: telegramsim.FaultFlood, Chat: -100123, RetryAfter: 10072, Times: 1})
		start := time.Now()
		a, b := w.send(-100123, "A"), w.send(-100123, "B")
		w.pass(time.Minute)
		w.now(a, spool.Pending)
		if chat, err := w.bot.Chat("-100123"); err != nil || chat.CooldownUntil == nil ||
			chat.CooldownUntil.Before(start.Add(10072*time.Second)) {
			t.Errorf("chat %+v, %v: the wait isn't shown", chat, err)
		}
		w.end(w.send(5, "other"), spool.Done)

		w.stop()
		w.pass(time.Hour)
		w.start()

		job := w.end(a, spool.Done)
		if took := time.Since(start); took < 10072*time.Second || took > 10072*time.Second+10*time.Second {
			t.Errorf("the chat went on after %v, want 10072 s and a little", took)
		}
		if job.Attempts != 1 {
			t.Errorf("%d attempts, want 1", job.Attempts)
		}
		w.end(b, spool.Done)
		w.sent(-100123, "A", "B")
		if w.events.count(sender.EventFlood) != 1 {
			t.Error("the flood wasn't told once")
		}
	})
}

func TestSender_FloodOfTheBotOnlyMovesLater(t *testing.T) {
	run(t, func(w *world) {
		w.fault(telegramsim.Fault{Kind: telegramsim.FaultFlood, Chat: 1, RetryAfter: 600, Times: 1})
		w.fault(telegramsim.Fault{Kind: telegramsim.FaultFlood, Chat: 2, RetryAfter: 5, Times: 1, Delay: time.Second})
		start := time.Now()
		a, b := w.send(1, "A"), w.send(2, "B") // both in flight; the shorter wait comes last
		w.pass(2 * time.Second)
		w.now(b, spool.Pending)

		w.stop()
		w.start()
		if until := w.gate.Cooldown(); until.Before(start.Add(600 * time.Second)) {
			t.Errorf("after the restart the gate opens at %v", until.Sub(start))
		}
		if s := w.gate.Snapshot(); s.State != gate.StateCooldown {
			t.Errorf("state %s, want cooldown", s.State)
		}
		c := w.send(3, "C")
		for _, id := range []int64{a, b, c} {
			w.end(id, spool.Done)
		}
		for _, arrival := range w.arrivals("", 0) {
			if arrival.At.Sub(start) < 600*time.Second {
				t.Errorf("%s went out after %v", arrival.Text, arrival.At.Sub(start))
			}
		}
	}, func(s *setup) { s.options.FloodScope = sender.FloodBot })
}

func TestSender_ShortFloodHoldsTheBot(t *testing.T) {
	run(t, func(w *world) {
		w.fault(telegramsim.Fault{Kind: telegramsim.FaultFlood, Chat: 1, RetryAfter: 7, Times: 1})
		start := time.Now()
		w.send(1, "A")
		w.pass(time.Millisecond)
		w.end(w.send(2, "B"), spool.Done)
		if took := time.Since(start); took < 7*time.Second || took > 8*time.Second {
			t.Errorf("another chat went on after %v, want 7 s and a little", took)
		}
	})
}

func TestSender_SecondFloodedChatWidensToTheBot(t *testing.T) {
	run(t, func(w *world) {
		w.fault(telegramsim.Fault{Kind: telegramsim.FaultFlood, Chat: 1, RetryAfter: 1000, Times: 1})
		w.fault(telegramsim.Fault{Kind: telegramsim.FaultFlood, Chat: 2, RetryAfter: 500, Times: 1})
		start := time.Now()
		w.send(1, "A")
		w.pass(time.Second)
		w.end(w.send(3, "free"), spool.Done) // one flooded chat holds nobody else
		w.send(2, "B")
		w.pass(time.Second)
		w.end(w.send(4, "C"), spool.Done)
		if took := time.Since(start); took < 500*time.Second {
			t.Errorf("a third chat went on after %v, want 500 s", took)
		}
	})
}

func TestSender_TellsOneFloodOnce(t *testing.T) {
	run(t, func(w *world) {
		w.fault(telegramsim.Fault{Kind: telegramsim.FaultFlood, RetryAfter: 30, Delay: time.Second, Times: 16})
		var ids []int64
		for chat := range int64(16) {
			ids = append(ids, w.send(100+chat, "x"))
		}
		for _, id := range ids {
			w.end(id, spool.Done)
		}
		if n := w.events.count(sender.EventFlood); n > 1 {
			t.Errorf("16 calls in flight told of one flood %d times", n)
		}
	})
}

func TestSender_UndatedFloodIsHeldAndReleasedAgain(t *testing.T) {
	run(t, func(w *world) {
		w.fault(telegramsim.Fault{Kind: telegramsim.FaultFloodUndated, Times: 3})
		start := time.Now()
		id := w.send(1, "A")
		for _, pause := range []time.Duration{5 * time.Second, 10 * time.Second, 20 * time.Second} {
			job := w.now(id, spool.Held)
			if job.HeldBy == nil || *job.HeldBy != spool.HeldByFlood || job.Attempts != 0 {
				t.Fatalf("held by %v after %d attempts", job.HeldBy, job.Attempts)
			}
			w.class(job, botapi.ClassFloodUndated)
			w.pass(pause)
		}
		job := w.end(id, spool.Done)
		if took := time.Since(start); took < 35*time.Second || took > 36*time.Second {
			t.Errorf("took %v, want 5+10+20 s", took)
		}
		if job.Attempts != 1 || w.tries("sendMessage") != 4 {
			t.Errorf("%d attempts, %d calls", job.Attempts, w.tries("sendMessage"))
		}
	})
}

func TestSender_EveryFormOfA429IsUnderstood(t *testing.T) {
	tests := []struct {
		name  string
		fault telegramsim.Fault
		least time.Duration
	}{
		{"a number in the text only is no date", telegramsim.Fault{Kind: telegramsim.FaultCode, Code: 429, Body: `{"ok":false,"error_code":429,"description":"Too Many Requests: retry after 3400"}`}, 5 * time.Second},
		{"zero is at least a second", telegramsim.Fault{Kind: telegramsim.FaultCode, Code: 429, Body: `{"ok":false,"error_code":429,"description":"Too Many Requests: retry after 0","parameters":{"retry_after":0}}`}, time.Second},
		{"the header only is a lower bound", telegramsim.Fault{Kind: telegramsim.FaultCode, Code: 429, Body: `{"ok":false,"error_code":429,"description":"Too Many Requests"}`, RetryAfter: 34}, 34 * time.Second},
		{"a page", telegramsim.Fault{Kind: telegramsim.FaultCode, Code: 429, Body: "<html>429</html>"}, 5 * time.Second},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			run(t, func(w *world) {
				tt.fault.Times = 1
				w.fault(tt.fault)
				start := time.Now()
				id := w.send(1, "A")
				w.pass(tt.least - time.Millisecond)
				if synctest.Wait(); w.job(id).State == spool.Done {
					t.Errorf("went on before %v", tt.least)
				}
				w.pass(2 * time.Second)
				if job := w.end(id, spool.Done); job.Attempts != 1 {
					t.Errorf("%d attempts", job.Attempts)
				}
				if took := time.Since(start); took > tt.least+3*time.Second {
					t.Errorf("took %v, want little more than %v", took, tt.least)
				}
			})
		})
	}
}

func TestSender_FrozenAccountPausesTheBotForGrowingHours(t *testing.T) {
	run(t, func(w *world) {
		w.fault(telegramsim.Fault{Kind: telegramsim.FaultCode, Code: 400, Body: "Bad Request: FROZEN_METHOD_INVALID", Method: "send*", Times: 2})
		start := time.Now()
		a := w.send(1, "A")
		w.pass(time.Second)
		b := w.send(2, "B")
		w.stop()
		w.start() // the pause outlives the process
		job := w.end(a, spool.Done)
		w.end(b, spool.Done)
		// The streak is forgotten by the restart, so it is 1 h twice.
		if took := time.Since(start); took < 2*time.Hour || took > 2*time.Hour+time.Minute {
			t.Errorf("took %v, want two pauses of an hour", took)
		}
		if job.Attempts != 1 {
			t.Errorf("%d attempts", job.Attempts)
		}
		if w.events.count(sender.EventFrozen) != 2 {
			t.Errorf("told %d times, want each pause once", w.events.count(sender.EventFrozen))
		}
	})
}

func TestSender_EphemeralCallsPassTheirChatAndDieYoung(t *testing.T) {
	run(t, func(w *world) {
		// The chat is flooded, its callback is answered all the same.
		w.fault(telegramsim.Fault{Kind: telegramsim.FaultFlood, Chat: 7, Method: "sendMessage", RetryAfter: 600, Times: 1})
		w.send(7, "A")
		w.pass(time.Second)
		action := w.call("sendChatAction", `{"chat_id":7,"action":"typing"}`)
		w.end(action, spool.Done)

		// A query that is over is not asked about again.
		late := w.call("answerCallbackQuery", `{"callback_query_id":"123"}`)
		w.class(w.end(late, spool.Expired), botapi.ClassTooLate)
		if n := w.tries("answerCallbackQuery"); n != 1 {
			t.Errorf("asked %d times", n)
		}

		// With the whole bot waiting it expires without a call.
		w.gate.CloseLanes(gate.Paused, "")
		start := time.Now()
		stale := w.call("answerCallbackQuery", `{"callback_query_id":"124"}`)
		w.end(stale, spool.Expired)
		if took := time.Since(start); took > 11*time.Second {
			t.Errorf("expired after %v, want 10 s", took)
		}
		if n := w.tries("answerCallbackQuery"); n != 1 {
			t.Errorf("called %d times, want once in all", n)
		}
		w.gate.OpenLanes(gate.Paused)
	})
}
