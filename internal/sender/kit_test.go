package sender_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tgspool/tgspool/internal/botapi"
	"github.com/tgspool/tgspool/internal/gate"
	"github.com/tgspool/tgspool/internal/outbox"
	"github.com/tgspool/tgspool/internal/sender"
	"github.com/tgspool/tgspool/internal/spool"
	"github.com/tgspool/tgspool/internal/telegramsim"
)

const (
	botID = 4242
	token = "4242:the-secret-half-of-a-token-of-tests"
	long  = 30 * 24 * time.Hour // no test waits that long unless something hangs
)

// setup changes how a world is built.
type setup struct {
	workers int
	options sender.Options
	limits  spool.Limits
	rate    float64
	sim     telegramsim.Options
	client  func(sender.Caller) sender.Caller
	// admitted runs between a claim's admission and its call.
	admitted func(*gate.Gate)
}

// world is a bot with a real store, a real client and a simulated Telegram.
type world struct {
	t     *testing.T
	setup setup
	dir   string
	sim   *telegramsim.Sim
	log   *record

	store  *spool.Store
	bot    *spool.Bot
	gate   *gate.Gate
	take   context.CancelFunc
	work   context.CancelFunc
	ended  chan error
	events *events
}

// run gives a scenario a world in a bubble of fake time.
func run(t *testing.T, scenario func(w *world), change ...func(*setup)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s := setup{
			rate:   25,
			limits: spool.Limits{ChatGap: 1050 * time.Millisecond, ChatBurst: 1, GroupPerMinute: 20},
			sim:    telegramsim.Options{Bots: []telegramsim.Bot{{Token: token}}},
		}
		for _, f := range change {
			f(&s)
		}
		w := &world{t: t, setup: s, dir: t.TempDir(), sim: telegramsim.New(s.sim), log: &record{}, events: &events{}}
		t.Cleanup(func() { // also after a Fatal: nothing may outlive the bubble
			w.take()
			w.work()
			w.sim.Close()
			_ = w.store.Close()
		})
		w.start()
		scenario(w)
		w.stop()
		w.checkLog()
	})
}

// start opens the store and runs a sender on it.
func (w *world) start() {
	w.t.Helper()
	w.open()
	tok, err := botapi.ParseToken(token)
	w.must(err)
	client, err := botapi.NewClient(botapi.Config{Token: tok, Transport: w.sim.Transport()})
	w.must(err)
	var caller sender.Caller = client
	if w.setup.client != nil {
		caller = w.setup.client(client)
	}
	options := w.setup.options
	options.Dir = w.dir
	s := sender.New(sender.Config{
		Bot: w.bot, Client: caller, Gate: w.gate, Workers: w.setup.workers, Options: options,
		Logger: slog.New(slog.NewTextHandler(w.log, nil)), Notify: w.events.add,
	})
	var take, work context.Context
	work, w.work = context.WithCancel(context.Background())
	take, w.take = context.WithCancel(work)
	w.ended = make(chan error, 1)
	go func() { w.ended <- s.Run(take, work) }()
}

// open opens the store without anybody who sends.
func (w *world) open() {
	w.t.Helper()
	store, err := spool.Open(w.t.Context(), spool.Options{Path: filepath.Join(w.dir, "spool.db")})
	w.must(err)
	w.store = store
	w.gate = gate.New(gate.Config{Rate: w.setup.rate})
	w.bot, err = store.Attach(w.t.Context(), spool.BotConfig{
		ID: botID, Name: "home", Limits: w.setup.limits,
		Admit: func(now time.Time, lane spool.Lane) (bool, time.Time) {
			ok, at := w.gate.Admit(now, string(lane))
			if ok && w.setup.admitted != nil {
				w.setup.admitted(w.gate)
			}
			return ok, at
		},
		Refund: w.gate.Refund, Sight: outbox.Sight(botID),
	})
	w.must(err)
	w.gate.OnOpen(w.bot.Kick)
}

// stop ends the sender at once and closes the store.
func (w *world) stop() {
	w.t.Helper()
	w.take()
	w.work()
	w.must(<-w.ended)
	w.must(w.store.Close())
}

func (w *world) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

// call queues any call and returns its job's id.
func (w *world) call(method, params string, change ...func(*outbox.Options)) int64 {
	w.t.Helper()
	o := outbox.Options{Origin: "test"}
	for _, f := range change {
		f(&o)
	}
	job, err := outbox.New(method, json.RawMessage(params), o)
	w.must(err)
	queued, err := w.bot.Enqueue(w.t.Context(), job)
	w.must(err)
	return queued[0].Job.ID
}

// send queues a message.
func (w *world) send(chat int64, text string, change ...func(*outbox.Options)) int64 {
	w.t.Helper()
	return w.call("sendMessage", fmt.Sprintf(`{"chat_id":%d,"text":%q}`, chat, text), change...)
}

func onUncertain(p spool.Policy) func(*outbox.Options) {
	return func(o *outbox.Options) { o.OnUncertain = p }
}

func (w *world) job(id int64) spool.Job {
	w.t.Helper()
	job, err := w.store.Job(id)
	w.must(err)
	return job
}

// end waits until a job is neither pending nor running, and checks the state.
func (w *world) end(id int64, want spool.State) spool.Job {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.t.Context(), long)
	defer cancel()
	job, err := w.store.Wait(ctx, id)
	w.must(err)
	return w.is(job, want)
}

// pass lets time pass, until everything has come to rest at its end.
func (w *world) pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// now checks a job's present state, once everything has come to rest.
func (w *world) now(id int64, want spool.State) spool.Job {
	w.t.Helper()
	synctest.Wait()
	return w.is(w.job(id), want)
}

func (w *world) is(job spool.Job, want spool.State) spool.Job {
	w.t.Helper()
	if job.State != want {
		why := "no error"
		if e := job.LastError; e != nil {
			why = fmt.Sprintf("%s %d %q", e.Class, e.Code, e.Description)
		}
		w.t.Fatalf("job %d is %s after %d attempts (%s), want %s", job.ID, job.State, job.Attempts, why, want)
	}
	return job
}

// class checks the class of a job's last error.
func (w *world) class(job spool.Job, want botapi.Class) {
	w.t.Helper()
	if job.LastError == nil || job.LastError.Class != string(want) {
		w.t.Errorf("job %d: last error %+v, want class %s", job.ID, job.LastError, want)
	}
}

// arrivals are the calls of a method that took effect in a chat, in order. A
// chat 0 and an empty method are any.
func (w *world) arrivals(method string, chat int64) (list []telegramsim.Arrival) {
	for _, a := range w.sim.Journal() {
		if a.Effect && (method == "" || a.Method == method) && (chat == 0 || a.ChatID == chat) {
			list = append(list, a)
		}
	}
	return list
}

// tries counts all calls of a method that Telegram saw, whatever came of them.
func (w *world) tries(method string) (n int) {
	for _, a := range w.sim.Journal() {
		if a.Method == method {
			n++
		}
	}
	return n
}

// texts are the messages that a chat was sent, in order.
func (w *world) texts(chat int64) (list []string) {
	for _, a := range w.arrivals("sendMessage", chat) {
		list = append(list, a.Text)
	}
	return list
}

// sent checks what a chat was sent, in order.
func (w *world) sent(chat int64, want ...string) {
	w.t.Helper()
	if got := w.texts(chat); !slices.Equal(got, want) {
		w.t.Errorf("chat %d was sent %q, want %q", chat, got, want)
	}
}

// fault puts a fault in force.
func (w *world) fault(f telegramsim.Fault) (remove func()) {
	id := w.sim.AddFault(f)
	return func() { w.sim.RemoveFault(id) }
}

// checkLog holds what is never logged against all that was.
func (w *world) checkLog() {
	w.t.Helper()
	for _, secret := range []string{"the-secret-half", "words of a message"} {
		if strings.Contains(w.log.String(), secret) {
			w.t.Errorf("the log holds %q:\n%s", secret, w.log)
		}
	}
}

// record is a log that can be read.
type record struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (r *record) Write(p []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.buf.Write(p)
}

func (r *record) String() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.buf.String()
}

// events are those that the sender told.
type events struct {
	mu   sync.Mutex
	list []sender.Event
}

func (e *events) add(ev sender.Event) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.list = append(e.list, ev)
}

func (e *events) count(kind sender.EventKind) (n int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, ev := range e.list {
		if ev.Kind == kind {
			n++
		}
	}
	return n
}

// numbered makes n texts.
func numbered(prefix string, n int) (list []string) {
	for i := range n {
		list = append(list, prefix+strconv.Itoa(i+1))
	}
	return list
}

// gaps checks that calls are at least so far apart.
func (w *world) gaps(list []telegramsim.Arrival, least time.Duration) {
	w.t.Helper()
	for i := 1; i < len(list); i++ {
		if gap := list[i].At.Sub(list[i-1].At); gap < least {
			w.t.Errorf("calls %d and %d are %v apart, want at least %v", i, i+1, gap, least)
		}
	}
}
