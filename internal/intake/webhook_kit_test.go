package intake_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/tgspool/tgspool/internal/botapi"
	"github.com/tgspool/tgspool/internal/intake"
	"github.com/tgspool/tgspool/internal/spool"
	"github.com/tgspool/tgspool/internal/telegramsim"
)

const (
	hookSecret = "Not-for-the-logs_1"
	hookURL    = "https://hook.invalid/telegram/home/also-secret"
)

// hookPost is a post whose updates come by webhook. It is the network between
// the simulator and the receiver, too.
type hookPost struct {
	*post
	hook *intake.Webhook

	wire  sync.Mutex // guards the fields below
	down  bool       // nobody can be reached
	lose  int        // so many answers get lost on the way back
	proxy int        // what somebody between answers, 0: nobody is there
	calls []string   // methods that the hook has called, with their parameters
}

// inHookBubble runs a test with fake time, a fresh post, and no hook yet.
func inHookBubble(t *testing.T, test func(t *testing.T, p *hookPost)) {
	t.Helper()
	inBubble(t, func(t *testing.T, inner *post) {
		p := &hookPost{post: inner}
		p.sim = telegramsim.New(telegramsim.Options{Bots: []telegramsim.Bot{{Token: token, Username: "HomeBot"}}, Push: p})
		defer p.sim.Close()
		parsed, err := botapi.ParseToken(token)
		if err != nil {
			t.Fatal(err)
		}
		if p.client, err = botapi.NewClient(botapi.Config{Token: parsed, Transport: p.sim.Transport()}); err != nil {
			t.Fatal(err)
		}
		defer func() {
			if p.cancel != nil {
				p.stop()
			}
		}()
		test(t, p)
		told := p.logged() + fmt.Sprint(p.alerted())
		if strings.Contains(told, hookSecret) || strings.Contains(told, "also-secret") {
			t.Errorf("a secret was told:\n%s", told)
		}
	})
}

// RoundTrip carries one delivery.
func (p *hookPost) RoundTrip(r *http.Request) (*http.Response, error) {
	defer func() { _ = r.Body.Close() }()
	p.wire.Lock()
	hook, down, proxy := p.hook, p.down, p.proxy
	p.wire.Unlock()
	if proxy != 0 {
		return &http.Response{StatusCode: proxy, Body: http.NoBody}, nil
	}
	if down || hook == nil {
		return nil, syscall.ECONNREFUSED
	}
	w := httptest.NewRecorder()
	hook.ServeHTTP(w, r)
	p.wire.Lock()
	defer p.wire.Unlock()
	if p.lose > 0 {
		p.lose--
		return nil, syscall.ECONNRESET
	}
	return w.Result(), nil
}

func (p *hookPost) setDown(down bool) {
	p.wire.Lock()
	defer p.wire.Unlock()
	p.down = down
}

// Call makes a call for the hook and notes it.
func (p *hookPost) Call(ctx context.Context, r botapi.Request) botapi.Seen {
	p.wire.Lock()
	p.calls = append(p.calls, r.Method+" "+string(r.Params))
	p.wire.Unlock()
	return p.client.Call(ctx, r)
}

// called returns the calls of a method since the last time, and forgets all.
func (p *hookPost) called(method string) []string {
	p.wire.Lock()
	defer p.wire.Unlock()
	var list []string
	for _, c := range p.calls {
		if params, ok := strings.CutPrefix(c, method+" "); ok {
			list = append(list, params)
		}
	}
	p.calls = nil
	return list
}

func (p *hookPost) config() intake.WebhookConfig {
	return intake.WebhookConfig{
		Bot: p.bot, Client: p, Gate: p.gate, Route: pull, Secret: hookSecret, URL: hookURL,
		Logger: slog.New(slog.NewTextHandler(p, &slog.HandlerOptions{Level: slog.LevelDebug})),
		Notify: func(a intake.Alert) {
			p.mu.Lock()
			defer p.mu.Unlock()
			p.alerts = append(p.alerts, a)
		},
	}
}

// receive starts a hook; change may replace parts of its configuration.
func (p *hookPost) receive(change ...func(*intake.WebhookConfig)) {
	p.t.Helper()
	c := p.config()
	for _, f := range change {
		f(&c)
	}
	hook, err := intake.NewWebhook(c)
	if err != nil {
		p.t.Fatal(err)
	}
	p.wire.Lock()
	p.hook = hook
	p.wire.Unlock()
	ctx, cancel := context.WithCancel(p.t.Context())
	p.cancel, p.done = cancel, make(chan error, 1)
	go func() { p.done <- hook.Run(ctx) }()
}

func (p *hookPost) wantHook(state intake.State, detail string) {
	p.t.Helper()
	if s := p.hook.State(); s.State != state || !strings.Contains(s.Detail, detail) {
		p.t.Errorf("intake is %s: %q, want %s: %q", s.State, s.Detail, state, detail)
	}
}

// webhook is the URL that the simulator pushes to.
func (p *hookPost) webhook() string {
	p.t.Helper()
	var info struct {
		URL string `json:"url"`
	}
	seen := p.client.Call(p.t.Context(), botapi.Request{Method: "getWebhookInfo"})
	o := botapi.Classify(botapi.MethodFor("getWebhookInfo"), nil, seen)
	if err := json.Unmarshal(o.Result, &info); err != nil {
		p.t.Fatal(err)
	}
	return info.URL
}

// setWebhook is somebody else at work with our token.
func (p *hookPost) setWebhook(address string) {
	p.t.Helper()
	seen := p.client.Call(p.t.Context(), botapi.Request{Method: "setWebhook", Params: json.RawMessage(fmt.Sprintf(`{"url":%q}`, address))})
	if seen.Status != http.StatusOK {
		p.t.Fatalf("setWebhook: %d %s", seen.Status, seen.Body)
	}
}

// request posts a body as Telegram does, but for what change does to it.
func (p *hookPost) request(body string, change ...func(*http.Request)) *httptest.ResponseRecorder {
	r := httptest.NewRequestWithContext(p.t.Context(), http.MethodPost, "/telegram/home", strings.NewReader(body))
	r.Header.Set("X-Telegram-Bot-Api-Secret-Token", hookSecret)
	for _, f := range change {
		f(r)
	}
	w := httptest.NewRecorder()
	p.hook.ServeHTTP(w, r)
	return w
}

// states are what was taken in, as "id kind state", "-" for an update without id.
func (p *hookPost) states() []string {
	p.t.Helper()
	var list []string
	for _, u := range p.updates() {
		id := "-"
		if u.UpdateID != nil {
			id = fmt.Sprint(*u.UpdateID)
		}
		list = append(list, fmt.Sprintf("%s %s %s", id, u.Kind, u.State))
	}
	return list
}

func (p *hookPost) wantStates(want ...string) {
	p.t.Helper()
	if got := p.states(); !slices.Equal(got, want) {
		p.t.Errorf("taken in: %q, want %q", got, want)
	}
}

// inboxFunc is an inbox whose commits are a function.
type inboxFunc struct {
	intake.WebhookInbox
	intake func(ctx context.Context, batch spool.Batch) (spool.Taken, error)
}

func (f inboxFunc) Intake(ctx context.Context, batch spool.Batch) (spool.Taken, error) {
	return f.intake(ctx, batch)
}
