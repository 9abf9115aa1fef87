package main

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"time"

	"github.com/tgspool/tgspool/scripts/bench/kit"
)

// note prints a rate and what it cost.
func (b *bench) note(what string, r kit.Reply) {
	fmt.Printf("   %s: %.0f/s, %.2f KiB and %.1f µs of CPU each\n", what, r.Rate(), r.KiB(),
		float64(r.CPU.Nanoseconds())/1e3/float64(r.N))
}

func (b *bench) profileOf(name string) string {
	if b.profile == "" {
		return ""
	}
	return filepath.Join(b.profile, name+".pprof")
}

// field is the contestants of one comparison.
type field []*child

func (b *bench) line(names ...string) (f field, err error) {
	for _, name := range names {
		c, err := b.start(name)
		if err != nil && name == "river" {
			b.skip("River", "needs PostgreSQL ("+err.Error()+")")
			continue
		}
		if err != nil {
			f.end()
			return nil, err
		}
		f = append(f, c)
	}
	return f, nil
}

func (f field) end() {
	for _, c := range f {
		_ = c.end()
	}
}

// rates compares enqueue with 64 producers and drain with 16 workers.
func (b *bench) rates() error {
	names := []string{"floor", "ours", "floor-merged", "sqlite", "goqite", "nats"}
	if _, err := exec.LookPath("initdb"); err == nil {
		names = append(names, "river")
	} else {
		b.skip("River", "needs PostgreSQL")
	}
	f, err := b.line(names...)
	if err != nil {
		return err
	}
	defer f.end()
	for _, c := range f {
		if err := c.all(kit.Request{Op: "ended", N: kit.Ended}); err != nil {
			return err
		}
	}
	enqueue, drain := series{}, series{}
	for round := range b.rounds {
		for _, c := range f {
			profile := ""
			if c.name == "ours" && round == 1 {
				profile = b.profileOf("enqueue")
			}
			r, err := c.do(kit.Request{Op: "enqueue", N: int(20_000 * b.seconds), Workers: 64, Seconds: b.seconds, Profile: profile})
			if err != nil {
				return err
			}
			enqueue.add(c.name, r)
			if profile != "" {
				profile = b.profileOf("drain")
			}
			if r, err = c.do(kit.Request{Op: "drain", N: r.N, Workers: 16, Seconds: 20 * b.seconds, Profile: profile}); err != nil {
				return err
			}
			drain.add(c.name, r)
		}
	}
	enqueue.print("enqueue, 64 producers", f)
	drain.print("drain, 16 workers", f)
	b.atLeast("enqueue, 64 producers, to the floor", enqueue.ratio("ours", "floor"), 0.6, " ×")
	b.atLeast("enqueue, 64 producers, to goqite FULL", enqueue.ratio("ours", "goqite"), 5, " ×")
	b.atLeast("enqueue, 64 producers, to NATS sync always", enqueue.ratio("ours", "nats"), 5, " ×")
	b.atLeast("drain, 16 workers, to the floor", drain.ratio("ours", "floor"), 0.6, " ×")
	b.atLeast("drain, 16 workers, to SQLite + committer", drain.ratio("ours", "sqlite"), 1, " ×")
	if len(drain["river"]) > 0 {
		b.atLeast("drain, 16 workers, to River", drain.ratio("ours", "river"), 1, " ×")
	}
	return nil
}

// behind compares the drain of a long queue with the tutorial's SQL.
func (b *bench) behind() error {
	f, err := b.line("tutorial", "ours")
	if err != nil {
		return err
	}
	defer f.end()
	for _, c := range f {
		if err := c.all(kit.Request{Op: "ended", N: kit.Ended}, kit.Request{Op: "fill", N: 100_000}); err != nil {
			return err
		}
	}
	drain := series{}
	for round := range b.rounds {
		for _, c := range f {
			profile := ""
			if c.name == "ours" && round == 0 {
				profile = b.profileOf("behind")
			}
			r, err := c.do(kit.Request{Op: "drain", N: int(20_000 / float64(b.rounds)), Workers: 16, Seconds: 2 * b.seconds, Profile: profile})
			if err != nil {
				return err
			}
			drain.add(c.name, r)
		}
	}
	drain.print("drain, 16 workers, 100,000 queued", f)
	b.atLeast("drain, 100,000 queued, to the tutorial's SQL", drain.ratio("ours", "tutorial"), 40, " ×")
	return nil
}

// series is what each contestant did, round by round.
type series map[string][]kit.Reply

func (s series) add(name string, r kit.Reply) { s[name] = append(s[name], r) }

// ratio is the median of the rounds' ratios.
func (s series) ratio(of, to string) float64 {
	var list []float64
	for i, r := range s[of] {
		list = append(list, r.Rate()/s[to][i].Rate())
	}
	return median(list)
}

func (s series) print(what string, f field) {
	fmt.Printf("   %s (median, lowest to highest):\n", what)
	for _, c := range f {
		var rates, kib, cpu, flushed []float64
		for _, r := range s[c.name] {
			rates, kib = append(rates, r.Rate()), append(kib, r.KiB())
			cpu = append(cpu, float64(r.CPU)/float64(time.Microsecond)/float64(r.N))
			flushed = append(flushed, flushes(r))
		}
		line := fmt.Sprintf("%-13s %7.0f/s (%.0f to %.0f)  %6.2f KiB  %6.1f µs CPU",
			c.name, median(rates), slices.Min(rates), slices.Max(rates), median(kib), median(cpu))
		if n := median(flushed); n > 0 {
			line += fmt.Sprintf("  %.3f flushes", n)
		}
		fmt.Println("   " + line)
	}
}
