package manage_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tgspool/tgspool/internal/manage"
	"github.com/tgspool/tgspool/internal/spool"
)

const updates = "/v1/bots/home/updates"

// arrive takes texts in that wait for a client: the ids of each chat.
func (w *world) arrive(chat int64, ids ...int64) {
	w.t.Helper()
	for _, id := range ids {
		_, err := w.bot.Intake(w.t.Context(), spool.Batch{Updates: []spool.NewUpdate{{
			ID: id, HasID: true, Kind: "message", OrderKey: fmt.Sprint("chat:", chat), Chat: &spool.ChatSeen{ID: chat},
			Raw: fmt.Appendf(nil, `{"update_id":%d,"message":{"chat":{"id":%d},"text":"x","n":9007199254740993}}`, id, chat),
		}}})
		if err != nil {
			w.t.Fatal(err)
		}
	}
}

// leased is an item of a claim's answer.
type leased struct {
	spool.Update
	Lease          string          `json:"lease"`
	LeaseUntil     time.Time       `json:"lease_until"`
	SessionKey     *string         `json:"session_key"`
	Session        json.RawMessage `json:"session"`
	SessionVersion int64           `json:"session_version"`
}

func (w *world) claim(body string) []leased {
	w.t.Helper()
	return into[struct{ Items []leased }](w.t, w.post(updates+"/claim", body), http.StatusOK).Items
}

func path(seq int64, verb string) string { return fmt.Sprintf("%s/%d/%s", updates, seq, verb) }

func TestLease_Complete(t *testing.T) {
	w := newWorld(t)
	w.arrive(5, 1, 2)
	w.arrive(6, 3)
	got := w.claim(`{"max":10,"lease":"60s","wait":"30s"}`)
	if len(got) != 2 || *got[0].UpdateID != 1 || *got[1].UpdateID != 3 {
		t.Fatalf("claimed %+v", got)
	}
	l := got[0]
	left := time.Until(l.LeaseUntil)
	if l.State != spool.UpdateLeased || l.Attempts != 1 || l.Lease == "" || left < 55*time.Second || left > time.Minute ||
		*l.SessionKey != "5" || string(l.Session) != "{}" || l.SessionVersion != 0 || !strings.Contains(string(l.Raw), "9007199254740993") {
		t.Errorf("item %+v", l)
	}
	body := fmt.Sprintf(`{"lease":%q,"jobs":[{"method":"sendMessage","params":{"chat_id":5,"text":"a"}},{"method":"sendMessage","chat":"family","params":{"text":"b"}}],
		"session":{"step":1},"session_version":0}`, l.Lease)
	u := into[spool.Update](t, w.post(path(l.Seq, "complete"), body), http.StatusOK)
	if u.State != spool.UpdateHandled || len(u.Jobs) != 2 {
		t.Fatalf("completed: %+v", u)
	}
	for i, id := range u.Jobs {
		job := into[spool.Job](t, w.get(fmt.Sprint("/v1/jobs/", id)), http.StatusOK)
		if *job.DedupeKey != fmt.Sprint("reply:1:", i+1) || job.Lane != spool.Interactive || job.Origin != "lease" {
			t.Errorf("job %+v", job)
		}
	}
	p := into[manage.Problem](t, w.post(path(l.Seq, "complete"), body), http.StatusConflict)
	if p.State != "handled" {
		t.Errorf("a second time: %+v", p)
	}

	// The next one of the chat has the session; a stale change leaves the lease.
	l = w.claim(`{}`)[0]
	if *l.UpdateID != 2 || string(l.Session) != `{"step":1}` || l.SessionVersion != 1 {
		t.Fatalf("then %+v", l)
	}
	body = fmt.Sprintf(`{"lease":%q,"jobs":[{"method":"sendDice","params":{"chat_id":5}}],"session":{"step":2}`, l.Lease)
	p = into[manage.Problem](t, w.post(path(l.Seq, "complete"), body+"}"), http.StatusPreconditionFailed)
	if p.Detail != "session 5 is there already, with version 1" {
		t.Errorf("detail %q", p.Detail)
	}
	u = into[spool.Update](t, w.post(path(l.Seq, "complete"), body+`,"session_version":1}`), http.StatusOK)
	s := into[spool.Session](t, w.get("/v1/bots/home/sessions/5"), http.StatusOK)
	if len(u.Jobs) != 1 || s.Version != 2 || string(s.Data) != `{"step":2}` || s.Key != "5" || s.UpdatedAt.IsZero() {
		t.Errorf("update %+v, session %+v", u, s)
	}
	if got := w.claim(``); len(got) != 0 {
		t.Errorf("more: %+v", got)
	}
}

func TestLease_FailAndExtend(t *testing.T) {
	w := newWorld(t)
	w.arrive(5, 1)
	w.arrive(6, 2)
	got := w.claim(`{"max":2,"lease":"1s"}`)
	longer := into[leased](t, w.post(path(got[0].Seq, "extend"), fmt.Sprintf(`{"lease":%q,"for":"10m"}`, got[0].Lease)), http.StatusOK)
	if left := time.Until(longer.LeaseUntil); left < 9*time.Minute || longer.State != spool.UpdateLeased || longer.Lease != got[0].Lease {
		t.Errorf("extended: %+v", longer)
	}
	u := into[spool.Update](t, w.post(path(got[0].Seq, "fail"), fmt.Sprintf(`{"lease":%q,"error":"no luck"}`, got[0].Lease)), http.StatusOK)
	if u.State != spool.UpdateOpen || *u.Error != "no luck" || u.NextAttemptAt == nil || u.Attempts != 1 {
		t.Errorf("failed: %+v", u)
	}
	u = into[spool.Update](t, w.post(path(got[1].Seq, "fail"), fmt.Sprintf(`{"lease":%q,"error":"never","permanent":true}`, got[1].Lease)), http.StatusOK)
	if u.State != spool.UpdateDead || *u.Error != "never" {
		t.Errorf("failed for good: %+v", u)
	}
	for _, verb := range []string{"complete", "fail", "extend"} {
		p := into[manage.Problem](t, w.post(path(got[1].Seq, verb), fmt.Sprintf(`{"lease":%q}`, got[1].Lease)), http.StatusConflict)
		if p.State != "dead" {
			t.Errorf("%s: %+v", verb, p)
		}
	}
	if list := into[list](t, w.get("/v1/bots/home/jobs"), http.StatusOK); len(list.Items) != 0 {
		t.Errorf("%d jobs", len(list.Items))
	}
}

// TestLease_HungUp: who has gone when an update is there leaves it to others.
func TestLease_HungUp(t *testing.T) {
	w := newWorld(t)
	w.arrive(5, 1)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	r := httptest.NewRequestWithContext(ctx, "POST", updates+"/claim", strings.NewReader(`{"wait":"10m"}`))
	w.api.ServeHTTP(httptest.NewRecorder(), r)
	if got := w.claim(``); len(got) != 1 || got[0].Attempts != 1 {
		t.Errorf("then %+v", got)
	}
}

// TestLease_BesidePolls: a client that polls and one that leases would each get
// a part.
func TestLease_BesidePolls(t *testing.T) {
	w := newWorld(t)
	done, err := w.bot.TakenBy(spool.ByPolls)
	if err != nil {
		t.Fatal(err)
	}
	done()
	p := into[manage.Problem](t, w.post(updates+"/claim", `{}`), http.StatusConflict)
	if !strings.Contains(p.Detail, "taken by getUpdates") {
		t.Errorf("detail %q", p.Detail)
	}
}

// TestLease_ManyWorkers: each update is had by one worker at a time, those of a
// chat one after the other, and each is completed once.
func TestLease_ManyWorkers(t *testing.T) {
	const chats, each, workers = 7, 20, 5
	w := newWorld(t)
	id := int64(0)
	for range each {
		for chat := range int64(chats) {
			id++
			w.arrive(chat+1, id)
		}
	}
	var mu sync.Mutex
	order, working := map[string][]int64{}, map[string]bool{}
	var completed atomic.Int64
	var all sync.WaitGroup
	for range workers {
		all.Go(func() {
			for completed.Load() < chats*each {
				for _, l := range w.claim(`{"max":3,"wait":"50ms"}`) {
					mu.Lock()
					if working[*l.SessionKey] {
						t.Errorf("two updates of chat %s at once", *l.SessionKey)
					}
					working[*l.SessionKey] = true
					order[*l.SessionKey] = append(order[*l.SessionKey], *l.UpdateID)
					mu.Unlock()
					var s struct{ N int64 }
					if err := json.Unmarshal(l.Session, &s); err != nil {
						t.Error(err)
					}
					mu.Lock()
					working[*l.SessionKey] = false
					mu.Unlock()
					a := w.post(path(l.Seq, "complete"), fmt.Sprintf(`{"lease":%q,"session":{"n":%d},"session_version":%d}`, l.Lease, s.N+1, l.SessionVersion))
					if a.status != http.StatusOK {
						t.Errorf("complete: %d %s", a.status, a.body)
					}
					completed.Add(1)
				}
			}
		})
	}
	all.Wait()
	for chat, ids := range order {
		s := into[spool.Session](t, w.get("/v1/bots/home/sessions/"+chat), http.StatusOK)
		if len(ids) != each || !slices.IsSorted(ids) || string(s.Data) != fmt.Sprintf(`{"n":%d}`, each) {
			t.Errorf("chat %s: %v, session %s", chat, ids, s.Data)
		}
	}
}
