package sender_test

import (
	"testing"
	"time"

	"github.com/tgspool/tgspool/internal/botapi"
	"github.com/tgspool/tgspool/internal/gate"
	"github.com/tgspool/tgspool/internal/outbox"
	"github.com/tgspool/tgspool/internal/sender"
	"github.com/tgspool/tgspool/internal/spool"
	"github.com/tgspool/tgspool/internal/telegramsim"
)

func TestSender_OneRefusalOfTheTokenIsNotBelieved(t *testing.T) {
	for _, code := range []int{401, 404, 421} {
		run(t, func(w *world) {
			w.fault(telegramsim.Fault{Kind: telegramsim.FaultCode, Code: code, Chat: 1, Times: 1})
			start := time.Now()
			job := w.end(w.send(1, "A"), spool.Done)
			if took := time.Since(start); took > 5*time.Second || job.Attempts != 1 {
				t.Errorf("%d: sent after %v with %d attempts", code, took, job.Attempts)
			}
			if w.events.count(sender.EventUnauthorized) != 0 {
				t.Errorf("%d: alarm at the first refusal", code)
			}
		})
	}
}

func TestSender_RefusedTokenStopsEverythingAndKeepsTheJobs(t *testing.T) {
	run(t, func(w *world) {
		w.end(w.send(1, "before"), spool.Done)
		w.sim.RevokeToken(token)
		start := time.Now()
		ids := w.sendMany(30, 30)
		w.pass(3 * time.Second)
		s := w.gate.Snapshot()
		if s.State != gate.StateUnauthorized || s.Since.Sub(start) < 2*time.Second {
			t.Errorf("state %s, believed after %v; want unauthorized after two refusals 2 s apart", s.State, s.Since.Sub(start))
		}
		sends := w.tries("sendMessage")
		if sends > 1+16 {
			t.Errorf("%d sends with a refused token", sends)
		}
		probes := w.tries("getMe")
		if w.pass(5*time.Minute - 2*time.Second); w.tries("getMe") != probes {
			t.Error("asked again within 5 minutes")
		}
		w.pass(24 * time.Hour)
		if more := w.tries("getMe") - probes; more < 20 || more > 30 {
			t.Errorf("%d probes in a day, want the slow probe: 5 min doubling to 1 h", more)
		}
		if w.tries("sendMessage") != sends || w.events.count(sender.EventUnauthorized) != 1 {
			t.Errorf("%d more sends, told %d times", w.tries("sendMessage")-sends, w.events.count(sender.EventUnauthorized))
		}
		for _, id := range ids {
			if job := w.now(id, spool.Pending); job.Attempts != 0 {
				t.Errorf("job %d burnt %d attempts", id, job.Attempts)
			}
		}

		w.sim.RestoreToken(token)
		w.end(ids[len(ids)-1], spool.Done)
		w.pass(time.Minute)
		if n := w.checkMany(ids, 30); n != 0 {
			t.Errorf("%d uncertain", n)
		}
		if w.events.count(sender.EventAuthorized) != 1 {
			t.Error("nobody was told that it works again")
		}
	})
}

func TestSender_ResumeTriesARefusedTokenAtOnce(t *testing.T) {
	run(t, func(w *world) {
		w.sim.RevokeToken(token)
		id := w.send(1, "A")
		w.pass(10 * time.Minute)
		w.now(id, spool.Pending)
		w.sim.RestoreToken(token)
		start := time.Now()
		w.gate.OpenLanes(gate.Unauthorized) // as resume and a new token do
		w.end(id, spool.Done)
		if took := time.Since(start); took > time.Second {
			t.Errorf("went on after %v", took)
		}
	})
}

func TestSender_JobThatAloneIsRefusedDiesInTheEnd(t *testing.T) {
	run(t, func(w *world) {
		w.fault(telegramsim.Fault{Kind: telegramsim.FaultCode, Code: 404, Body: "Not Found", Method: "sendNothingKnown"})
		id := w.call("sendNothingKnown", `{"chat_id":1}`, func(o *outbox.Options) { o.MaxAttempts = 3 })
		other := w.send(2, "B")
		w.end(other, spool.Done)
		w.class(w.end(id, spool.Dead), botapi.ClassUnauthorized)
		if n := w.tries("sendNothingKnown"); n > 4 {
			t.Errorf("asked %d times", n)
		}
	})
}
