package main

import (
	"encoding/binary"
	"path/filepath"
	"slices"
	"time"

	bolt "go.etcd.io/bbolt"

	"github.com/tgspool/tgspool/scripts/bench/kit"
)

// floor is the least that a durable queue on bbolt can do: one bucket of jobs,
// one of leases, no index, no key, no chat, no retention, and a committer that
// puts all that waits into one transaction. It is what the spool is measured by.
type floor struct {
	merged bool // a completion shares the transaction of the next claim
	db     *bolt.DB
	commit *committer[*bolt.Tx]
	head   uint64 // ids from here on are ready; the committer's goroutine alone uses it
}

var (
	jobs   = []byte("jobs")
	leases = []byte("leases")
)

func (f *floor) Open(dir string) (err error) {
	f.db, err = bolt.Open(filepath.Join(dir, "floor.db"), 0o600, &bolt.Options{PageSize: 4096})
	if err != nil {
		return err
	}
	f.commit = newCommitter(func(fn func(*bolt.Tx) error) error { return f.db.Update(fn) })
	return f.db.Update(func(tx *bolt.Tx) error {
		for _, name := range [][]byte{jobs, leases} {
			if _, err := tx.CreateBucketIfNotExists(name); err != nil {
				return err
			}
		}
		return nil
	})
}

func (f *floor) Close() error {
	f.commit.close()
	return f.db.Close()
}

// Flushes is how often the disk was asked to flush: twice a transaction.
func (f *floor) Flushes() int64 { return 2 * f.commit.count.Load() }

// Ended: the floor deletes what is over.
func (f *floor) Ended(int) error { return nil }

func (f *floor) Fill(n int) error {
	for done := 0; done < n; {
		err := f.db.Update(func(tx *bolt.Tx) error {
			for end := min(done+1000, n); done < end; done++ {
				if err := put(tx, int64(done)); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func put(tx *bolt.Tx, i int64) error {
	b := tx.Bucket(jobs)
	b.FillPercent = 0.95
	id, err := b.NextSequence()
	if err != nil {
		return err
	}
	return b.Put(binary.BigEndian.AppendUint64(nil, id), kit.Payload(i))
}

func (f *floor) Enqueue(i int64, _ bool) error {
	return f.commit.do(func(tx *bolt.Tx) error { return put(tx, i) })
}

func (f *floor) Drain(workers, n int, limit time.Duration) (int, error) {
	completed := make(chan []byte, workers) // what rides along with the next claim
	return kit.Together(workers, n, limit, func() (did bool, err error) {
		var id, before []byte
		select {
		case before = <-completed:
		default:
		}
		err = f.commit.do(func(tx *bolt.Tx) error {
			if err := remove(tx, before); err != nil {
				return err
			}
			id, err = f.claim(tx)
			return err
		})
		switch {
		case err != nil || id == nil:
			return false, err
		case f.merged:
			completed <- id
			return true, nil
		}
		return true, f.commit.do(func(tx *bolt.Tx) error { return remove(tx, id) })
	})
}

func (f *floor) claim(tx *bolt.Tx) ([]byte, error) {
	k, v := tx.Bucket(jobs).Cursor().Seek(binary.BigEndian.AppendUint64(nil, f.head))
	if k == nil {
		return nil, nil
	}
	id := slices.Clone(k)
	_ = slices.Clone(v)
	f.head = binary.BigEndian.Uint64(id) + 1
	lease := binary.BigEndian.AppendUint64(nil, uint64(time.Now().UnixNano()))
	return id, tx.Bucket(leases).Put(id, lease)
}

func remove(tx *bolt.Tx, id []byte) error {
	if id == nil {
		return nil
	}
	if err := tx.Bucket(jobs).Delete(id); err != nil {
		return err
	}
	return tx.Bucket(leases).Delete(id)
}
