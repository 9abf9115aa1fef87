package sender_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tgspool/tgspool/internal/botapi"
	"github.com/tgspool/tgspool/internal/gate"
	"github.com/tgspool/tgspool/internal/sender"
	"github.com/tgspool/tgspool/internal/spool"
	"github.com/tgspool/tgspool/internal/telegramsim"
)

func TestSender_StopDrainsWhatIsInFlight(t *testing.T) {
	run(t, func(w *world) {
		w.fault(telegramsim.Fault{Kind: telegramsim.FaultSlow, Delay: 10 * time.Second, Chat: 1, Effect: true})
		w.fault(telegramsim.Fault{Kind: telegramsim.FaultHang, Chat: 2, Effect: true})
		slow, behind, hung := w.send(1, "slow"), w.send(1, "behind"), w.send(2, "hung")
		safe := w.call("deleteMessage", `{"chat_id":2,"message_id":1}`)
		w.pass(time.Second)

		w.take()
		fresh := w.send(3, "fresh")
		w.pass(20 * time.Second)
		w.now(slow, spool.Done)      // had its time
		w.now(behind, spool.Pending) // nothing new is begun
		w.now(fresh, spool.Pending)
		w.now(hung, spool.Running)
		select {
		case err := <-w.ended:
			t.Fatalf("ended (%v) with a call in flight", err)
		default:
		}

		w.work()
		synctest.Wait()
		w.class(w.now(hung, spool.Uncertain), botapi.ClassUnknownOutcome)
		w.must(<-w.ended)
		w.ended <- nil // for the end of the scenario
		w.now(safe, spool.Pending)
		if s := w.gate.Snapshot(); s.Detail != "" {
			t.Errorf("our own stop made Telegram doubtful: %q", s.Detail)
		}

		w.stop()
		w.sim.RemoveFault(1)
		w.sim.RemoveFault(2)
		w.start()
		w.end(behind, spool.Done)
		w.end(fresh, spool.Done)
		w.sent(1, "slow", "behind")
		w.now(hung, spool.Uncertain)
		if n := w.sim.CountText(2, "hung"); n != 1 {
			t.Errorf("the call that was cut off arrived %d times", n)
		}
	})
}

// beforeWriting is a client that never comes to its first byte.
type beforeWriting struct{ sender.Caller }

func (c beforeWriting) Call(ctx context.Context, r botapi.Request) botapi.Seen {
	<-ctx.Done()
	return botapi.Seen{Phase: botapi.PhaseResolved, Err: ctx.Err()}
}

func TestSender_StopBeforeTheFirstByteGivesTheJobBack(t *testing.T) {
	run(t, func(w *world) {
		id := w.send(1, "A")
		w.now(id, spool.Running)
		w.take()
		w.work()
		w.must(<-w.ended)
		w.ended <- nil
		if job := w.now(id, spool.Pending); job.Attempts != 0 || job.LastError != nil {
			t.Errorf("%d attempts, error %+v: nothing was sent", job.Attempts, job.LastError)
		}
		if s := w.gate.Snapshot(); s.Detail != "" {
			t.Errorf("our own stop closed the lanes: %q", s.Detail)
		}
	}, func(s *setup) {
		s.client = func(c sender.Caller) sender.Caller { return beforeWriting{c} }
	})
}

func TestSender_ClosedStoreEndsIt(t *testing.T) {
	run(t, func(w *world) {
		synctest.Wait()
		w.must(w.store.Close())
		if err := <-w.ended; !errors.Is(err, spool.ErrClosed) {
			t.Errorf("ended with %v, want ErrClosed", err)
		}
		w.take()
		w.work()
		w.start()
	})
}

func TestSender_LooksAtTheGatesOnceMoreBeforeTheCall(t *testing.T) {
	closes := map[string]func(*gate.Gate){
		"cooldown": func(g *gate.Gate) { g.ExtendCooldown(time.Now().Add(time.Minute), "flood") },
		"lanes": func(g *gate.Gate) {
			g.CloseLanes(gate.Paused, "")
			time.AfterFunc(time.Minute, func() { g.OpenLanes(gate.Paused) })
		},
	}
	for name, closing := range closes {
		t.Run(name, func(t *testing.T) {
			first := true
			run(t, func(w *world) {
				start := time.Now()
				job := w.end(w.send(1, "A"), spool.Done)
				if took := time.Since(start); took < time.Minute {
					t.Errorf("sent after %v through a closed gate", took)
				}
				if job.Attempts != 1 || w.tries("sendMessage") != 1 {
					t.Errorf("%d attempts, %d calls", job.Attempts, w.tries("sendMessage"))
				}
			}, func(s *setup) {
				s.admitted = func(g *gate.Gate) {
					if first {
						closing(g)
					}
					first = false
				}
			})
		})
	}
}
