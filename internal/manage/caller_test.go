package manage_test

import (
	"encoding/json"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/tgspool/tgspool/internal/manage"
	"github.com/tgspool/tgspool/internal/spool"
)

// as makes all requests that follow those of a caller.
func (w *world) as(c *manage.Caller) *world {
	all := w.api
	other := *w
	other.api = http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) { all.ServeHTTP(rw, manage.As(r, c)) })
	return &other
}

func bell() *manage.Caller {
	return &manage.Caller{
		Name: `client "bell"`, Bot: "home", Origins: []string{"api:bell", "botapi:bell"},
		Lane: spool.Bulk, OnUncertain: spool.PolicyDrop, TTL: time.Hour,
		Check: func(method string, params json.RawMessage) error {
			if method != "sendMessage" || !strings.Contains(string(params), `"chat_id":12345`) {
				return errors.New(`client "bell" may send to me only`)
			}
			return nil
		},
	}
}

const ding = `{"method":"sendMessage","chat":"me","params":{"text":"ding"}}`

// TestCaller_PostsAndSeesItsOwn, with what its settings say of each job.
func TestCaller_PostsAndSeesItsOwn(t *testing.T) {
	w := newWorld(t)
	others := into[spool.Job](t, w.post("/v1/bots/home/jobs", ding), http.StatusCreated)
	c := w.as(bell())
	own := into[spool.Job](t, c.post("/v1/bots/home/jobs", ding), http.StatusCreated)
	if own.Origin != "api:bell" || own.Lane != spool.Bulk || own.OnUncertain != spool.PolicyDrop || own.ExpiresAt == nil {
		t.Errorf("job %+v", own)
	}
	note := into[spool.Job](t, c.do("POST", "/v1/bots/home/notify", "text/plain", "dong"), http.StatusCreated)
	if note.Lane != spool.Bulk || note.Origin != "api:bell" {
		t.Errorf("note %+v", note)
	}
	if all := into[list](t, c.get("/v1/bots/home/jobs"), http.StatusOK); len(all.Items) != 2 {
		t.Errorf("it sees %d jobs, want its own two", len(all.Items))
	}
	for path, status := range map[string]int{
		jobPath(own.ID): 200, jobPath(own.ID) + "/why": 200,
		jobPath(others.ID): 404, jobPath(others.ID) + "/why": 404, jobPath(others.ID) + "?wait=10m": 404,
		"/v1/bots/home/jobs?origin=cli": 403, "/v1/bots/home/jobs?origin=botapi:bell": 200,
		"/v1/bots/away/jobs": 403,
		"/v1/status":         403, "/v1/bots/home/updates": 403, "/v1/bots/home/chats": 403, "/v1/nothing": 403,
	} {
		if a := c.get(path); a.status != status {
			t.Errorf("GET %s: %d %s, want %d", path, a.status, a.body, status)
		}
	}
	for _, path := range []string{jobPath(own.ID) + "/cancel", "/v1/bots/home/jobs/cancel?state=pending", "/v1/reload", "/v1/db/backup"} {
		if a := c.post(path, ""); a.status != http.StatusForbidden {
			t.Errorf("POST %s: %d %s", path, a.status, a.body)
		}
	}
	if p := into[manage.Problem](t, c.get("/v1/status"), http.StatusForbidden); len(p.Bots) != 1 || p.Bots[0] != "home" {
		t.Errorf("the bots that it may name: %v", p.Bots)
	}
}

// TestCaller_Limits are refused with words that say whose limit it is, and
// nothing of a body with one such job is taken.
func TestCaller_Limits(t *testing.T) {
	w := newWorld(t)
	c := w.as(bell())
	for _, a := range []answer{
		c.post("/v1/bots/home/jobs", `{"method":"sendMessage","chat":"family","params":{"text":"x"}}`),
		c.post("/v1/bots/home/jobs", `{"method":"deleteMessage","chat":"me","params":{"message_id":1}}`),
		c.lines("/v1/bots/home/jobs", ding+"\n"+`{"method":"sendMessage","chat":"family","params":{"text":"x"}}`),
		c.do("POST", "/v1/bots/home/notify?chat=family", "text/plain", "x"),
	} {
		if p := into[manage.Problem](t, a, http.StatusForbidden); !strings.Contains(p.Detail, `client "bell" may send to me only`) {
			t.Errorf("detail %q", p.Detail)
		}
	}
	slow := bell()
	slow.Take = func() time.Duration { return 1500 * time.Millisecond }
	a := w.as(slow).post("/v1/bots/home/jobs", ding)
	if a.status != http.StatusTooManyRequests || a.header.Get("Retry-After") != "2" {
		t.Errorf("over its rate: %d %s, again after %q", a.status, a.body, a.header.Get("Retry-After"))
	}
	if all := into[list](t, w.get("/v1/bots/home/jobs"), http.StatusOK); len(all.Items) != 0 {
		t.Errorf("%d jobs were taken", len(all.Items))
	}
}

// TestCaller_KeyOfOthers: a key says that there is a job, not what is in it.
func TestCaller_KeyOfOthers(t *testing.T) {
	w := newWorld(t)
	const keyed = `{"method":"sendMessage","chat":"me","params":{"text":"secret"},"dedupe_key":"k"}`
	first := into[spool.Job](t, w.post("/v1/bots/home/jobs", keyed), http.StatusCreated)
	a := w.as(bell()).post("/v1/bots/home/jobs?wait=1ms", keyed)
	got := into[spool.Job](t, a, http.StatusOK)
	if got.ID != first.ID || got.State != spool.Pending || strings.Contains(string(a.body), "secret") {
		t.Errorf("answer %s", a.body)
	}
}

func jobPath(id int64) string { return "/v1/jobs/" + strconv.FormatInt(id, 10) }

// TestCaller_Fallback: a second call is held to the same limits.
func TestCaller_Fallback(t *testing.T) {
	c := newWorld(t).as(bell())
	a := c.post("/v1/bots/home/jobs", `{"method":"sendMessage","chat":"me","params":{"text":"x"},"fallback":{"method":"sendMessage","params":{"chat_id":5,"text":"x"}}}`)
	if p := into[manage.Problem](t, a, http.StatusForbidden); !strings.Contains(p.Detail, "fallback") || !strings.Contains(p.Detail, "bell") {
		t.Errorf("detail %q", p.Detail)
	}
}

// TestCaller_ReplacesItsOwnOnly: a job of somebody else's keeps its place and content.
func TestCaller_ReplacesItsOwnOnly(t *testing.T) {
	w := newWorld(t)
	c := w.as(bell())
	const keyed = `{"method":"sendMessage","chat":"me","params":{"text":"x"},"dedupe_key":"k","replace":true}`
	others := into[spool.Job](t, w.post("/v1/bots/home/jobs", keyed), http.StatusCreated)
	if got := into[spool.Job](t, c.post("/v1/bots/home/jobs", keyed), http.StatusOK); got.ID != others.ID || string(got.Params) != "null" {
		t.Errorf("job %+v", got)
	}
	again := into[spool.Job](t, w.post("/v1/bots/home/jobs", keyed), http.StatusCreated)
	waited := into[spool.Job](t, w.get(jobPath(others.ID)+"?wait=1ms"), http.StatusOK)
	if plain := into[spool.Job](t, w.get(jobPath(others.ID)), http.StatusOK); waited.ID != again.ID || plain.State != spool.Cancelled {
		t.Errorf("waited for: job %d, want %d; looked at: %s", waited.ID, again.ID, plain.State)
	}
}
