// Package kit is what every contestant of the benchmarks shares. A contestant
// is a process of its own, so that no memory, garbage collector or open file of
// one weighs on another: it serves requests, one JSON object a line, on its
// standard input and answers on its standard output.
package kit

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"os/signal"
	"sync"
	"sync/atomic"
	"time"
)

// Request is one thing to do and to measure.
type Request struct {
	Op      string  // "open", "ended", "fill", "enqueue", "drain", "close", or one of the contestant's own
	Dir     string  // open: where the data lies
	N       int     // how many, at most
	Workers int     // producers or workers at once
	Seconds float64 // at most that long; 0: until N are done
	Key     bool    // jobs have a dedupe key
	Path    string  // of a page of the management API
	Profile string  // write a CPU profile of the operation there
}

// Reply is what was measured.
type Reply struct {
	N       int           // done
	Took    time.Duration // wall clock
	CPU     time.Duration // of the contestant's process, all threads
	Written int64         // bytes handed to write calls (wchar)
	Flushes int64         // where the contestant counts them
	P50     time.Duration // of one operation, where it is measured
	Commit  time.Duration // the median of a commit, where it is measured
	Own     time.Duration // of it: what the contestant only waits for
	Err     string
}

// Rate is operations a second.
func (r Reply) Rate() float64 { return float64(r.N) / r.Took.Seconds() }

// KiB is KiB written an operation.
func (r Reply) KiB() float64 { return float64(r.Written) / float64(r.N) / 1024 }

// Contestant is one queue under test. Every change must be durable before the
// method returns.
type Contestant interface {
	Open(dir string) error
	Close() error
	// Ended leaves n jobs behind that are over, where the queue keeps such jobs.
	Ended(n int) error
	// Fill queues n jobs as fast as it can be done.
	Fill(n int) error
	// Enqueue queues one job, the i-th.
	Enqueue(i int64, key bool) error
	// Drain claims and completes jobs until n are done or the limit is over, and
	// reports how many it did.
	Drain(workers, n int, limit time.Duration) (int, error)
}

// Special is a contestant that knows more operations.
type Special interface {
	Do(r Request) (Reply, error)
}

// Counting is a contestant that counts its flushes.
type Counting interface{ Flushes() int64 }

// Serve serves requests until the input ends.
func Serve(c Contestant) {
	signal.Ignore(os.Interrupt) // the driver closes our input instead
	in, out := bufio.NewScanner(os.Stdin), json.NewEncoder(os.Stdout)
	s := &server{c: c}
	defer func() { _ = s.close() }() // also when the driver has gone
	for in.Scan() {
		var r Request
		var reply Reply
		err := json.Unmarshal(in.Bytes(), &r)
		if err == nil {
			reply, err = s.serve(r)
		}
		if err != nil {
			reply.Err = err.Error()
		}
		if out.Encode(reply) != nil {
			return
		}
	}
}

type server struct {
	c    Contestant
	open bool
	i    atomic.Int64 // jobs that were queued one by one
}

func (s *server) close() error {
	if !s.open {
		return nil
	}
	s.open = false
	return s.c.Close()
}

func (s *server) serve(r Request) (Reply, error) {
	switch r.Op {
	case "open":
		s.open = true
		return Reply{}, s.c.Open(r.Dir)
	case "close":
		return Reply{}, s.close()
	case "ended":
		return Reply{N: r.N}, s.c.Ended(r.N)
	case "fill":
		return s.measure(r, func() (int, error) { return r.N, s.c.Fill(r.N) })
	case "enqueue":
		return s.measure(r, func() (int, error) { return s.enqueue(r) })
	case "drain":
		return s.measure(r, func() (int, error) { return s.c.Drain(r.Workers, r.N, limit(r)) })
	}
	special, ok := s.c.(Special)
	if !ok {
		return Reply{}, fmt.Errorf("unknown operation %q", r.Op)
	}
	var own Reply
	reply, err := s.measure(r, func() (n int, err error) {
		own, err = special.Do(r)
		return own.N, err
	})
	// What it measured by itself is closer to the matter.
	if own.Written != 0 {
		reply.Written = own.Written
	}
	if own.Flushes != 0 {
		reply.Flushes, reply.Took = own.Flushes, own.Took
	}
	reply.P50, reply.Commit, reply.Own = own.P50, own.Commit, own.Own
	return reply, err
}

func limit(r Request) time.Duration {
	if r.Seconds == 0 {
		return time.Hour
	}
	return time.Duration(r.Seconds * float64(time.Second))
}

// measure runs one operation and says what it cost.
func (s *server) measure(r Request, fn func() (int, error)) (reply Reply, err error) {
	stop, err := startProfile(r.Profile)
	if err != nil {
		return Reply{}, err
	}
	written, cpu, flushes, start := Written(), CPU(), s.flushes(), time.Now()
	reply.N, err = fn()
	reply.Took = time.Since(start)
	reply.CPU, reply.Written, reply.Flushes = CPU()-cpu, Written()-written, s.flushes()-flushes
	stop()
	return reply, err
}

func (s *server) flushes() int64 {
	if c, ok := s.c.(Counting); ok {
		return c.Flushes()
	}
	return 0
}

// enqueue has producers queue jobs one by one.
func (s *server) enqueue(r Request) (int, error) {
	return Together(r.Workers, r.N, limit(r), func() (bool, error) {
		return true, s.c.Enqueue(s.i.Add(1), r.Key)
	})
}

// Together has workers call fn until n calls have done something, one has found
// nothing to do, or the limit is over.
func Together(workers, n int, limit time.Duration, fn func() (did bool, err error)) (int, error) {
	var left, done atomic.Int64
	var failed error
	var once sync.Once
	left.Store(int64(n))
	end := time.Now().Add(limit)
	var group sync.WaitGroup
	for range workers {
		group.Go(func() {
			for left.Add(-1) >= 0 && time.Now().Before(end) {
				did, err := fn()
				if err != nil {
					once.Do(func() { failed = err })
				}
				if err != nil || !did {
					return
				}
				done.Add(1)
			}
		})
	}
	group.Wait()
	return int(done.Load()), failed
}
