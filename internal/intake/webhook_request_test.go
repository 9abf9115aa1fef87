package intake_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/tgspool/tgspool/internal/intake"
	"github.com/tgspool/tgspool/internal/spool"
)

func method(name string) func(*http.Request) { return func(r *http.Request) { r.Method = name } }

func secret(s string) func(*http.Request) {
	return func(r *http.Request) { r.Header.Set("X-Telegram-Bot-Api-Secret-Token", s) }
}

// brokenBody ends before it is whole.
func brokenBody(r *http.Request) {
	r.Body = io.NopCloser(io.MultiReader(strings.NewReader(`{"update_id":5,`), errReader{}))
}

type errReader struct{}

func (errReader) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }

// undeclared is a body whose length isn't known in advance.
func undeclared(r *http.Request) { r.ContentLength = -1 }

func TestWebhook_Requests(t *testing.T) {
	long := `{"update_id":5,"message":{"text":"` + strings.Repeat("x", intake.MaxUpdate) + `"}}`
	for _, tt := range []struct {
		name   string
		body   string
		change func(*http.Request)
		status int
		want   string // what is in the inbox afterwards; empty: nothing
	}{
		{"message", `{"update_id":5,"message":{"chat":{"id":7},"text":"x"}}`, nil, 200, "5 message open"},
		{"unknown kind", `{"update_id":5,"never_heard_of":{}}`, nil, 200, "5 never_heard_of open"},
		{"no payload", `{"update_id":5}`, nil, 200, "5  open"},
		{"white space around", " \r\n{\"update_id\":5,\"message\":{}}\n", nil, 200, "5 message open"},
		{"invalid UTF-8", "{\"update_id\":5,\"message\":{\"text\":\"\xff\xfe\"}}", nil, 200, "5 message open"},
		{"lone surrogate", `{"update_id":5,"message":{"text":"\ud83d"}}`, nil, 200, "5 message open"},
		{"deep", `{"update_id":5,"message":` + strings.Repeat(`[`, 20000) + strings.Repeat(`]`, 20000) + `}`, nil, 200, "5 message open"},
		{"largest id", `{"update_id":9223372036854775807,"message":{}}`, nil, 200, "9223372036854775807 message open"},
		{"as large as may be", long[:intake.MaxUpdate-3] + `"}}`, nil, 200, "5 message open"},

		{"no secret", `{"update_id":5}`, func(r *http.Request) { r.Header.Del("X-Telegram-Bot-Api-Secret-Token") }, 401, ""},
		{"empty secret", `{"update_id":5}`, secret(""), 401, ""},
		{"wrong secret", `{"update_id":5}`, secret("Not-for-the-logs_2"), 401, ""},
		{"a secret's beginning", `{"update_id":5}`, secret(hookSecret[:4]), 401, ""},
		{"a longer secret", `{"update_id":5}`, secret(hookSecret + "x"), 401, ""},
		{"wrong secret and too long", long, secret("x"), 401, ""},
		{"GET", ``, method(http.MethodGet), 405, ""},
		{"PUT", `{"update_id":5}`, method(http.MethodPut), 405, ""},
		{"too long", long, nil, 413, ""},
		{"too long, undeclared", long, undeclared, 413, ""},
		{"cut", "", brokenBody, 400, ""},

		{"empty", ``, nil, 200, "-  dead"},
		{"no JSON", `update_id=5`, nil, 200, "-  dead"},
		{"array", `[{"update_id":5,"message":{}}]`, nil, 200, "-  dead"},
		{"null", `null`, nil, 200, "-  dead"},
		{"ends too early", `{"update_id":5,"message":{"text":"never to be take`, nil, 200, "-  dead"},
		{"two objects", `{"update_id":5,"message":{}}{"update_id":6,"message":{}}`, nil, 200, "-  dead"},
		{"something behind", `{"update_id":5,"message":{}} x`, nil, 200, "-  dead"},
		{"wrong bracket", `{"update_id":5]`, nil, 200, "-  dead"},
		{"a byte order mark", "\ufeff{\"update_id\":5,\"message\":{}}", nil, 200, "-  dead"},
		{"no update_id", `{"message":{"text":"x"}}`, nil, 200, "- message dead"},
		{"id is text", `{"update_id":"5","message":{}}`, nil, 200, "- message dead"},
		{"id is a fraction", `{"update_id":5.5,"message":{}}`, nil, 200, "- message dead"},
		{"id too large", `{"update_id":9223372036854775808,"message":{}}`, nil, 200, "- message dead"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			inHookBubble(t, func(t *testing.T, p *hookPost) {
				p.receive(func(c *intake.WebhookConfig) { c.URL = "" })
				change := tt.change
				if change == nil {
					change = func(*http.Request) {}
				}
				for range 2 { // the same again changes nothing
					w := p.request(tt.body, change)
					if w.Code != tt.status || w.Body.Len() != 0 {
						t.Errorf("answer %d %q, want %d and no body", w.Code, w.Body, tt.status)
					}
				}
				if tt.want == "" {
					p.wantStates()
					return
				}
				p.wantStates(tt.want)
				u := p.updates()[0]
				got, err := p.bot.Update(u.Seq)
				if err != nil {
					t.Fatal(err)
				}
				if raw := asSent(t, got.Raw); raw != tt.body {
					t.Errorf("kept %.80q, want the bytes as they came", raw)
				}
			})
		})
	}
}

// asSent undoes how an update is shown that isn't JSON by the letter: as text.
func asSent(t *testing.T, raw json.RawMessage) string {
	t.Helper()
	if len(raw) == 0 || raw[0] != '"' {
		return string(raw)
	}
	var text string
	if err := json.Unmarshal(raw, &text); err != nil {
		t.Fatal(err)
	}
	return text
}

// A whole update still comes in under an id that a cut one has claimed.
func TestWebhook_CutUpdateTakesNoID(t *testing.T) {
	inHookBubble(t, func(_ *testing.T, p *hookPost) {
		p.receive(func(c *intake.WebhookConfig) { c.URL = "" })
		whole := `{"update_id":5,"message":{"text":"hello"}}`
		p.request(whole[:30])
		p.request(whole)
		p.wantStates("-  dead", "5 message open")
	})
}

// 200 means that the update can be read from the disk, and nothing less does.
func TestWebhook_AnswersAfterTheCommit(t *testing.T) {
	inHookBubble(t, func(t *testing.T, p *hookPost) {
		entered, commit := make(chan struct{}), make(chan struct{})
		p.receive(func(c *intake.WebhookConfig) {
			inner := c.Bot
			c.URL, c.Bot = "", inboxFunc{inner, func(ctx context.Context, b spool.Batch) (spool.Taken, error) {
				close(entered)
				<-commit
				return inner.Intake(ctx, b)
			}}
		})
		answered := make(chan int, 1)
		go func() { answered <- p.request(`{"update_id":5,"message":{}}`).Code }()
		<-entered
		after(30 * time.Second)
		select {
		case code := <-answered:
			t.Fatalf("answered %d before the commit", code)
		default:
		}
		close(commit)
		if code := <-answered; code != http.StatusOK {
			t.Errorf("answer %d", code)
		}
		if u, err := p.bot.Update(1); err != nil || *u.UpdateID != 5 {
			t.Errorf("update 1: %+v, %v", u, err)
		}
	})
}

// Whoever hangs up during the commit doesn't undo it.
func TestWebhook_CallerGoesAway(t *testing.T) {
	inHookBubble(t, func(t *testing.T, p *hookPost) {
		p.receive(func(c *intake.WebhookConfig) { c.URL = "" })
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		p.request(`{"update_id":5,"message":{}}`, func(r *http.Request) { *r = *r.WithContext(ctx) })
		p.wantStates("5 message open")
	})
}

func TestWebhook_StoreInTrouble(t *testing.T) {
	for _, tt := range []struct {
		name  string
		err   error
		retry string
		state intake.State
		alert int
	}{
		{"full", fmt.Errorf("%w: no space left", spool.ErrFull), "30", intake.Full, 1},
		{"closed", spool.ErrClosed, "5", intake.OK, 0},
		{"broken", errors.New("input/output error"), "5", intake.Full, 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			inHookBubble(t, func(t *testing.T, p *hookPost) {
				fail := tt.err
				p.receive(func(c *intake.WebhookConfig) {
					inner := c.Bot
					c.URL, c.Bot = "", inboxFunc{inner, func(ctx context.Context, b spool.Batch) (spool.Taken, error) {
						if fail != nil {
							return spool.Taken{}, fail
						}
						return inner.Intake(ctx, b)
					}}
				})
				for range 3 {
					w := p.request(`{"update_id":5,"message":{}}`)
					if w.Code != http.StatusServiceUnavailable || w.Header().Get("Retry-After") != tt.retry {
						t.Errorf("answer %d, Retry-After %q", w.Code, w.Header().Get("Retry-After"))
					}
				}
				p.wantHook(tt.state, "")
				if n := len(p.alerted()); n != tt.alert {
					t.Errorf("%d alerts, want %d", n, tt.alert)
				}
				fail = nil
				if w := p.request(`{"update_id":5,"message":{}}`); w.Code != http.StatusOK {
					t.Errorf("answer %d after the trouble", w.Code)
				}
				p.wantHook(intake.OK, "")
				p.wantStates("5 message open")
			})
		})
	}
}

// A store that is closed under a request is the real thing.
func TestWebhook_StoreClosed(t *testing.T) {
	inHookBubble(t, func(t *testing.T, p *hookPost) {
		p.receive(func(c *intake.WebhookConfig) { c.URL = "" })
		p.close()
		if w := p.request(`{"update_id":5,"message":{}}`); w.Code != http.StatusServiceUnavailable {
			t.Errorf("answer %d", w.Code)
		}
		p.open()
		p.wantStates()
	})
}

func TestWebhook_StrangersAreLoggedSeldom(t *testing.T) {
	inHookBubble(t, func(t *testing.T, p *hookPost) {
		p.receive(func(c *intake.WebhookConfig) { c.URL = "" })
		for range 1000 {
			p.request(`{"update_id":5}`, secret("guess"))
			after(time.Second)
		}
		if n := strings.Count(p.logged(), "refused"); n != 2 {
			t.Errorf("%d lines for 1000 requests in 17 minutes, want 2", n)
		}
		if strings.Contains(p.logged(), "guess") {
			t.Error("what strangers sent was logged")
		}
	})
}

func TestCheckSecret(t *testing.T) {
	for secret, ok := range map[string]bool{
		"a": true, "Az09_-": true, strings.Repeat("x", 256): true,
		"": false, strings.Repeat("x", 257): false, "a b": false, "ä": false, "a:b": false, "a\n": false,
	} {
		err := intake.CheckSecret(secret)
		if (err == nil) != ok {
			t.Errorf("%q: %v", secret, err)
		}
		if err != nil && len(secret) > 1 && strings.Contains(err.Error(), secret) {
			t.Errorf("the error repeats %q", secret)
		}
	}
}

// Whatever a body is, it is kept as it came and acknowledged, and takes an id
// only when it is one whole object.
func FuzzWebhookBody(f *testing.F) {
	for _, seed := range []string{
		`{"update_id":5,"message":{"chat":{"id":-7,"type":"group"},"text":"/x@y z"}}`,
		`{"update_id":5,"message":{"te`, `[]`, ``, `{}`, `{"update_id":1e3}`, "{\"a\":\"\\", `{"update_id":1}{"update_id":2}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		var got []spool.NewUpdate
		hook, err := intake.NewWebhook(intake.WebhookConfig{Secret: hookSecret, Route: pull, Bot: inboxFunc{
			intake: func(_ context.Context, b spool.Batch) (spool.Taken, error) {
				got = append(got, b.Updates...)
				return spool.Taken{Stored: 1}, nil
			},
		}})
		if err != nil {
			t.Fatal(err)
		}
		r := httptest.NewRequest(http.MethodPost, "/telegram/home", strings.NewReader(string(body)))
		secret(hookSecret)(r)
		w := httptest.NewRecorder()
		hook.ServeHTTP(w, r)
		if len(body) > intake.MaxUpdate {
			if w.Code != http.StatusRequestEntityTooLarge || len(got) != 0 {
				t.Fatalf("answer %d, %d updates", w.Code, len(got))
			}
			return
		}
		if w.Code != http.StatusOK || len(got) != 1 || string(got[0].Raw) != string(body) {
			t.Fatalf("answer %d, kept %+v", w.Code, got)
		}
		text := strings.Trim(string(body), " \t\r\n")
		if whole := strings.HasPrefix(text, "{") && strings.HasSuffix(text, "}"); got[0].HasID && !whole {
			t.Errorf("%q took the id %d", body, got[0].ID)
		}
		if !got[0].HasID && got[0].Error == "" {
			t.Errorf("%q is malformed, and nothing says why", body)
		}
	})
}
