// Command bench measures the spool beside its peers and beside the floor, a
// minimal durable queue on the same bbolt, and compares each figure with its
// target. What is compared runs in one go: the rounds of all contestants are
// interleaved, and what is printed is the median of the rounds' ratios, since a
// machine that does other things too changes from minute to minute. Counts of
// flushes, bytes and pages don't depend on it.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

// bench is one run.
type bench struct {
	ctx     context.Context
	dir     string // for data and binaries, removed at the end
	seconds float64
	rounds  int
	chats   int    // of the broadcast
	profile string // folder for profiles, empty: none
	table   []figure
	skipped []string
	folders int
}

// cases are what CASE may name, in the order of the README's table.
var cases = []struct {
	name string
	run  func(*bench) error
}{
	{"path", (*bench).path},
	{"bytes", (*bench).bytes},
	{"rates", (*bench).rates},
	{"behind", (*bench).behind},
	{"million", (*bench).million},
	{"broadcast", (*bench).broadcast},
	{"endpoint", (*bench).endpoint},
	{"handlers", (*bench).handlers},
	{"idle", (*bench).idle},
	{"size", (*bench).size},
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	b := &bench{ctx: ctx}
	var only []string
	for _, c := range cases {
		only = append(only, c.name)
	}
	name := flag.String("case", "", "one or more of "+strings.Join(only, ",")+"; empty: all")
	dir := flag.String("dir", "/var/tmp", "where the data goes: a folder on the disk that is to be measured")
	length := flag.Duration("time", time.Second, "of one round of one contestant")
	flag.IntVar(&b.rounds, "rounds", 5, "interleaved rounds")
	flag.IntVar(&b.chats, "chats", 1000, "of the broadcast; 10000 take seven minutes")
	flag.StringVar(&b.profile, "profile", "", "folder for CPU profiles of the spool")
	flag.Parse()
	b.seconds = length.Seconds()
	if *name != "" {
		only = strings.Split(*name, ",")
	}
	err := b.prepare(*dir)
	defer func() { _ = os.RemoveAll(b.dir) }()
	if err != nil {
		return err
	}
	var failed error
	for _, c := range cases {
		if !slices.Contains(only, c.name) {
			continue
		}
		fmt.Printf("== %s\n", c.name)
		if err := c.run(b); err != nil {
			failed = errors.Join(failed, fmt.Errorf("case %s: %w", c.name, err))
			fmt.Println("   failed:", err)
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
	b.print()
	return failed
}

// prepare makes the run's folder and builds the contestants.
func (b *bench) prepare(dir string) (err error) {
	if b.dir, err = os.MkdirTemp(dir, "tgspool-bench-"); err != nil {
		return err
	}
	for _, pkg := range []string{"ours", "peers"} {
		build := exec.CommandContext(b.ctx, "go", "build", "-o", filepath.Join(b.dir, pkg), "./"+pkg)
		if out, err := build.CombinedOutput(); err != nil {
			return fmt.Errorf("building %s: %w\n%s", pkg, err, out)
		}
	}
	return nil
}

// figure is one row of the table.
type figure struct {
	name, got, target string
	ok                bool
}

// atMost adds a figure that must not be above its target, atLeast one that must
// not be below.
func (b *bench) atMost(name string, got, target float64, unit string) {
	b.add(figure{name, number(got) + unit, "≤ " + number(target) + unit, got <= target})
}

func (b *bench) atLeast(name string, got, target float64, unit string) {
	b.add(figure{name, number(got) + unit, "≥ " + number(target) + unit, got >= target})
}

func (b *bench) add(f figure) {
	b.table = append(b.table, f)
	fmt.Printf("   %s: %s (%s) %s\n", f.name, f.got, f.target, verdict(f.ok))
}

func verdict(ok bool) string {
	if ok {
		return "ok"
	}
	return "short"
}

// number prints three digits that matter.
func number(v float64) string {
	switch {
	case v >= 1000 || v == float64(int64(v)):
		return fmt.Sprintf("%.0f", v)
	case v >= 20:
		return fmt.Sprintf("%.1f", v)
	case v >= 0.1:
		return fmt.Sprintf("%.3f", v)
	}
	return fmt.Sprintf("%.4f", v)
}

func (b *bench) skip(what, why string) {
	line := "not measured here: " + what + " " + why
	if !slices.Contains(b.skipped, line) {
		b.skipped = append(b.skipped, line)
		fmt.Println("   " + line)
	}
}

func (b *bench) print() {
	fmt.Printf("\n%-52s %14s %14s\n", "figure", "measured", "target")
	for _, f := range b.table {
		fmt.Printf("%-52s %14s %14s  %s\n", f.name, f.got, f.target, verdict(f.ok))
	}
	for _, line := range b.skipped {
		fmt.Println(line)
	}
}

// median is the middle of some numbers.
func median(list []float64) float64 {
	list = slices.Sorted(slices.Values(list))
	return list[len(list)/2]
}
