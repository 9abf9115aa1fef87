package botserver_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tgspool/tgspool/internal/botserver"
	"github.com/tgspool/tgspool/internal/spool"
	"github.com/tgspool/tgspool/internal/telegramsim"
)

const hello = `{"chat_id":7,"text":"hello"}`

func TestHold_AnswersWithTelegramsResult(t *testing.T) {
	bubble(t, func(k *kit) {
		a := k.call("sendMessage", hello)
		if a.status != http.StatusOK || !strings.Contains(string(a.json.Result), `"text":"hello"`) {
			t.Fatalf("answer %d %s", a.status, a.body)
		}
		if got := a.header.Get("Tgspool-Job"); got != "1" {
			t.Errorf("Tgspool-Job is %q", got)
		}
		if a.header.Get("Content-Type") != "application/json" {
			t.Errorf("Content-Type %q", a.header.Get("Content-Type"))
		}
		job := k.jobs()[0]
		if job.Origin != "botapi" || string(job.Params) != hello || job.Lane != spool.Normal {
			t.Errorf("job %+v", job)
		}
		if n := k.sim.CountText(7, "hello"); n != 1 {
			t.Errorf("sent %d times", n)
		}
	})
}

func TestHold_AnswersWithTelegramsError(t *testing.T) {
	tests := []struct {
		name        string
		fault       telegramsim.Fault
		code        int
		description string
	}{
		{"refused", telegramsim.Fault{Kind: telegramsim.FaultCode, Code: 400, Body: "Bad Request: message text is empty"}, 400, "Bad Request: message text is empty"},
		{"blocked", telegramsim.Fault{Kind: telegramsim.FaultCode, Code: 403, Body: "Forbidden: bot was blocked by the user"}, 403, "Forbidden: bot was blocked by the user"},
		{"a lost answer", telegramsim.Fault{Kind: telegramsim.FaultResetAfterRead, Effect: true}, 409, "Conflict: tgspool: outcome unknown, job 1 is uncertain"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			bubble(t, func(k *kit) {
				tt.fault.Times = 1
				tt.fault.Method = "sendMessage"
				k.sim.AddFault(tt.fault)
				a := k.call("sendMessage", hello)
				if a.status != tt.code || a.json.Description != tt.description {
					t.Errorf("answer %d %q, want %d %q", a.status, a.json.Description, tt.code, tt.description)
				}
			})
		})
	}
}

func TestHold_InactiveChatHearsTelegramsStoredWords(t *testing.T) {
	bubble(t, func(k *kit) {
		k.sim.AddFault(telegramsim.Fault{Kind: telegramsim.FaultCode, Code: 403, Body: "Forbidden: bot was blocked by the user", Times: 1})
		k.call("sendMessage", hello)
		a := k.call("sendMessage", `{"chat_id":7,"text":"again"}`)
		if a.status != 403 || a.json.Description != "Forbidden: bot was blocked by the user" {
			t.Errorf("answer %d %s", a.status, a.body)
		}
		if n := len(k.jobs()); n != 1 {
			t.Errorf("%d jobs, want 1", n)
		}
	})
}

func TestHold_NotModifiedIsTelegramsOwnError(t *testing.T) {
	const words = "Bad Request: message is not modified: specified new message content and reply markup are exactly the same"
	bubble(t, func(k *kit) {
		k.sim.AddFault(telegramsim.Fault{Kind: telegramsim.FaultCode, Code: 400, Body: words, Times: 1})
		a := k.call("editMessageText", `{"chat_id":7,"message_id":1,"text":"x"}`)
		if a.status != 400 || a.json.Description != words {
			t.Errorf("answer %d %s", a.status, a.body)
		}
		if job := k.jobs()[0]; job.State != spool.Done {
			t.Errorf("the job is %s", job.State)
		}
	})
}

func TestHold_WaitsThroughAFlood(t *testing.T) {
	bubble(t, func(k *kit) {
		k.sim.AddFault(telegramsim.Fault{Kind: telegramsim.FaultFlood, RetryAfter: 30, Times: 1})
		start := time.Now()
		a := k.call("sendMessage", hello)
		if a.status != 200 || time.Since(start) < 30*time.Second {
			t.Errorf("answer %d after %v", a.status, time.Since(start))
		}
	})
}

func TestHold_HeldForAFloodWithoutADateIs429(t *testing.T) {
	bubble(t, func(k *kit) {
		k.sim.AddFault(telegramsim.Fault{Kind: telegramsim.FaultFloodUndated, Times: 1})
		a := k.call("sendMessage", hello)
		if a.status != 429 || a.json.Parameters.RetryAfter < 1 || a.header.Get("Retry-After") == "" {
			t.Fatalf("answer %d %s", a.status, a.body)
		}
		// The caller does as told: it hears the end of the same job.
		k.pass(time.Duration(a.json.Parameters.RetryAfter) * time.Second)
		if b := k.call("sendMessage", hello); b.status != 200 || len(k.jobs()) != 1 {
			t.Errorf("answer %d %s, %d jobs", b.status, b.body, len(k.jobs()))
		}
	})
}

func TestHold_MaxWait(t *testing.T) {
	bubble(t, func(k *kit) {
		k.sim.SetOffline(true)
		start := time.Now()
		a := k.call("sendMessage", hello)
		if a.status != 429 || a.json.Parameters.RetryAfter < 1 || time.Since(start) != time.Minute {
			t.Errorf("answer %d %s after %v", a.status, a.body, time.Since(start))
		}
		k.sim.SetOffline(false)
		if b := k.call("sendMessage", hello); b.status != 200 || b.header.Get("Tgspool-Job") != "1" {
			t.Errorf("answer %d %s, job %s", b.status, b.body, b.header.Get("Tgspool-Job"))
		}
		if n := k.sim.CountText(7, "hello"); n != 1 {
			t.Errorf("sent %d times", n)
		}
	}, func(c *botserver.Config) { c.MaxWait = time.Minute })
}

func TestHold_Headers(t *testing.T) {
	bubble(t, func(k *kit) {
		k.sim.SetOffline(true)
		at := time.Now().Add(time.Hour).UTC().Truncate(time.Second)
		a := k.call("sendMessage", hello, "Tgspool-Key", "k1", "Tgspool-Lane", "bulk", "Tgspool-TTL", "2h",
			"Tgspool-On-Uncertain", "drop", "Tgspool-Not-Before", at.Format(time.RFC3339), "Prefer", "wait=5, respond-async")
		if a.status != http.StatusAccepted || string(a.json.Result) != `{"job_id":1,"state":"pending"}` {
			t.Fatalf("answer %d %s", a.status, a.body)
		}
		job := k.jobs()[0]
		if job.Lane != spool.Bulk || job.OnUncertain != spool.PolicyDrop || *job.DedupeKey != "k1" ||
			!job.NotBefore.Equal(at) || !job.ExpiresAt.Equal(at.Add(2*time.Hour)) {
			t.Errorf("job %+v", job)
		}
		b := k.call("sendMessage", `{"chat_id":7,"text":"other"}`, "Tgspool-Key", "k1", "Prefer", "respond-async")
		if b.header.Get("Tgspool-Job") != "1" || len(k.jobs()) != 1 {
			t.Errorf("a held key made job %s", b.header.Get("Tgspool-Job"))
		}
	})
}

func TestHold_WrongHeaders(t *testing.T) {
	bubble(t, func(k *kit) {
		for _, h := range [][2]string{
			{"Tgspool-Lane", "fast"},
			{"Tgspool-TTL", "soon"},
			{"Tgspool-TTL", "-1s"},
			{"Tgspool-On-Uncertain", "guess"},
			{"Tgspool-Not-Before", "tomorrow"},
			{"Tgspool-Key", strings.Repeat("k", 2000)},
		} {
			a := k.call("sendMessage", hello, h[0], h[1])
			if a.status != 400 || !strings.HasPrefix(a.json.Description, "Bad Request: tgspool: ") {
				t.Errorf("%s: answer %d %s", h[0], a.status, a.body)
			}
		}
		if n := len(k.jobs()); n != 0 {
			t.Errorf("%d jobs", n)
		}
	})
}

func TestHold_LaneOfAChatThatHasJustWritten(t *testing.T) {
	bubble(t, func(k *kit) {
		_, err := k.bot.Intake(k.t.Context(), spool.Batch{Updates: []spool.NewUpdate{{
			ID: 1, HasID: true, Kind: "message", OrderKey: "chat:7", Raw: []byte(`{"update_id":1}`),
			Chat: &spool.ChatSeen{ID: 7, Type: "private"}, Active: true,
		}}})
		k.must(err)
		k.pass(50 * time.Second)
		k.call("sendMessage", hello)
		k.pass(15 * time.Second)
		k.call("sendMessage", hello)
		jobs := k.jobs()
		if jobs[0].Lane != spool.Interactive || jobs[1].Lane != spool.Normal {
			t.Errorf("lanes %s, %s", jobs[0].Lane, jobs[1].Lane)
		}
	})
}

func TestHold_RefusedMethods(t *testing.T) {
	bubble(t, func(k *kit) {
		for _, method := range []string{"logOut", "LOGOUT", "close", "send-message", strings.Repeat("x", 100)} {
			if a := k.call(method, `{}`); a.status != 400 {
				t.Errorf("%s: answer %d %s", method, a.status, a.body)
			}
		}
		if n := len(k.sim.Journal()); n != 0 {
			t.Errorf("%d calls reached Telegram", n)
		}
	})
}

func TestHold_UnknownMethodIsQueuedAsSend(t *testing.T) {
	bubble(t, func(k *kit) {
		a := k.call("sendHologram", hello)
		if a.status != 404 {
			t.Errorf("answer %d %s", a.status, a.body)
		}
		if job := k.jobs()[0]; job.Method != "sendHologram" || job.State != spool.Dead {
			t.Errorf("job %s is %s", job.Method, job.State)
		}
	})
}

func TestJoin(t *testing.T) {
	const other = `{"chat_id":7,"text":"other"}`
	tests := []struct {
		name     string
		scenario func(k *kit)
		hellos   int // messages in the end
	}{
		{"the same call after a hang-up is the same message", func(k *kit) {
			k.sim.SetOffline(true)
			p := k.begin(request("sendMessage", "application/json", hello))
			synctest.Wait()
			p.hangUp()
			<-p.done
			again := k.begin(request("sendMessage", "application/json", hello))
			k.pass(time.Second)
			k.sim.SetOffline(false)
			if a := <-again.done; a.status != 200 {
				k.t.Errorf("answer %d %s", a.status, a.body)
			}
		}, 1},
		{"in another form, too", func(k *kit) {
			k.sim.SetOffline(true)
			p := k.begin(request("sendMessage", "application/json", hello))
			synctest.Wait()
			p.hangUp()
			<-p.done
			k.sim.SetOffline(false)
			k.serve(request("SendMessage", "application/x-www-form-urlencoded", "text=hello&chat_id=7"))
		}, 1},
		{"two callers who wait are two messages", func(k *kit) {
			k.sim.SetOffline(true)
			p := k.begin(request("sendMessage", "application/json", hello))
			q := k.begin(request("sendMessage", "application/json", hello))
			synctest.Wait()
			k.sim.SetOffline(false)
			<-p.done
			<-q.done
		}, 2},
		{"two who hang up join one each, a third is new", func(k *kit) {
			k.sim.SetOffline(true)
			var calls []*pendingCall
			for range 2 {
				calls = append(calls, k.begin(request("sendMessage", "application/json", hello)))
			}
			synctest.Wait()
			for _, p := range calls {
				p.hangUp()
				<-p.done
			}
			for range 3 {
				calls = append(calls, k.begin(request("sendMessage", "application/json", hello)))
			}
			synctest.Wait()
			k.sim.SetOffline(false)
			for _, p := range calls[2:] {
				<-p.done
			}
		}, 3},
		{"a call whose answer was read is over", func(k *kit) {
			k.call("sendMessage", hello)
			k.call("sendMessage", hello)
		}, 2},
		{"and the same call after it waits for nobody", func(k *kit) {
			k.call("sendMessage", hello)
			time.Sleep(1200 * time.Millisecond) // the gap in the chat
			from := time.Now()
			k.call("sendMessage", hello)
			if took := time.Since(from); took >= 50*time.Millisecond {
				k.t.Errorf("the second took %v", took)
			}
		}, 2},
		{"another text is another message", func(k *kit) {
			k.sim.SetOffline(true)
			p := k.begin(request("sendMessage", "application/json", other))
			synctest.Wait()
			p.hangUp()
			<-p.done
			k.sim.SetOffline(false)
			k.call("sendMessage", hello)
		}, 1},
		{"an end that nobody heard is told for a minute", func(k *kit) {
			k.sim.AddFault(telegramsim.Fault{Kind: telegramsim.FaultSlow, Delay: 5 * time.Second, Times: 1})
			p := k.begin(request("sendMessage", "application/json", hello))
			k.pass(time.Second)
			p.hangUp()
			<-p.done
			k.pass(50 * time.Second)
			k.call("sendMessage", hello)
		}, 1},
		{"and not longer", func(k *kit) {
			k.sim.AddFault(telegramsim.Fault{Kind: telegramsim.FaultSlow, Delay: 5 * time.Second, Times: 1})
			p := k.begin(request("sendMessage", "application/json", hello))
			k.pass(time.Second)
			p.hangUp()
			<-p.done
			k.pass(70 * time.Second)
			k.call("sendMessage", hello)
		}, 2},
		{"a restart keeps it", func(k *kit) {
			k.sim.SetOffline(true)
			p := k.begin(request("sendMessage", "application/json", hello))
			synctest.Wait()
			k.stopping()
			p.hangUp() // as the listener does with all requests
			if a := <-p.done; a.status != 429 {
				k.t.Errorf("at the stop: answer %d %s", a.status, a.body)
			}
			k.restart(true)
			k.sim.SetOffline(false)
			if a := k.call("sendMessage", hello); a.status != 200 {
				k.t.Errorf("answer %d %s", a.status, a.body)
			}
		}, 1},
		{"what was read before a restart is over", func(k *kit) {
			k.call("sendMessage", hello)
			k.restart(true)
			k.call("sendMessage", hello)
		}, 2},
		{"what was read before a kill is over after a moment", func(k *kit) {
			k.call("sendMessage", hello)
			k.pass(3 * time.Second)
			k.server = botserver.New(botserver.Config{Store: k.store, Bots: k}) // one that knows nothing
			k.handler = k.server.Handler(botserver.Access{})
			k.call("sendMessage", hello)
		}, 2},
		{"uncertain is told again, and never sent again", func(k *kit) {
			k.sim.AddFault(telegramsim.Fault{Kind: telegramsim.FaultResetAfterRead, Effect: true, Times: 1, Method: "sendMessage"})
			for range 3 {
				if a := k.call("sendMessage", hello); a.status != 409 {
					k.t.Errorf("answer %d %s", a.status, a.body)
				}
			}
		}, 1},
		{"respond-async joins nothing", func(k *kit) {
			k.call("sendMessage", hello, "Prefer", "respond-async")
			k.call("sendMessage", hello)
			synctest.Wait()
		}, 2},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			bubble(t, func(k *kit) {
				tt.scenario(k)
				k.sim.SetOffline(false)
				k.pass(time.Minute)
				if n := k.sim.CountText(7, "hello"); n != tt.hellos {
					t.Errorf("sent %d times, want %d", n, tt.hellos)
				}
			})
		})
	}
}

func TestHold_ACallInFlightIsAnsweredAtTheStop(t *testing.T) {
	bubble(t, func(k *kit) {
		k.sim.AddFault(telegramsim.Fault{Kind: telegramsim.FaultSlow, Delay: 2 * time.Second, Times: 1})
		inFlight := k.begin(request("sendMessage", "application/json", hello))
		synctest.Wait()
		queued := k.begin(request("sendMessage", "application/json", `{"chat_id":7,"text":"behind it"}`))
		synctest.Wait()
		k.stopping()
		inFlight.hangUp() // as the listener does with all requests
		queued.hangUp()
		if a := <-queued.done; a.status != 429 || a.json.Parameters.RetryAfter < 1 || a.header.Get("Tgspool-Job") != "2" {
			t.Errorf("the queued one: answer %d %s", a.status, a.body)
		}
		if a := <-inFlight.done; a.status != 200 {
			t.Errorf("the one in flight: answer %d %s", a.status, a.body)
		}
		k.restart(true)
		k.call("sendMessage", hello) // its answer was heard: this is another one
		if n := k.sim.CountText(7, "hello"); n != 2 {
			t.Errorf("sent %d times, want 2", n)
		}
	})
}

// A worker that is told to stop while a job is handed to it gives it back. The
// stop must not wait for an end that can't come any more.
func TestHold_ACallGivenBackAtTheStopIsAnsweredAtOnce(t *testing.T) {
	bubble(t, func(k *kit) {
		k.restart(false)
		p := k.begin(request("sendMessage", "application/json", hello))
		claim, err := k.bot.Claim(k.t.Context())
		k.must(err)
		k.stopping()
		p.hangUp() // as the listener does with all requests
		synctest.Wait()
		stopped := time.Now()
		_, err = k.bot.Settle(k.t.Context(), claim, spool.Verdict{State: spool.Pending, GiveBack: true})
		k.must(err)
		a := <-p.done
		if a.status != 429 || !strings.Contains(a.body, "stays queued") {
			t.Errorf("answer %d %s", a.status, a.body)
		}
		if d := time.Since(stopped); d > 0 {
			t.Errorf("the stop waited %s for a job that nobody sends", d)
		}
	})
}

func TestHold_ManyAtOnce(t *testing.T) {
	const callers = 500
	bubble(t, func(k *kit) {
		k.sim.SetOffline(true)
		calls := make([]*pendingCall, callers)
		for i := range calls {
			calls[i] = k.begin(request("sendMessage", "application/json", fmt.Sprintf(`{"chat_id":%d,"text":"n"}`, i+1)))
		}
		synctest.Wait()
		k.sim.SetOffline(false)
		for i, p := range calls {
			if a := <-p.done; a.status != 200 {
				t.Errorf("caller %d: %d %s", i, a.status, a.body)
			}
		}
	})
}
