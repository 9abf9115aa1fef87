package spool_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/tgspool/tgspool/internal/spool"
)

// The benchmarks' conditions: 10,000 ended jobs retained, 300 bytes of
// parameters, 5,000 chats, gates at 0.
const (
	benchEnded = 10_000
	benchChats = 5_000
)

func benchJob(i int, dedupe bool) spool.NewJob {
	j := message(fmt.Sprint(1_000_000+i%benchChats), strings.Repeat("x", 300-38))
	if dedupe {
		j.DedupeKey = fmt.Sprint("key", i)
	}
	return j
}

type bench struct {
	*testing.B
	store *spool.Store
	bot   *spool.Bot
	n     atomic.Int64
}

func newBench(b *testing.B, queued int) *bench {
	b.Helper()
	store, err := spool.Open(b.Context(), spool.Options{Path: filepath.Join(b.TempDir(), "spool.db")})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = store.Close() })
	bot, err := store.Attach(b.Context(), spool.BotConfig{ID: 7, Name: "home", Limits: spool.Limits{}})
	if err != nil {
		b.Fatal(err)
	}
	x := &bench{B: b, store: store, bot: bot}
	x.fill(benchEnded)
	x.drain(16, benchEnded)
	x.fill(queued)
	return x
}

func (x *bench) fill(n int) {
	for n > 0 {
		size := min(n, 500)
		jobs := make([]spool.NewJob, size)
		for i := range jobs {
			jobs[i] = benchJob(int(x.n.Add(1)), false)
		}
		if _, err := x.bot.Enqueue(x.Context(), jobs...); err != nil {
			x.Fatal(err)
		}
		n -= size
	}
}

// drain claims and completes n jobs with some workers.
func (x *bench) drain(workers, n int) {
	var left atomic.Int64
	left.Store(int64(n))
	var wg sync.WaitGroup
	for range workers {
		wg.Go(func() {
			if left.Add(-1) < 0 {
				return
			}
			c, err := x.bot.Claim(x.Context())
			for err == nil {
				v := spool.Verdict{State: spool.Done, Reached: true, Result: []byte(`{"message_id":1}`)}
				if left.Add(-1) < 0 {
					_, err = x.bot.Settle(x.Context(), c, v)
					break
				}
				c, err = x.bot.SettleAndClaim(x.Context(), c, v)
			}
			if err != nil {
				x.Error(err)
			}
		})
	}
	wg.Wait()
}

// measure runs fn and reports commits and bytes written per operation.
func (x *bench) measure(ops int, fn func()) {
	x.Helper()
	commits, written := x.store.Commits(), bytesWritten(x.B)
	x.ResetTimer()
	fn()
	x.StopTimer()
	x.ReportMetric(float64(2*(x.store.Commits()-commits))/float64(ops), "flushes/op")
	x.ReportMetric(float64(bytesWritten(x.B)-written)/float64(ops)/1024, "KiB/op")
	x.ReportMetric(float64(ops)/x.Elapsed().Seconds(), "ops/s")
}

// bytesWritten is what the process has handed to write calls so far.
func bytesWritten(b *testing.B) int64 {
	raw, err := os.ReadFile("/proc/self/io")
	if err != nil {
		b.Skip("no /proc/self/io here")
	}
	var n int64
	for line := range strings.Lines(string(raw)) {
		if _, err := fmt.Sscanf(line, "wchar: %d", &n); err == nil {
			return n
		}
	}
	return n
}

func BenchmarkCycle(b *testing.B) {
	for _, c := range []struct {
		name   string
		dedupe bool
		queued int
	}{{"plain", false, 0}, {"dedupe", true, 0}, {"100k-queued", false, 100_000}} {
		b.Run(c.name, func(b *testing.B) {
			x := newBench(b, c.queued)
			x.measure(b.N, func() {
				claims := make(chan *spool.Claim)
				ctx, cancel := context.WithCancel(b.Context())
				defer cancel()
				go func() {
					for ctx.Err() == nil {
						c, err := x.bot.Claim(ctx)
						if err != nil {
							return
						}
						claims <- c
					}
				}()
				for i := range b.N {
					if _, err := x.bot.Enqueue(b.Context(), benchJob(int(x.n.Add(1))+i, c.dedupe)); err != nil {
						b.Fatal(err)
					}
					claim := <-claims
					if _, err := x.bot.Settle(b.Context(), claim, spool.Verdict{State: spool.Done, Reached: true, Result: []byte(`{"message_id":1}`)}); err != nil {
						b.Fatal(err)
					}
				}
			})
		})
	}
}

func BenchmarkEnqueue64(b *testing.B) {
	x := newBench(b, 0)
	x.measure(b.N, func() {
		var left atomic.Int64
		left.Store(int64(b.N))
		var wg sync.WaitGroup
		for range 64 {
			wg.Go(func() {
				for left.Add(-1) >= 0 {
					if _, err := x.bot.Enqueue(b.Context(), benchJob(int(x.n.Add(1)), false)); err != nil {
						b.Error(err)
						return
					}
				}
			})
		}
		wg.Wait()
	})
}

func BenchmarkDrain16(b *testing.B) {
	for _, queued := range []int{0, 100_000} {
		b.Run(fmt.Sprint("behind-", queued), func(b *testing.B) {
			x := newBench(b, b.N+queued)
			x.measure(b.N, func() { x.drain(16, b.N) })
		})
	}
}
