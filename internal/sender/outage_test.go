package sender_test

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tgspool/tgspool/internal/botapi"
	"github.com/tgspool/tgspool/internal/gate"
	"github.com/tgspool/tgspool/internal/sender"
	"github.com/tgspool/tgspool/internal/spool"
	"github.com/tgspool/tgspool/internal/telegramsim"
)

// sendMany queues n messages over chats in turn and returns their ids.
func (w *world) sendMany(n, chats int) (ids []int64) {
	for i, text := range numbered("m", n) {
		ids = append(ids, w.send(int64(100+i%chats), text))
	}
	return ids
}

// checkMany checks that what sendMany queued has arrived in order, once each,
// but for those that are uncertain.
func (w *world) checkMany(ids []int64, chats int) (uncertain int) {
	w.t.Helper()
	want := map[int64][]string{}
	for i, text := range numbered("m", len(ids)) {
		chat := int64(100 + i%chats)
		job := w.job(ids[i])
		if job.State == spool.Uncertain {
			uncertain++
			continue
		}
		if job.State != spool.Done || job.Attempts != 1 {
			w.t.Errorf("job %d is %s after %d attempts: an outage burns none", job.ID, job.State, job.Attempts)
		}
		want[chat] = append(want[chat], text)
	}
	for chat, texts := range want {
		got := slices.DeleteFunc(w.texts(chat), func(s string) bool { return !slices.Contains(texts, s) })
		if !slices.Equal(got, texts) {
			w.t.Errorf("chat %d was sent %q, want %q", chat, got, texts)
		}
	}
	return uncertain
}

func TestSender_OutageOfTwoHoursLosesNothing(t *testing.T) {
	run(t, func(w *world) {
		w.end(w.send(1, "before"), spool.Done)
		w.sim.SetOffline(true)
		start := time.Now()
		ids := w.sendMany(300, 10)
		w.pass(time.Minute)
		if s := w.gate.Snapshot(); s.State != gate.StateOffline || s.Since.Sub(start) > time.Second {
			t.Errorf("state %s since %v", s.State, s.Since.Sub(start))
		}
		w.pass(2*time.Hour - time.Minute)
		w.sim.SetOffline(false)
		back := time.Now()
		w.end(ids[len(ids)-1], spool.Done)
		if took := time.Since(back); took > 50*time.Second {
			t.Errorf("it took %v until all was sent", took)
		}
		synctest.Wait()
		if n := w.checkMany(ids, 10); n != 0 {
			t.Errorf("%d uncertain, though no byte was written", n)
		}
		if s := w.gate.Snapshot(); s.State != gate.StateOK {
			t.Errorf("state %s afterwards", s.State)
		}
		if w.events.count(sender.EventOffline) != 1 || w.events.count(sender.EventOnline) != 1 {
			t.Errorf("told %d times offline, %d times back", w.events.count(sender.EventOffline), w.events.count(sender.EventOnline))
		}
		if n := strings.Count(w.log.String(), "\n"); n > 2 {
			t.Errorf("%d lines for one outage:\n%s", n, w.log)
		}
	})
}

func TestSender_SilentOutageCostsAtMostTheCallsInFlight(t *testing.T) {
	const workers = 4
	run(t, func(w *world) {
		heal := w.fault(telegramsim.Fault{Kind: telegramsim.FaultHang}) // everything, getMe too
		ids := w.sendMany(300, 60)
		w.pass(2 * time.Hour)
		heal()
		w.end(ids[len(ids)-1], spool.Done)
		w.pass(time.Minute)
		if n := w.checkMany(ids, 60); n == 0 || n > workers {
			t.Errorf("%d uncertain, want some, at most the %d in flight", n, workers)
		}
		for _, text := range numbered("m", 300) {
			for chat := range int64(60) {
				if n := w.sim.CountText(100+chat, text); n > 1 {
					t.Errorf("%s arrived %d times", text, n)
				}
			}
		}
	}, func(s *setup) { s.workers = workers })
}

func TestSender_CaptivePortalMarksNothingSent(t *testing.T) {
	for _, kind := range []telegramsim.FaultKind{telegramsim.FaultHTML200, telegramsim.FaultRedirect} {
		t.Run(string(kind), func(t *testing.T) {
			run(t, func(w *world) {
				heal := w.fault(telegramsim.Fault{Kind: kind})
				ids := w.sendMany(20, 20)
				w.pass(time.Hour)
				if s := w.gate.Snapshot(); s.State != gate.StateOffline || !strings.Contains(s.Detail, "captive portal?") {
					t.Errorf("state %s, detail %q", s.State, s.Detail)
				}
				// Which of the workers is refused first is open; the others hold back.
				refused := slices.IndexFunc(ids, func(id int64) bool { return w.now(id, spool.Pending).LastError != nil })
				w.class(w.now(ids[max(refused, 0)], spool.Pending), botapi.ClassNotTelegram)
				heal()
				w.end(ids[len(ids)-1], spool.Done)
				w.pass(time.Minute)
				if n := w.checkMany(ids, 20); n != 0 {
					t.Errorf("%d uncertain: it was somebody else who answered", n)
				}
			})
		})
	}
}

func TestSender_JobThatNeverGetsThroughDoesNotHoldTheOthers(t *testing.T) {
	run(t, func(w *world) {
		// A filter on the way refuses this one job, getMe passes.
		w.fault(telegramsim.Fault{Kind: telegramsim.FaultHTML200, Code: 403, Chat: 1})
		bad := w.send(1, "A")
		w.pass(time.Minute)
		start := time.Now()
		var last int64
		for _, text := range numbered("m", 50) {
			last = w.send(2, text)
		}
		w.end(last, spool.Done)
		if took := time.Since(start); took > 90*time.Second {
			t.Errorf("another chat's 50 messages took %v, want about a minute", took)
		}
		if job := w.now(bad, spool.Pending); job.Attempts != 0 {
			t.Errorf("%d attempts were burnt", job.Attempts)
		}
	})
}

func TestSender_ServerErrorsAreProbedBeforeMoreAreSent(t *testing.T) {
	run(t, func(w *world) {
		heal := w.fault(telegramsim.Fault{Kind: telegramsim.FaultCode, Code: 500, Body: "Internal Server Error: requested data is inaccessible"})
		ids := w.sendMany(40, 40)
		w.pass(time.Hour)
		if n := w.tries("sendMessage"); n > 16 {
			t.Errorf("%d sends into a broken server, want at most the 16 in flight", n)
		}
		heal()
		w.end(ids[len(ids)-1], spool.Done)
		w.pass(11 * time.Minute)
		for _, id := range ids {
			w.now(id, spool.Done)
		}
	})
}

func TestSender_SuccessOfThePollerEndsTheBackoff(t *testing.T) {
	run(t, func(w *world) {
		w.sim.SetOffline(true)
		id := w.send(1, "A")
		w.pass(10*time.Minute + time.Second) // the back-off is at its 15 s, and between two probes
		w.sim.SetOffline(false)
		w.gate.Success() // as the poller says it
		start := time.Now()
		w.end(id, spool.Done)
		if took := time.Since(start); took > 100*time.Millisecond {
			t.Errorf("went on after %v", took)
		}
	})
}

func TestSender_FloodedProbeIsACooldown(t *testing.T) {
	run(t, func(w *world) {
		w.fault(telegramsim.Fault{Kind: telegramsim.FaultFlood, Method: "getMe", RetryAfter: 300, Times: 1})
		w.fault(telegramsim.Fault{Kind: telegramsim.FaultResetAfterRead, Chat: 1, Times: 1})
		start := time.Now()
		w.end(w.send(1, "A"), spool.Uncertain)
		w.pass(time.Second)
		w.stop()
		w.start() // it was stored
		w.end(w.send(2, "B"), spool.Done)
		if took := time.Since(start); took < 300*time.Second || took > 310*time.Second {
			t.Errorf("went on after %v, want 300 s", took)
		}
	})
}
