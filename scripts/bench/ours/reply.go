package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os/exec"
	"slices"
	"strings"
	"time"

	"github.com/tgspool/tgspool/internal/handler"
	"github.com/tgspool/tgspool/internal/spool"
	"github.com/tgspool/tgspool/internal/wire"
	"github.com/tgspool/tgspool/scripts/bench/kit"
)

// program is what an exec handler of the benchmarks runs.
const program = "/bin/echo"

// reply measures the time from the end of the intake's commit to the first byte
// of the answer's call, one message after the other, with the real handlers: a
// webhook that answers at once, or with Key a program. Commit is what the
// intake's own commit took, Own what the handler takes by itself.
func (o *ours) reply(r kit.Request) (kit.Reply, error) {
	call := make(chan time.Time, 1)
	stopSender, err := o.send(2, &telegram{at: func(int64) { call <- time.Now() }})
	if err != nil {
		return kit.Reply{}, err
	}
	stopHandlers, err := o.handle(r.Key)
	if err != nil {
		return kit.Reply{}, err
	}
	ctx := context.Background()
	var commits, waits []time.Duration
	for range r.N + 1 {
		update := newUpdate(o.i.Add(1))
		begin := time.Now()
		if _, err := o.bot.Intake(ctx, spool.Batch{Updates: []spool.NewUpdate{update}, Offset: update.ID + 1, SetOffset: true}); err != nil {
			return kit.Reply{}, err
		}
		end := time.Now()
		commits, waits = append(commits, end.Sub(begin)), append(waits, (<-call).Sub(end))
		if err := o.settled(ctx, update.ID); err != nil {
			return kit.Reply{}, err
		}
	}
	reply := kit.Reply{N: r.N, Commit: median(commits[1:]), P50: median(waits[1:])}
	if r.Key {
		reply.Own, err = own(r.N)
	}
	if err == nil {
		err = stopHandlers()
	}
	if stopErr := stopSender(); err == nil {
		err = stopErr
	}
	return reply, err
}

// settled waits until the answer to an update is on disk as done, so that its
// commit isn't the next message's.
func (o *ours) settled(ctx context.Context, id int64) error {
	u, err := o.bot.UpdateByID(id)
	if err == nil && len(u.Jobs) != 1 {
		err = fmt.Errorf("update %d has %d jobs", id, len(u.Jobs))
	}
	if err == nil {
		_, err = o.store.Wait(ctx, u.Jobs[0])
	}
	return err
}

// handle runs the handlers of one route, by a program or a webhook.
func (o *ours) handle(byProgram bool) (stop func() error, err error) {
	c := handler.RouteConfig{Name: route, Webhook: "http://127.0.0.1:1/"}
	if byProgram {
		c = handler.RouteConfig{Name: route, Exec: []string{program, "hello"}, AllowFrom: handler.Allow{All: true}}
	}
	h, err := handler.New(handler.Config{
		Bot: o.bot, Routes: []handler.RouteConfig{c}, Pusher: wire.NewPusher(nil, answers{}),
		Uploads: func(ctx context.Context) *wire.Upload { return wire.NewUpload(ctx, o.store, 1<<20) },
	})
	if err != nil {
		return nil, err
	}
	take, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- h.Run(take, context.Background()) }()
	return func() error {
		cancel()
		return <-ended
	}, nil
}

// answers is a webhook that answers at once.
type answers struct{}

// RoundTrip answers one update.
func (answers) RoundTrip(r *http.Request) (*http.Response, error) {
	_, err := io.Copy(io.Discard, r.Body)
	return &http.Response{
		StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"application/json"}}, Request: r,
		Body: io.NopCloser(strings.NewReader(`{"method":"sendMessage","chat_id":7,"text":"hello"}`)),
	}, err
}

// own is what the program takes when nobody stands between.
func own(n int) (time.Duration, error) {
	took := make([]time.Duration, 0, n)
	for range n {
		begin := time.Now()
		if _, err := exec.Command(program, "hello").Output(); err != nil {
			return 0, err
		}
		took = append(took, time.Since(begin))
	}
	return median(took), nil
}

func median(list []time.Duration) time.Duration {
	list = slices.Sorted(slices.Values(list))
	return list[len(list)/2]
}
