package main_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tgspool/tgspool/internal/demo"
	"github.com/tgspool/tgspool/internal/spool"
	"github.com/tgspool/tgspool/internal/telegramsim"
)

const (
	rigToken   = "4242:KILL-KILL-KILL-KILL-KILL-KILL-KILL-" //nolint:gosec // no secret: only the simulator knows it
	rigBotID   = 4242
	rigChats   = 12
	workers    = 8
	rigChatGap = 5 * time.Millisecond
)

// rigBot is the bot with the limits of the settings, for checking its store.
var rigBot = spool.BotConfig{ID: rigBotID, Name: "kill", Limits: spool.Limits{ChatGap: rigChatGap, GroupPerMinute: 20}}

// rig is a simulator in this process and a daemon in another, with a load.
type rig struct {
	t        *testing.T
	binary   string
	dir      string
	settings string
	store    string
	log      *os.File
	env      []string // of the daemon, beside PATH
	sim      *telegramsim.Sim
	client   *http.Client // of the daemon's socket
	daemon   *running

	rng *rand.Rand // the test's goroutine alone uses it

	mu     sync.Mutex // guards what the load notes
	record demo.Record
}

// running is a daemon.
type running struct {
	cmd   *exec.Cmd
	ended chan struct{} // closed when it has been waited for
}

// newRig serves a simulator and writes the settings.
func newRig(t *testing.T, binary string, seed uint64) *rig {
	dir := t.TempDir()
	r := &rig{
		t: t, binary: binary, dir: dir, rng: rand.New(rand.NewPCG(seed, 0)),
		settings: filepath.Join(dir, "tgspool.toml"), store: filepath.Join(dir, "spool.db"),
	}
	base := r.serveSimulator()
	r.writeSettings(base)
	var err error
	if r.log, err = os.Create(filepath.Join(dir, "daemon.log")); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.log.Close() })
	r.client = &http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			var d net.Dialer
			return d.DialContext(ctx, "unix", filepath.Join(dir, "s"))
		},
	}}
	t.Cleanup(r.client.CloseIdleConnections)
	t.Cleanup(func() {
		if r.daemon != nil {
			_ = r.daemon.cmd.Process.Kill()
			<-r.daemon.ended
		}
	})
	return r
}

// serveSimulator serves a simulator in which calls take a moment: in one half
// of the chats before they take effect, in the other half after.
func (r *rig) serveSimulator() (base string) {
	r.sim = telegramsim.New(telegramsim.Options{Bots: []telegramsim.Bot{{Token: rigToken}}, Seed: 1})
	for n := range rigChats {
		r.sim.AddFault(telegramsim.Fault{
			Chat: rigChat(n), Kind: telegramsim.FaultSlow, Delay: 15 * time.Millisecond, Effect: n%2 == 0,
		})
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		r.t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- r.sim.Serve(ctx, listener) }()
	r.t.Cleanup(func() {
		r.sim.Close()
		stop()
		if err := <-served; err != nil {
			r.t.Errorf("serving the simulator: %v", err)
		}
	})
	return "http://" + listener.Addr().String()
}

func rigChat(n int) int64 { return 8_000_000_000 + int64(n%rigChats) }

// handlerProgram asks for one message, or two when the update's id is odd.
const handlerProgram = `printf '{"method":"sendMessage","chat_id":%s,"text":"u%s.1"}\n' $TGSPOOL_CHAT_ID $TGSPOOL_UPDATE_ID
case $TGSPOOL_UPDATE_ID in *[13579])
printf '{"method":"sendMessage","chat_id":%s,"text":"u%s.2"}\n' $TGSPOOL_CHAT_ID $TGSPOOL_UPDATE_ID;; esac`

// replies is what handlerProgram asks for.
func replies(update, chat int64) []demo.Message {
	var list []demo.Message
	for n := range 1 + update%2 {
		list = append(list, demo.Message{ChatID: chat, Text: fmt.Sprintf("u%d.%d", update, n+1)})
	}
	return list
}

// writeSettings writes the daemon's settings. Each kill may cost an update an
// attempt, so that there must be more than kills.
func (r *rig) writeSettings(base string) {
	text := fmt.Sprintf(`[store]
path = %q
[api]
listen = ["unix:%s/s"]
[daemon]
drain = "2s"
[bots.kill]
token_file = "%[2]s/token"
api_base = %[3]q
[bots.kill.sender]
rate = 0.0
chat_gap = %[4]q
workers = %[5]d
[[bots.kill.handlers]]
name = "answer"
exec = ["/bin/sh", "-c", '''%[6]s''']
reply = "calls"
allow_from = ["*"]
attempts = 100000
`, r.store, r.dir, base, rigChatGap, workers, handlerProgram)
	for name, text := range map[string]string{r.settings: text, filepath.Join(r.dir, "token"): rigToken + "\n"} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			r.t.Fatal(err)
		}
	}
}

// fatal ends the test with the daemon's last words.
func (r *rig) fatal(format string, args ...any) {
	r.t.Helper()
	text, err := os.ReadFile(r.log.Name())
	if err != nil {
		r.t.Logf("reading the daemon's log: %v", err)
	}
	r.t.Fatalf("%s\nthe daemon's last words:\n%s", fmt.Sprintf(format, args...), text[max(0, len(text)-4000):])
}

// start starts the daemon.
func (r *rig) start() {
	r.t.Helper()
	d := &running{cmd: exec.Command(r.binary, "run", "--config", r.settings), ended: make(chan struct{})}
	d.cmd.Stdout, d.cmd.Stderr = r.log, r.log
	d.cmd.Env = append([]string{"PATH=/usr/bin:/bin"}, r.env...)
	if err := d.cmd.Start(); err != nil {
		r.t.Fatalf("starting the daemon: %v", err)
	}
	go func() {
		defer close(d.ended)
		_ = d.cmd.Wait() // the state tells how
	}()
	r.daemon = d
}

// ready waits until the daemon answers.
func (r *rig) ready() {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(r.t.Context(), 20*time.Second)
	defer cancel()
	r.until(ctx, "to answer", func() bool {
		_, err := r.do(ctx, http.MethodGet, "/v1/status", nil, nil)
		return err == nil
	})
}

// until looks again and again until the daemon is as it should be.
func (r *rig) until(ctx context.Context, what string, ok func() bool) {
	r.t.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for !ok() {
		select {
		case <-tick.C:
		case <-r.daemon.ended:
			r.fatal("the daemon has ended instead of coming %s: %s", what, r.daemon.cmd.ProcessState)
		case <-ctx.Done():
			r.fatal("the daemon took too long %s", what)
		}
	}
}

// do asks the daemon.
func (r *rig) do(ctx context.Context, method, path string, body []byte, out any) (int, error) {
	request, err := http.NewRequestWithContext(ctx, method, "http://tgspool"+path, bytes.NewReader(body))
	if err != nil {
		return 0, err
	}
	if body != nil {
		request.Header.Set("Content-Type", "application/json")
	}
	response, err := r.client.Do(request)
	if err != nil {
		return 0, err
	}
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		return 0, err
	}
	if response.StatusCode >= 300 {
		return response.StatusCode, fmt.Errorf("status %d: %s", response.StatusCode, text)
	}
	if out == nil {
		return response.StatusCode, nil
	}
	return response.StatusCode, json.Unmarshal(text, out)
}

// load keeps updates and jobs coming until the function that it returns is
// called, which waits for the last job to be taken.
func (r *rig) load() (stop func()) {
	done := make(chan struct{})
	var loops sync.WaitGroup
	every := func(d time.Duration, do func(n int)) {
		loops.Go(func() {
			tick := time.NewTicker(d)
			defer tick.Stop()
			for n := 1; ; n++ {
				do(n)
				select {
				case <-tick.C:
				case <-done:
					return
				}
			}
		})
	}
	ctx, cancel := context.WithCancel(r.t.Context())
	every(15*time.Millisecond, func(int) { r.feed() })
	for poster := range 2 {
		every(12*time.Millisecond, func(n int) { r.post(ctx, 2*n+poster) })
	}
	stop = sync.OnceFunc(func() {
		close(done)
		loops.Wait()
	})
	r.t.Cleanup(func() {
		cancel() // a test that fails doesn't wait for the last job to be taken
		stop()
	})
	return stop
}

// feed has a chat write.
func (r *rig) feed() {
	r.mu.Lock()
	defer r.mu.Unlock()
	chat := rigChat(len(r.record.Updates))
	update := r.sim.FeedText(chat, chat, "hello")
	if update == 0 {
		r.t.Error("the simulator's queue is full")
		return
	}
	r.record.Updates = append(r.record.Updates, update)
	r.record.Expected = append(r.record.Expected, replies(update, chat)...)
}

// post queues the n-th job, as often as it takes until the daemon has said that
// it has it.
func (r *rig) post(ctx context.Context, n int) {
	m := demo.Message{ChatID: rigChat(n), Text: "job " + strconv.Itoa(n)}
	body := fmt.Appendf(nil, `{"method":"sendMessage","params":{"chat_id":%d,"text":%q},"dedupe_key":"key-%d"}`, m.ChatID, m.Text, n)
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		var job struct {
			ID int64 `json:"id"`
		}
		status, err := r.do(ctx, http.MethodPost, "/v1/bots/kill/jobs", body, &job)
		if err == nil {
			m.JobID = job.ID
			r.mu.Lock()
			r.record.Expected = append(r.record.Expected, m)
			r.mu.Unlock()
			return
		}
		if status >= 400 && status < 500 {
			r.t.Errorf("job %d was refused: %v", n, err)
			return
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// drain waits until nothing is left to be handled or sent.
func (r *rig) drain(ctx context.Context) {
	r.t.Helper()
	r.until(ctx, "to an end", func() bool {
		var status struct {
			Bots map[string]struct {
				QueueDepth     int64 `json:"queue_depth"`
				InboxUnhandled int64 `json:"inbox_unhandled"`
			} `json:"bots"`
		}
		if r.sim.Pending(rigBotID) > 0 {
			return false
		}
		_, err := r.do(ctx, http.MethodGet, "/v1/status", nil, &status)
		bot := status.Bots["kill"]
		return err == nil && bot.QueueDepth == 0 && bot.InboxUnhandled == 0
	})
}

// compare fails the test for whatever doesn't fit together.
func (r *rig) compare(ctx context.Context) {
	r.t.Helper()
	r.record.Journal = r.sim.Journal()
	var err error
	if r.record.Spool, err = demo.ReadAll(ctx, r.store, rigBot); err != nil {
		r.fatal("reading the store: %v", err)
	}
	for _, job := range r.record.Spool.Jobs {
		if job.State != spool.Done && job.State != spool.Uncertain {
			r.t.Errorf("job %d is %s at the end", job.ID, job.State)
		}
	}
	result := demo.Tally(r.record)
	r.t.Logf("kills %d, in %d, handled %d, sent %d of %d, lost %d, doubled %d, uncertain %d (%d arrived) of at most %d",
		result.Kills, result.In, result.Handled, result.Sent, result.Expected, result.Lost, result.Doubled,
		result.Uncertain, result.UncertainArrived, result.Allowed)
	if result.In == 0 || result.Sent == 0 {
		r.t.Error("nothing has happened")
	}
	if !result.OK() {
		r.fatal("%d problems:\n%s", len(result.Problems), strings.Join(result.Problems[:min(20, len(result.Problems))], "\n"))
	}
}
