package spool_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tgspool/tgspool/internal/spool"
)

// long makes a text of n parts.
func long(chat string, n int) spool.NewJob {
	j := message(chat, "part 1")
	for i := range n - 1 {
		j.Parts = append(j.Parts, message(chat, "part "+string(rune('2'+i))))
	}
	return j
}

func (f *fixture) job(id int64) spool.Job {
	f.t.Helper()
	job, err := f.store.Job(id)
	if err != nil {
		f.t.Fatal(err)
	}
	return job
}

// TestParts_OneGroup: the parts of a text stand behind each other, over a restart,
// and a repeat of the key is answered with the first.
func TestParts_OneGroup(t *testing.T) {
	bubble(t, limits(), func(t *testing.T, f *fixture) {
		j := long("5", 3)
		j.DedupeKey, j.Lane = "k", spool.Bulk
		q := f.enqueue(j)[0]
		other := message("5", "after")
		other.Lane = spool.Bulk
		after := f.enqueue(other)[0].Job.ID
		if !slices.Equal(q.Parts, []int64{q.Job.ID, q.Job.ID + 1, q.Job.ID + 2}) || q.Job.Part == nil || *q.Job.Part != (spool.PartOf{Number: 1, Of: 3, Next: q.Parts[1]}) {
			t.Fatalf("%+v, %+v", q.Parts, q.Job.Part)
		}
		f.reopen()
		if again := f.enqueue(j)[0]; !again.Duplicate || again.Job.ID != q.Job.ID || !slices.Equal(again.Parts, q.Parts) {
			t.Errorf("again: %+v %v", again.Job.ID, again.Parts)
		}
		for _, want := range append(q.Parts, after) {
			c := f.mustClaim()
			if c.ID != want || c.Lane != spool.Bulk {
				t.Fatalf("job %d, %s, want %d", c.ID, c.Lane, want)
			}
			f.settle(c, spool.Verdict{State: spool.Done})
		}
		if again := f.enqueue(j)[0]; !again.Duplicate || again.Job.State != spool.Done {
			t.Errorf("at the end: %+v", again)
		}
	})
}

// TestParts_DieTogether: a text doesn't go on behind a part that was refused. What
// has gone out stays; other messages go on.
func TestParts_DieTogether(t *testing.T) {
	bubble(t, limits(), func(t *testing.T, f *fixture) {
		j := long("5", 4)
		j.DedupeKey = "k"
		q := f.enqueue(j)[0]
		after := f.send("5", "after")
		f.settle(f.mustClaim(), spool.Verdict{State: spool.Done})
		f.settle(f.mustClaim(), spool.Verdict{State: spool.Dead, Error: &spool.JobError{Class: "rejected", Description: "Bad Request: no"}})
		for _, id := range q.Parts[2:] {
			job := f.job(id)
			if job.State != spool.Dead || job.Attempts != 0 || job.LastError.Class != "part_dead" ||
				!strings.Contains(job.LastError.Description, "part 2 of 4 of the text is dead (job 2, rejected: Bad Request: no)") {
				t.Errorf("job %d: %s, %+v", id, job.State, job.LastError)
			}
		}
		if again := f.enqueue(j)[0]; !again.Duplicate {
			t.Error("a part has arrived, and the key is free")
		}
		if c := f.mustClaim(); c.ID != after {
			t.Errorf("job %d goes on, want %d", c.ID, after)
		}
		if _, err := f.store.Retry(t.Context(), q.Parts[2]); err != nil { // a person may send them all the same
			t.Error(err)
		}
	})
	bubble(t, limits(), func(t *testing.T, f *fixture) {
		j := long("5", 2)
		j.DedupeKey, j.NotBefore = "k", time.Now().Add(time.Minute)
		q := f.enqueue(j)[0]
		f.settle(f.claim(2*time.Minute), spool.Verdict{State: spool.Dead})
		if s := f.job(q.Parts[1]).State; s != spool.Dead {
			t.Errorf("the second part is %s", s)
		}
		if again := f.enqueue(j)[0]; again.Duplicate {
			t.Error("nothing has arrived, and the key is taken")
		}
	})
}

// TestParts_CancelledTogether: a text that is called off doesn't go on behind the
// part that was named. What has gone out stays.
func TestParts_CancelledTogether(t *testing.T) {
	bubble(t, limits(), func(t *testing.T, f *fixture) {
		q := f.enqueue(long("5", 4))[0]
		after := f.send("5", "after")
		f.settle(f.mustClaim(), spool.Verdict{State: spool.Done})
		if _, err := f.store.Cancel(t.Context(), q.Parts[1]); err != nil {
			t.Fatal(err)
		}
		f.wantState(q.Parts[0], spool.Done)
		for _, id := range q.Parts[1:] {
			if j := f.wantState(id, spool.Cancelled); j.LastError == nil || j.LastError.Class != "cancelled" {
				t.Errorf("job %d: %+v", id, j.LastError)
			}
		}
		if c := f.mustClaim(); c.ID != after {
			t.Errorf("job %d goes on, want %d", c.ID, after)
		}
	})
}

// TestParts_UncertainLetsPass: as with all jobs, what is uncertain holds nobody up.
func TestParts_UncertainLetsPass(t *testing.T) {
	bubble(t, limits(), func(t *testing.T, f *fixture) {
		q := f.enqueue(long("5", 3))[0]
		f.settle(f.mustClaim(), spool.Verdict{State: spool.Uncertain})
		c := f.mustClaim()
		if c.ID != q.Parts[1] {
			t.Fatalf("job %d", c.ID)
		}
		f.settle(c, spool.Verdict{State: spool.Dead})
		if s := f.job(q.Parts[0]).State; s != spool.Uncertain {
			t.Errorf("the first is %s", s)
		}
	})
}

// TestParts_InactiveChat: of a chat that may be tried again, the whole text tries.
func TestParts_InactiveChat(t *testing.T) {
	bubble(t, limits(), func(t *testing.T, f *fixture) {
		f.send("5", "x")
		f.settle(f.mustClaim(), spool.Verdict{State: spool.Dead, ChatGone: "Forbidden: bot was blocked by the user"})
		f.claim(8 * 24 * time.Hour)
		q := f.enqueue(long("5", 3))[0]
		for _, id := range q.Parts {
			if s := f.job(id).State; s != spool.Pending {
				t.Errorf("job %d is %s", id, s)
			}
		}
		f.settle(f.mustClaim(), spool.Verdict{State: spool.Dead, ChatGone: "Forbidden: bot was blocked by the user"})
		for _, id := range q.Parts {
			if s := f.job(id).State; s != spool.Dead {
				t.Errorf("job %d is %s after the refusal", id, s)
			}
		}
	})
}

// TestParts_OfAnUpdate: a long reply is one call of its update, all of whose jobs
// the update names.
func TestParts_OfAnUpdate(t *testing.T) {
	bubble(t, limits(), func(t *testing.T, f *fixture) {
		f.intake(text(500, 5))
		out, err := f.bot.Handled(t.Context(), f.lease(time.Minute), spool.Handling{Jobs: []spool.NewJob{long("5", 2), message("5", "b")}})
		if err != nil {
			t.Fatal(err)
		}
		u, err := f.bot.Update(1)
		if err != nil || len(out) != 2 || !slices.Equal(u.Jobs, []int64{1, 2, 3}) {
			t.Fatalf("jobs %v, %v", u.Jobs, err)
		}
		for id, want := range map[int64]string{1: "reply:500:1", 2: "", 3: "reply:500:2"} {
			if j := f.job(id); j.Lane != spool.Interactive || want == "" != (j.DedupeKey == nil) || want != "" && *j.DedupeKey != want {
				t.Errorf("job %d: %s, key %v", id, j.Lane, j.DedupeKey)
			}
		}
	})
}

func TestParts_Refused(t *testing.T) {
	bubble(t, limits(), func(t *testing.T, f *fixture) {
		for name, change := range map[string]func(*spool.NewJob){
			"a key":        func(p *spool.NewJob) { p.DedupeKey = "k" },
			"another chat": func(p *spool.NewJob) { p.Chat = "6" },
			"parts":        func(p *spool.NewJob) { p.Parts = []spool.NewJob{message("5", "x")} },
			"no method":    func(p *spool.NewJob) { p.Method = "" },
		} {
			j := long("5", 2)
			change(&j.Parts[0])
			if _, err := f.bot.Enqueue(t.Context(), j); err == nil {
				t.Errorf("a part with %s was taken", name)
			}
		}
	})
}

// TestParts_WaitTogether: a text whose beginning waits for another's result isn't
// begun in the middle, whatever becomes of that.
func TestParts_WaitTogether(t *testing.T) {
	for name, tt := range map[string]struct {
		end      spool.Verdict
		fallback bool
		want     spool.State
	}{
		"done":                  {spool.Verdict{State: spool.Done, Result: []byte(`{"message_id":9}`)}, false, spool.Pending},
		"dead":                  {spool.Verdict{State: spool.Dead}, false, spool.Dead},
		"dead, with a fallback": {spool.Verdict{State: spool.Dead}, true, spool.Pending},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, limits(), func(t *testing.T, f *fixture) {
				ack := message("5", "ack")
				ack.DedupeKey = "ack"
				f.enqueue(ack)
				j := refer("5", "ack")
				j.Parts = long("5", 3).Parts
				if tt.fallback {
					j.Fallback = &spool.NewFallback{Method: "sendMessage", Params: message("5", "instead").Params, Weight: 1}
				}
				q := f.enqueue(j)[0]
				c := f.mustClaim()
				f.reopen()
				if other := f.claim(time.Minute); other != nil && slices.Contains(q.Parts, other.ID) {
					t.Fatalf("job %d goes while job %d runs", other.ID, c.ID)
				}
				f.settleUncertain(c.ID, tt.end)
				for _, id := range q.Parts {
					if s := f.job(id).State; s != tt.want {
						t.Fatalf("job %d is %s, want %s", id, s, tt.want)
					}
				}
				after := f.send("5", "after")
				if tt.want == spool.Pending {
					for _, id := range append(q.Parts, after) {
						c := f.mustClaim()
						if c.ID != id {
							t.Fatalf("job %d goes, want %d", c.ID, id)
						}
						f.settle(c, spool.Verdict{State: spool.Done})
					}
				}
			})
		})
	}
}

// settleUncertain decides on a job that a restart has made uncertain.
func (f *fixture) settleUncertain(id int64, v spool.Verdict) {
	f.t.Helper()
	how := spool.Resolution{Outcome: "drop"}
	if v.State == spool.Done {
		how = spool.Resolution{Outcome: "sent", MessageID: 9}
	}
	if _, err := f.store.Resolve(f.t.Context(), id, how); err != nil {
		f.t.Fatal(err)
	}
}

// TestParts_GiveWay: a long text that is replaced goes as a whole, and so comes
// the one that replaces it.
func TestParts_GiveWay(t *testing.T) {
	bubble(t, limits(), func(t *testing.T, f *fixture) {
		j := long("5", 3)
		j.DedupeKey, j.Replace = "k", true
		old := f.enqueue(j)[0]
		between := f.send("5", "between")
		q := f.enqueue(j)[0]
		for _, id := range old.Parts {
			if job := f.job(id); job.State != spool.Cancelled || job.LastError.Class != "superseded" {
				t.Errorf("job %d is %s, %+v", id, job.State, job.LastError)
			}
		}
		for _, id := range append([]int64{between}, q.Parts...) {
			if c := f.mustClaim(); c.ID != id {
				t.Errorf("job %d, want %d", c.ID, id)
			} else {
				f.settle(c, spool.Verdict{State: spool.Done})
			}
		}
	})
}
