package main

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"time"

	"github.com/tgspool/tgspool/internal/manage"
	"github.com/tgspool/tgspool/internal/spool"
	"github.com/tgspool/tgspool/scripts/bench/kit"
)

// schedule queues n jobs for tomorrow.
func (o *ours) schedule(n int) error {
	for n > 0 {
		jobs := make([]spool.NewJob, min(n, perCall))
		for i := range jobs {
			jobs[i] = o.job(o.i.Add(1))
			jobs[i].NotBefore = time.Now().Add(24 * time.Hour)
		}
		if _, err := o.bot.Enqueue(context.Background(), jobs...); err != nil {
			return err
		}
		n -= len(jobs)
	}
	return nil
}

// get measures a page of the management API.
func (o *ours) get(r kit.Request) (kit.Reply, error) {
	api := manage.New(manage.Config{Store: o.store, Bots: one{}, Version: "bench", Metrics: manage.NewMetrics()})
	took := make([]time.Duration, 0, r.N)
	for range r.N {
		req := httptest.NewRequestWithContext(context.Background(), http.MethodGet, r.Path, http.NoBody)
		res := httptest.NewRecorder()
		start := time.Now()
		api.ServeHTTP(res, req)
		took = append(took, time.Since(start))
		if res.Code != http.StatusOK {
			return kit.Reply{}, fmt.Errorf("%s: %d %s", r.Path, res.Code, res.Body)
		}
	}
	slices.Sort(took)
	return kit.Reply{N: r.N, P50: took[len(took)/2]}, nil
}

// one is the daemon's view of the bot.
type one struct{}

func (one) Names() []string                           { return []string{"bench"} }
func (one) View(string) (manage.View, bool)           { return manage.View{ID: botID}, true }
func (one) ResolveChat(_, chat string) (string, bool) { return chat, true }
