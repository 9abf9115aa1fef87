package main

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/tgspool/tgspool/internal/spool"
	"github.com/tgspool/tgspool/scripts/bench/kit"
)

// Do carries out the operations that only the spool has.
func (o *ours) Do(r kit.Request) (kit.Reply, error) {
	switch r.Op {
	case "cycle":
		return o.cycle(r)
	case "cycle-behind":
		return o.cycleBehind(r)
	case "path":
		return o.path(r)
	case "wake":
		return o.wake(r)
	case "reply":
		return o.reply(r)
	case "claim":
		return o.claims(r)
	case "schedule":
		return kit.Reply{N: r.N}, o.schedule(r.N)
	case "get":
		return o.get(r)
	}
	return kit.Reply{}, fmt.Errorf("unknown operation %q", r.Op)
}

// cycle sends jobs one after the other: each is queued, claimed, sent and
// completed before the next one comes.
func (o *ours) cycle(r kit.Request) (kit.Reply, error) {
	stop, err := o.send(r.Workers, &telegram{})
	if err != nil {
		return kit.Reply{}, err
	}
	ctx := context.Background()
	for range r.N {
		id, err := o.enqueue(o.i.Add(1), r.Key)
		if err == nil {
			_, err = o.store.Wait(ctx, id)
		}
		if err != nil {
			return kit.Reply{}, err
		}
	}
	return kit.Reply{N: r.N}, stop()
}

// cycleBehind does the same where a long queue waits: each round queues one job,
// and lets one call out, whose completion claims the next.
func (o *ours) cycleBehind(r kit.Request) (kit.Reply, error) {
	w := &telegram{step: make(chan struct{})}
	calling := make(chan struct{}, 1)
	w.at = func(int64) { calling <- struct{}{} }
	stop, err := o.send(1, w)
	if err != nil {
		return kit.Reply{}, err
	}
	<-calling
	for range r.N {
		if _, err := o.enqueue(o.i.Add(1), r.Key); err != nil {
			return kit.Reply{}, err
		}
		<-w.step
		<-calling
	}
	go func() { <-w.step }()
	return kit.Reply{N: r.N}, stop()
}

// path takes updates in, has them handled, and sends the replies: the whole way
// of a message. The handlers only answer. With one worker there is one producer
// too, and each message is through before the next one comes.
func (o *ours) path(r kit.Request) (kit.Reply, error) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	p := pipeline{o: o, sent: make(chan struct{}, r.N), replies: make(chan int64, r.N+1)}
	stop, err := o.send(r.Workers, &telegram{at: func(int64) { p.sent <- struct{}{} }})
	if err != nil {
		return kit.Reply{}, err
	}
	var handlers sync.WaitGroup
	for range parallel {
		handlers.Go(func() { p.handle(ctx) })
	}
	producers := 64
	if r.Workers == 1 {
		producers = 1
	}
	// The first message finds nobody parked yet.
	err = p.push(ctx, 1, 1)
	before, start := o.Flushes(), time.Now()
	if err == nil {
		err = p.push(ctx, r.N, producers)
	}
	reply := kit.Reply{N: r.N, Flushes: o.Flushes() - before, Took: time.Since(start)}
	cancel()
	handlers.Wait()
	if stopErr := stop(); err == nil {
		err = stopErr
	}
	return reply, err
}

// pipeline is what the messages of one run go through.
type pipeline struct {
	o       *ours
	sent    chan struct{} // one for each call
	replies chan int64    // the jobs that the handlers have made
}

// push takes n updates in and waits until their replies are sent.
func (p *pipeline) push(ctx context.Context, n, producers int) error {
	_, err := kit.Together(producers, n, time.Hour, func() (bool, error) {
		update := newUpdate(p.o.i.Add(1))
		batch := spool.Batch{Updates: []spool.NewUpdate{update}, Offset: update.ID + 1, SetOffset: true}
		if _, err := p.o.bot.Intake(ctx, batch); err != nil || producers > 1 {
			return err == nil, err
		}
		_, err := p.o.store.Wait(ctx, <-p.replies)
		return true, err
	})
	for i := 0; i < n && err == nil; i++ {
		<-p.sent
	}
	return err
}

const (
	route    = "bench"
	parallel = 16 // handlers at once: two routes at the default of 8
)

// handle answers updates until ctx ends.
func (p *pipeline) handle(ctx context.Context) {
	for {
		lease, err := p.o.bot.ClaimUpdate(ctx, route)
		if err != nil {
			return
		}
		queued, err := p.o.bot.Handled(ctx, lease, spool.Handling{Jobs: []spool.NewJob{p.o.job(lease.Seq)}})
		if err != nil {
			return
		}
		p.replies <- queued[0].Job.ID
	}
}

func newUpdate(i int64) spool.NewUpdate {
	chat := kit.Chat(i)
	return spool.NewUpdate{
		ID: 500_000_000 + i, HasID: true, Kind: "message", OrderKey: strconv.FormatInt(chat, 10),
		Raw: fmt.Appendf(nil, `{"update_id":%d,"message":{"message_id":%d,"from":{"id":%d,"is_bot":false,"first_name":"Ada",`+
			`"language_code":"en"},"chat":{"id":%d,"first_name":"Ada","type":"private"},"date":1893456000,"text":"hello"}}`,
			500_000_000+i, i, chat, chat),
		UserID: chat, Chat: &spool.ChatSeen{ID: chat, Type: "private"}, Route: spool.Route{Handler: route},
	}
}

const page = 4096 // of the file

// claims measures claims alone: how long one takes and what it writes. The jobs
// are completed outside of the clock.
func (o *ours) claims(r kit.Request) (kit.Reply, error) {
	ctx := context.Background()
	took := make([]time.Duration, 0, r.N)
	var written int64
	for range r.N {
		before, start := kit.Written(), time.Now()
		c, err := o.bot.Claim(ctx)
		if err != nil {
			return kit.Reply{}, err
		}
		took = append(took, time.Since(start))
		// Whole pages: the runtime's own wakeups count as writes of 8 bytes.
		written += (kit.Written() - before) / page * page
		v := spool.Verdict{State: spool.Done, Reached: true, Result: []byte(`{"message_id":1}`)}
		if _, err := o.bot.Settle(ctx, c, v); err != nil {
			return kit.Reply{}, err
		}
	}
	slices.Sort(took)
	return kit.Reply{N: r.N, P50: took[len(took)/2], Written: written}, nil
}
