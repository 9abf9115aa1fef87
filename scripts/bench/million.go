package main

import (
	"fmt"
	"os"
	"time"

	"github.com/tgspool/tgspool/scripts/bench/kit"
)

const million = 1_000_000

const mib = 1 << 20

// million fills the spool with a million jobs and looks at memory, at the price
// of a claim beside that of a short queue, and at a start after kill -9.
func (b *bench) million() error {
	f, err := b.line("ours", "ours")
	if err != nil {
		return err
	}
	small, big := f[0], f[1]
	defer func() { _ = small.end() }()
	defer func() { _ = os.RemoveAll(big.dir) }()
	for _, c := range f {
		if err := c.all(kit.Request{Op: "ended", N: kit.Ended}); err != nil {
			return err
		}
	}
	// Claims take from the queues: that there is 1,000 left must stay true.
	if err := small.all(kit.Request{Op: "fill", N: 1000 + claims*b.rounds}); err != nil {
		return err
	}
	// What is for later stands before what is due, where the oldest is looked for.
	if _, err := big.do(kit.Request{Op: "schedule", N: 2 * 10_000}); err != nil {
		return err
	}
	peak := watch(big.cmd.Process.Pid)
	filled, err := big.do(kit.Request{Op: "fill", N: million, Profile: b.profileOf("fill")})
	if err != nil {
		return err
	}
	b.note("fill", filled)
	b.atMost("anonymous memory, 1,000,000 queued, while filling", float64(peak())/mib, 40, " MiB")
	if err := b.claims(small, big); err != nil {
		return err
	}
	if err := b.pages(big); err != nil {
		return err
	}
	b.atMost("anonymous memory, 1,000,000 queued", float64(kit.RSSAnon(big.cmd.Process.Pid))/mib, 40, " MiB")
	return b.restart(big)
}

// claims is how many claims are measured a round.
const claims = 200

func (b *bench) claims(small, big *child) error {
	var pages, p50 []float64
	for range b.rounds {
		few, err := small.do(kit.Request{Op: "claim", N: claims})
		if err != nil {
			return err
		}
		many, err := big.do(kit.Request{Op: "claim", N: claims})
		if err != nil {
			return err
		}
		fmt.Printf("   claim at 1,000: %.1f pages, %v; at 1,000,000: %.1f pages, %v\n",
			few.KiB()/4, few.P50.Round(time.Microsecond), many.KiB()/4, many.P50.Round(time.Microsecond))
		pages = append(pages, many.KiB()/few.KiB())
		p50 = append(p50, float64(many.P50)/float64(few.P50))
	}
	b.atMost("pages written a claim, 1,000,000 to 1,000 queued", median(pages), 1.5, " ×")
	b.atMost("p50 of a claim, 1,000,000 to 1,000 queued", median(p50), 1.6, " ×")
	return nil
}

// pages measures what an operator looks at.
func (b *bench) pages(big *child) error {
	for _, page := range []struct {
		name, path string
		ms         float64
	}{
		{"status, 1,000,000 queued", "/v1/status", 50},
		{"page of queue list, 1,000,000 queued", "/v1/bots/bench/jobs?state=pending&limit=100", 50},
		{"page of queue list of one chat, 1,000,000 queued", "/v1/bots/bench/jobs?state=pending&limit=100&chat=7000000007", 50},
		{"/metrics, 1,000,000 queued", "/metrics", 10},
	} {
		got, err := big.do(kit.Request{Op: "get", N: 20, Path: page.path})
		if err != nil {
			return err
		}
		b.atMost(page.name, float64(got.P50)/float64(time.Millisecond), page.ms, " ms")
	}
	return nil
}

// restart kills the process and measures from the start of a new one to its
// first claim, with the file in the page cache.
func (b *bench) restart(big *child) error {
	var took []float64
	for range b.rounds {
		big.kill()
		start := time.Now()
		next, err := b.startIn("ours", big.dir)
		if err != nil {
			return err
		}
		opened := time.Since(start)
		if _, err := next.do(kit.Request{Op: "claim", N: 1}); err != nil {
			return err
		}
		total := time.Since(start)
		fmt.Printf("   after kill -9: open after %v, first claim after %v, %.1f MiB of anonymous memory\n",
			opened.Round(time.Millisecond), total.Round(time.Millisecond), float64(kit.RSSAnon(next.cmd.Process.Pid))/mib)
		took = append(took, float64(total)/float64(time.Millisecond))
		*big = *next
	}
	big.kill()
	b.atMost("kill -9 to first claim, 1,000,000 queued, warm", median(took), 250, " ms")
	return nil
}
