package main

import (
	"sync"
	"sync/atomic"
)

// committer puts all changes that wait into one transaction and answers each
// caller after the commit.
type committer[T any] struct {
	changes chan *change[T]
	update  func(func(T) error) error
	ended   sync.WaitGroup
	count   atomic.Int64 // transactions so far
}

type change[T any] struct {
	fn   func(T) error
	done chan error
}

// maxBatch is how many changes one transaction takes.
const maxBatch = 1000

func newCommitter[T any](update func(func(T) error) error) *committer[T] {
	c := &committer[T]{changes: make(chan *change[T], maxBatch), update: update}
	c.ended.Go(c.run)
	return c
}

func (c *committer[T]) close() {
	close(c.changes)
	c.ended.Wait()
}

func (c *committer[T]) do(fn func(T) error) error {
	ch := &change[T]{fn: fn, done: make(chan error, 1)}
	c.changes <- ch
	return <-ch.done
}

func (c *committer[T]) run() {
	for first := range c.changes {
		batch := []*change[T]{first}
		for more := true; more && len(batch) < maxBatch; {
			select {
			case next, ok := <-c.changes:
				if more = ok; ok {
					batch = append(batch, next)
				}
			default:
				more = false
			}
		}
		err := c.update(func(tx T) error {
			for _, ch := range batch {
				if err := ch.fn(tx); err != nil {
					return err
				}
			}
			return nil
		})
		c.count.Add(1)
		for _, ch := range batch {
			ch.done <- err
		}
	}
}
