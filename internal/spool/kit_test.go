package spool_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tgspool/tgspool/internal/spool"
)

// fixture is one open store with one bot, reopened at will.
type fixture struct {
	t     *testing.T
	dir   string
	cfg   spool.BotConfig
	store *spool.Store
	bot   *spool.Bot

	observer spool.Observer

	checked bool // the scenario has checked the invariants by itself
}

// limits are the defaults of the settings.
func limits() spool.Limits {
	return spool.Limits{ChatGap: 1050 * time.Millisecond, ChatBurst: 1, GroupPerMinute: 20, MaxAttempts: 8}
}

// bubble runs a scenario on fake time and checks the store's invariants at its end.
func bubble(t *testing.T, l spool.Limits, scenario func(t *testing.T, f *fixture)) {
	t.Helper()
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		f := &fixture{t: t, dir: dir, cfg: spool.BotConfig{ID: 7, Name: "home", Limits: l}}
		f.open()
		defer func() { // also when the scenario gives up: its writer must end with the bubble
			if err := f.store.Close(); err != nil {
				t.Error(err)
			}
		}()
		scenario(t, f)
		if !f.checked {
			f.check()
		}
	})
}

func (f *fixture) open() {
	f.t.Helper()
	var err error
	if f.store, err = spool.Open(f.t.Context(), spool.Options{Path: filepath.Join(f.dir, "spool.db"), Observer: f.observer}); err != nil {
		f.t.Fatal(err)
	}
	if f.bot, err = f.store.Attach(f.t.Context(), f.cfg); err != nil {
		f.t.Fatal(err)
	}
}

// reopen is a restart of the process.
func (f *fixture) reopen() {
	f.t.Helper()
	if err := f.store.Close(); err != nil {
		f.t.Fatal(err)
	}
	f.open()
}

// observe opens the store again, for an observer.
func (f *fixture) observe(o spool.Observer) {
	f.observer = o
	f.reopen()
}

func (f *fixture) check() {
	f.t.Helper()
	problems, err := f.store.Check()
	if err != nil {
		f.t.Fatal(err)
	}
	for _, p := range problems {
		f.t.Error(p)
	}
}

func message(chat, text string) spool.NewJob {
	raw, _ := json.Marshal(chat)
	return spool.NewJob{
		Method: "sendMessage", Chat: chat, ChatRaw: raw, Weight: 1, Origin: "test",
		Params: json.RawMessage(fmt.Sprintf(`{"chat_id":%q,"text":%q}`, chat, text)),
	}
}

func (f *fixture) enqueue(jobs ...spool.NewJob) []spool.Queued {
	f.t.Helper()
	out, err := f.bot.Enqueue(f.t.Context(), jobs...)
	if err != nil {
		f.t.Fatal(err)
	}
	return out
}

// send queues one message and returns its job's id.
func (f *fixture) send(chat, text string) int64 {
	f.t.Helper()
	return f.enqueue(message(chat, text))[0].Job.ID
}

// claim waits for the next job for at most d of fake time; nil when none came.
func (f *fixture) claim(d time.Duration) *spool.Claim {
	f.t.Helper()
	ctx, cancel := context.WithTimeout(f.t.Context(), d)
	defer cancel()
	c, err := f.bot.Claim(ctx)
	if errors.Is(err, context.DeadlineExceeded) {
		return nil
	}
	if err != nil {
		f.t.Fatal(err)
	}
	return c
}

// mustClaim waits for the next job for at most a minute.
func (f *fixture) mustClaim() *spool.Claim {
	f.t.Helper()
	c := f.claim(time.Minute)
	if c == nil {
		f.t.Fatal("no job could be claimed within a minute")
	}
	return c
}

func (f *fixture) settle(c *spool.Claim, v spool.Verdict) spool.Job {
	f.t.Helper()
	j, err := f.bot.Settle(f.t.Context(), c, v)
	if err != nil {
		f.t.Fatal(err)
	}
	return j
}

func (f *fixture) done(c *spool.Claim) spool.Job {
	f.t.Helper()
	return f.settle(c, spool.Verdict{State: spool.Done, Reached: true, Result: json.RawMessage(`{"message_id":1}`)})
}

func (f *fixture) wantState(id int64, want spool.State) spool.Job {
	f.t.Helper()
	j, err := f.store.Job(id)
	if err != nil {
		f.t.Fatal(err)
	}
	if j.State != want {
		f.t.Errorf("job %d is %s, want %s", id, j.State, want)
	}
	return j
}

func text(id int64, chat int64) spool.NewUpdate {
	return spool.NewUpdate{
		ID: id, HasID: true, Kind: "message", OrderKey: fmt.Sprint("chat:", chat),
		Raw:    fmt.Appendf(nil, `{"update_id":%d,"message":{"text":"x"}}`, id),
		Chat:   &spool.ChatSeen{ID: chat, Type: "private"},
		Active: true, Route: spool.Route{Handler: "echo"},
	}
}

func (f *fixture) intake(updates ...spool.NewUpdate) spool.Taken {
	f.t.Helper()
	taken, err := f.bot.Intake(f.t.Context(), spool.Batch{Updates: updates})
	if err != nil {
		f.t.Fatal(err)
	}
	return taken
}

func (f *fixture) lease(d time.Duration) *spool.Lease {
	f.t.Helper()
	ctx, cancel := context.WithTimeout(f.t.Context(), d)
	defer cancel()
	l, err := f.bot.ClaimUpdate(ctx, "echo")
	if errors.Is(err, context.DeadlineExceeded) {
		return nil
	}
	if err != nil {
		f.t.Fatal(err)
	}
	return l
}
