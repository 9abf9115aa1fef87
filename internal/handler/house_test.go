package handler

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tgspool/tgspool/internal/intake"
	"github.com/tgspool/tgspool/internal/spool"
)

// house is a bot with a real spool and its handlers at work.
type house struct {
	t      *testing.T
	dir    string // of the spool
	store  *spool.Store
	bot    *spool.Bot
	router *Router
	log    *safeBuffer
	next   int64 // update id
	tell   chan struct{}

	endTake, endWork context.CancelFunc
	done             chan error
}

// safeBuffer may be read while a logger writes.
type safeBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *safeBuffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *safeBuffer) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

func openHouse(t *testing.T, routes ...RouteConfig) *house {
	t.Helper()
	h := &house{t: t, dir: t.TempDir(), log: &safeBuffer{}, tell: make(chan struct{}, 1000)}
	h.router = mustRouter(t, routes, RouterOptions{})
	h.open()
	return h
}

func (h *house) open() {
	h.t.Helper()
	store, err := spool.Open(h.t.Context(), spool.Options{Path: filepath.Join(h.dir, "spool.db")})
	if err != nil {
		h.t.Fatal(err)
	}
	h.store = store
	h.bot, err = store.Attach(h.t.Context(), spool.BotConfig{ID: 1, Name: "home"})
	if err != nil {
		h.t.Fatal(err)
	}
}

func (h *house) close() {
	h.t.Helper()
	if err := h.store.Close(); err != nil {
		h.t.Error(err)
	}
}

// ended counts a run; nobody may be listening.
func (h *house) ended() {
	select {
	case h.tell <- struct{}{}:
	default:
	}
}

// telling is an inbox that tells when an update's run has been recorded.
type telling struct {
	Inbox
	h *house
}

func (i telling) Handled(ctx context.Context, l *spool.Lease, x spool.Handling) ([]spool.Queued, error) {
	q, err := i.Inbox.Handled(ctx, l, x)
	i.h.ended()
	return q, err
}

func (i telling) FailUpdate(ctx context.Context, l *spool.Lease, f spool.Failure) error {
	err := i.Inbox.FailUpdate(ctx, l, f)
	i.h.ended()
	return err
}

// run starts the handlers; stop ends them. change may replace parts of the Config.
func (h *house) run(change ...func(*Config)) *Handlers {
	h.t.Helper()
	routes := make([]RouteConfig, 0, len(h.router.routes))
	for _, m := range h.router.routes {
		routes = append(routes, m.RouteConfig)
	}
	c := Config{
		Bot: telling{h.bot, h}, Routes: routes,
		Logger: slog.New(slog.NewTextHandler(h.log, &slog.HandlerOptions{Level: slog.LevelDebug})),
	}
	for _, f := range change {
		f(&c)
	}
	handlers, err := New(c)
	if err != nil {
		h.t.Fatal(err)
	}
	take, endTake := context.WithCancel(h.t.Context())
	work, endWork := context.WithCancel(h.t.Context())
	h.endTake, h.endWork, h.done = endTake, endWork, make(chan error, 1)
	go func() { h.done <- handlers.Run(take, work) }()
	return handlers
}

func (h *house) stop() {
	h.t.Helper()
	h.endTake()
	h.endWork()
	if err := <-h.done; err != nil {
		h.t.Error(err)
	}
}

// feed takes updates in, each given an update_id of its own, and returns the
// seq of the first.
func (h *house) feed(updates ...string) int64 {
	h.t.Helper()
	var batch spool.Batch
	for _, u := range updates {
		h.next++
		raw := strings.Replace(u, `{`, fmt.Sprintf(`{"update_id":%d,`, 1000+h.next), 1)
		batch.Updates = append(batch.Updates, intake.NewUpdate([]byte(raw), h.router.Route))
	}
	before := h.next - int64(len(updates))
	if _, err := h.bot.Intake(h.t.Context(), batch); err != nil {
		h.t.Fatal(err)
	}
	return before + 1
}

func (h *house) update(seq int64) spool.Update {
	h.t.Helper()
	u, err := h.bot.Update(seq)
	if err != nil {
		h.t.Fatal(err)
	}
	return u
}

// want checks an update's state, its attempts, and that its error says why.
func (h *house) want(seq int64, state spool.UpdateState, attempts int, why string) spool.Update {
	h.t.Helper()
	u := h.update(seq)
	got := ""
	if u.Error != nil {
		got = *u.Error
	}
	if u.State != state || u.Attempts != attempts || !strings.Contains(got, why) || why == "" && got != "" {
		h.t.Errorf("update %d is %s after %d attempts: %q; want %s, %d, %q", seq, u.State, u.Attempts, got, state, attempts, why)
	}
	return u
}

// jobs are all jobs of the bot, in the order of their acceptance.
func (h *house) jobs() []spool.Job {
	h.t.Helper()
	page, err := h.bot.Jobs(spool.JobFilter{Limit: 1000})
	if err != nil {
		h.t.Fatal(err)
	}
	return page.Items
}

// wantCalls compares the jobs with lines of "method params".
func (h *house) wantCalls(want ...string) []spool.Job {
	h.t.Helper()
	jobs := h.jobs()
	got := make([]string, 0, len(jobs))
	for _, j := range jobs {
		got = append(got, j.Method+" "+string(j.Params))
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		h.t.Errorf("jobs are\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	return jobs
}

// told waits until n runs have been recorded; for tests in real time.
func (h *house) told(n int) {
	h.t.Helper()
	limit := time.NewTimer(20 * time.Second)
	defer limit.Stop()
	for range n {
		select {
		case <-h.tell:
		case <-limit.C:
			h.t.Fatalf("no run was recorded; log:\n%s", h.log)
		}
	}
}

// logged counts the lines of the log with a message.
func (h *house) logged(message string) int {
	return strings.Count(h.log.String(), `msg="`+message+`"`)
}

// said is a text of a user in a private chat, without update_id.
func said(chat int64, text string) string {
	quoted, _ := json.Marshal(text)
	return fmt.Sprintf(`{"message":{"message_id":1,"date":%d,"from":{"id":%d,"is_bot":false,"first_name":"A"},`+
		`"chat":{"id":%d,"type":"private","first_name":"A"},"text":%s}}`, time.Now().Unix(), chat, chat, quoted)
}

// does is a route for everyone whose program is one of this binary's.
func does(t *testing.T, name string, reply Reply, args ...string) RouteConfig {
	t.Helper()
	return RouteConfig{Name: name, Exec: self(t, args...), Reply: reply, AllowFrom: everyone}
}

// script writes a program of its own.
func script(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "program")
	writeScript(t, path, text)
	return path
}

func writeScript(t *testing.T, path, text string) {
	t.Helper()
	// Renamed into place: whoever starts it meets all of it or nothing.
	if err := os.WriteFile(path+".new", []byte("#!/bin/sh\n"+text), 0o700); err != nil { //nolint:gosec // a program
		t.Fatal(err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		t.Fatal(err)
	}
}

// lines of a file that programs append to; none while it isn't there.
func lines(t *testing.T, path string) []string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	return strings.Fields(string(b))
}
