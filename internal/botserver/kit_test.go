package botserver_test

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tgspool/tgspool/internal/botapi"
	"github.com/tgspool/tgspool/internal/botserver"
	"github.com/tgspool/tgspool/internal/gate"
	"github.com/tgspool/tgspool/internal/sender"
	"github.com/tgspool/tgspool/internal/spool"
	"github.com/tgspool/tgspool/internal/telegramsim"
)

const (
	botID = 4200
	token = "4200:AAHdqTcvCH1vGWJxfSeofSAs0K5PALDsaw0" //nolint:gosec // the simulator's
)

// kit is the endpoint over a real spool, with a real sender and a simulated
// Telegram, all in one process and without sockets, so that it lives in a bubble.
type kit struct {
	t      *testing.T
	dir    string
	sim    *telegramsim.Sim
	change []func(*botserver.Config)

	store   *spool.Store
	bot     *spool.Bot
	gate    *gate.Gate
	client  *botapi.Client
	server  *botserver.Server
	handler http.Handler
	me      []byte

	allowedChanged func()
	upstream       func() (string, time.Time)

	stopping   context.CancelFunc // of the endpoint
	take, work context.CancelFunc // of the sender
	ended      chan error
	pushed     chan struct{} // closed when no webhook is pushed to any more
}

// ByID makes a kit the directory of its one bot.
func (k *kit) ByID(id int64) (*botserver.Bot, bool) {
	if id != botID {
		return nil, false
	}
	return &botserver.Bot{
		Name: "home", Spool: k.bot, Gate: k.gate, Client: k.client,
		TokenIs: func(s string) bool { return s == token },
		Me:      func() []byte { return k.me },

		AllowedChanged: k.allowedChanged, Upstream: k.upstream,
	}, true
}

// bubble runs a scenario in fake time.
func bubble(t *testing.T, scenario func(k *kit), change ...func(*botserver.Config)) {
	t.Helper()
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		k := newKit(t, dir, change...)
		scenario(k)
		k.checkStore()
	})
}

func newKit(t *testing.T, dir string, change ...func(*botserver.Config)) *kit {
	t.Helper()
	k := &kit{t: t, dir: dir, change: change, sim: telegramsim.New(telegramsim.Options{Bots: []telegramsim.Bot{{Token: token}}})}
	k.start(true)
	t.Cleanup(func() {
		k.stop()
		k.sim.Close()
	})
	return k
}

// start opens the store and serves, with a sender or without.
func (k *kit) start(sending bool) {
	k.t.Helper()
	store, err := spool.Open(k.t.Context(), spool.Options{Path: filepath.Join(k.dir, "spool.db")})
	k.must(err)
	k.store = store
	k.must(store.TidyFiles())
	k.gate = gate.New(gate.Config{Rate: 1000})
	k.bot, err = store.Attach(k.t.Context(), spool.BotConfig{
		ID: botID, Name: "home",
		Admit:  func(now time.Time, lane spool.Lane) (bool, time.Time) { return k.gate.Admit(now, string(lane)) },
		Refund: k.gate.Refund,
	})
	k.must(err)
	k.gate.OnOpen(k.bot.Kick)
	tok, err := botapi.ParseToken(token)
	k.must(err)
	k.client, err = botapi.NewClient(botapi.Config{Token: tok, Transport: k.sim.Transport()})
	k.must(err)
	work, stopWork := context.WithCancel(context.Background())
	take, stopTake := context.WithCancel(work)
	stopping, stop := context.WithCancel(context.Background())
	k.work, k.take, k.stopping = stopWork, stopTake, stop
	c := botserver.Config{Store: store, Bots: k, Stopping: stopping, Logger: slog.New(slog.DiscardHandler)}
	for _, f := range k.change {
		f(&c)
	}
	k.server = botserver.New(c)
	k.handler = k.server.Handler(botserver.Access{})
	k.pushed = make(chan struct{})
	go func() {
		defer close(k.pushed)
		k.server.RunWebhooks(take, work)
	}()
	k.ended = make(chan error, 1)
	if sending {
		s := sender.New(sender.Config{Bot: k.bot, Client: k.client, Gate: k.gate, Options: sender.Options{Dir: store.Dir()}})
		go func() { k.ended <- s.Run(take, work) }()
	} else {
		k.ended <- nil
	}
}

// stop ends all in the daemon's order. Calling it twice does no harm.
func (k *kit) stop() {
	if k.store == nil {
		return
	}
	k.stopping()
	k.take()
	k.work()
	k.must(<-k.ended)
	<-k.pushed
	k.server.Close()
	k.must(k.store.Close())
	k.store = nil
}

// restart ends the process and begins another.
func (k *kit) restart(sending bool) {
	k.t.Helper()
	k.stop()
	k.start(sending)
}

// pass lets time pass, until everything has come to rest at its end.
func (k *kit) pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

func (k *kit) checkStore() {
	k.t.Helper()
	problems, err := k.store.Check()
	k.must(err)
	for _, p := range problems {
		k.t.Error(p)
	}
}

func (k *kit) must(err error) {
	k.t.Helper()
	if err != nil {
		k.t.Fatal(err)
	}
}

// answer is what a caller has heard.
type answer struct {
	status int
	header http.Header
	body   string
	json   struct {
		OK          *bool           `json:"ok"`
		Result      json.RawMessage `json:"result"`
		ErrorCode   int             `json:"error_code"`
		Description string          `json:"description"`
		Parameters  struct {
			RetryAfter int64 `json:"retry_after"`
		} `json:"parameters"`
	}
}

// request makes a request of a method of the bot.
func request(method, contentType, body string, headers ...string) *http.Request {
	r := httptest.NewRequest(http.MethodPost, "http://127.0.0.1/bot"+token+"/"+method, strings.NewReader(body))
	if contentType != "" {
		r.Header.Set("Content-Type", contentType)
	}
	for i := 0; i+1 < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	return r
}

// serve answers a request, and checks that the answer has Telegram's shape.
func (k *kit) serve(r *http.Request) *answer {
	k.t.Helper()
	w := httptest.NewRecorder()
	k.handler.ServeHTTP(w, r)
	return k.read(w.Result())
}

func (k *kit) read(res *http.Response) *answer {
	k.t.Helper()
	defer func() { _ = res.Body.Close() }()
	body, err := io.ReadAll(res.Body)
	k.must(err)
	a := &answer{status: res.StatusCode, header: res.Header, body: string(body)}
	if len(body) == 0 && r499(res) {
		return a
	}
	if err := json.Unmarshal(body, &a.json); err != nil {
		k.t.Fatalf("status %d, the body is no JSON: %q", res.StatusCode, body)
	}
	if a.json.OK == nil || *a.json.OK != (a.status < 300) {
		k.t.Errorf("status %d with body %s", a.status, body)
	}
	if a.status >= 300 && (a.json.ErrorCode != a.status || a.json.Description == "") {
		k.t.Errorf("status %d, error body %s", a.status, body)
	}
	return a
}

// r499 is what a recorder shows when the caller has gone and nothing was written.
func r499(res *http.Response) bool { return res.StatusCode == http.StatusOK }

// call makes a call with a JSON body and waits for the answer.
func (k *kit) call(method, body string, headers ...string) *answer {
	k.t.Helper()
	return k.serve(request(method, "application/json", body, headers...))
}

// pendingCall is a call under way whose caller may hang up.
type pendingCall struct {
	hangUp context.CancelFunc
	done   chan *answer
}

// begin makes a call in the background.
func (k *kit) begin(r *http.Request) *pendingCall {
	ctx, cancel := context.WithCancel(r.Context())
	p := &pendingCall{hangUp: cancel, done: make(chan *answer, 1)}
	go func() { p.done <- k.serve(r.WithContext(ctx)) }()
	return p
}

func (k *kit) jobs() []spool.Job {
	k.t.Helper()
	k.store.Settled(k.t.Context())
	page, err := k.bot.Jobs(spool.JobFilter{})
	k.must(err)
	return page.Items
}
