package demo_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/tgspool/tgspool/internal/demo"
	"github.com/tgspool/tgspool/internal/spool"
	"github.com/tgspool/tgspool/internal/telegramsim"
)

// good is the record of a run without fault: two updates with three answers in
// two chats, a job from outside, one kill that met a call before it took effect
// and one after, and a lost answer.
func good() demo.Record {
	r := demo.Record{LostAnswers: 1, Floods: 1, Updates: []int64{100, 101}}
	for n, id := range r.Updates {
		r.Spool.Updates = append(r.Spool.Updates, spool.Update{Seq: int64(n + 1), UpdateID: &id, State: spool.UpdateHandled})
	}
	r.Expected = []demo.Message{
		{ChatID: 5, Text: "a"}, {ChatID: 6, Text: "b"}, {ChatID: 6, Text: "c"}, {ChatID: 5, Text: "d", JobID: 4},
	}
	states := []spool.State{spool.Done, spool.Uncertain, spool.Uncertain, spool.Done}
	for n, m := range r.Expected {
		r.Spool.Jobs = append(r.Spool.Jobs, job(int64(n+1), m, states[n]))
		r.Journal = append(r.Journal, arrival(n+1, m))
	}
	r.Expected = append(r.Expected, demo.Message{ChatID: 5, Text: "e"})
	r.Spool.Jobs = append(r.Spool.Jobs, job(5, r.Expected[4], spool.Uncertain))
	r.Journal[2].Answered = false                                                                                      // c
	r.Journal = append(r.Journal, telegramsim.Arrival{N: 5, Method: "sendMessage", ChatID: 5, Text: "d", Status: 429}) // the flood
	r.Kills = []demo.Kill{{Running: []int64{2}}, {Running: []int64{2, 5}}}
	return r
}

func job(id int64, m demo.Message, state spool.State) spool.Job {
	return spool.Job{
		ID: id, Method: "sendMessage", Lane: spool.Interactive, State: state,
		ChatID: json.RawMessage(fmt.Sprint(m.ChatID)), Params: json.RawMessage(fmt.Sprintf(`{"chat_id":%d,"text":%q}`, m.ChatID, m.Text)),
	}
}

func arrival(n int, m demo.Message) telegramsim.Arrival {
	return telegramsim.Arrival{
		N: n, Method: "sendMessage", ChatID: m.ChatID, Text: m.Text, Effect: true, Status: 200, Answered: true,
	}
}

func TestTally_Good(t *testing.T) {
	got := demo.Tally(good())
	for _, problem := range got.Problems {
		t.Error(problem)
	}
	line, err := json.Marshal(got)
	if err != nil {
		t.Fatal(err)
	}
	const want = `{"in":2,"handled":2,"sent":4,"lost":0,"doubled":0,"uncertain":3,"uncertain_arrived":2,"kills":2}`
	if string(line) != want {
		t.Errorf("got  %s\nwant %s", line, want)
	}
	if got.Allowed != 3 || got.Expected != 5 {
		t.Errorf("allowed %d, expected %d, want 3 and 5", got.Allowed, got.Expected)
	}
	causes := map[int64]string{2: "in flight at kill 2", 3: "its answer was lost", 5: "in flight at kill 2"}
	for _, d := range got.Doubts {
		if d.Cause != causes[d.JobID] || d.Arrived != (d.JobID != 5) {
			t.Errorf("job %d: cause %q, arrived %v", d.JobID, d.Cause, d.Arrived)
		}
	}
}

func TestTally_Faults(t *testing.T) {
	drop := func(r *demo.Record, text string) {
		kept := r.Journal[:0]
		for _, a := range r.Journal {
			if a.Text != text {
				kept = append(kept, a)
			}
		}
		r.Journal = kept
	}
	for name, c := range map[string]struct {
		spoil         func(*demo.Record)
		problem       string // part of one
		lost, doubled int
	}{
		"a message has not arrived": {
			func(r *demo.Record) { drop(r, "a") }, `"a" to 5 is lost: job 1 is done`, 1, 0,
		},
		"a queued message has not arrived": {
			func(r *demo.Record) { drop(r, "d") }, `"d" to 5 is lost: job 4 is done`, 1, 0,
		},
		"a job was never made": {
			func(r *demo.Record) { drop(r, "a"); r.Spool.Jobs = r.Spool.Jobs[1:] }, `"a" to 5 is lost: there is no job`, 1, 0,
		},
		"a job was given up": {
			func(r *demo.Record) { drop(r, "a"); r.Spool.Jobs[0].State = spool.Dead }, `job 1 is dead`, 1, 0,
		},
		"a job is still waiting": {
			func(r *demo.Record) { drop(r, "a"); r.Spool.Jobs[0].State = spool.Pending }, `job 1 is pending`, 1, 0,
		},
		"a job doesn't know that it has arrived": {
			func(r *demo.Record) { r.Spool.Jobs[0].State = spool.Pending }, `"a" to 5 has arrived, but job 1 is pending`, 0, 0,
		},
		"a message has arrived twice": {
			func(r *demo.Record) { r.Journal = append(r.Journal, arrival(6, r.Expected[0])) }, `"a" to 5 has arrived 2 times`, 0, 1,
		},
		"an uncertain message has arrived twice": {
			func(r *demo.Record) { r.Journal = append(r.Journal, arrival(6, r.Expected[1])) }, `"b" to 6 has arrived 2 times`, 0, 1,
		},
		"a message has gone elsewhere": {
			func(r *demo.Record) { r.Journal[0].ChatID = 7 }, `"a" has gone to 7 instead of 5`, 0, 0,
		},
		"nobody asked for a message": {
			func(r *demo.Record) { r.Journal = append(r.Journal, arrival(6, demo.Message{ChatID: 9, Text: "x"})) },
			`"x" to 9 has arrived, though nobody asked for it`, 0, 0,
		},
		"two jobs for one message": {
			func(r *demo.Record) { r.Spool.Jobs = append(r.Spool.Jobs, job(6, r.Expected[0], spool.Done)) },
			`jobs 1 and 6 are for one message`, 0, 0,
		},
		"a job has another id than the daemon said": {
			func(r *demo.Record) { r.Expected[3].JobID = 77 }, `was queued as job 77`, 0, 0,
		},
		"uncertain without a cause": {
			func(r *demo.Record) { r.Spool.Jobs[0].State = spool.Uncertain }, `job 1 is uncertain without a cause`, 0, 0,
		},
		"uncertain, not in flight, not arrived": {
			func(r *demo.Record) { r.Kills = r.Kills[:1] }, `job 5 is uncertain without a cause`, 0, 0,
		},
		"more uncertain than can be": {
			func(r *demo.Record) { r.LostAnswers = 0 }, `3 jobs are uncertain, and only 2 can be`, 0, 0,
		},
		"an update is not in the inbox": {
			func(r *demo.Record) { r.Updates = append(r.Updates, 102) }, `update 102 is not in the inbox`, 0, 0,
		},
		"an update is in the inbox twice": {
			func(r *demo.Record) { r.Spool.Updates = append(r.Spool.Updates, r.Spool.Updates[0]) }, `is in the inbox 2 times`, 0, 0,
		},
		"an update is not handled": {
			func(r *demo.Record) { r.Spool.Updates[0].State = spool.UpdateDead }, ` is dead`, 0, 0,
		},
		"a malformed update": {
			func(r *demo.Record) { r.Spool.Updates = append(r.Spool.Updates, spool.Update{Seq: 9}) }, `update 9 of the inbox is malformed`, 0, 0,
		},
		"out of order": {
			func(r *demo.Record) { r.Journal[0].N, r.Journal[3].N = 4, 1 }, `job 1 has arrived in chat 5 after job 4`, 0, 0,
		},
		"a flood that nobody asked for": {
			func(r *demo.Record) { r.Floods = 0 }, `answered 429 1 times, and 0 were asked for`, 0, 0,
		},
		"a refusal": {
			func(r *demo.Record) { r.Journal[4].Status = 400 }, `refused sendMessage to 5 with 400`, 0, 0,
		},
		"a store that doesn't fit together": {
			func(r *demo.Record) { r.Spool.Faults = []string{"job 3 is nowhere"} }, `job 3 is nowhere`, 0, 0,
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := good()
			c.spoil(&r)
			got := demo.Tally(r)
			if got.OK() {
				t.Fatal("nothing was found")
			}
			if all := strings.Join(got.Problems, "\n"); !strings.Contains(all, c.problem) {
				t.Errorf("found\n%s\nwant %q", all, c.problem)
			}
			if got.Lost != c.lost || got.Doubled != c.doubled {
				t.Errorf("lost %d, doubled %d, want %d and %d", got.Lost, got.Doubled, c.lost, c.doubled)
			}
		})
	}
}

// TestTally_Late: a query that was too old when its turn came isn't a fault, and
// its answers aren't lost; that they were sent all the same would be.
func TestTally_Late(t *testing.T) {
	late := func(kind string) demo.Record {
		r := good()
		id := int64(102)
		r.Updates = append(r.Updates, id)
		r.Spool.Updates = append(r.Spool.Updates, spool.Update{Seq: 3, UpdateID: &id, Kind: kind, State: spool.UpdateExpired})
		r.Expected = append(r.Expected, demo.Message{ChatID: 5, Text: "too late", UpdateID: id})
		return r
	}
	got := demo.Tally(late("inline_query"))
	if !got.OK() || got.Late != 1 || got.Lost != 0 || got.Expected != 5 || got.In != 3 || got.Handled != 2 {
		t.Errorf("%+v", got)
	}
	if got := demo.Tally(late("message")); got.OK() || got.Lost != 1 || got.Late != 0 {
		t.Errorf("a message that expired: %+v", got)
	}
	r := late("inline_query")
	r.Journal = append(r.Journal, arrival(6, r.Expected[5]))
	if got := demo.Tally(r); got.OK() {
		t.Errorf("an answer to a late query: %+v", got)
	}
}

// TestTally_OrderHolds: lanes and chats may overtake each other, and uncertain jobs have
// given up their place.
func TestTally_OrderHolds(t *testing.T) {
	for name, spoil := range map[string]func(*demo.Record){
		"another lane":   func(r *demo.Record) { r.Spool.Jobs[0].Lane = spool.Normal },
		"another chat":   func(r *demo.Record) { r.Journal[0].ChatID, r.Expected[0].ChatID = 8, 8 },
		"uncertain jobs": func(r *demo.Record) { r.Spool.Jobs[0].State = spool.Uncertain; r.Kills[0].Running = []int64{1, 2} },
	} {
		t.Run(name, func(t *testing.T) {
			r := good()
			spoil(&r)
			r.Journal[0].N, r.Journal[3].N = 4, 1
			for _, problem := range demo.Tally(r).Problems {
				t.Error(problem)
			}
		})
	}
}

func TestResult_Print(t *testing.T) {
	r := good()
	var out strings.Builder
	if err := demo.Tally(r).Print(&out); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"sent            4  of 5 expected messages", "lost            0", "doubled         0", "uncertain       3",
		"job 5      sendMessage to 5", "did not arrive  in flight at kill 2", "nothing lost, nothing doubled",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the table lacks %q:\n%s", want, out.String())
		}
	}
	for n := range 30 {
		r.Expected = append(r.Expected, demo.Message{ChatID: 1, Text: fmt.Sprint("missing ", n)})
	}
	out.Reset()
	if err := demo.Tally(r).Print(&out); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"FAILED:", "and 10 more", "lost           30"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the table lacks %q:\n%s", want, out.String())
		}
	}
}
