package demo

import (
	"context"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"
)

// How often the figures are shown: a line that changes in place on a terminal,
// a new line elsewhere.
const (
	liveEvery  = 200 * time.Millisecond
	plainEvery = 5 * time.Second
)

// figures are how far the demo has come.
type figures struct {
	in, expected, sent, kills int
}

func (f figures) String() string {
	return fmt.Sprintf("in %d updates, sent %d of %d messages, kills %d", f.in, f.sent, f.expected, f.kills)
}

// progress tells a person how far the demo has come. Where nobody can be told,
// that is no reason to end it: errors of the writer are left alone.
type progress struct {
	live  bool
	start time.Time

	mu    sync.Mutex // guards what follows
	w     io.Writer
	width int // of the line that changes in place, as it stands there; 0: none
}

func newProgress(w io.Writer, live bool) *progress {
	return &progress{w: w, live: live, start: time.Now()}
}

// say prints a line that stays.
func (p *progress) say(format string, args ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.wipe()
	_, _ = fmt.Fprintf(p.w, "%s %s\n", p.clock(), fmt.Sprintf(format, args...))
}

// clock is the time since the start, as wide as can be.
func (p *progress) clock() string { return fmt.Sprintf("%5.1f s ", time.Since(p.start).Seconds()) }

// wipe takes the changing line away.
func (p *progress) wipe() {
	if p.width > 0 {
		_, _ = fmt.Fprintf(p.w, "\r%s\r", strings.Repeat(" ", p.width))
		p.width = 0
	}
}

// follow shows the figures until ctx ends.
func (p *progress) follow(ctx context.Context, now func() figures) {
	every := plainEvery
	if p.live {
		every = liveEvery
	}
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			p.update(now())
		}
	}
}

// update shows the figures in place, or as a line of their own.
func (p *progress) update(f figures) {
	if !p.live {
		p.say("%s", f)
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.wipe()
	line := p.clock() + " " + f.String()
	_, _ = fmt.Fprint(p.w, line)
	p.width = len(line)
}

// end takes the changing line away for good.
func (p *progress) end() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.wipe()
}
