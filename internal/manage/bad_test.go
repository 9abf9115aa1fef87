package manage_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/tgspool/tgspool/internal/manage"
	"github.com/tgspool/tgspool/internal/spool"
)

// TestBadInput: everything wrong is refused in the API's own form, with words
// that name the culprit, and nothing is stored.
func TestBadInput(t *testing.T) {
	const jobs = "/v1/bots/home/jobs"
	post := func(body string) [4]string { return [4]string{"POST", jobs, "application/json", body} }
	get := func(path string) [4]string { return [4]string{"GET", path} }
	act := func(path, body string) [4]string { return [4]string{"POST", path, "application/json", body} }
	const huge = "99999999999999999999"
	tests := []struct {
		name   string
		req    [4]string // method, path, content type, body
		status int
		detail string
	}{
		{"no body", post(``), 400, "not a JSON object"},
		{"no object", post(`[]`), 400, "not a JSON object"},
		{"no JSON", post(`{"method"`), 400, "ends too early"},
		{"cut off", post(`{"method":"getMe"`), 400, "ends too early"},
		{"broken", post(`{"method":getMe}`), 400, "malformed near byte"},
		{"no UTF-8", post("{\"method\":\"get\xffMe\"}"), 400, "not UTF-8"},
		{"two values", post(`{"method":"getMe"}{"method":"getMe"}`), 400, "application/x-ndjson"},
		{"a member twice", post(`{"method":"getMe","method":"logOut"}`), 400, `"method" is given twice`},
		{"no method", post(`{}`), 422, `"method" is missing`},
		{"method null", post(`{"method":null}`), 422, `"method" is missing`},
		{"method a number", post(`{"method":5}`), 422, `"method" must be a string`},
		{"method impossible", post(`{"method":"../getMe"}`), 422, "can't be the name of a method"},
		{"method refused", post(`{"method":"getupdates"}`), 422, "getUpdates is refused"},
		{"unknown member", post(`{"method":"getMe","lanes":"bulk"}`), 422, `unknown member "lanes"; known here: method, params`},
		{"member in other case", post(`{"Method":"getMe"}`), 422, `unknown member "Method"`},
		{"split of no text", post(`{"method":"getMe","split":true}`), 422, `getMe has no text that could be split`},
		{"split", post(`{"method":"sendMessage","params":{"chat_id":1,"text":"x"},"split":"yes"}`), 422, `"split" must be true or false`},
		{"two fallbacks", post(`{"method":"sendMessage","params":{"chat_id":1,"text":"x"},"plain_fallback":true,"fallback":{"params":{"text":"y"}}}`), 422, `exclude each other`},
		{"fallback of another kind", post(`{"method":"getMe","fallback":true}`), 422, `"fallback" must be an object`},
		{"fallback without params", post(`{"method":"getMe","fallback":{"method":"getMe"}}`), 422, `"fallback" needs "params"`},
		{"fallback with more", post(`{"method":"getMe","fallback":{"params":{},"ttl":"1h"}}`), 422, `"fallback": unknown member "ttl"`},
		{"fallback of no method", post(`{"method":"getMe","fallback":{"method":"a b","params":{}}}`), 422, `the fallback: invalid: "a b" can't be`},
		{"fallback elsewhere", post(`{"method":"sendMessage","params":{"chat_id":1,"text":"x"},"fallback":{"params":{"chat_id":2,"text":"x"}}}`), 422, `must go to the same chat`},
		{"replace", post(`{"method":"getMe","replace":true}`), 422, `"replace" needs a "dedupe_key"`},
		{"a job's result", post(`{"method":"editMessageText","params":{"chat_id":1,"message_id":{"$job":"k"}}}`), 422, `no job holds the key "k"`},
		{"a job's result elsewhere", post(`{"method":"sendMessage","params":{"chat_id":{"$job":"k"},"text":"x"}}`), 422, `"chat_id" can't name another job's result`},
		{"a job's result without a key", post(`{"method":"editMessageText","params":{"chat_id":1,"message_id":{"$job":7}}}`), 422, `needs the dedupe key`},
		{"params a list", post(`{"method":"getMe","params":[1]}`), 422, `"params" must be an object`},
		{"params a string", post(`{"method":"getMe","params":"{}"}`), 422, `"params" must be an object`},
		{"chat a list", post(`{"method":"getMe","chat":[1]}`), 422, `"chat" must be`},
		{"chat a fraction", post(`{"method":"getMe","chat":1.5}`), 422, `"chat" must be`},
		{"chat huge", post(`{"method":"sendDice","chat":` + huge + `}`), 422, `"chat" must be`},
		{"chat huge in quotes", post(`{"method":"sendDice","chat":"` + huge + `"}`), 400, "out of range"},
		{"chat unknown", post(`{"method":"sendDice","chat":"famly"}`), 422, `"famly" is no chat id, no @name and no name in [bots.home.chats]`},
		{"chat and chat_id", post(`{"method":"sendDice","chat":"me","params":{"chat_id":5}}`), 422, "exclude each other"},
		{"lane unknown", post(`{"method":"getMe","lane":"fast"}`), 422, `unknown lane "fast"; known: interactive, normal, bulk`},
		{"lane a number", post(`{"method":"getMe","lane":1}`), 422, `"lane" must be one of`},
		{"policy unknown", post(`{"method":"getMe","on_uncertain":"pray"}`), 422, `unknown policy "pray"`},
		{"force a string", post(`{"method":"getMe","force":"yes"}`), 422, `"force" must be true or false`},
		{"attempts zero", post(`{"method":"getMe","max_attempts":0}`), 422, `"max_attempts" must be from 1`},
		{"attempts a fraction", post(`{"method":"getMe","max_attempts":1.5}`), 422, `"max_attempts" must be a whole number`},
		{"attempts huge", post(`{"method":"getMe","max_attempts":` + huge + `}`), 422, `"max_attempts" must be`},
		{"delay a number", post(`{"method":"getMe","delay":600}`), 422, `"delay" must be a duration like "10m"`},
		{"delay no duration", post(`{"method":"getMe","delay":"soon"}`), 422, `"delay": "soon" is not a duration`},
		{"delay negative", post(`{"method":"getMe","delay":"-1s"}`), 422, "is negative"},
		{"delay endless", post(`{"method":"getMe","delay":"9999999999d"}`), 422, "duration"},
		{"delay long", post(`{"method":"getMe","delay":"5000d"}`), 422, "over ten years"},
		{"delay and not_before", post(`{"method":"getMe","delay":"1m","not_before":"2026-01-02T03:04:05Z"}`), 422, "exclude each other"},
		{"not_before without zone", post(`{"method":"getMe","not_before":"2026-01-02 03:04"}`), 422, `"not_before" must be a time`},
		{"not_before far", post(`{"method":"getMe","not_before":"9999-01-02T03:04:05Z"}`), 422, "year 9999"},
		{"ttl and expires_at", post(`{"method":"getMe","expires_at":"2199-01-02T03:04:05Z","ttl":"1m"}`), 422, "exclude each other"},
		{"expired", post(`{"method":"getMe","expires_at":"2001-01-02T03:04:05Z"}`), 422, "expired at once"},
		{"ttl zero", post(`{"method":"getMe","ttl":"0s"}`), 422, "expired at once"},
		{"expires before it starts", post(`{"method":"getMe","delay":"2h","ttl":"1h"}`), 422, "expire before"},
		{"dedupe_for alone", post(`{"method":"getMe","dedupe_for":"1h"}`), 422, `needs a "dedupe_key"`},
		{"key too long", post(`{"method":"getMe","dedupe_key":"` + strings.Repeat("k", 257) + `"}`), 422, "longer than 256"},
		{"content type", [4]string{"POST", jobs, "text/plain", `{"method":"getMe"}`}, 415, `"text/plain" is not taken`},
		{"content type broken", [4]string{"POST", jobs, "a/b/c;;", `{"method":"getMe"}`}, 415, "can't be read"},
		{"oversize", post(`{"method":"sendMessage","params":{"text":"` + strings.Repeat("x", 8<<20) + `"}}`), 413, "larger than 8388608 bytes"},
		{"oversize many", [4]string{"POST", jobs, "application/x-ndjson", strings.Repeat("\n", 8<<20+1)}, 413, "larger than"},
		{"many, none", [4]string{"POST", jobs, "application/x-ndjson", "\n\n"}, 422, "holds no job"},
		{"many, wait", [4]string{"POST", jobs + "?wait=1s", "application/x-ndjson", `{"method":"getMe"}`}, 400, "only one job"},
		{"wait no duration", act(jobs+"?wait=long", `{"method":"getMe"}`), 400, `wait: "long" is not a duration`},
		{"wait negative", act(jobs+"?wait=-1s", `{"method":"getMe"}`), 400, "negative"},
		{"unknown bot", act("/v1/bots/hme/jobs", `{"method":"getMe"}`), 404, `there is no bot "hme"`},
		{"unconfigured bot", act("/v1/bots/away/jobs", `{"method":"getMe"}`), 409, "no usable token"},

		{"unknown filter", get(jobs + "?stat=dead"), 400, `unknown parameter "stat"; known here: limit, after, state`},
		{"unknown state", get(jobs + "?state=deaf"), 400, `unknown state "deaf"; known: pending, running`},
		{"unknown lane", get(jobs + "?lane=fast"), 400, `unknown lane "fast"`},
		{"unknown chat", get(jobs + "?chat=famly"), 422, `"famly" is no chat id`},
		{"impossible method", get(jobs + "?method=a-b"), 400, "can't be the name of a method"},
		{"empty filter", get(jobs + "?chat="), 400, `parameter "chat" is empty`},
		{"filter twice", get(jobs + "?state=dead&state=done"), 400, `"state" is given twice`},
		{"older no duration", get(jobs + "?older=old"), 400, `older: "old"`},
		{"limit zero", get(jobs + "?limit=0"), 400, "limit"},
		{"limit too high", get(jobs + "?limit=1001"), 400, "limit"},
		{"limit a word", get(jobs + "?limit=all"), 400, "limit"},
		{"after negative", get(jobs + "?after=-1"), 400, "after"},
		{"after huge", get(jobs + "?after=" + huge), 400, "after"},
		{"broken query", get(jobs + "?state=%zz"), 400, "query"},
		{"updates, job state", get("/v1/bots/home/updates?state=pending"), 400, `unknown state "pending"; known: open`},
		{"updates, job filter", get("/v1/bots/home/updates?chat=5"), 400, `unknown parameter "chat"`},
		{"status, parameter", get("/v1/status?pretty=1"), 400, `known here: none`},

		{"job a word", get("/v1/jobs/abc"), 400, `"abc" is no id`},
		{"job zero", get("/v1/jobs/0"), 400, `"0" is no id`},
		{"job negative", get("/v1/jobs/-5"), 400, `"-5" is no id`},
		{"job huge", get("/v1/jobs/" + huge), 400, "is no id"},
		{"job unknown", get("/v1/jobs/9223372036854775807"), 404, "not found"},
		{"why of unknown", get("/v1/jobs/123456/why"), 404, "not found"},
		{"update unknown", get("/v1/bots/home/updates/123456"), 404, "not found"},
		{"update a word", get("/v1/bots/home/updates/x"), 400, `"x" is no seq`},
		{"chat unknown here", act("/v1/bots/home/chats/99/activate", ``), 404, "not found"},
		{"chat no chat", act("/v1/bots/home/chats/nobody/activate", ``), 422, `"nobody" is no chat id`},

		{"verb unknown", act("/v1/jobs/1/kill", ``), 404, `no decision "kill"`},
		{"verb unknown, many", act(jobs+"/kill?state=dead", ``), 404, `no decision "kill"`},
		{"verb with a body", act("/v1/jobs/1/cancel", `{"why":"x"}`), 422, `unknown member "why"`},
		{"verb with a parameter", act("/v1/jobs/1/cancel?force=1", ``), 400, `unknown parameter "force"`},
		{"many without a filter", act(jobs+"/cancel", ``), 422, "name a filter, or all=true"},
		{"many, misspelt filter", act(jobs+"/cancel?chatt=5", ``), 400, `unknown parameter "chatt"`},
		{"many, empty filter", act(jobs+"/cancel?chat=", ``), 400, "is empty"},
		{"many, dry_run misspelt", act(jobs+"/cancel?state=held&dryrun=true", ``), 400, `unknown parameter "dryrun"`},
		{"many, dry_run no boolean", act(jobs+"/cancel?state=held&dry_run=yep", ``), 400, `dry_run "yep"`},
		{"resolve nothing", act("/v1/jobs/1/resolve", `{}`), 422, `"outcome" must be one of sent, resend, drop`},
		{"resolve unknown", act("/v1/jobs/1/resolve", `{"outcome":"lost"}`), 422, `"outcome" must be one of`},
		{"resolve, id a string", act("/v1/jobs/1/resolve", `{"outcome":"sent","message_id":"5"}`), 422, `"message_id" must be a whole number`},
		{"resolve, id zero", act("/v1/jobs/1/resolve", `{"outcome":"sent","message_id":0}`), 422, `above 0`},
		{"resolve, id with drop", act("/v1/jobs/1/resolve", `{"outcome":"drop","message_id":5}`), 422, `"sent" only`},
		{"resolve, member", act("/v1/jobs/1/resolve", `{"outcome":"drop","note":"x"}`), 422, `unknown member "note"`},

		{"unknown path", get("/v1/nothing"), 404, "no endpoint /v1/nothing"},
		{"other path", get("/"), 404, "no endpoint /"},
		{"method", [4]string{"DELETE", jobs}, 405, "DELETE is not possible here"},
		{"get a verb", get("/v1/jobs/1/cancel"), 405, "GET is not possible here; POST is"},
	}
	w := newWorld(t)
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			a := w.do(tt.req[0], tt.req[1], tt.req[2], tt.req[3])
			p := into[manage.Problem](t, a, tt.status)
			if !strings.Contains(p.Detail, tt.detail) {
				t.Errorf("detail %q, want one with %q", p.Detail, tt.detail)
			}
			if kind := a.header.Get("Content-Type"); kind != "application/problem+json" {
				t.Errorf("content type %q", kind)
			}
			if p.Status != tt.status || p.Title != http.StatusText(tt.status) || p.Type != "about:blank" {
				t.Errorf("problem %+v", p)
			}
		})
	}
	if got := into[list](t, w.get(jobs), http.StatusOK); len(got.Items) != 0 {
		t.Errorf("%d jobs after nothing but refusals", len(got.Items))
	}
	if strings.Contains(w.logs.String(), "level=ERROR") {
		t.Errorf("a caller's mistake is logged as our error: %s", w.logs.String())
	}
}

// TestConflict: a decision that comes too late says where the job is now.
func TestConflict(t *testing.T) {
	w := newWorld(t)
	done := w.end(1, spool.Done)
	for _, verb := range []string{"cancel", "hold", "release", "retry"} {
		p := into[manage.Problem](t, w.post(fmt.Sprintf("/v1/jobs/%d/%s", done.ID, verb), ""), http.StatusConflict)
		if p.State != "done" {
			t.Errorf("%s: state %q", verb, p.State)
		}
	}
	p := into[manage.Problem](t, w.post(fmt.Sprintf("/v1/jobs/%d/resolve", done.ID), `{"outcome":"drop"}`), http.StatusConflict)
	if p.State != "done" {
		t.Errorf("resolve: state %q", p.State)
	}
}
