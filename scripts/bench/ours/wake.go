package main

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/tgspool/tgspool/internal/botserver"
	"github.com/tgspool/tgspool/internal/spool"
	"github.com/tgspool/tgspool/scripts/bench/kit"
)

// ByID makes the contestant the directory of its bot.
func (o *ours) ByID(id int64) (*botserver.Bot, bool) {
	return &botserver.Bot{
		Name: "bench", Spool: o.bot, Gate: o.gate,
		TokenIs: func(s string) bool { return s == token }, Me: func() []byte { return nil },
	}, id == botID
}

// wake parks a poll, takes an update in, and measures from the end of the commit
// to the answer's first byte, over a socket. P50 is of all rounds.
func (o *ours) wake(r kit.Request) (kit.Reply, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return kit.Reply{}, err
	}
	server := &http.Server{Handler: botserver.New(botserver.Config{Store: o.store, Bots: o}).Handler(botserver.Access{})}
	go func() { _ = server.Serve(l) }()
	defer func() { _ = server.Close() }()
	took, next := make([]time.Duration, 0, r.N), int64(0)
	for i := range r.N {
		answered := make(chan time.Time, 1)
		failed := make(chan error, 1)
		go func() {
			at, err := poll("http://"+l.Addr().String(), next)
			if err != nil {
				failed <- err
			}
			answered <- at
		}()
		time.Sleep(20 * time.Millisecond) // it is parked
		u := newUpdate(int64(i))
		u.Route = spool.Route{Handler: spool.PullRoute}
		if _, err := o.bot.Intake(context.Background(), spool.Batch{Updates: []spool.NewUpdate{u}}); err != nil {
			return kit.Reply{}, err
		}
		committed := time.Now()
		select {
		case at := <-answered:
			took = append(took, max(0, at.Sub(committed)))
		case err := <-failed:
			return kit.Reply{}, err
		}
		next = u.ID + 1
	}
	slices.Sort(took)
	return kit.Reply{N: r.N, P50: took[len(took)/2]}, nil
}

// poll waits for an update and says when the answer began.
func poll(base string, offset int64) (time.Time, error) {
	r, err := http.Post(base+"/bot"+token+"/getUpdates", "application/json", strings.NewReader(fmt.Sprintf(`{"offset":%d,"timeout":30}`, offset)))
	if err != nil {
		return time.Time{}, err
	}
	at := time.Now()
	defer func() { _ = r.Body.Close() }()
	if r.StatusCode != http.StatusOK {
		return at, fmt.Errorf("getUpdates: %s", r.Status)
	}
	return at, nil
}
