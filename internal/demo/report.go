package demo

import (
	"fmt"
	"io"
)

// maxShown bounds the list of problems: after a real fault there may be
// hundreds of one kind.
const maxShown = 20

// Print writes the result as a table, with the evidence for each uncertain job.
func (r Result) Print(w io.Writer) error {
	p := printer{w: w}
	p.line("\nchecked against the simulator's own record:\n\n")
	p.row("in", r.In, "updates, each in the inbox once")
	p.row("handled", r.Handled, "of them by the handler's program")
	if r.Late > 0 {
		p.row("late", r.Late, "queries that had grown too old for an answer on this machine")
	}
	p.row("sent", r.Sent, fmt.Sprintf("of %d expected messages have arrived", r.Expected))
	p.row("lost", r.Lost, "")
	p.row("doubled", r.Doubled, "")
	p.row("uncertain", r.Uncertain, fmt.Sprintf("jobs that nobody can know about, %d of which have arrived", r.UncertainArrived))
	p.row("", r.Allowed, "could be: calls in flight at the kills, and lost answers")
	p.row("kills", r.Kills, "kill -9 of the daemon")
	if len(r.Doubts) > 0 {
		p.line("\nuncertain, waiting for a person's decision (tgspool queue resolve):\n\n")
	}
	for _, d := range r.Doubts {
		arrived := "did not arrive"
		if d.Arrived {
			arrived = "arrived"
		}
		p.line("  job %-6d %s to %-16d %-14s  %s %s\n", d.JobID, d.Method, d.ChatID, arrived, d.Cause, d.Why)
	}
	p.verdict(r)
	return p.err
}

// printer remembers the first error.
type printer struct {
	w   io.Writer
	err error
}

func (p *printer) line(format string, args ...any) {
	if p.err == nil {
		_, p.err = fmt.Fprintf(p.w, format, args...)
	}
}

func (p *printer) row(name string, n int, what string) { p.line("  %-10s %6d  %s\n", name, n, what) }

func (p *printer) verdict(r Result) {
	if r.OK() {
		p.line("\nnothing lost, nothing doubled, and no doubt without a cause.\n")
		return
	}
	p.line("\nFAILED:\n")
	for _, problem := range r.Problems[:min(len(r.Problems), maxShown)] {
		p.line("  %s\n", problem)
	}
	if more := len(r.Problems) - maxShown; more > 0 {
		p.line("  and %d more\n", more)
	}
}
