package manage_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/tgspool/tgspool/internal/manage"
	"github.com/tgspool/tgspool/internal/spool"
)

const sessions = "/v1/bots/home/sessions/"

// ask sends a request with headers, which come in pairs.
func (w *world) ask(method, path, body string, headers ...string) answer {
	w.t.Helper()
	r := httptest.NewRequestWithContext(w.t.Context(), method, path, strings.NewReader(body))
	for i := 0; i+1 < len(headers); i += 2 {
		r.Header.Add(headers[i], headers[i+1])
	}
	rec := httptest.NewRecorder()
	w.api.ServeHTTP(rec, r)
	return answer{rec.Code, rec.Header(), rec.Body.Bytes()}
}

// TestSession_OverHTTP walks one session through its life.
func TestSession_OverHTTP(t *testing.T) {
	w := newWorld(t)
	for i, step := range []struct {
		method, body, header, value string
		status                      int
		etag                        string
	}{
		{"GET", ``, "", "", 404, ``},
		{"DELETE", ``, "", "", 404, ``},
		{"PUT", `{"a": 1}`, "If-Match", `"1"`, 412, ``},
		{"PUT", `{"a": 1}`, "If-Match", `*`, 412, ``},
		{"PUT", `{"a": 1}`, "If-None-Match", `*`, 201, `"1"`},
		{"PUT", `{"a": 2}`, "If-None-Match", `*`, 412, ``},
		{"GET", ``, "", "", 200, `"1"`},
		{"GET", ``, "If-None-Match", `"1"`, 304, `"1"`},
		{"GET", ``, "If-None-Match", `"0", "7"`, 200, `"1"`},
		{"PUT", `{"a": 2}`, "If-Match", `"1"`, 200, `"2"`},
		{"PUT", `{"a": 3}`, "If-Match", `"1"`, 412, ``},
		{"PUT", `{"a": 3}`, "If-Match", `2`, 200, `"3"`},
		{"PUT", `{"a": 9007199254740993}`, "", "", 200, `"4"`},
		{"PUT", `{"a": 5}`, "If-Match", `*`, 200, `"5"`},
		{"DELETE", ``, "If-Match", `"4"`, 412, ``},
		{"DELETE", ``, "If-Match", `"5"`, 204, ``},
		{"GET", ``, "", "", 404, ``},
		{"PUT", `{}`, "", "", 201, `"6"`},
	} {
		var headers []string
		if step.header != "" {
			headers = []string{step.header, step.value}
		}
		a := w.ask(step.method, sessions+"-1001234567890:77", step.body, headers...)
		if a.status != step.status || a.header.Get("ETag") != step.etag {
			t.Errorf("step %d %+v: %d, ETag %s: %s", i, step, a.status, a.header.Get("ETag"), a.body)
		}
		if a.status >= 400 && a.header.Get("Content-Type") != "application/problem+json" {
			t.Errorf("step %d: %s", i, a.body)
		}
	}
	s := into[spool.Session](t, w.get(sessions+"family:77"), http.StatusOK) // by a name of the settings
	if s.Key != "-1001234567890:77" || s.Version != 6 || string(s.Data) != "{}" {
		t.Errorf("session %+v", s)
	}
}

func TestSession_List(t *testing.T) {
	w := newWorld(t)
	for _, key := range []string{"5", "-7", "me"} {
		into[spool.Session](t, w.ask("PUT", sessions+key, `{}`), http.StatusCreated)
	}
	var got []string
	for after := ""; ; {
		page := into[struct {
			Items []spool.Session
			Next  *string
		}](t, w.get("/v1/bots/home/sessions?limit=2"+after), http.StatusOK)
		for _, s := range page.Items {
			got = append(got, s.Key)
		}
		if page.Next == nil {
			break
		}
		after = "&after=" + *page.Next
	}
	if strings.Join(got, " ") != "-7 5 12345" {
		t.Errorf("sessions %v", got)
	}
}

func TestSession_BadInput(t *testing.T) {
	w := newWorld(t)
	w.arrive(5, 1)
	lease := w.claim(``)[0].Lease
	complete := func(rest string) [3]string {
		return [3]string{"POST", path(1, "complete"), fmt.Sprintf(`{"lease":%q,%s}`, lease, rest)}
	}
	big := `{"a":"` + strings.Repeat("x", spool.MaxSession) + `"}`
	for name, tt := range map[string]struct {
		req    [3]string // method, path, body
		status int
		detail string
	}{
		"key no number":       {[3]string{"GET", sessions + "nobody", ""}, 422, `"nobody" is no chat id`},
		"key without a user":  {[3]string{"GET", sessions + "5:", ""}, 422, "<chat>:<user>"},
		"key with a group":    {[3]string{"GET", sessions + "5:-7", ""}, 422, `"-7" is no user`},
		"key of an @name":     {[3]string{"GET", sessions + "@unmet", ""}, 404, "not found"},
		"no data":             {[3]string{"PUT", sessions + "5", ""}, 400, "not a JSON object"},
		"a list":              {[3]string{"PUT", sessions + "5", "[]"}, 400, "not a JSON object"},
		"cut off":             {[3]string{"PUT", sessions + "5", `{"a":`}, 400, "ends too early"},
		"too large":           {[3]string{"PUT", sessions + "5", big}, 413, "the most is 65536"},
		"after no key":        {[3]string{"GET", "/v1/bots/home/sessions?after=x", ""}, 400, "after"},
		"delete with a body":  {[3]string{"DELETE", sessions + "5", `{"a":1}`}, 422, `unknown member "a"`},
		"no lease":            {[3]string{"POST", path(1, "complete"), `{}`}, 422, `"lease" is missing`},
		"lease a number":      {[3]string{"POST", path(1, "complete"), `{"lease":5}`}, 422, `"lease" must be`},
		"lease of another":    {[3]string{"POST", path(1, "complete"), `{"lease":"abc"}`}, 409, "no longer held"},
		"lease no token":      {[3]string{"POST", path(1, "extend"), `{"lease":"?"}`}, 409, "no longer held"},
		"update unknown":      {[3]string{"POST", path(99, "fail"), `{"lease":"abc"}`}, 404, "not found"},
		"claim 0":             {[3]string{"POST", updates + "/claim", `{"max":0}`}, 422, `"max" must be from 1 to 100`},
		"claim a lot":         {[3]string{"POST", updates + "/claim", `{"max":101}`}, 422, `"max"`},
		"claim for ever":      {[3]string{"POST", updates + "/claim", `{"lease":"25h"}`}, 422, `"lease" must be from 1s to 24h`},
		"claim, wait":         {[3]string{"POST", updates + "/claim", `{"wait":5}`}, 422, `"wait" must be a duration`},
		"claim, member":       {[3]string{"POST", updates + "/claim", `{"limit":5}`}, 422, `unknown member "limit"; known here: max, lease, wait`},
		"claim, query":        {[3]string{"POST", updates + "/claim?max=5", ``}, 400, `unknown parameter "max"`},
		"jobs no list":        {complete(`"jobs":{}`), 422, `"jobs" must be a list`},
		"a job with a key":    {complete(`"jobs":[{"method":"getMe"},{"method":"getMe","dedupe_key":"k"}]`), 422, `job 2: "dedupe_key"`},
		"a job that is none":  {complete(`"jobs":[{"method":"sendDice","params":{"chat_id":5}},{"methd":"x"}]`), 422, `job 2: unknown member "methd"`},
		"session a list":      {complete(`"session":[]`), 422, "must be a JSON object"},
		"session too large":   {complete(`"session":` + big), 413, "the most is 65536"},
		"version negative":    {complete(`"session":{},"session_version":-1`), 422, `"session_version"`},
		"version a string":    {complete(`"session":{},"session_version":"1"`), 422, `"session_version" must be a whole number`},
		"permanent a string":  {[3]string{"POST", path(1, "fail"), fmt.Sprintf(`{"lease":%q,"permanent":"yes"}`, lease)}, 422, `"permanent" must be true or false`},
		"extend for a moment": {[3]string{"POST", path(1, "extend"), fmt.Sprintf(`{"lease":%q,"for":"1ms"}`, lease)}, 422, `"for" must be from 1s`},
	} {
		t.Run(name, func(t *testing.T) {
			p := into[manage.Problem](t, w.ask(tt.req[0], tt.req[1], tt.req[2]), tt.status)
			if !strings.Contains(p.Detail, tt.detail) {
				t.Errorf("detail %q, want one with %q", p.Detail, tt.detail)
			}
		})
	}
	for _, header := range [][2]string{{"If-Match", `"x"`}, {"If-Match", `"1`}, {"If-Match", `W/"1"`}, {"If-Match", `"1", "2"`}, {"If-None-Match", `"1"`}} {
		into[manage.Problem](t, w.ask("PUT", sessions+"5", `{}`, header[0], header[1]), http.StatusBadRequest)
	}
	into[manage.Problem](t, w.ask("PUT", sessions+"5", `{}`, "If-Match", `"1"`, "If-None-Match", "*"), http.StatusBadRequest)
	if u, err := w.bot.Update(1); err != nil || u.State != spool.UpdateLeased || len(u.Jobs) != 0 {
		t.Errorf("after nothing but refusals: %+v, %v", u, err)
	}
}

// TestSession_TenThousandConflicts reads, changes and writes one session from many
// sides, as programs do it over HTTP, until 10,000 writes were refused and made
// again.
func TestSession_TenThousandConflicts(t *testing.T) {
	const writers, conflicts = 24, 10_000
	w := newWorld(t)
	w.ask("PUT", sessions+"5", `{"n":0}`)
	var refused, written atomic.Int64
	var all sync.WaitGroup
	for range writers {
		all.Go(func() {
			for refused.Load() < conflicts {
				a := w.ask("GET", sessions+"5", "")
				var s struct{ Data struct{ N int64 } }
				if err := json.Unmarshal(a.body, &s); err != nil {
					t.Error(err)
					return
				}
				switch a := w.ask("PUT", sessions+"5", fmt.Sprintf(`{"n":%d}`, s.Data.N+1), "If-Match", a.header.Get("ETag")); a.status {
				case http.StatusOK:
					written.Add(1)
				case http.StatusPreconditionFailed:
					refused.Add(1)
				default:
					t.Errorf("%d %s", a.status, a.body)
					return
				}
			}
		})
	}
	all.Wait()
	s := into[spool.Session](t, w.get(sessions+"5"), http.StatusOK)
	if want := fmt.Sprintf(`{"n":%d}`, written.Load()); string(s.Data) != want || s.Version != written.Load()+1 {
		t.Errorf("in the end %s with version %d, want %s", s.Data, s.Version, want)
	}
	t.Logf("%d conflicts, %d changes", refused.Load(), written.Load())
}
