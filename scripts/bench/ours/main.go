// Command ours is the spool as a contestant of the benchmarks, with the real
// sender behind it. It links nothing but the project, so that its memory is
// the project's alone.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/tgspool/tgspool/internal/botapi"
	"github.com/tgspool/tgspool/internal/gate"
	"github.com/tgspool/tgspool/internal/outbox"
	"github.com/tgspool/tgspool/internal/sender"
	"github.com/tgspool/tgspool/internal/spool"
	"github.com/tgspool/tgspool/scripts/bench/kit"
)

const (
	botID = 4242
	token = "4242:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"
	// bigEnough lets a million jobs and their indexes in.
	bigEnough = 4 << 30
	// perCall is how many jobs one bulk call queues. bbolt keeps a list of as many
	// free pages as its biggest transaction has replaced, so this shows in the file.
	perCall = 250
)

func main() { kit.Serve(&ours{}) }

// ours is the spool with one bot whose gates are all at 0.
type ours struct {
	store *spool.Store
	bot   *spool.Bot
	gate  *gate.Gate
	model spool.NewJob // what the jobs have in common
	i     atomic.Int64
}

// Open opens the spool at dir, new or not.
func (o *ours) Open(dir string) (err error) {
	ctx := context.Background()
	if o.model, err = outbox.New("sendMessage", kit.Payload(0), outbox.Options{Origin: "bench"}); err != nil {
		return err
	}
	if o.store, err = spool.Open(ctx, spool.Options{Path: filepath.Join(dir, "spool.db"), MaxSize: bigEnough}); err != nil {
		return err
	}
	o.gate = gate.New(gate.Config{})
	o.bot, err = o.store.Attach(ctx, spool.BotConfig{
		ID: botID, Name: "bench",
		Admit:  func(now time.Time, lane spool.Lane) (bool, time.Time) { return o.gate.Admit(now, string(lane)) },
		Refund: o.gate.Refund,
	})
	if err == nil {
		o.gate.OnOpen(o.bot.Kick)
	}
	return err
}

// Close closes the spool.
func (o *ours) Close() error { return o.store.Close() }

// Flushes is how often the disk was asked to flush: twice a commit.
func (o *ours) Flushes() int64 { return 2 * o.store.Commits() }

func (o *ours) job(i int64) spool.NewJob {
	j := o.model
	j.Params = kit.Payload(i)
	j.Chat = strconv.FormatInt(kit.Chat(i), 10)
	j.ChatRaw = json.RawMessage(j.Chat)
	return j
}

// Fill queues n jobs, many in one call.
func (o *ours) Fill(n int) error {
	for n > 0 {
		jobs := make([]spool.NewJob, min(n, perCall))
		for i := range jobs {
			jobs[i] = o.job(o.i.Add(1))
		}
		if _, err := o.bot.Enqueue(context.Background(), jobs...); err != nil {
			return err
		}
		n -= len(jobs)
	}
	return nil
}

// Ended queues n jobs and sends them.
func (o *ours) Ended(n int) error {
	if err := o.Fill(n); err != nil {
		return err
	}
	sent, err := o.Drain(64, n, time.Hour)
	if err == nil && sent < n {
		err = fmt.Errorf("%d of %d jobs were sent", sent, n)
	}
	return err
}

// Enqueue queues one job.
func (o *ours) Enqueue(i int64, key bool) error {
	_, err := o.enqueue(i, key)
	return err
}

func (o *ours) enqueue(i int64, key bool) (int64, error) {
	j := o.job(i)
	if key {
		j.DedupeKey = "order:" + strconv.FormatInt(i, 10)
	}
	queued, err := o.bot.Enqueue(context.Background(), j)
	if err != nil {
		return 0, err
	}
	return queued[0].Job.ID, nil
}

// Drain has the sender send until n jobs are done.
func (o *ours) Drain(workers, n int, limit time.Duration) (int, error) {
	enough := make(chan struct{})
	w := &telegram{at: func(call int64) {
		if call == int64(n) {
			close(enough)
		}
	}}
	stop, err := o.send(workers, w)
	if err != nil {
		return 0, err
	}
	select {
	case <-enough:
	case <-time.After(limit):
	}
	err = stop()
	return int(w.calls.Load()), err
}

// send starts the sender on a wire. Stop returns when all that it has sent is
// settled on disk.
func (o *ours) send(workers int, w *telegram) (stop func() error, err error) {
	tok, err := botapi.ParseToken(token)
	if err != nil {
		return nil, err
	}
	client, err := botapi.NewClient(botapi.Config{Token: tok, Transport: w})
	if err != nil {
		return nil, err
	}
	s := sender.New(sender.Config{Bot: o.bot, Client: client, Gate: o.gate, Workers: workers})
	take, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- s.Run(take, context.Background()) }()
	return func() error {
		cancel()
		return <-ended
	}, nil
}
