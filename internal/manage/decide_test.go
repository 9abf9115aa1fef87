package manage_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tgspool/tgspool/internal/gate"
	"github.com/tgspool/tgspool/internal/spool"
)

func TestDecisions(t *testing.T) {
	w := newWorld(t)
	decide := func(job spool.Job, verb, body string) spool.Job {
		t.Helper()
		return into[spool.Job](t, w.post(fmt.Sprintf("/v1/jobs/%d/%s", job.ID, verb), body), http.StatusOK)
	}
	job := w.queue(1)
	for _, step := range []struct {
		verb string
		want spool.State
	}{
		{"hold", spool.Held},
		{"release", spool.Pending},
		{"hold", spool.Held},
		{"cancel", spool.Cancelled},
		{"retry", spool.Pending},
		{"cancel", spool.Cancelled},
	} {
		if got := decide(job, step.verb, ""); got.State != step.want {
			t.Errorf("%s: %s, want %s", step.verb, got.State, step.want)
		}
	}
	unsure := w.end(2, spool.Uncertain)
	if got := decide(unsure, "resolve", `{"outcome":"sent","message_id":9007199254740993}`); got.State != spool.Done ||
		!strings.Contains(string(got.Result), "9007199254740993") {
		t.Errorf("resolved: %s %s", got.State, got.Result)
	}
	if got := decide(w.end(3, spool.Uncertain), "resolve", `{"outcome":"drop","message_id":null}`); got.State != spool.Cancelled {
		t.Errorf("dropped: %s", got.State)
	}
	if got := decide(w.end(4, spool.Uncertain), "resolve", `{"outcome":"resend"}`); got.State != spool.Pending {
		t.Errorf("resent: %s", got.State)
	}
	for _, want := range []string{"job decided by a person", fmt.Sprintf("job_id=%d", unsure.ID), "state=done"} {
		if !strings.Contains(w.logs.String(), want) {
			t.Errorf("the log lacks %q", want)
		}
	}
}

func TestDecideMany(t *testing.T) {
	w := newWorld(t)
	dead := w.end(3, spool.Dead)
	a, b, other := w.queue(1), w.queue(1), w.queue(2)
	held := w.queue(1)
	into[spool.Job](t, w.post(fmt.Sprintf("/v1/jobs/%d/hold", held.ID), ""), http.StatusOK)

	type tally struct{ Matched, Changed, Skipped int }
	many := func(query string) tally {
		t.Helper()
		return into[tally](t, w.post("/v1/bots/home/jobs/"+query, ""), http.StatusOK)
	}
	state := func(job spool.Job) spool.State {
		t.Helper()
		got, err := w.store.Job(job.ID)
		if err != nil {
			t.Fatal(err)
		}
		return got.State
	}
	if got := many("cancel?chat=1&dry_run=true"); got != (tally{3, 0, 0}) || state(a) != spool.Pending {
		t.Errorf("dry run: %+v, job %s", got, state(a))
	}
	if got := many("cancel?chat=1&state=pending"); got != (tally{2, 2, 0}) {
		t.Errorf("cancel: %+v", got)
	}
	if state(a) != spool.Cancelled || state(b) != spool.Cancelled || state(held) != spool.Held || state(other) != spool.Pending {
		t.Errorf("states %s %s %s %s", state(a), state(b), state(held), state(other))
	}
	if got := many("cancel?state=dead"); got != (tally{1, 0, 1}) || state(dead) != spool.Dead {
		t.Errorf("cancel of the dead: %+v", got)
	}
	if got := many("retry?all=true"); got != (tally{3, 3, 0}) {
		t.Errorf("retry of all: %+v", got)
	}
	if got := many("hold?method=sendmessage"); got != (tally{4, 4, 0}) {
		t.Errorf("hold by method: %+v", got)
	}
	if got := many("release?chat=family"); got != (tally{}) {
		t.Errorf("release of a chat without jobs: %+v", got)
	}
	if got := many("release?origin=api&older=0s"); got != (tally{5, 5, 0}) {
		t.Errorf("release: %+v", got)
	}
	if got := many("cancel?older=1h"); got != (tally{}) {
		t.Errorf("cancel of old ones: %+v", got)
	}
}

// TestDecideMany_Order: what is brought back by filter keeps its order.
func TestDecideMany_Order(t *testing.T) {
	w := newWorld(t)
	var want []int64
	for range 100 {
		want = append(want, w.queue(1).ID)
	}
	w.post("/v1/bots/home/jobs/hold?all=true", "")
	w.post("/v1/bots/home/jobs/release?all=true", "")
	var got []int64
	for range want {
		got = append(got, w.attempt(spool.Verdict{State: spool.Done}).ID)
	}
	if !slices.Equal(got, want) {
		t.Errorf("order %v", got)
	}
}

func TestListJobs(t *testing.T) {
	w := newWorld(t)
	var ids []int64
	for n := range 130 {
		ids = append(ids, w.queue(int64(n%2+1)).ID)
	}
	walk := func(query string) []int64 {
		t.Helper()
		var got []int64
		after := ""
		for {
			page := into[list](t, w.get("/v1/bots/home/jobs?"+query+after), http.StatusOK)
			for _, raw := range page.Items {
				var job spool.Job
				if err := json.Unmarshal(raw, &job); err != nil {
					t.Fatal(err)
				}
				got = append(got, job.ID)
			}
			if page.Next == nil {
				return got
			}
			after = "&after=" + *page.Next
		}
	}
	if got := walk("limit=7"); !slices.Equal(got, ids) {
		t.Errorf("by sevens: %v", got)
	}
	if got := walk("limit=1000"); !slices.Equal(got, ids) {
		t.Errorf("at once: %v", got)
	}
	if got := walk("limit=50&chat=1"); len(got) != 65 || got[1] != ids[2] {
		t.Errorf("of one chat: %v", got)
	}
	first := into[list](t, w.get("/v1/bots/home/jobs"), http.StatusOK)
	if len(first.Items) != 100 || first.Next == nil {
		t.Errorf("a page holds %d", len(first.Items))
	}
	if a := w.get("/v1/bots/home/jobs?state=dead"); string(a.body) != `{"items":[],"next":null}`+"\n" {
		t.Errorf("an empty list: %s", a.body)
	}
	if got := into[list](t, w.get("/v1/bots/home/jobs?key=none"), http.StatusOK); len(got.Items) != 0 {
		t.Errorf("by an unknown key: %d", len(got.Items))
	}
}

// TestList_Bytes: a page of big records ends early, and the next goes on there.
func TestList_Bytes(t *testing.T) {
	w := newWorld(t)
	params := json.RawMessage(`{"text":"` + strings.Repeat("x", 3<<20) + `"}`)
	for range 5 {
		if _, err := w.bot.Enqueue(t.Context(), spool.NewJob{Method: "sendMessage", Params: params}); err != nil {
			t.Fatal(err)
		}
	}
	total, pages, after := 0, 0, ""
	for {
		page := into[list](t, w.get("/v1/bots/home/jobs?limit=1000"+after), http.StatusOK)
		total, pages = total+len(page.Items), pages+1
		if page.Next == nil {
			break
		}
		after = "&after=" + *page.Next
	}
	if total != 5 || pages != 2 {
		t.Errorf("%d records on %d pages, want 5 on 2", total, pages)
	}
}

func TestWhy(t *testing.T) {
	w := newWorld(t)
	job := w.queue(1)
	path := fmt.Sprintf("/v1/jobs/%d/why", job.ID)
	find := func(why spool.Why, name string) spool.Gate {
		t.Helper()
		i := slices.IndexFunc(why.Gates, func(g spool.Gate) bool { return g.Name == name })
		if i < 0 {
			t.Fatalf("no gate %s in %+v", name, why.Gates)
		}
		return why.Gates[i]
	}
	why := into[spool.Why](t, w.get(path), http.StatusOK)
	for _, name := range []string{"bot_rate", "bot_cooldown", "not_before", "retry", "order", "paused", "offline", "unauthorized"} {
		if !find(why, name).Open {
			t.Errorf("gate %s is shut", name)
		}
	}
	if why.Job.ID != job.ID || why.NextAttemptAt != nil {
		t.Errorf("why %+v", why)
	}

	until := time.Now().Add(time.Hour).UTC().Truncate(time.Second)
	view := w.bots.views["home"]
	view.Sender = gate.Snapshot{State: gate.StateCooldown, CooldownUntil: until}
	w.bots.views["home"] = view
	into[spool.Job](t, w.post("/v1/bots/home/jobs", `{"method":"sendMessage","params":{"chat_id":2,"text":"x"},"delay":"1m"}`), http.StatusCreated)
	why = into[spool.Why](t, w.get(fmt.Sprintf("/v1/jobs/%d/why", job.ID+1)), http.StatusOK)
	if g := find(why, "bot_cooldown"); g.Open || !g.OpensAt.Equal(until) {
		t.Errorf("cooldown %+v", g)
	}
	if why.NextAttemptAt == nil || !why.NextAttemptAt.Equal(until) {
		t.Errorf("next attempt at %v, want %v", why.NextAttemptAt, until)
	}

	view.Sender = gate.Snapshot{State: gate.StateOffline, Detail: "no such host"}
	w.bots.views["home"] = view
	why = into[spool.Why](t, w.get(path), http.StatusOK)
	if g := find(why, "offline"); g.Open || g.Detail != "no such host" || why.NextAttemptAt != nil {
		t.Errorf("offline %+v, next %v", g, why.NextAttemptAt)
	}
}

func TestUpdates(t *testing.T) {
	w := newWorld(t)
	_, err := w.bot.Intake(t.Context(), spool.Batch{Updates: []spool.NewUpdate{
		{ID: 9007199254740993, HasID: true, Kind: "message", OrderKey: "chat:5", Raw: []byte(`{"update_id":9007199254740993,"n":1.50}`), Route: spool.Route{Handler: "h"}},
		{Kind: "malformed", Raw: []byte("\xff"), Error: "not an object"},
	}})
	if err != nil {
		t.Fatal(err)
	}
	page := into[struct{ Items []spool.Update }](t, w.get("/v1/bots/home/updates"), http.StatusOK).Items
	if len(page) != 2 || *page[0].UpdateID != 9007199254740993 || page[1].UpdateID != nil || page[1].State != spool.UpdateDead {
		t.Fatalf("updates %+v", page)
	}
	path := fmt.Sprintf("/v1/bots/home/updates/%d", page[0].Seq)
	if a := w.get(path); !strings.Contains(string(a.body), `{"update_id":9007199254740993,"n":1.50}`) {
		t.Errorf("the update changed: %s", a.body)
	}
	if got := into[spool.Update](t, w.post(path+"/drop", ""), http.StatusOK); got.State != spool.UpdateIgnored {
		t.Errorf("dropped: %s", got.State)
	}
	if got := into[spool.Update](t, w.post(path+"/replay?fresh=true", "{}"), http.StatusOK); got.State != spool.UpdateOpen {
		t.Errorf("replayed: %s", got.State)
	}
	if a := w.post(path+"/replay", ""); a.status != http.StatusConflict {
		t.Errorf("replay of an open one: %d", a.status)
	}
	if got := into[list](t, w.get("/v1/bots/home/updates?state=dead"), http.StatusOK); len(got.Items) != 1 {
		t.Errorf("%d dead updates", len(got.Items))
	}
}

func TestChats(t *testing.T) {
	w := newWorld(t)
	w.queue(-1001234567890)
	if got := into[struct{ Items []spool.Chat }](t, w.get("/v1/bots/home/chats"), http.StatusOK).Items; len(got) != 1 || *got[0].ChatID != -1001234567890 || !got[0].Active {
		t.Fatalf("chats %+v", got)
	}
	off := into[spool.Chat](t, w.post("/v1/bots/home/chats/family/deactivate", `{"reason":"holidays"}`), http.StatusOK)
	if off.Active || *off.InactiveReason != "holidays" {
		t.Errorf("deactivated %+v", off)
	}
	refused := w.post("/v1/bots/home/jobs", `{"method":"sendDice","chat":"family"}`)
	if refused.status != http.StatusConflict || !strings.Contains(string(refused.body), "holidays") {
		t.Errorf("a job for it: %d %s", refused.status, refused.body)
	}
	if a := w.post("/v1/bots/home/jobs", `{"method":"sendDice","chat":"family","force":true}`); a.status != http.StatusCreated {
		t.Errorf("forced: %d %s", a.status, a.body)
	}
	on := into[spool.Chat](t, w.post("/v1/bots/home/chats/-1001234567890/activate", ""), http.StatusOK)
	if !on.Active || on.InactiveReason != nil {
		t.Errorf("activated %+v", on)
	}
}
