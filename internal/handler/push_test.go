package handler

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime/multipart"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tgspool/tgspool/internal/spool"
	"github.com/tgspool/tgspool/internal/wire"
)

// app is the program behind a webhook, reached without a socket.
type app struct {
	mu     sync.Mutex
	got    []string // the texts in their order
	bodies []string
	heads  []http.Header
	open   int
	most   int // requests under way at once
	answer func(text string, nth int) (*http.Response, error)
	count  map[string]int
}

func newApp(answer func(text string, nth int) (*http.Response, error)) *app {
	return &app{answer: answer, count: map[string]int{}}
}

// RoundTrip takes an update.
func (a *app) RoundTrip(r *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	var u struct {
		Message struct {
			Text string `json:"text"`
		} `json:"message"`
	}
	if err := json.Unmarshal(body, &u); err != nil {
		return nil, err
	}
	a.mu.Lock()
	a.count[u.Message.Text]++
	nth := a.count[u.Message.Text]
	a.got, a.bodies, a.heads = append(a.got, u.Message.Text), append(a.bodies, string(body)), append(a.heads, r.Header)
	a.open++
	a.most = max(a.most, a.open)
	a.mu.Unlock()
	defer func() {
		a.mu.Lock()
		a.open--
		a.mu.Unlock()
	}()
	if err := r.Context().Err(); err != nil {
		return nil, err
	}
	return a.answer(u.Message.Text, nth)
}

func (a *app) seen() string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return strings.Join(a.got, " ")
}

// say makes an answer; headers come in pairs.
func say(status int, kind, body string, headers ...string) (*http.Response, error) {
	h := http.Header{}
	if kind != "" {
		h.Set("Content-Type", kind)
	}
	for i := 0; i+1 < len(headers); i += 2 {
		h.Set(headers[i], headers[i+1])
	}
	return &http.Response{StatusCode: status, Header: h, Body: io.NopCloser(strings.NewReader(body))}, nil
}

// pushTo sends a house's updates to an app.
func (h *house) pushTo(a *app) func(*Config) {
	return func(c *Config) {
		c.Pusher = wire.NewPusher(nil, a)
		c.Uploads = func(ctx context.Context) *wire.Upload { return wire.NewUpload(ctx, h.store, 1<<20) }
		c.ReadSecret = func(path string) (string, error) {
			b, err := os.ReadFile(path)
			return string(b), err
		}
	}
}

func webhook(name string) RouteConfig {
	return RouteConfig{Name: name, Webhook: "http://127.0.0.1:3000/secret-path"}
}

// pushing runs a scenario with one route and an app in a bubble.
func pushing(t *testing.T, route RouteConfig, a *app, scenario func(h *house, handlers *Handlers)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		h := openHouse(t, route)
		defer h.close()
		handlers := h.run(h.pushTo(a))
		defer h.stop()
		scenario(h, handlers)
	})
}

func TestPush_AsTelegramWould(t *testing.T) {
	a := newApp(func(string, int) (*http.Response, error) { return say(204, "", "") })
	r := webhook("bot")
	r.SecretFile = filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(r.SecretFile, []byte("s-1"), 0o600); err != nil {
		t.Fatal(err)
	}
	pushing(t, r, a, func(h *house, handlers *Handlers) {
		seq := h.feedAndWait(said(7, "a"))
		h.want(seq, spool.UpdateHandled, 1, "")
		if a.bodies[0] != string(h.update(seq).Raw) {
			t.Errorf("posted %s", a.bodies[0])
		}
		head := a.heads[0]
		if head.Get("X-Telegram-Bot-Api-Secret-Token") != "s-1" || head.Get("Content-Type") != "application/json" {
			t.Errorf("headers are %v", head)
		}
		// A secret that can't be read holds the route, and burns nothing.
		if err := os.Remove(r.SecretFile); err != nil {
			t.Fatal(err)
		}
		seq = h.feedAndWait(said(7, "b"))
		if u := h.want(seq, spool.UpdateOpen, 0, "reading the webhook's secret"); a.seen() != "a" {
			t.Errorf("posted without the secret: %+v", u)
		}
		if why := handlers.Routes()[0].Reason; why == "" {
			t.Error("the route has no reason")
		}
		if err := os.WriteFile(r.SecretFile, []byte("s-2"), 0o600); err != nil {
			t.Fatal(err)
		}
		<-time.After(time.Minute)
		synctest.Wait()
		h.want(seq, spool.UpdateHandled, 1, "")
		if got := a.heads[1].Get("X-Telegram-Bot-Api-Secret-Token"); got != "s-2" {
			t.Errorf("the secret is %q", got)
		}
	})
}

func TestPush_Replies(t *testing.T) {
	form := func() (string, string) {
		var b strings.Builder
		w := multipart.NewWriter(&b)
		_ = w.WriteField("method", "sendDocument")
		_ = w.WriteField("chat_id", "7")
		part, _ := w.CreateFormFile("document", "report.txt")
		_, _ = io.WriteString(part, "all is well")
		_ = w.Close()
		return w.FormDataContentType(), b.String()
	}
	kind, body := form()
	for name, tt := range map[string]struct {
		kind, body string
		call       string // method and params; empty: none
		dead       string
	}{
		"nothing":       {},
		"a word":        {kind: "text/html", body: "OK"},
		"another JSON":  {kind: "application/json", body: `{"status":"ok"}`},
		"a list":        {kind: "application/json", body: `[1]`},
		"JSON":          {kind: "application/json", body: `{"method":"sendMessage","chat_id":-1001234567890123,"text":"<b>"}`, call: `sendMessage {"chat_id":-1001234567890123,"text":"<b>"}`},
		"a form":        {kind: "application/x-www-form-urlencoded", body: "method=sendMessage&chat_id=7&text=a%20b", call: `sendMessage {"chat_id":"7","text":"a b"}`},
		"a file":        {kind: kind, body: body, call: `sendDocument {"chat_id":"7"}`},
		"a read":        {kind: "application/json", body: `{"method":"getMe"}`},
		"broken JSON":   {kind: "application/json", body: `{"method":"sendMessage",`, dead: "the call in the webhook's answer: can't parse the body"},
		"bad name":      {kind: "application/json", body: `{"method":"send message","chat_id":7}`, dead: "the call in the webhook's answer"},
		"too much":      {kind: "application/json", body: `{"method":"sendMessage","text":"` + strings.Repeat("x", 2<<20) + `"}`, dead: "more than 1048576 bytes"},
		"a big page":    {kind: "text/html", body: strings.Repeat("x", 2<<20)},
		"a cut form":    {kind: kind, body: body[:len(body)-60], dead: "the call in the webhook's answer"},
		"a big file":    {kind: kind, body: strings.Replace(body, "all is well", strings.Repeat("x", 1<<20+1), 1), dead: "more than 1048576 bytes"},
		"setWebhook":    {kind: "application/json", body: `{"method":"setWebhook","url":"http://evil.example"}`},
		"binary":        {kind: "application/octet-stream", body: "\x00\xff\xfe"},
		"invalid UTF-8": {kind: "application/x-www-form-urlencoded", body: "method=sendMessage&chat_id=7&text=%ff", dead: "strings must be encoded in UTF-8"},
	} {
		t.Run(name, func(t *testing.T) {
			a := newApp(func(text string, _ int) (*http.Response, error) {
				if text == "good" {
					return say(200, "", "")
				}
				return say(200, tt.kind, tt.body)
			})
			pushing(t, webhook("bot"), a, func(h *house, _ *Handlers) {
				seq := h.feed(said(7, "a"), said(7, "good"))
				synctest.Wait()
				if tt.dead != "" {
					h.want(seq, spool.UpdateDead, 1, tt.dead)
				} else {
					h.want(seq, spool.UpdateHandled, 1, "")
				}
				h.want(seq+1, spool.UpdateHandled, 1, "") // its neighbour
				var want []string
				if tt.call != "" {
					want = []string{tt.call}
				}
				for _, j := range h.wantCalls(want...) {
					if j.Origin != "handler:bot" || j.Lane != spool.Interactive || *j.DedupeKey != "reply:1001:1" {
						t.Errorf("the job is %+v", j)
					}
					h.wantFiles(j)
				}
				if left, err := os.ReadDir(filepath.Join(h.dir, "files")); err == nil && len(left) > 0 && !strings.HasPrefix(tt.call, "sendDocument") {
					t.Errorf("%d uploads are left behind", len(left))
				}
			})
		})
	}
}

// wantFiles checks that the files of a job are there.
func (h *house) wantFiles(j spool.Job) {
	h.t.Helper()
	if j.Method == "sendDocument" && len(j.Files) != 1 {
		h.t.Errorf("the job has %d files", len(j.Files))
	}
	for _, f := range j.Files {
		if b, err := os.ReadFile(filepath.Join(h.dir, f.Path)); err != nil || string(b) != "all is well" || f.Name != "report.txt" {
			h.t.Errorf("the file %+v holds %q: %v", f, b, err)
		}
	}
}

func TestPush_RetriesThenDead(t *testing.T) {
	redirected := false
	a := newApp(func(text string, nth int) (*http.Response, error) {
		switch {
		case text == "moved":
			redirected = true
			return say(302, "", "", "Location", "http://127.0.0.1:3000/elsewhere")
		case text == "cut" && nth == 1:
			return &http.Response{StatusCode: 200, Header: http.Header{}, Body: io.NopCloser(brokenBody{})}, nil
		case text == "bad":
			return say(500, "text/plain", "oops")
		}
		return say(200, "", "")
	})
	pushing(t, webhook("bot"), a, func(h *house, handlers *Handlers) {
		seq := h.feed(said(1, "moved"), said(2, "bad"), said(2, "after"), said(3, "cut"), said(4, "good"))
		synctest.Wait()
		h.want(seq, spool.UpdateOpen, 1, "302 Found")
		h.want(seq+1, spool.UpdateOpen, 1, "500 Internal Server Error")
		h.want(seq+2, spool.UpdateOpen, 0, "") // behind it, in the same chat
		h.want(seq+3, spool.UpdateOpen, 1, "Webhook connection closed")
		h.want(seq+4, spool.UpdateHandled, 1, "")
		<-time.After(10 * time.Minute)
		synctest.Wait()
		h.want(seq, spool.UpdateDead, 5, "given up after 5 attempts")
		h.want(seq+1, spool.UpdateDead, 5, "given up after 5 attempts")
		h.want(seq+2, spool.UpdateHandled, 1, "")
		h.want(seq+3, spool.UpdateHandled, 2, "")
		if !redirected || slices.ContainsFunc(a.heads, func(h http.Header) bool { return h.Get("Referer") != "" }) {
			t.Error("the redirect was followed")
		}
		if why := handlers.Routes()[0].Reason; why != "" {
			t.Errorf("the route is unreachable: %s", why)
		}
	})
}

type brokenBody struct{}

func (brokenBody) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }

func TestPush_RetryAfterGivesTheAttemptBack(t *testing.T) {
	a := newApp(func(_ string, nth int) (*http.Response, error) {
		if nth <= 20 {
			return say(429, "", "", "Retry-After", "7")
		}
		return say(200, "", "")
	})
	r := webhook("bot")
	r.Once = true
	r.MaxAge = time.Hour
	pushing(t, r, a, func(h *house, _ *Handlers) {
		seq := h.feedAndWait(said(1, "a"))
		u := h.want(seq, spool.UpdateOpen, 0, "429 Too Many Requests")
		if wait := time.Until(*u.NextAttemptAt); wait != 7*time.Second {
			t.Errorf("it comes again after %s", wait)
		}
		<-time.After(20*7*time.Second - time.Second)
		synctest.Wait()
		h.want(seq, spool.UpdateOpen, 0, "429")
		<-time.After(2 * time.Second)
		synctest.Wait()
		h.want(seq, spool.UpdateHandled, 1, "")
	})
}

// TestPush_DownForTenMinutes: a bot that is gone for ten minutes, in all the
// ways in which it can be, loses nothing and burns nothing.
func TestPush_DownForTenMinutes(t *testing.T) {
	for name, gone := range map[string]func() (*http.Response, error){
		"refused": func() (*http.Response, error) {
			return nil, &net.OpError{Op: "dial", Err: fmt.Errorf("connect: %w", syscall.ECONNREFUSED)}
		},
		"no such host": func() (*http.Response, error) {
			return nil, &net.OpError{Op: "dial", Err: &net.DNSError{Err: "no such host", IsNotFound: true}}
		},
		"502": func() (*http.Response, error) { return say(502, "", "") },
		"503": func() (*http.Response, error) { return say(503, "", "", "Retry-After", "30") },
		"504": func() (*http.Response, error) { return say(504, "", "") },
	} {
		t.Run(name, func(t *testing.T) {
			var start time.Time
			a := newApp(func(string, int) (*http.Response, error) {
				if time.Since(start) < 10*time.Minute {
					return gone()
				}
				return say(200, "", "")
			})
			pushing(t, webhook("bot"), a, func(h *house, handlers *Handlers) {
				start = time.Now()
				var updates []string
				for i := range 40 {
					updates = append(updates, said(int64(i%4+1), fmt.Sprint(i)))
				}
				seq := h.feed(updates...)
				<-time.After(10*time.Minute - time.Second)
				synctest.Wait()
				for i := range int64(40) {
					if u := h.update(seq + i); u.State != spool.UpdateOpen || u.Attempts != 0 {
						t.Fatalf("update %d is %s after %d attempts", seq+i, u.State, u.Attempts)
					}
				}
				if n := len(a.got); n > 8+60 {
					t.Errorf("%d requests were made meanwhile", n)
				}
				if handlers.Routes()[0].Reason == "" {
					t.Error("the route has no reason")
				}
				a.mu.Lock()
				a.got = nil
				a.mu.Unlock()
				<-time.After(time.Minute)
				synctest.Wait()
				for i := range int64(40) {
					if u := h.update(seq + i); u.State != spool.UpdateHandled || u.Attempts != 1 {
						t.Errorf("update %d is %s after %d attempts", seq+i, u.State, u.Attempts)
					}
				}
				if len(a.got) != 40 || a.got[0] != "0" || handlers.Routes()[0].Reason != "" {
					t.Errorf("then it got %v", a.got)
				}
				if n := h.logged("handler can't be reached, its updates wait"); n != 1 {
					t.Errorf("that was logged %d times", n)
				}
			})
		})
	}
}

// TestPush_Once: what may have been handled is never pushed again.
func TestPush_Once(t *testing.T) {
	for name, tt := range map[string]struct {
		answer func() (*http.Response, error)
		again  bool // it is pushed until it is accepted
	}{
		"refused":        {func() (*http.Response, error) { return nil, &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED} }, true},
		"503":            {func() (*http.Response, error) { return say(503, "", "") }, true},
		"502 of a proxy": {func() (*http.Response, error) { return say(502, "", "") }, false},
		"500":            {func() (*http.Response, error) { return say(500, "", "") }, false},
		"cut":            {func() (*http.Response, error) { return nil, errors.New("connection reset") }, false},
	} {
		t.Run(name, func(t *testing.T) {
			a := newApp(func(_ string, nth int) (*http.Response, error) {
				if nth == 1 {
					return tt.answer()
				}
				return say(200, "", "")
			})
			r := webhook("bot")
			r.Once = true
			pushing(t, r, a, func(h *house, _ *Handlers) {
				seq := h.feed(said(1, "a"))
				<-time.After(30 * time.Second)
				synctest.Wait()
				if u := h.update(seq); tt.again && (u.State != spool.UpdateHandled || len(a.got) != 2) || !tt.again && (len(a.got) != 1 || u.State != spool.UpdateDead) {
					t.Errorf("after %d pushes it is %s: %v", len(a.got), u.State, *u.Error)
				}
			})
		})
	}
}

// TestPush_OrderAndConnections: one chat after the other, others beside it, and
// never more requests than allowed.
func TestPush_OrderAndConnections(t *testing.T) {
	var mu sync.Mutex
	inChat := map[byte]bool{}
	a := newApp(func(text string, _ int) (*http.Response, error) {
		mu.Lock()
		busy := inChat[text[0]]
		inChat[text[0]] = true
		mu.Unlock()
		<-time.After(time.Second)
		mu.Lock()
		inChat[text[0]] = false
		mu.Unlock()
		if busy {
			return say(500, "", "")
		}
		return say(200, "", "")
	})
	r := webhook("bot")
	r.MaxConnections = 3
	pushing(t, r, a, func(h *house, _ *Handlers) {
		var updates []string
		for i := range 5 {
			for chat := range 6 {
				updates = append(updates, said(int64(chat+1), fmt.Sprintf("%c%d", 'a'+chat, i)))
			}
		}
		seq := h.feed(updates...)
		<-time.After(11 * time.Second)
		synctest.Wait()
		for i := range int64(30) {
			h.want(seq+i, spool.UpdateHandled, 1, "")
		}
		if a.most != 3 {
			t.Errorf("%d requests were under way at once", a.most)
		}
		for chat := range 6 {
			var order []string
			for _, text := range a.got {
				if text[0] == byte('a'+chat) {
					order = append(order, text)
				}
			}
			if !slices.IsSorted(order) || len(order) != 5 {
				t.Errorf("one chat's order was %v", order)
			}
		}
	})
}

func TestPush_TimeoutAndStop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newApp(func(text string, _ int) (*http.Response, error) { return say(200, "", "") })
		slow := roundTripper(func(r *http.Request) (*http.Response, error) {
			<-r.Context().Done()
			return nil, context.Cause(r.Context())
		})
		r := webhook("bot")
		r.Timeout = 10 * time.Second
		r.Attempts = 1
		h := openHouse(t, r)
		defer h.close()
		change := func(c *Config) {
			h.pushTo(a)(c)
			c.Pusher = wire.NewPusher(nil, slow)
		}
		h.run(change)
		seq := h.feed(said(1, "a"))
		<-time.After(11 * time.Second)
		synctest.Wait()
		h.want(seq, spool.UpdateDead, 1, "given up after 1 attempts: Read timeout expired")
		seq = h.feedAndWait(said(1, "b"))
		h.stop()
		h.want(seq, spool.UpdateOpen, 0, "tgspool stopped meanwhile")
	})
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }
