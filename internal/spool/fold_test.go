package spool_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tgspool/tgspool/internal/spool"
)

// edit is an edit of message m of a chat.
func edit(method, chat string, m int, text string) spool.NewJob {
	j := message(chat, text)
	j.Method, j.SafeToRepeat, j.Edits = method, true, fmt.Sprint("/", chat, "/", m)
	return j
}

func (f *fixture) superseded(id int64, words string) {
	f.t.Helper()
	if j := f.wantState(id, spool.Cancelled); j.LastError == nil || j.LastError.Class != "superseded" || !strings.Contains(j.LastError.Description, words) {
		f.t.Errorf("job %d: %+v, want superseded, %s", id, j.LastError, words)
	}
}

func TestFold_NewestContentInTheFirstsPlace(t *testing.T) {
	bubble(t, limits(), func(t *testing.T, f *fixture) {
		busy := f.send("1", "in flight")
		c := f.mustClaim()
		first := f.enqueue(edit("editMessageText", "1", 5, "one"))[0].Job.ID
		behind := f.send("1", "behind")
		other := f.enqueue(edit("editMessageCaption", "1", 5, "of another method"))[0].Job.ID
		elsewhere := f.enqueue(edit("editMessageText", "1", 6, "of another message"))[0].Job.ID
		later := edit("editMessageText", "1", 5, "not yet")
		later.NotBefore = time.Now().Add(time.Hour)
		scheduled := f.enqueue(later)[0].Job.ID
		second := f.enqueue(edit("editMessageText", "1", 5, "two"))[0].Job.ID
		f.reopen()
		third := f.enqueue(edit("editMessageText", "1", 5, "three"))[0].Job.ID
		f.superseded(first, fmt.Sprintf("job %d took its place", second))
		f.superseded(second, fmt.Sprintf("job %d took its place", third))
		f.wantState(scheduled, spool.Pending)
		heard := make(chan spool.Job, 1)
		go func() {
			j, _ := f.store.Wait(f.t.Context(), first)
			heard <- j
		}()
		_ = c // its process has ended
		for _, want := range []int64{third, behind, other, elsewhere} {
			if got := f.mustClaim(); got.ID != want {
				t.Fatalf("job %d goes, want %d", got.ID, want)
			} else if f.done(got); want == third && !strings.Contains(string(got.Params), "three") {
				t.Errorf("it says %s", got.Params)
			}
		}
		if j := <-heard; j.ID != third || j.State != spool.Done {
			t.Errorf("who waits for the first hears of job %d, %s", j.ID, j.State)
		}
		f.wantState(busy, spool.Uncertain)
		if c := f.claim(2 * time.Hour); c == nil || c.ID != scheduled {
			t.Error("the scheduled edit is lost")
		} else {
			f.done(c)
		}
	})
}

func TestFold_RunningOnesDont(t *testing.T) {
	bubble(t, limits(), func(t *testing.T, f *fixture) {
		first := f.enqueue(edit("editMessageText", "1", 5, "one"))[0].Job.ID
		c := f.mustClaim()
		second := f.enqueue(edit("editMessageText", "1", 5, "two"))[0].Job.ID
		f.wantState(first, spool.Running)
		f.settle(c, spool.Verdict{State: spool.Pending, RetryAt: time.Now().Add(30 * time.Second)})
		f.wantState(second, spool.Pending)
		start := time.Now()
		third := f.enqueue(edit("editMessageText", "1", 5, "three"))[0].Job.ID // both are queued now
		f.superseded(first, "newer content")
		f.superseded(second, "newer content")
		if c := f.mustClaim(); c.ID != third || time.Since(start) < 30*time.Second || c.Attempts != 1 {
			t.Errorf("job %d goes after %s, attempt %d", c.ID, time.Since(start), c.Attempts)
		} else {
			f.done(c)
		}
	})
}

func TestFold_DeleteRemovesQueuedEdits(t *testing.T) {
	bubble(t, limits(), func(t *testing.T, f *fixture) {
		a := f.enqueue(edit("editMessageText", "1", 5, "a"), edit("editMessageReplyMarkup", "1", 5, "b"), edit("editMessageText", "1", 6, "c"))
		del := message("1", "")
		del.Method, del.Weight, del.SafeToRepeat, del.Deletes = "deleteMessage", 0, true, []string{"/1/5"}
		d := f.enqueue(del)[0].Job.ID
		f.superseded(a[0].Job.ID, fmt.Sprintf("job %d deletes the message", d))
		f.superseded(a[1].Job.ID, "deletes the message")
		f.wantState(a[2].Job.ID, spool.Pending)
		if j, err := f.store.Wait(f.t.Context(), a[0].Job.ID); err != nil || j.ID != a[0].Job.ID {
			t.Errorf("who waits for a removed edit hears of job %d, %v", j.ID, err)
		}
		for range 2 {
			f.done(f.mustClaim())
		}
		f.wantState(d, spool.Done)
	})
}

// TestFold_KeyOfASupersededOneStays: its key goes on naming it.
func TestFold_KeyOfASupersededOneStays(t *testing.T) {
	bubble(t, limits(), func(t *testing.T, f *fixture) {
		first := edit("editMessageText", "1", 5, "one")
		first.DedupeKey = "k"
		id := f.enqueue(first)[0].Job.ID
		f.enqueue(edit("editMessageText", "1", 5, "two"))
		if q := f.enqueue(first)[0]; !q.Duplicate || q.Job.ID != id || q.Job.State != spool.Cancelled {
			t.Errorf("the key made job %d, %s", q.Job.ID, q.Job.State)
		}
		if j, err := f.store.Retry(f.t.Context(), id); err != nil || j.State != spool.Pending {
			t.Errorf("a person can't bring it back: %v", err)
		}
	})
}

func TestReplace_PendingHolderOfTheKey(t *testing.T) {
	bubble(t, limits(), func(t *testing.T, f *fixture) {
		keyed := func(text string, replace bool) spool.NewJob {
			j := message("1", text)
			j.DedupeKey, j.DedupeFor, j.Replace = "k", time.Minute, replace
			return j
		}
		f.send("1", "before")
		c := f.mustClaim()
		first := f.enqueue(keyed("one", true))[0]
		f.send("1", "behind")
		second := f.enqueue(keyed("two", true))[0]
		if first.Duplicate || second.Duplicate {
			t.Error("a duplicate")
		}
		f.superseded(first.Job.ID, "newer content")
		if q := f.enqueue(keyed("three", false))[0]; !q.Duplicate || q.Job.ID != second.Job.ID {
			t.Errorf("the key is held by job %d", q.Job.ID)
		}
		f.done(c)
		got := f.mustClaim()
		if got.ID != second.Job.ID {
			t.Fatalf("job %d goes", got.ID)
		}
		if q := f.enqueue(keyed("four", true))[0]; !q.Duplicate || q.Job.State != spool.Running {
			t.Errorf("a running one was replaced by job %d", q.Job.ID)
		}
		f.done(got)
		if q := f.enqueue(keyed("five", true))[0]; !q.Duplicate {
			t.Error("one that has gone out was replaced")
		}
		f.done(f.mustClaim())
		time.Sleep(2 * time.Minute) // the key's span is over
		late := f.enqueue(keyed("six", true))[0]
		if late.Duplicate {
			t.Error("the key outlives its span")
		}
		if _, err := f.store.Cancel(f.t.Context(), late.Job.ID); err != nil {
			t.Error(err)
		}
	})
}

// refer is a call that names the message of the job of a key.
func refer(chat, k string) spool.NewJob {
	j := message(chat, "")
	j.Method, j.SafeToRepeat = "editMessageText", true
	j.Params = json.RawMessage(fmt.Sprintf(`{"chat_id":%q,"message_id":{"$job":%q},"text":"x"}`, chat, k))
	at := strings.Index(string(j.Params), `{"$job"`)
	j.Refs = []spool.Ref{{Key: k, Start: at, End: at + len(fmt.Sprintf(`{"$job":%q}`, k))}}
	j.Edits = "/" + chat + "/" + spool.RefMark
	return j
}

func named(chat, k string) spool.NewJob {
	j := message(chat, k)
	j.DedupeKey = k
	return j
}

func TestRef_TakesItsPlaceWhenTheResultIsThere(t *testing.T) {
	bubble(t, limits(), func(t *testing.T, f *fixture) {
		f.enqueue(named("1", "k"))
		c := f.mustClaim()
		waiting := f.enqueue(refer("1", "k"))[0].Job.ID
		folded := f.enqueue(refer("1", "k"))[0].Job.ID
		behind := f.send("1", "behind")
		f.superseded(waiting, "newer content")
		why, err := f.store.Why(folded)
		if g := gate(why, "waits_for_job"); err != nil || g.Open || !strings.Contains(g.Detail, "(k), which is running") {
			t.Errorf("gate %+v %v", g, err)
		}
		f.settle(c, spool.Verdict{State: spool.Uncertain, Reached: true})
		f.reopen()
		if b := f.mustClaim(); b.ID != behind {
			t.Errorf("job %d goes, those behind one that waits are held up", b.ID)
		} else {
			f.done(b)
		}
		if c := f.claim(time.Hour); c != nil {
			t.Fatalf("job %d goes without the result", c.ID)
		}
		if _, err := f.store.Resolve(f.t.Context(), 1, spool.Resolution{Outcome: "sent", MessageID: 77}); err != nil {
			t.Fatal(err)
		}
		got := f.mustClaim()
		if got.ID != folded || string(got.Params) != `{"chat_id":"1","message_id":77,"text":"x"}` {
			t.Errorf("job %d: %s", got.ID, got.Params)
		}
		f.done(got)
		if j := f.wantState(folded, spool.Done); !strings.Contains(string(j.Params), "$job") {
			t.Errorf("params are shown as %s", j.Params)
		}
		if late := f.enqueue(refer("1", "k"))[0].Job.ID; f.mustClaim().ID != late {
			t.Error("a result that is there is waited for")
		}
	})
}

func TestRef_DiesWithTheOther(t *testing.T) {
	bubble(t, limits(), func(t *testing.T, f *fixture) {
		f.enqueue(named("1", "k"))
		chained := refer("1", "k")
		chained.DedupeKey = "k2"
		a := f.enqueue(chained)[0].Job.ID
		b := f.enqueue(refer("2", "k2"))[0].Job.ID
		held := f.enqueue(refer("3", "k"))[0].Job.ID
		if _, err := f.store.Hold(f.t.Context(), held); err != nil {
			t.Fatal(err)
		}
		withFallback := refer("4", "k")
		withFallback.Fallback = &spool.NewFallback{Method: "sendMessage", Params: json.RawMessage(`{"chat_id":"4","text":"afresh"}`), Weight: 1}
		f.enqueue(withFallback)
		f.settle(f.mustClaim(), spool.Verdict{State: spool.Dead, Error: &spool.JobError{Class: "rejected", Description: "no"}})
		for _, id := range []int64{a, b} {
			if j := f.wantState(id, spool.Dead); j.LastError.Class != "waits_for_job" || !strings.Contains(j.LastError.Description, "is dead: ") {
				t.Errorf("job %d: %+v", id, j.LastError)
			}
		}
		if c := f.mustClaim(); c.Method != "sendMessage" || !strings.Contains(string(c.Params), "afresh") {
			t.Errorf("%s goes", c.Method)
		} else if j := f.done(c); j.LastError.Class != "waits_for_job" {
			t.Errorf("%+v", j.LastError)
		}
		if j, err := f.store.Release(f.t.Context(), held); err != nil || j.State != spool.Dead {
			t.Errorf("released it is %s, %v", j.State, err)
		}
		for _, j := range []spool.NewJob{refer("1", "k"), refer("1", "unknown")} { // a dead one has let its key go
			if _, err := f.bot.Enqueue(f.t.Context(), j); !errors.Is(err, spool.ErrInvalid) {
				t.Errorf("an unknown key: %v", err)
			}
		}
		both := f.enqueue(named("5", "n"), refer("5", "n")) // one posting, the key in it
		f.done(f.mustClaim())
		if c := f.mustClaim(); c.ID != both[1].Job.ID {
			t.Errorf("job %d goes", c.ID)
		}
	})
}

// TestRef_ManyWait: what is too much for one transaction is done in several.
func TestRef_ManyWait(t *testing.T) {
	bubble(t, limits(), func(t *testing.T, f *fixture) {
		jobs := []spool.NewJob{named("1", "k")}
		for i := range 600 {
			j := refer(fmt.Sprint(100+i), "k")
			jobs = append(jobs, j)
		}
		for i := range 40 { // each waits for the one before
			j := refer("9", fmt.Sprint("chain", i-1))
			if i == 0 {
				j = refer("9", "k")
			}
			j.Edits, j.DedupeKey = "", fmt.Sprint("chain", i)
			jobs = append(jobs, j)
		}
		made := f.enqueue(jobs...)
		f.settle(f.mustClaim(), spool.Verdict{State: spool.Dead, Error: &spool.JobError{Class: "rejected"}})
		time.Sleep(time.Second)
		synctest.Wait()
		for _, q := range made {
			f.wantState(q.Job.ID, spool.Dead)
		}
	})
}

func TestRef_HandlersAnswer(t *testing.T) {
	bubble(t, limits(), func(t *testing.T, f *fixture) {
		f.intake(text(9, 1))
		l := f.lease(time.Second)
		out, err := f.bot.Handled(f.t.Context(), l, spool.Handling{Jobs: []spool.NewJob{message("1", "ack"), refer("1", "nobody's")}})
		if err != nil {
			t.Fatal(err)
		}
		if j := f.wantState(out[1].Job.ID, spool.Dead); !strings.Contains(j.LastError.Description, `no job holds the key "nobody's"`) {
			t.Errorf("%+v", j.LastError)
		}
		after := f.enqueue(refer("1", "reply:9:1"))[0].Job.ID
		f.settle(f.mustClaim(), spool.Verdict{State: spool.Done, Result: json.RawMessage(`[{"message_id":4},{"message_id":5}]`)})
		if c := f.mustClaim(); c.ID != after || !strings.Contains(string(c.Params), `"message_id":4,`) {
			t.Errorf("job %d: %s", c.ID, c.Params)
		}
	})
}

// TestRef_OtherIsFolded: the result of the one that stands for it counts.
func TestRef_OtherIsFolded(t *testing.T) {
	bubble(t, limits(), func(t *testing.T, f *fixture) {
		first := edit("editMessageText", "1", 5, "one")
		first.DedupeKey = "k"
		f.enqueue(first)
		waiting := f.enqueue(refer("2", "k"))[0].Job.ID
		f.enqueue(edit("editMessageText", "1", 5, "two"))
		f.settle(f.mustClaim(), spool.Verdict{State: spool.Done, Result: json.RawMessage(`{"message_id":5}`)})
		if c := f.mustClaim(); c.ID != waiting || !strings.Contains(string(c.Params), `"message_id":5,`) {
			t.Errorf("job %d: %s", c.ID, c.Params)
		}
		cycle := named("3", "r")
		old := f.enqueue(cycle)[0].Job.ID
		f.enqueue(func() spool.NewJob { j := refer("3", "r"); j.DedupeKey = "s"; return j }())
		bad := refer("3", "s")
		bad.DedupeKey, bad.Replace = "r", true
		if _, err := f.bot.Enqueue(f.t.Context(), bad); !errors.Is(err, spool.ErrInvalid) {
			t.Errorf("a job waits for itself: %v", err)
		}
		f.wantState(old, spool.Pending)
	})
}

func gate(why spool.Why, name string) spool.Gate {
	for _, g := range why.Gates {
		if g.Name == name {
			return g
		}
	}
	return spool.Gate{}
}

// TestFold_BesideManyScheduled: thousands of edits that aren't due yet neither hide
// the queued one nor are they all read for each new one.
func TestFold_BesideManyScheduled(t *testing.T) {
	bubble(t, limits(), func(t *testing.T, f *fixture) {
		jobs := make([]spool.NewJob, 4000)
		for i := range jobs {
			jobs[i] = edit("editMessageText", "1", 5, "not yet")
			jobs[i].NotBefore = time.Now().Add(time.Hour)
		}
		f.enqueue(jobs...)
		for i := range jobs {
			jobs[i].NotBefore = time.Time{}
		}
		made := f.enqueue(jobs...) // sixteen million looks took minutes, in one transaction
		for _, q := range made[:len(made)-1] {
			f.superseded(q.Job.ID, "took its place")
		}
		f.wantState(made[len(made)-1].Job.ID, spool.Pending)
	})
}

// TestRef_Several: each number stands where its reference stood; so many are too
// many to be looked up by the writer.
func TestRef_Several(t *testing.T) {
	bubble(t, limits(), func(t *testing.T, f *fixture) {
		f.enqueue(named("1", "k"))
		f.settle(f.mustClaim(), spool.Verdict{State: spool.Done, Result: json.RawMessage(`{"message_id":12345}`)})
		j := message("1", "")
		j.Params = json.RawMessage(`{"chat_id":1,"message_ids":[K,7,K]}`)
		j.Refs = []spool.Ref{{Key: "k", Start: 28, End: 29}, {Key: "k", Start: 32, End: 33}}
		f.enqueue(j)
		if c := f.mustClaim(); string(c.Params) != `{"chat_id":1,"message_ids":[12345,7,12345]}` {
			t.Errorf("%s", c.Params)
		}
		j.Params, j.Refs = []byte(strings.Repeat("K", 101)), nil
		for i := range 101 {
			j.Refs = append(j.Refs, spool.Ref{Key: "k", Start: i, End: i + 1})
		}
		if _, err := f.bot.Enqueue(t.Context(), j); !errors.Is(err, spool.ErrInvalid) || !strings.Contains(err.Error(), "more than 100") {
			t.Errorf("101 references: %v", err)
		}
	})
}
