package handler

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"
)

// unitSlack is how much longer than its timeout a program may run in the unit.
// The daemon ends it in time; the unit's own limit is for one that can't.
const unitSlack = 10 * time.Second

// errHungUp ends a run whose daemon has gone or wants it to end.
var errHungUp = errors.New("the daemon hung up")

// UnitOptions is what the unit knows of itself.
type UnitOptions struct {
	// Env is the unit's environment. Programs get HOME of it, in place of the one
	// that the daemon names, and what is there by a drop-in; of the rest nothing.
	Env []string
}

// ServeUnit runs the one program that the daemon at the other end of conn asks
// for, and tells it what comes of it. It returns when the program has ended, or
// has been killed because the daemon hung up; an error means that the daemon
// couldn't be understood or told. conn is closed.
func ServeUnit(ctx context.Context, conn net.Conn, o UnitOptions) error {
	defer func() { _ = conn.Close() }() // the daemon has all it needs by then
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	in := bufio.NewReader(conn)
	out := &unitOut{conn: conn, lost: func() { cancel(errHungUp) }}

	if err := conn.SetReadDeadline(time.Now().Add(unitAnswer)); err != nil {
		return fmt.Errorf("bounding a read: %w", err)
	}
	q, stdin, err := readUnitRequest(in)
	if err != nil {
		return errors.Join(err, out.failed(err))
	}
	p := program{argv: q.Argv, dir: q.Dir, timeout: time.Duration(q.TimeoutMS) * time.Millisecond}
	if err := p.usable(); err != nil {
		return out.failed(err)
	}
	if err := writeFrame(out, frameReady, nil); err != nil {
		return fmt.Errorf("answering the daemon: %w", err)
	}
	if b, err := in.ReadByte(); err != nil || b != unitGoOn {
		return nil // it only wanted to know, or has gone
	}
	if err := conn.SetReadDeadline(time.Time{}); err != nil {
		return fmt.Errorf("unbounding a read: %w", err)
	}
	go func() { // ends with conn at the latest
		_, _ = in.ReadByte()
		cancel(errHungUp)
	}()
	limit := time.AfterFunc(p.timeout+unitSlack, func() { cancel(errTimeout) })
	defer limit.Stop()
	return out.follow(ctx, p, unitEnvironment(q.Env, o.Env), stdin)
}

// follow runs the program and tells the daemon.
func (o *unitOut) follow(ctx context.Context, p program, env []string, stdin []byte) error {
	end, err := p.execute(ctx, env, streams{
		stdin: stdin, stdout: unitStream{o, frameStdout}, stderr: unitStream{o, frameStderr},
		started: func() { _ = writeFrame(o, frameStarted, nil) }, // an error is a hang-up, which ends the run
	})
	if err != nil {
		return o.failed(err)
	}
	if err := writeJSONFrame(o, frameEnded, end); err != nil && !errors.Is(context.Cause(ctx), errHungUp) {
		return fmt.Errorf("telling the daemon: %w", err)
	}
	return nil
}

// unitOut writes frames. Both streams of a program and what we say ourselves go
// through it.
type unitOut struct {
	conn net.Conn
	lost func() // the daemon no longer takes anything

	mu sync.Mutex
}

// Write writes one whole frame.
func (o *unitOut) Write(b []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	// A daemon that doesn't read for that long isn't waiting for us.
	err := o.conn.SetWriteDeadline(time.Now().Add(time.Minute))
	n := 0
	if err == nil {
		n, err = o.conn.Write(b)
	}
	if err != nil {
		o.lost()
	}
	return n, err
}

func (o *unitOut) failed(err error) error {
	if err := writeJSONFrame(o, frameFailed, toUnitFailure(err)); err != nil {
		return fmt.Errorf("answering the daemon: %w", err)
	}
	return nil
}

// unitStream is one of a program's streams.
type unitStream struct {
	out  io.Writer
	kind byte
}

// Write passes a part on. It never fails: a program whose daemon has gone is
// killed, and isn't to be stuck in a write before that.
func (s unitStream) Write(b []byte) (int, error) {
	for rest, lost := b, false; len(rest) > 0 && !lost; {
		part := rest[:min(len(rest), maxFrame)]
		lost = writeFrame(s.out, s.kind, part) != nil
		rest = rest[len(part):]
	}
	return len(b), nil
}
