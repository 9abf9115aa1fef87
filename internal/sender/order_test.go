package sender_test

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/tgspool/tgspool/internal/botapi"
	"github.com/tgspool/tgspool/internal/outbox"
	"github.com/tgspool/tgspool/internal/sender"
	"github.com/tgspool/tgspool/internal/spool"
	"github.com/tgspool/tgspool/internal/telegramsim"
)

func TestSender_DeliversAndKeepsTelegramsResult(t *testing.T) {
	run(t, func(w *world) {
		job := w.end(w.send(42, "words of a message"), spool.Done)
		w.sent(42, "words of a message")
		if job.Attempts != 1 || job.LastError != nil || len(job.Result) == 0 || string(job.SentChatID) != "42" {
			t.Errorf("job %+v", job)
		}
		if job.Evidence == nil || job.Evidence.Phase != string(botapi.PhaseResponse) || job.Evidence.BytesWritten == 0 {
			t.Errorf("evidence %+v", job.Evidence)
		}
	})
}

func TestSender_RetryHoldsItsPlaceInTheChat(t *testing.T) {
	chatOnly := func(s *setup) { s.options.FloodScope = sender.FloodChat }
	run(t, func(w *world) {
		w.fault(telegramsim.Fault{Kind: telegramsim.FaultFlood, Chat: 1, RetryAfter: 30, Times: 1})
		start := time.Now()
		a, b, c := w.send(1, "A"), w.send(1, "B"), w.send(2, "C")
		w.end(c, spool.Done)
		if took := time.Since(start); took > time.Second {
			t.Errorf("another chat waited %v for a flooded one", took)
		}
		first := w.end(a, spool.Done)
		w.end(b, spool.Done)
		w.sent(1, "A", "B")
		if took := time.Since(start); took < 30*time.Second {
			t.Errorf("the flooded chat went on after %v, want 30 s or more", took)
		}
		if first.Attempts != 1 {
			t.Errorf("%d attempts: a flood must not count as one", first.Attempts)
		}
	}, chatOnly)
}

func TestSender_TransientFailuresHoldTheirPlaceAndCount(t *testing.T) {
	run(t, func(w *world) {
		w.fault(telegramsim.Fault{
			Kind: telegramsim.FaultCode, Code: 500, Body: "Internal Server Error: requested data is inaccessible",
			Chat: 1, Times: 2,
		})
		a, b := w.send(1, "A"), w.send(1, "B")
		if job := w.end(a, spool.Done); job.Attempts != 3 {
			t.Errorf("%d attempts, want 3", job.Attempts)
		}
		w.end(b, spool.Done)
		w.sent(1, "A", "B")
	})
}

func TestSender_GivesUpAfterMaxAttempts(t *testing.T) {
	run(t, func(w *world) {
		w.fault(telegramsim.Fault{Kind: telegramsim.FaultCode, Code: 400, Body: "Bad Request: failed to get HTTP URL content", Chat: 1, Times: 3})
		a := w.send(1, "A", func(o *outbox.Options) { o.MaxAttempts = 3 })
		b := w.send(1, "B")
		w.class(w.end(a, spool.Dead), botapi.ClassTransient)
		w.end(b, spool.Done)
		w.sent(1, "B")
	})
}

func TestSender_RejectedIsFinalAndBlocksNobody(t *testing.T) {
	run(t, func(w *world) {
		for i, text := range []string{
			"Bad Request: message is too long", "Bad Request: message thread not found",
			"Bad Request: can't parse entities: Unsupported start tag", "Bad Request: SOMETHING_NEW",
		} {
			w.fault(telegramsim.Fault{Kind: telegramsim.FaultCode, Code: 400, Body: text, Chat: 1, Times: 1})
			a, b := w.send(1, fmt.Sprint("A", i)), w.send(1, fmt.Sprint("B", i))
			job := w.end(a, spool.Dead)
			w.class(job, botapi.ClassRejected)
			if job.LastError.Description != text || job.Attempts != 1 {
				t.Errorf("%d attempts, error %+v", job.Attempts, job.LastError)
			}
			w.end(b, spool.Done)
		}
		w.sent(1, "B0", "B1", "B2", "B3")
	})
}

func TestSender_OneCallOfAChatInFlight(t *testing.T) {
	run(t, func(w *world) {
		w.fault(telegramsim.Fault{Kind: telegramsim.FaultSlow, Chat: 1, Delay: 5 * time.Second})
		var last int64
		for _, text := range numbered("m", 5) {
			last = w.send(1, text)
		}
		deletion := w.call("deleteMessage", `{"chat_id":1,"message_id":1}`) // keeps the order, too
		w.end(last, spool.Done)
		w.now(deletion, spool.Running)
		w.sent(1, numbered("m", 5)...)
		// The gap counts from the end of the one before.
		w.gaps(w.arrivals("sendMessage", 1), 6050*time.Millisecond)
		w.end(deletion, spool.Done)
	})
}

func TestSender_GapOfAPrivateChat(t *testing.T) {
	run(t, func(w *world) {
		start := time.Now()
		var last int64
		for _, text := range numbered("m", 20) {
			last = w.send(7123456789, text)
		}
		w.end(last, spool.Done)
		w.sent(7123456789, numbered("m", 20)...)
		w.gaps(w.arrivals("sendMessage", 0), 1050*time.Millisecond)
		if took := time.Since(start); took > 21*time.Second {
			t.Errorf("20 messages took %v: slower than the gap asks for", took)
		}
	})
}

func TestSender_GroupWindowDoesNotSlowPrivateChats(t *testing.T) {
	run(t, func(w *world) {
		start := time.Now()
		var group, private int64
		for _, text := range numbered("m", 40) {
			group = w.send(-100123, text)
			private = w.send(5, text)
		}
		w.end(private, spool.Done)
		if took := time.Since(start); took > 42*time.Second {
			t.Errorf("40 messages to a person took %v, want about 41 s", took)
		}
		w.end(group, spool.Done)
		list := w.arrivals("sendMessage", -100123)
		w.sent(-100123, numbered("m", 40)...)
		for i := 20; i < len(list); i++ {
			if span := list[i].At.Sub(list[i-20].At); span < time.Minute {
				t.Errorf("messages %d to %d went to the group within %v", i-19, i+1, span)
			}
		}
		if took := time.Since(start); took > 82*time.Second {
			t.Errorf("40 messages to a group took %v, want about 80 s", took)
		}
	}, func(s *setup) { s.sim.Strict = telegramsim.DefaultLimits() })
}

func TestSender_AlbumCountsItsItems(t *testing.T) {
	run(t, func(w *world) {
		photo := `{"type":"photo","media":"https://example.org/p.jpg"}`
		album := w.call("sendMediaGroup", `{"chat_id":5,"media":[`+photo+`,`+photo+`,`+photo+`]}`)
		w.end(album, spool.Done)
		start := time.Now()
		w.end(w.send(5, "after"), spool.Done)
		if took := time.Since(start); took < 3150*time.Millisecond {
			t.Errorf("the next message went after %v, want three gaps", took)
		}
	})
}

func TestSender_TwoHundredAtOnceToOneChat(t *testing.T) {
	run(t, func(w *world) {
		var calls sync.WaitGroup
		for i := range 200 {
			calls.Go(func() { w.send(5, fmt.Sprint("m", i)) })
		}
		calls.Wait()
		w.pass(4 * time.Minute)
		seen := map[string]bool{}
		for _, text := range w.texts(5) {
			seen[text] = true
		}
		if n := len(w.texts(5)); n != 200 || len(seen) != 200 {
			t.Errorf("%d messages arrived, %d different ones, want 200", n, len(seen))
		}
	})
}

func TestSender_ThirtyChatsInAboutOneSecond(t *testing.T) {
	run(t, func(w *world) {
		start := time.Now()
		var ids []int64
		for chat := range int64(30) {
			ids = append(ids, w.send(1000+chat, "hello"))
		}
		for _, id := range ids {
			w.end(id, spool.Done)
		}
		if took := time.Since(start); took < 900*time.Millisecond || took > 1100*time.Millisecond {
			t.Errorf("took %v, want about 1 s", took)
		}
	})
}

func TestSender_UrgentLanesGoFirst(t *testing.T) {
	run(t, func(w *world) {
		w.gate.CloseLanes("paused", "")
		lane := func(l spool.Lane) func(*outbox.Options) { return func(o *outbox.Options) { o.Lane = l } }
		bulk := w.send(1, "bulk", lane(spool.Bulk))
		normal := w.send(1, "normal", lane(spool.Normal))
		w.send(1, "interactive", lane(spool.Interactive))
		w.gate.OpenLanes("paused")
		w.end(normal, spool.Done)
		w.end(bulk, spool.Done)
		w.sent(1, "interactive", "normal", "bulk")
	})
}

func TestSender_NameAndIdShareOneQueueOnceBothAreKnown(t *testing.T) {
	run(t, func(w *world) {
		w.sim.AddChat(telegramsim.ChatSpec{ID: -1001222207990, Type: "channel", Username: "MyChan"})
		w.end(w.call("sendMessage", `{"chat_id":"@MyChan","text":"m1"}`), spool.Done)
		w.fault(telegramsim.Fault{Kind: telegramsim.FaultSlow, Delay: 3 * time.Second})
		w.call("sendMessage", `{"chat_id":"@mychan","text":"m2"}`)
		w.call("sendMessage", `{"chat_id":-1001222207990,"text":"m3"}`)
		last := w.call("sendMessage", `{"chat_id":"@MYCHAN","text":"m4"}`)
		w.end(last, spool.Done)
		w.sent(-1001222207990, numbered("m", 4)...)
		list := w.arrivals("sendMessage", 0)
		w.gaps(list, 1050*time.Millisecond)
		if got := list[3].Params["chat_id"]; got != "@MYCHAN" {
			t.Errorf("chat_id went out as %q: a name is passed on as it was written", got)
		}
	})
}
