package handler

import (
	"bytes"
	"strings"
	"sync"
)

const (
	// maxTail is how much of the end of standard error is kept with a failed
	// update, in bytes, and how much of the beginning of standard output.
	maxTail = 4 << 10
	// maxLine is the longest line of standard error that is logged, in bytes.
	maxLine = 1 << 10
	// maxLogged is how much of one run's standard error is logged, in bytes.
	maxLogged = 64 << 10
)

// capped keeps what is written to it up to max bytes and calls full once when
// more comes. It goes on taking, so that the program isn't stuck in a write
// before it is killed.
type capped struct {
	max  int
	full func()

	mu   sync.Mutex // what was left behind may still write when we read
	buf  bytes.Buffer
	over bool
}

// Write never fails.
func (c *capped) Write(b []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	room := c.max - c.buf.Len()
	c.buf.Write(b[:min(len(b), room)])
	if len(b) > room && !c.over {
		c.over = true
		c.full()
	}
	return len(b), nil
}

// bytes returns what was kept.
func (c *capped) bytes() []byte {
	c.mu.Lock()
	defer c.mu.Unlock()
	return bytes.Clone(c.buf.Bytes())
}

// tail keeps the last max bytes of what is written to it and hands out whole
// lines while they come, shortened to maxLine and maxLogged in all.
type tail struct {
	max  int
	line func([]byte)

	mu     sync.Mutex // what was left behind may still write when we read
	buf    []byte
	open   []byte // the line that has no end yet, up to maxLine
	logged int
}

// Write never fails.
func (t *tail) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.keep(b)
	for rest := b; len(rest) > 0; {
		part, after, ended := bytes.Cut(rest, []byte{'\n'})
		t.open = append(t.open, part[:min(len(part), maxLine-len(t.open))]...)
		if ended {
			t.emit()
		}
		rest = after
	}
	return len(b), nil
}

// keep holds at most twice the limit between cuts, so that a chatty program
// costs a copy now and then and not at each write.
func (t *tail) keep(b []byte) {
	if len(b) > t.max {
		b = b[len(b)-t.max:]
	}
	t.buf = append(t.buf, b...)
	if len(t.buf) > 2*t.max {
		t.buf = append(t.buf[:0], t.buf[len(t.buf)-t.max:]...)
	}
}

// emit hands out the open line, unless it is empty or enough has been said.
func (t *tail) emit() {
	line := bytes.TrimRight(t.open, "\r")
	t.open = t.open[:0]
	if len(line) == 0 || t.logged >= maxLogged || t.line == nil {
		return
	}
	t.logged += len(line)
	t.line(line)
}

// flush hands out a last line without an end and returns what was kept.
func (t *tail) flush() []byte {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.emit()
	return bytes.Clone(t.buf[max(0, len(t.buf)-t.max):])
}

// evidence is what is kept of a run's output with its update: the beginning of
// standard output and the end of standard error, as text.
func evidence(stdout, stderr []byte) string {
	var parts []string
	if len(stdout) > 0 {
		parts = append(parts, "stdout: "+plain(stdout[:min(len(stdout), maxTail)]))
	}
	if len(stderr) > 0 {
		parts = append(parts, "stderr: "+plain(stderr))
	}
	return strings.Join(parts, "\n")
}

// plain turns a program's bytes into text: what isn't UTF-8 shows as U+FFFD,
// and NUL bytes, which no terminal and no chat shows, are dropped.
func plain(b []byte) string {
	s := strings.ToValidUTF8(string(b), "\uFFFD")
	return strings.TrimRight(strings.ReplaceAll(s, "\x00", ""), "\r\n")
}
