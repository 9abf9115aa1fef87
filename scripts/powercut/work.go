package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"time"

	"github.com/tgspool/tgspool/internal/spool"
)

// bot is the same for work and replay.
func bot() spool.BotConfig { return spool.BotConfig{ID: 7, Name: "home"} }

// work makes random transitions, one after the other, and confirms each in one
// write of its own, so that the trace shows it in its place.
func work(ctx context.Context, dir string, steps int, seed uint64, out io.Writer) error {
	store, err := spool.Open(ctx, spool.Options{Path: filepath.Join(dir, "spool.db")})
	if err != nil {
		return err
	}
	b, err := store.Attach(ctx, bot())
	if err != nil {
		return err
	}
	w := worker{bot: b, out: out, random: rand.New(rand.NewPCG(seed, seed))}
	for range steps {
		if err := w.step(ctx); err != nil {
			return err
		}
	}
	return store.Close()
}

type worker struct {
	bot    *spool.Bot
	out    io.Writer
	random *rand.Rand
	claims []*spool.Claim
	update int64
}

// say confirms, in one system call.
func (w *worker) say(format string, args ...any) error {
	_, err := fmt.Fprintf(w.out, "confirmed "+format+"\n", args...)
	return err
}

func (w *worker) step(ctx context.Context) error {
	switch n := w.random.IntN(10); {
	case n < 4:
		return w.enqueue(ctx)
	case n < 6:
		return w.take(ctx)
	case n < 8:
		return w.claim(ctx)
	default:
		return w.settle(ctx)
	}
}

func (w *worker) enqueue(ctx context.Context) error {
	text := strings.Repeat("x", w.random.IntN(3000))
	q, err := w.bot.Enqueue(ctx, spool.NewJob{
		Method: "sendMessage", Chat: fmt.Sprint(w.random.IntN(50) + 1), Params: []byte(`{"text":"` + text + `"}`),
	})
	if err != nil {
		return err
	}
	return w.say("job %d", q[0].Job.ID)
}

func (w *worker) take(ctx context.Context) error {
	w.update++
	_, err := w.bot.Intake(ctx, spool.Batch{
		Updates: []spool.NewUpdate{{ID: w.update, HasID: true, Kind: "message", Raw: []byte(`{"update_id":` + fmt.Sprint(w.update) + `}`)}},
		Offset:  w.update + 1, SetOffset: true,
	})
	if err != nil {
		return err
	}
	return w.say("update %d", w.update)
}

func (w *worker) claim(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, time.Millisecond)
	defer cancel()
	c, err := w.bot.Claim(ctx)
	if errors.Is(err, context.DeadlineExceeded) {
		return nil
	}
	if err != nil {
		return err
	}
	w.claims = append(w.claims, c)
	return w.say("attempt %d", c.ID)
}

func (w *worker) settle(ctx context.Context) error {
	if len(w.claims) == 0 {
		return nil
	}
	c := w.claims[0]
	w.claims = w.claims[1:]
	if _, err := w.bot.Settle(ctx, c, spool.Verdict{State: spool.Done}); err != nil {
		return err
	}
	return w.say("done %d", c.ID)
}
