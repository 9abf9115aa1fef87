package spool

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"

	bolt "go.etcd.io/bbolt"
)

// scarce is a disk whose next commits fail, and that has as much room as told.
type scarce struct {
	fail int
	with error
	free int64
}

func (d *scarce) commit(tx *bolt.Tx) error {
	if d.fail > 0 {
		d.fail--
		return errors.Join(d.with, tx.Rollback())
	}
	return tx.Commit()
}

// onScarce opens a store on such a disk inside a bubble.
func onScarce(t *testing.T, scenario func(t *testing.T, s *Store, b *Bot, d *scarce)) {
	path := filepath.Join(t.TempDir(), "spool.db")
	synctest.Test(t, func(t *testing.T) {
		s, err := Open(t.Context(), Options{Path: path})
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = s.Close() }()
		b, err := s.Attach(t.Context(), BotConfig{ID: 7, Name: "home"})
		if err != nil {
			t.Fatal(err)
		}
		d := &scarce{with: fmt.Errorf("write: %w", syscall.ENOSPC), free: 1 << 40}
		synctest.Wait() // the writer sleeps: nobody reads what is replaced here
		s.disk = disk{commit: d.commit, free: func() int64 { return d.free }}
		scenario(t, s, b, d)
		if problems, err := s.Check(); err != nil || len(problems) > 0 {
			t.Errorf("check: %v %v", problems, err)
		}
	})
}

func job(chat, text string) NewJob {
	return NewJob{Method: "sendMessage", Chat: chat, Params: []byte(`{"text":"` + text + `"}`), Weight: 1}
}

func update(id int64) Batch {
	return Batch{Updates: []NewUpdate{{ID: id, HasID: true, Kind: "message", Raw: []byte("{}")}}, Offset: id + 1, SetOffset: true}
}

func TestRoom_AFullDiskTakesNothingNewAndStillDelivers(t *testing.T) {
	onScarce(t, func(t *testing.T, s *Store, b *Bot, d *scarce) {
		ctx := t.Context()
		if _, err := b.Enqueue(ctx, job("1", "before")); err != nil {
			t.Fatal(err)
		}
		d.fail, d.free = 1, 0
		if _, err := b.Intake(ctx, update(1)); !errors.Is(err, ErrFull) {
			t.Errorf("intake on a full disk: %v", err)
		}
		if !s.Status().Full {
			t.Error("status doesn't say that the disk is full")
		}
		if _, err := os.Stat(s.reservePath()); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("the reserve is still there: %v", err)
		}
		if off := b.Offset(); off != 0 {
			t.Errorf("offset %d of a batch that wasn't stored", off)
		}
		c, err := b.Claim(ctx)
		if err != nil {
			t.Fatalf("claim on a full disk: %v", err)
		}
		if _, err := b.Settle(ctx, c, Verdict{State: Done}); err != nil {
			t.Fatalf("settling on a full disk: %v", err)
		}
		d.free = reserveSize // what the reserve has given back
		if _, err := b.Enqueue(ctx, job("1", "disk full!")); err != nil {
			t.Errorf("a small job on a full disk: %v", err)
		}
		d.free = 0
		if spare := s.spare(); spare < reserveSize/2 {
			if _, err := b.Enqueue(ctx, job("1", "one more")); !errors.Is(err, ErrFull) {
				t.Errorf("a small job that delivering needs the room of: %v", err)
			}
		} else {
			t.Fatalf("%d bytes are spare", spare)
		}
		if _, err := b.Enqueue(ctx, job("1", strings.Repeat("x", 9000))); !errors.Is(err, ErrFull) {
			t.Errorf("a big job on a full disk: %v", err)
		}
		small := job("1", "file")
		small.Files = []File{{Path: "files/1/a"}}
		if _, err := b.Enqueue(ctx, small); !errors.Is(err, ErrFull) {
			t.Errorf("a job with a file on a full disk: %v", err)
		}
		d.free = roomAgain
		if _, err := b.Intake(ctx, update(1)); err != nil {
			t.Errorf("intake when there is room again: %v", err)
		}
		if fi, err := os.Stat(s.reservePath()); err != nil || fi.Size() != reserveSize {
			t.Errorf("the reserve isn't back: %v", err)
		}
		if s.Status().Full {
			t.Error("status still says full")
		}
	})
}

func TestRoom_WhenNothingHelpsEveryoneIsToldAndNothingIsHalfDone(t *testing.T) {
	onScarce(t, func(t *testing.T, s *Store, b *Bot, d *scarce) {
		ctx := t.Context()
		d.fail, d.free = 5, 0
		if _, err := b.Enqueue(ctx, job("1", "a")); !errors.Is(err, ErrFull) {
			t.Errorf("enqueue: %v", err)
		}
		d.fail, d.free = 0, reserveSize
		out, err := b.Enqueue(ctx, job("1", "b"))
		if err != nil || out[0].Job.ID != 1 {
			t.Errorf("the next one: %+v %v", out, err)
		}
	})
}

func TestRoom_AFailedClaimIsNobodysAttempt(t *testing.T) {
	onScarce(t, func(t *testing.T, s *Store, b *Bot, d *scarce) {
		if _, err := b.Enqueue(t.Context(), job("1", "a")); err != nil {
			t.Fatal(err)
		}
		d.fail, d.free = 3, 0
		var c *Claim
		for tries := 1; c == nil; tries++ {
			var err error
			if c, err = b.Claim(t.Context()); err != nil && (!errors.Is(err, ErrFull) || tries > 3) {
				t.Fatalf("claim number %d: %v", tries, err)
			}
		}
		if c.Attempts != 1 {
			t.Errorf("attempt %d", c.Attempts)
		}
		if _, err := b.Settle(t.Context(), c, Verdict{State: Done}); err != nil {
			t.Fatal(err)
		}
	})
}

func TestRoom_ReadOnlyIsSaidAndEndsByItself(t *testing.T) {
	onScarce(t, func(t *testing.T, s *Store, b *Bot, d *scarce) {
		d.fail, d.with = 2, fmt.Errorf("write: %w", syscall.EROFS)
		for range 2 {
			if _, err := b.Enqueue(t.Context(), job("1", "a")); !errors.Is(err, ErrReadOnly) {
				t.Errorf("enqueue: %v", err)
			}
		}
		if _, err := b.Enqueue(t.Context(), job("1", "a")); err != nil {
			t.Error(err)
		}
	})
}

func TestRoom_NearItsLimitTheFileOnlyDrains(t *testing.T) {
	path := filepath.Join(t.TempDir(), "spool.db")
	synctest.Test(t, func(t *testing.T) {
		s, err := Open(t.Context(), Options{Path: path, MaxSize: 64 << 20, KeepSize: 8 << 20})
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = s.Close() }()
		b, err := s.Attach(t.Context(), BotConfig{ID: 7, Name: "home"})
		if err != nil {
			t.Fatal(err)
		}
		stored := 0
		for ; err == nil && stored < 3000; stored++ {
			_, err = b.Enqueue(t.Context(), job(fmt.Sprint(stored), strings.Repeat("x", 30_000)))
		}
		if !errors.Is(err, ErrFull) {
			t.Fatalf("after %d jobs of 30 kB: %v", stored, err)
		}
		for range stored - 1 {
			c, err := b.Claim(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if _, err := b.Settle(t.Context(), c, Verdict{State: Done}); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := b.Enqueue(t.Context(), job("1", strings.Repeat("x", 30_000))); err != nil {
			t.Errorf("when all is delivered: %v", err)
		}
		if n := s.endedBytes(); n > 8<<20 {
			t.Errorf("%d bytes of ended records, more than keep_size", n)
		}
		if problems, err := s.Check(); err != nil || len(problems) > 0 {
			t.Errorf("check: %v %v", problems, err)
		}
	})
}

// Here a commit is done and says that it isn't: what a sync of the file's head
// that fails looks like, when the head itself is written.
func TestRoom_ACommitThatStandsAlthoughItFailedIsOne(t *testing.T) {
	onScarce(t, func(t *testing.T, s *Store, b *Bot, d *scarce) {
		late := 1
		s.disk.commit = func(tx *bolt.Tx) error {
			err := tx.Commit()
			if late > 0 {
				late--
				return errors.Join(err, fmt.Errorf("fdatasync: %w", syscall.EIO))
			}
			return err
		}
		first, err := b.Enqueue(t.Context(), job("1", "a"))
		if err != nil {
			t.Fatalf("the job is on disk, and its caller hears: %v", err)
		}
		second, err := b.Enqueue(t.Context(), job("2", "b"))
		if err != nil || second[0].Job.ID == first[0].Job.ID {
			t.Errorf("the next job: %+v %v", second, err)
		}
		late = 1
		if _, err := b.Intake(t.Context(), update(1)); err != nil {
			t.Fatal(err)
		}
		if _, err := b.Intake(t.Context(), update(2)); err != nil {
			t.Fatal(err)
		}
		if page, err := b.Updates(UpdateFilter{}); err != nil || len(page.Items) != 2 {
			t.Errorf("updates: %+v %v", page, err)
		}
	})
}
