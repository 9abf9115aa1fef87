package botserver_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tgspool/tgspool/internal/botserver"
	"github.com/tgspool/tgspool/internal/spool"
	"github.com/tgspool/tgspool/internal/wire"
)

// app is the program behind a webhook, reached without a socket.
type app struct {
	mu     sync.Mutex
	got    []string // "<update id>@<seconds since the start>"
	open   int      // requests under way
	most   int      // of them, at once
	start  time.Time
	last   *http.Request
	body   string
	answer func(id int64, nth int) (*http.Response, error)
	count  map[int64]int
}

func newApp(answer func(id int64, nth int) (*http.Response, error)) *app {
	return &app{answer: answer, count: map[int64]int{}}
}

// RoundTrip takes an update.
func (a *app) RoundTrip(r *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	var u struct {
		ID int64 `json:"update_id"`
	}
	if err := json.Unmarshal(body, &u); err != nil {
		return nil, err
	}
	a.mu.Lock()
	if a.start.IsZero() {
		a.start = time.Now()
	}
	a.count[u.ID]++
	nth := a.count[u.ID]
	a.got = append(a.got, fmt.Sprintf("%d@%d", u.ID, int(time.Since(a.start).Seconds())))
	a.last, a.body = r, string(body)
	a.open++
	a.most = max(a.most, a.open)
	a.mu.Unlock()
	defer func() {
		a.mu.Lock()
		a.open--
		a.mu.Unlock()
	}()
	return a.answer(u.ID, nth)
}

func (a *app) seen() string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return strings.Join(a.got, " ")
}

// say makes an answer.
func say(status int, contentType, body string, headers ...string) (*http.Response, error) {
	h := http.Header{}
	if contentType != "" {
		h.Set("Content-Type", contentType)
	}
	for i := 0; i+1 < len(headers); i += 2 {
		h.Set(headers[i], headers[i+1])
	}
	return &http.Response{StatusCode: status, Header: h, Body: io.NopCloser(strings.NewReader(body))}, nil
}

func fine(int64, int) (*http.Response, error) { return say(200, "", "") }

func pushTo(a *app) func(*botserver.Config) {
	return func(c *botserver.Config) { c.Pusher = wire.NewPusher(nil, a) }
}

const hookURL = `"url":"http://localhost:3000/secret-path"`

func (k *kit) setWebhook(more string) {
	k.t.Helper()
	if a := k.call("setWebhook", `{`+hookURL+more+`}`); a.status != http.StatusOK || !strings.Contains(a.body, `"description":"Webhook was set"`) {
		k.t.Fatalf("setWebhook: %d %s", a.status, a.body)
	}
}

func (k *kit) updateState(id int64) spool.Update {
	k.t.Helper()
	u, err := k.bot.UpdateByID(id)
	k.must(err)
	return u
}

type info struct {
	URL       string   `json:"url"`
	Pending   int      `json:"pending_update_count"`
	ErrorDate int64    `json:"last_error_date"`
	Error     string   `json:"last_error_message"`
	SyncDate  int64    `json:"last_synchronization_error_date"`
	Max       int      `json:"max_connections"`
	Allowed   []string `json:"allowed_updates"`
}

func (k *kit) info() (i info) {
	k.t.Helper()
	a := k.call("getWebhookInfo", "")
	if a.status != http.StatusOK {
		k.t.Fatalf("getWebhookInfo: %d %s", a.status, a.body)
	}
	k.must(json.Unmarshal(a.json.Result, &i))
	return i
}

func TestWebhook_Pushes(t *testing.T) {
	a := newApp(fine)
	bubble(t, func(k *kit) {
		k.feed(500, 1)
		k.setWebhook(`,"secret_token":"s-3_X","max_connections":7,"allowed_updates":["message"]`)
		synctest.Wait()
		if a.seen() != "500@0" || k.updateState(500).State != spool.UpdateHandled {
			k.t.Errorf("got %s, the update is %s", a.seen(), k.updateState(500).State)
		}
		r := a.last
		if r.Method != http.MethodPost || r.URL.Path != "/secret-path" || r.Header.Get("Content-Type") != "application/json" ||
			r.Header.Get("X-Telegram-Bot-Api-Secret-Token") != "s-3_X" || !strings.HasPrefix(a.body, `{"update_id":500, "message"`) {
			k.t.Errorf("%s %s %v %s", r.Method, r.URL.Path, r.Header, a.body)
		}
		i := k.info()
		if i.URL != "http://localhost:3000/secret-path" || i.Max != 7 || i.Pending != 0 || len(i.Allowed) != 1 || i.Error != "" {
			k.t.Errorf("info %+v", i)
		}
		if a := k.call("setWebhook", `{`+hookURL+`,"secret_token":"s-3_X","max_connections":7}`); !strings.Contains(a.body, "Webhook is already set") {
			k.t.Errorf("the same again: %s", a.body)
		}
		k.restart(true)
		k.feed(501, 1)
		synctest.Wait()
		if a.seen() != "500@0 501@0" {
			k.t.Errorf("after the restart: %s", a.seen())
		}
	}, pushTo(a))
}

// TestWebhook_AndPolls exclude each other, in Telegram's words.
func TestWebhook_AndPolls(t *testing.T) {
	a := newApp(fine)
	bubble(t, func(k *kit) {
		p := k.beginPoll(`{"timeout":50}`)
		k.setWebhook("")
		if a, _ := k.answered(p); a.status != http.StatusConflict || a.json.Description != "Conflict: terminated by setWebhook request" {
			k.t.Errorf("the parked poll hears %d %s", a.status, a.body)
		}
		k.pass(5 * time.Second)
		const words = "Conflict: can't use getUpdates method while webhook is active; use deleteWebhook to delete the webhook first"
		if a := k.call("getUpdates", `{"timeout":50}`); a.status != http.StatusConflict || a.json.Description != words {
			k.t.Errorf("a poll hears %d %s", a.status, a.body)
		}
		for _, tt := range []struct{ method, body, want string }{
			{"setWebHook", `{"url":""}`, "Webhook was deleted"},
			{"deleteWebhook", `{}`, "Webhook is already deleted"},
		} {
			if a := k.call(tt.method, tt.body); a.status != http.StatusOK || !strings.Contains(a.body, tt.want) {
				k.t.Errorf("%s: %s", tt.method, a.body)
			}
		}
		synctest.Wait() // the worker of the webhook waits for no update any more
		k.feed(500, 1)
		k.wantIDs(k.call("getUpdates", `{}`), 500)
		k.restart(true)
		k.wantIDs(k.call("getUpdates", `{}`), 500)
		if i := k.info(); i.URL != "" || i.Pending != 1 || i.Max != 0 {
			k.t.Errorf("info %+v", i)
		}
		if a.seen() != "" {
			k.t.Errorf("pushed %s", a.seen())
		}
	}, pushTo(a))
}

// TestWebhook_OrderAndConnections: one after the other in a chat, no more at
// once than asked for.
func TestWebhook_OrderAndConnections(t *testing.T) {
	for _, tt := range []struct {
		most int
		want string
	}{
		{40, "500@0 502@0 504@0 501@10 503@10"}, // chats 1, 2 and 3 at once
		{1, "500@0 501@10 502@20 503@30 504@40"},
		{2, "500@0 502@0 501@10 503@10 504@20"},
	} {
		t.Run(fmt.Sprint(tt.most), func(t *testing.T) {
			a := newApp(func(int64, int) (*http.Response, error) {
				time.Sleep(10 * time.Second)
				return say(200, "", "")
			})
			bubble(t, func(k *kit) {
				k.setWebhook(fmt.Sprintf(`,"max_connections":%d`, tt.most))
				k.feed(500, 1, 1, 2, 2, 3)
				k.pass(2 * time.Minute)
				if got := sorted(a.seen()); got != sorted(tt.want) || a.most > tt.most {
					k.t.Errorf("%d at once: %s, want %s", a.most, got, tt.want)
				}
			}, pushTo(a))
		})
	}
}

// sorted puts the updates of one second in order of their ids.
func sorted(list string) string {
	parts := strings.Fields(list)
	at := func(s string) string { id, sec, _ := strings.Cut(s, "@"); return fmt.Sprintf("%5s %s", sec, id) }
	for i := range parts {
		for j := i + 1; j < len(parts); j++ {
			if at(parts[j]) < at(parts[i]) {
				parts[i], parts[j] = parts[j], parts[i]
			}
		}
	}
	return strings.Join(parts, " ")
}

// TestWebhook_Refusals are repeated, later and later, or when the answer says;
// others of the same chat wait, those of other chats don't.
func TestWebhook_Refusals(t *testing.T) {
	a := newApp(func(id int64, nth int) (*http.Response, error) {
		switch {
		case id == 500 && nth <= 3:
			return say(500, "text/html", "<h1>no</h1>")
		case id == 500 && nth == 4:
			return say(429, "", "", "Retry-After", "100")
		case id == 500 && nth == 5:
			return say(302, "", "", "Location", "http://169.254.169.254/")
		}
		return say(204, "", "")
	})
	bubble(t, func(k *kit) {
		k.setWebhook("")
		k.feed(500, 1, 1, 2)
		k.pass(10 * time.Minute)
		if got, want := sorted(a.seen()), sorted("500@0 502@0 500@1 500@3 500@7 500@107 500@123 501@123"); got != want {
			k.t.Errorf("pushed %s, want %s", got, want)
		}
		if u := k.updateState(500); u.State != spool.UpdateHandled || u.Attempts != 6 {
			k.t.Errorf("the update: %+v", u)
		}
		if i := k.info(); i.Error != "Wrong response from the webhook: 302 Found" || i.ErrorDate == 0 {
			k.t.Errorf("info %+v", i)
		}
	}, pushTo(a))
}

// TestWebhook_RefusedForADay ends as a dead update, so that its chat goes on.
func TestWebhook_RefusedForADay(t *testing.T) {
	a := newApp(func(id int64, _ int) (*http.Response, error) {
		if id == 500 {
			return nil, io.ErrUnexpectedEOF
		}
		return say(200, "", "")
	})
	bubble(t, func(k *kit) {
		k.setWebhook("")
		k.feed(500, 1)
		k.pass(23 * time.Hour)
		k.feed(501, 1)
		if u := k.updateState(500); u.State == spool.UpdateDead {
			k.t.Errorf("after 23 h: %+v", u)
		}
		k.pass(90 * time.Minute)
		if u := k.updateState(500); u.State != spool.UpdateDead || *u.Error != "Webhook connection closed" {
			k.t.Errorf("after a day: %+v", u)
		}
		if u := k.updateState(501); u.State != spool.UpdateHandled {
			k.t.Errorf("the one behind it: %+v", u)
		}
	}, pushTo(a))
}

// TestWebhook_Away: a program that isn't there costs no attempt, and one try
// each 15 s at most; once it is back all goes on.
func TestWebhook_Away(t *testing.T) {
	var away atomic.Bool
	away.Store(true)
	a := newApp(func(int64, int) (*http.Response, error) {
		if away.Load() {
			return nil, &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}
		}
		return say(200, "", "")
	})
	bubble(t, func(k *kit) {
		k.setWebhook("")
		k.feed(500, 1, 2, 3)
		k.pass(10 * time.Minute)
		if n := len(strings.Fields(a.seen())); n < 40 || n > 50 {
			k.t.Errorf("%d tries in 10 minutes", n)
		}
		if u := k.updateState(500); u.State != spool.UpdateOpen || u.Attempts != 0 {
			k.t.Errorf("the update: %+v", u)
		}
		if i := k.info(); i.Error != "Connection refused" || i.Pending != 3 {
			k.t.Errorf("info %+v", i)
		}
		k.restart(true)
		away.Store(false)
		k.pass(16 * time.Second)
		for id := range int64(3) {
			if u := k.updateState(500 + id); u.State != spool.UpdateHandled || u.Attempts != 1 {
				k.t.Errorf("update %d: %+v", 500+id, u)
			}
		}
	}, pushTo(a))
}

// TestWebhook_TooSlow is ended after a minute and tried again.
func TestWebhook_TooSlow(t *testing.T) {
	a := newApp(nil)
	a.answer = func(int64, int) (*http.Response, error) {
		<-a.last.Context().Done()
		return nil, a.last.Context().Err()
	}
	bubble(t, func(k *kit) {
		k.setWebhook("")
		k.feed(500, 1)
		k.pass(61500 * time.Millisecond)
		if got := a.seen(); got != "500@0 500@61" {
			k.t.Errorf("pushed %s", got)
		}
		if i := k.info(); i.Error != "Read timeout expired" {
			k.t.Errorf("info %+v", i)
		}
		// A stop gives what is in flight back, its attempt, too.
		k.restart(true)
		if u := k.updateState(500); u.Attempts > 2 {
			k.t.Errorf("after a stop: %+v", u)
		}
	}, pushTo(a))
}

// TestWebhook_Replies are calls: in any form, in the commit that handles the
// update, once.
func TestWebhook_Replies(t *testing.T) {
	form := url.Values{"method": {"sendMessage"}, "chat_id": {"1"}, "text": {"a b & c"}}.Encode()
	var multi bytes.Buffer
	multi.WriteString("--x\r\nContent-Disposition: form-data; name=\"method\"\r\n\r\nsendDocument\r\n" +
		"--x\r\nContent-Disposition: form-data; name=\"chat_id\"\r\n\r\n1\r\n" +
		"--x\r\nContent-Disposition: form-data; name=\"document\"; filename=\"a b.txt\"\r\n\r\nhello\r\n--x--\r\n")
	for _, tt := range []struct {
		name, kind, body string
		method, params   string // of the job; empty: none
		output           string // of the update
	}{
		{"JSON", "application/json", `{"method":"sendMessage","chat_id":1,"text":"big 12345678901234567890","x":12345678901234567890}`, "sendMessage", `{"chat_id":1,"text":"big 12345678901234567890","x":12345678901234567890}`, ""},
		{"JSON, not first", "application/json; charset=utf-8", `{"chat_id":1, "method":"SENDmessage","text":"x"}`, "sendMessage", `{"chat_id":1,"text":"x"}`, ""},
		{"JSON without a type", "", `{"method":"sendMessage","chat_id":1,"text":"x"}`, "sendMessage", `{"chat_id":1,"text":"x"}`, ""},
		{"a form", "application/x-www-form-urlencoded", form, "sendMessage", `{"chat_id":"1","text":"a b & c"}`, ""},
		{"multipart with a file", "multipart/form-data; boundary=x", multi.String(), "sendDocument", `{"chat_id":"1"}`, ""},
		{"nothing", "", "", "", "", ""},
		{"a page", "text/html", "<p>ok", "", "", ""},
		{"no call", "application/json", `{"ok":true}`, "", "", ""},
		{"a read", "application/json", `{"method":"getChat","chat_id":1}`, "", "", ""},
		{"a webhook", "application/json", `{"method":"deleteWebhook"}`, "", "", ""},
		{"broken", "application/json", `{"method":"sendMessage",`, "", "", "the call in the answer was refused: Bad Request: can't parse the body"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			a := newApp(func(int64, int) (*http.Response, error) { return say(200, tt.kind, tt.body) })
			bubble(t, func(k *kit) {
				k.sim.FeedText(1, 1, "hello")
				k.setWebhook("")
				k.feed(500, 1)
				k.pass(5 * time.Second)
				u := k.updateState(500)
				out := ""
				if u.Output != nil {
					out = *u.Output
				}
				if u.State != spool.UpdateHandled || !strings.HasPrefix(out, tt.output) || (tt.output == "") != (out == "") {
					k.t.Fatalf("the update: %+v, output %q", u, out)
				}
				jobs := k.jobs()
				if tt.method == "" {
					if len(jobs) != 0 {
						k.t.Errorf("jobs %+v", jobs)
					}
					return
				}
				if len(jobs) != 1 || jobs[0].Method != tt.method || string(jobs[0].Params) != tt.params || *jobs[0].DedupeKey != "reply:500:1" ||
					jobs[0].State != spool.Done || jobs[0].Origin != "webhook" {
					k.t.Fatalf("jobs %+v", jobs)
				}
				// Handled once more it makes no second job, nor files that nobody owns.
				_, err := k.bot.Replay(k.t.Context(), u.Seq, false)
				k.must(err)
				k.pass(5 * time.Second)
				if jobs := k.jobs(); len(jobs) != 1 || len(a.got) != 2 {
					k.t.Errorf("after a replay: %d jobs, pushed %s", len(jobs), a.seen())
				}
			}, pushTo(a))
		})
	}
}

// TestWebhook_CutReply is no answer: its call would be lost.
func TestWebhook_CutReply(t *testing.T) {
	a := newApp(func(_ int64, nth int) (*http.Response, error) {
		if nth > 1 {
			return say(200, "application/json", `{"method":"sendMessage","chat_id":1,"text":"x"}`)
		}
		r, err := say(200, "application/json", "")
		r.Body = io.NopCloser(io.MultiReader(strings.NewReader(`{"method":"send`), failingReader{}))
		return r, err
	})
	bubble(t, func(k *kit) {
		k.setWebhook("")
		k.feed(500, 1)
		k.pass(5 * time.Second)
		if a.seen() != "500@0 500@1" || len(k.jobs()) != 1 {
			k.t.Errorf("pushed %s, %d jobs", a.seen(), len(k.jobs()))
		}
	}, pushTo(a))
}

type failingReader struct{}

func (failingReader) Read([]byte) (int, error) { return 0, errors.New("reset") }

// TestWebhook_OfAClient: its limits count for the calls in answers, and without
// the client nothing is pushed.
func TestWebhook_OfAClient(t *testing.T) {
	a := newApp(func(int64, int) (*http.Response, error) {
		return say(200, "application/json", `{"method":"sendMessage","chat_id":6,"text":"x"}`)
	})
	c := newClient("a", func(c *botserver.Client) { c.Chats = []string{"1"} })
	var clients *botserver.Clients
	bubble(t, func(k *kit) {
		if a := k.callAs(c.token, "setWebhook", `{`+hookURL+`}`); a.status != http.StatusOK {
			k.t.Fatalf("setWebhook: %s", a.body)
		}
		k.feed(500, 1)
		k.pass(5 * time.Second)
		u := k.updateState(500)
		if u.State != spool.UpdateHandled || u.Output == nil || !strings.Contains(*u.Output, "its chats are 1") || len(k.jobs()) != 0 {
			k.t.Errorf("the update: %+v, %d jobs", u, len(k.jobs()))
		}
		clients.Set(nil)
		k.feed(501, 1)
		k.pass(time.Minute)
		if u := k.updateState(501); u.State != spool.UpdateOpen || a.seen() != "500@0" {
			k.t.Errorf("the update: %+v, pushed %s", u, a.seen())
		}
		if i := k.info(); !strings.Contains(i.Error, "isn't in the settings any more") {
			k.t.Errorf("info %+v", i)
		}
		clients.Set([]botserver.Client{c.Client})
		k.pass(16 * time.Second)
		if u := k.updateState(501); u.State != spool.UpdateHandled {
			k.t.Errorf("the update: %+v", u)
		}
	}, pushTo(a), withClients(c), func(cfg *botserver.Config) { clients, _ = cfg.Clients.(*botserver.Clients) })
}

func TestSetWebhook_Refused(t *testing.T) {
	for _, tt := range []struct{ body, want string }{
		{`{"url":"nonsense"}`, "Bad Request: invalid webhook URL specified"},
		{`{"url":"ftp://127.0.0.1/"}`, "Bad Request: invalid webhook URL specified"},
		{`{"url":"https://example.org/hook"}`, "Bad Request: bad webhook: tgspool pushes to this machine and to the hosts of api.webhook_hosts only"},
		{`{"url":"http://169.254.169.254/latest"}`, "Bad Request: bad webhook: "},
		{`{"url":"http://127.0.0.1.example.org/"}`, "Bad Request: bad webhook: "},
		{`{"url":"http://127.0.0.1@example.org/"}`, "Bad Request: bad webhook: "},
		{`{"url":"http://0.0.0.0/"}`, "Bad Request: bad webhook: "},
		{`{"url":"http://[::ffff:10.0.0.1]/"}`, "Bad Request: bad webhook: "},
		{`{"url":"http://2130706433/"}`, "Bad Request: bad webhook: "},
		{`{"url":"http://localhost/","secret_token":"a b"}`, "Bad Request: secret token contains unallowed characters"},
		{`{"url":"http://localhost/","secret_token":"` + strings.Repeat("x", 257) + `"}`, "Bad Request: secret token is too long"},
		{`{"url":"http://[::1]:3000/hook"}`, ""},
		{`{"url":"http://127.8.9.10/hook"}`, ""},
		{`{"url":"http://LOCALHOST./hook"}`, ""},
		{`{"url":"https://box.lan:8443/hook"}`, ""},
	} {
		t.Run(tt.body, func(t *testing.T) {
			bubble(t, func(k *kit) {
				a := k.call("setWebhook", tt.body)
				if tt.want == "" && a.status != http.StatusOK || tt.want != "" && (a.status != http.StatusBadRequest || !strings.HasPrefix(a.json.Description, tt.want)) {
					k.t.Errorf("%d %s", a.status, a.body)
				}
			}, func(c *botserver.Config) { c.Pusher = wire.NewPusher([]string{"Box.lan"}, newApp(fine)) })
		})
	}
}

// TestDropPendingUpdates is local, and what is dropped can be replayed.
func TestDropPendingUpdates(t *testing.T) {
	for _, method := range []string{"deleteWebhook", "setWebhook"} {
		t.Run(method, func(t *testing.T) {
			a := newApp(fine)
			bubble(t, func(k *kit) {
				k.feed(500, 1, 2)
				if a := k.call(method, `{`+hookURL+`,"drop_pending_updates":"true"}`); a.status != http.StatusOK {
					k.t.Fatalf("%d %s", a.status, a.body)
				}
				if i := k.info(); i.Pending != 0 {
					k.t.Errorf("info %+v", i)
				}
				u := k.updateState(501)
				if u.State != spool.UpdateIgnored || !strings.Contains(*u.Error, method) || a.seen() != "" {
					k.t.Errorf("the update: %+v, pushed %s", u, a.seen())
				}
				for _, arrival := range k.sim.Journal() {
					if strings.Contains(strings.ToLower(arrival.Method), "webhook") {
						k.t.Errorf("%s has reached Telegram", arrival.Method)
					}
				}
			}, pushTo(a))
		})
	}
}

// TestGetWebhookInfo_TellsOfTelegram: nowhere else a client hears of it.
func TestGetWebhookInfo_TellsOfTelegram(t *testing.T) {
	bubble(t, func(k *kit) {
		since := time.Now()
		k.upstream = func() (string, time.Time) { return "Telegram can't be reached", since }
		if i := k.info(); i.SyncDate != since.Unix() || i.Error != "tgspool: Telegram can't be reached" || i.ErrorDate != since.Unix() {
			k.t.Errorf("info %+v", i)
		}
	})
}

// TestWebhook_BothFamilies: whichever the program listens on, it is reached; a
// redirect isn't followed.
func TestWebhook_BothFamilies(t *testing.T) {
	for _, network := range []string{"tcp4", "tcp6"} {
		t.Run(network, func(t *testing.T) {
			addr := map[string]string{"tcp4": "127.0.0.1:0", "tcp6": "[::1]:0"}[network]
			l, err := (&net.ListenConfig{}).Listen(t.Context(), network, addr)
			if err != nil {
				t.Logf("no %s on this machine: %v", network, err)
				return
			}
			got := make(chan string, 10)
			server := &httptest.Server{Listener: l, Config: &http.Server{ReadHeaderTimeout: time.Minute, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				got <- r.URL.Path
				if r.URL.Path != "/elsewhere" && r.Header.Get("X-Telegram-Bot-Api-Secret-Token") == "moved" {
					http.Redirect(w, r, "/elsewhere", http.StatusTemporaryRedirect)
				}
			})}}
			server.Start()
			defer server.Close()
			_, port, _ := net.SplitHostPort(l.Addr().String())
			for _, host := range []string{"localhost", "127.0.0.1", "[::1]"} {
				k := newKit(t, t.TempDir())
				if a := k.call("setWebhook", fmt.Sprintf(`{"url":"http://%s:%s/hook","secret_token":"moved"}`, host, port)); a.status != http.StatusOK {
					t.Fatalf("%s: %s", host, a.body)
				}
				k.feed(500, 1)
				for range 2 { // the redirect is a failure: it comes again, to the same place
					if path := <-got; path != "/hook" {
						t.Errorf("%s: pushed to %s", host, path)
					}
				}
				k.stop()
			}
		})
	}
}
