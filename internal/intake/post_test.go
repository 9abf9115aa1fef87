package intake_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tgspool/tgspool/internal/botapi"
	"github.com/tgspool/tgspool/internal/gate"
	"github.com/tgspool/tgspool/internal/intake"
	"github.com/tgspool/tgspool/internal/spool"
	"github.com/tgspool/tgspool/internal/telegramsim"
)

const token = "123456:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"

// nowhere is the network that webhooks are pushed into: nobody is there.
type nowhere struct{}

func (nowhere) RoundTrip(r *http.Request) (*http.Response, error) {
	return nil, fmt.Errorf("dialing %s: %w", r.URL.Host, syscall.ECONNREFUSED)
}

// post is a bot with a real spool, a simulated Telegram, and a poller between
// them. Everything happens inside a bubble, so that days pass at once.
type post struct {
	t      *testing.T
	path   string
	sim    *telegramsim.Sim
	client *botapi.Client
	gate   *gate.Gate
	store  *spool.Store
	bot    *spool.Bot
	poller *intake.Poller

	mu     sync.Mutex // guards log and alerts
	log    bytes.Buffer
	alerts []intake.Alert

	cancel context.CancelFunc
	done   chan error
}

// Write takes a line of the log.
func (p *post) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.log.Write(b)
}

func (p *post) logged() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.log.String()
}

func (p *post) alerted() []intake.Alert {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.alerts)
}

// changes counts the changes of state that were logged.
func (p *post) changes() int {
	return strings.Count(p.logged(), "intake has changed its state")
}

// inBubble runs a test with fake time and a fresh post.
func inBubble(t *testing.T, test func(t *testing.T, p *post)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		p := &post{t: t, path: filepath.Join(t.TempDir(), "spool.db")}
		p.sim = telegramsim.New(telegramsim.Options{Bots: []telegramsim.Bot{{Token: token, Username: "HomeBot"}}, Push: nowhere{}})
		defer p.sim.Close()
		parsed, err := botapi.ParseToken(token)
		if err != nil {
			t.Fatal(err)
		}
		p.client, err = botapi.NewClient(botapi.Config{Token: parsed, Transport: p.sim.Transport()})
		if err != nil {
			t.Fatal(err)
		}
		p.gate = gate.New(gate.Config{})
		p.open()
		defer p.close()
		defer func() {
			if p.cancel != nil {
				p.stop()
			}
		}()
		test(t, p)
		if strings.Contains(p.logged(), token) || strings.Contains(fmt.Sprint(p.alerted()), token) {
			t.Error("the token was told")
		}
	})
}

func (p *post) open() {
	p.t.Helper()
	store, err := spool.Open(p.t.Context(), spool.Options{Path: p.path})
	if err != nil {
		p.t.Fatal(err)
	}
	p.store = store
	p.bot, err = store.Attach(p.t.Context(), spool.BotConfig{ID: 123456, Name: "home"})
	if err != nil {
		p.t.Fatal(err)
	}
}

func (p *post) close() {
	p.t.Helper()
	if err := p.store.Close(); err != nil {
		p.t.Error(err)
	}
}

func pull(botapi.Update) spool.Route { return spool.Route{} }

// poll starts a poller; change may replace parts of its Config.
func (p *post) poll(change ...func(*intake.Config)) {
	p.t.Helper()
	c := intake.Config{
		Bot: p.bot, Client: p.client, Gate: p.gate, Route: pull,
		Logger: slog.New(slog.NewTextHandler(p, &slog.HandlerOptions{Level: slog.LevelDebug})),
		Notify: func(a intake.Alert) {
			p.mu.Lock()
			defer p.mu.Unlock()
			p.alerts = append(p.alerts, a)
		},
	}
	for _, f := range change {
		f(&c)
	}
	p.poller = intake.New(c)
	ctx, cancel := context.WithCancel(p.t.Context())
	p.cancel, p.done = cancel, make(chan error, 1)
	go func() { p.done <- p.poller.Run(ctx) }()
}

// stop ends the poller and checks that it takes no time.
func (p *post) stop() {
	p.t.Helper()
	start := time.Now()
	p.cancel()
	if err := <-p.done; err != nil {
		p.t.Errorf("Run: %v", err)
	}
	if took := time.Since(start); took > 0 {
		p.t.Errorf("stopping took %s", took)
	}
	p.cancel = nil
}

// restart is what a restart of the daemon is to the poller and the store.
func (p *post) restart(change ...func(*intake.Config)) {
	p.t.Helper()
	p.stop()
	p.close()
	p.open()
	p.poll(change...)
}

// after lets time pass, and then what it has begun come to rest.
func after(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

// text feeds a message, as a user would write it.
func (p *post) text(s string) int64 {
	p.t.Helper()
	id := p.sim.FeedText(7, 7, s)
	if id == 0 {
		p.t.Fatalf("the simulator dropped %q", s)
	}
	return id
}

func (p *post) updates() []spool.Update {
	p.t.Helper()
	page, err := p.bot.Updates(spool.UpdateFilter{Limit: 1000})
	if err != nil {
		p.t.Fatal(err)
	}
	return page.Items
}

// texts are the texts of what was taken in, in order, malformed ones as their bytes.
func (p *post) texts() []string {
	p.t.Helper()
	got := []string{}
	for _, u := range p.updates() {
		parsed, err := botapi.ParseUpdate(u.Raw)
		if err != nil {
			got = append(got, string(u.Raw))
			continue
		}
		got = append(got, parsed.Text)
	}
	return got
}

func (p *post) wantTexts(want ...string) {
	p.t.Helper()
	if got := p.texts(); !slices.Equal(got, want) {
		p.t.Errorf("taken in: %q, want %q", got, want)
	}
}

func (p *post) wantState(state intake.State, detail string) {
	p.t.Helper()
	if s := p.poller.State(); s.State != state || !strings.Contains(s.Detail, detail) {
		p.t.Errorf("intake is %s: %q, want %s: %q", s.State, s.Detail, state, detail)
	}
}

// fault scripts a fault for getUpdates only.
func (p *post) fault(f telegramsim.Fault) (id int) {
	f.Method = "getUpdates"
	return p.sim.AddFault(f)
}

// caller is a Caller made of a function.
type caller func(ctx context.Context, r botapi.Request) botapi.Seen

func (c caller) Call(ctx context.Context, r botapi.Request) botapi.Seen { return c(ctx, r) }

// answer is a whole answer of the Bot API.
func answer(status int, body string) botapi.Seen {
	return botapi.Seen{Phase: botapi.PhaseResponse, Status: status, Body: []byte(body), BodyComplete: true, ContentType: "application/json"}
}

// offsetOf reads the offset that a poll asked for; 0 when there was none.
func offsetOf(t *testing.T, r botapi.Request) int64 {
	t.Helper()
	var params struct {
		Offset int64 `json:"offset"`
	}
	if err := json.Unmarshal(r.Params, &params); err != nil {
		t.Error(err)
	}
	return params.Offset
}
