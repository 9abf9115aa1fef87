package spool_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	bolt "go.etcd.io/bbolt"

	"github.com/tgspool/tgspool/internal/spool"
)

// openReal opens a store outside of a bubble.
func openReal(t *testing.T, dir string) (*spool.Store, *spool.Bot) {
	t.Helper()
	s, err := spool.Open(t.Context(), spool.Options{Path: filepath.Join(dir, "spool.db")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	b, err := s.Attach(t.Context(), spool.BotConfig{ID: 7, Name: "home"})
	if err != nil {
		t.Fatal(err)
	}
	return s, b
}

// TestSnapshot_UnderLoad makes snapshots while the store is written to as fast
// as it goes. Each is checked as a whole by Snapshot itself; restored, each
// holds what was on disk before it began.
func TestSnapshot_UnderLoad(t *testing.T) {
	dir := t.TempDir()
	s, b := openReal(t, dir)
	ctx, stop := context.WithCancel(t.Context())
	ended, last := make(chan error, 1), make(chan int64, 1)
	last <- 0
	go func() {
		for i := 0; ; i++ {
			q, err := b.Enqueue(ctx, message(fmt.Sprint(i%50), strings.Repeat("y", 200+i%3000)))
			if err == nil && i%2 == 0 {
				var c *spool.Claim
				if c, err = b.Claim(ctx); err == nil {
					_, err = b.Settle(ctx, c, spool.Verdict{State: spool.Done})
				}
			}
			if err != nil {
				ended <- err
				return
			}
			<-last
			last <- q[0].Job.ID
		}
	}()
	var before []int64
	for i := range 5 {
		sure := <-last
		last <- sure
		before = append(before, sure)
		if _, err := s.Snapshot(ctx, spool.SnapshotOptions{To: filepath.Join(dir, fmt.Sprint("s", i)), Rate: 4 << 20}); err != nil {
			t.Fatal(err)
		}
	}
	stop()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	for i, sure := range before {
		path := filepath.Join(t.TempDir(), "spool.db")
		if _, err := spool.Restore(t.Context(), spool.Options{Path: path}, filepath.Join(dir, fmt.Sprint("s", i))); err != nil {
			t.Fatal(err)
		}
		r, err := spool.Open(t.Context(), spool.Options{Path: path})
		if err != nil {
			t.Fatal(err)
		}
		for id := int64(1); id <= sure; id++ {
			if _, err := r.Job(id); err != nil {
				t.Fatalf("snapshot %d: job %d, on disk before it, isn't in it: %v", i, id, err)
			}
		}
		if err := r.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

func TestSnapshot_Refusals(t *testing.T) {
	dir := t.TempDir()
	s, _ := openReal(t, dir)
	there := filepath.Join(dir, "there")
	write(t, there, []byte("x"))
	for to, want := range map[string]error{
		there:                            os.ErrExist,
		s.Path():                         os.ErrExist,
		filepath.Join(dir, "no", "such"): os.ErrNotExist,
	} {
		if _, err := s.Snapshot(t.Context(), spool.SnapshotOptions{To: to}); !errors.Is(err, want) {
			t.Errorf("to %s: got %v, want %v", to, err, want)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.Snapshot(ctx, spool.SnapshotOptions{Rate: 1}); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: got %v", err)
	}
	if left, _ := filepath.Glob(filepath.Join(dir, "snapshots", "*")); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

func TestSnapshots_ListAndPrune(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"spool-20260103T030000Z.db", "spool-20260101T030000Z.db", "spool-20260102T030000Z.db", "spool-x.db", "other", "spool-20260104T030000Z.db.new"} {
		write(t, filepath.Join(dir, name), []byte("x"))
	}
	if err := spool.PruneSnapshots(dir, 2, time.Date(2026, 1, 3, 4, 0, 0, 0, time.UTC)); err != nil {
		t.Fatal(err)
	}
	list := spool.Snapshots(dir)
	if len(list) != 2 || !list[0].At.Equal(time.Date(2026, 1, 3, 3, 0, 0, 0, time.UTC)) || list[1].At.Day() != 2 {
		t.Errorf("kept %+v", list)
	}
	if all, _ := os.ReadDir(dir); len(all) != 5 {
		t.Errorf("%d files are left, want 5: other files are nobody's business", len(all))
	}
}

// TestSnapshots_FromAhead: a clock that was years ahead for a day neither takes
// the places of what comes after it, nor stays for ever.
func TestSnapshots_FromAhead(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"spool-20310101T030000Z.db", "spool-20310102T030000Z.db", "spool-20260101T030000Z.db"} {
		write(t, filepath.Join(dir, name), []byte("x"))
	}
	for _, tt := range []struct {
		day  int
		want []int // the years that are kept
	}{{1, []int{2031, 2026}}, {2, []int{2026, 2026}}} {
		write(t, filepath.Join(dir, fmt.Sprintf("spool-2026010%dT030000Z.db", tt.day)), []byte("x"))
		if err := spool.PruneSnapshots(dir, 2, time.Date(2026, 1, tt.day, 3, 0, 1, 0, time.UTC)); err != nil {
			t.Fatal(err)
		}
		var years []int
		for _, s := range spool.Snapshots(dir) {
			years = append(years, s.At.Year())
		}
		if !slices.Equal(years, tt.want) {
			t.Errorf("on day %d: kept of %v, want %v", tt.day, years, tt.want)
		}
	}
}

// TestCompact_AtStart compacts a big file that is mostly free, and only that.
func TestCompact_AtStart(t *testing.T) {
	dir := t.TempDir()
	s, b := openReal(t, dir)
	id := sendNow(t, b)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "spool.db")
	ballast := []byte("ballast")
	editBolt(t, path, func(tx *bolt.Tx) error {
		k, err := tx.CreateBucket(ballast)
		if err != nil {
			return err
		}
		for i := range 70 {
			if err := k.Put([]byte{byte(i)}, make([]byte, 1<<20)); err != nil {
				return err
			}
		}
		return nil
	})
	sizes := []int64{sizeOf(t, path)}
	for range 2 {
		s, _ := openReal(t, dir)
		if _, err := s.Job(id); err != nil {
			t.Error(err)
		}
		if problems, err := s.Check(); err != nil || len(problems) > 0 {
			t.Errorf("check: %q %v", problems, err)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		sizes = append(sizes, sizeOf(t, path))
		if len(sizes) == 2 {
			editBolt(t, path, func(tx *bolt.Tx) error { return tx.DeleteBucket(ballast) })
		}
	}
	if sizes[1] < sizes[0] || sizes[2] > 1<<20 {
		t.Errorf("sizes %v: full it stays, mostly free it shrinks", sizes)
	}
}

func sendNow(t *testing.T, b *spool.Bot) int64 {
	t.Helper()
	q, err := b.Enqueue(t.Context(), message("1", "x"))
	if err != nil {
		t.Fatal(err)
	}
	return q[0].Job.ID
}

func sizeOf(t *testing.T, path string) int64 {
	t.Helper()
	fi, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	return fi.Size()
}

// TestOffline_NeedsTheStoreAlone: none of the commands works on a store that a
// daemon has open.
func TestOffline_NeedsTheStoreAlone(t *testing.T) {
	dir := t.TempDir()
	s, _ := openReal(t, dir)
	o := spool.Options{Path: s.Path()}
	ctx, cancel := context.WithCancel(t.Context())
	cancel() // there is no need to wait for the one who has it
	for name, do := range map[string]func() error{
		"check":   func() error { _, err := spool.CheckFile(ctx, o); return err },
		"compact": func() error { _, err := spool.Compact(ctx, o); return err },
		"repair":  func() error { _, err := spool.Repair(ctx, o); return err },
		"restore": func() error { _, err := spool.Restore(ctx, o, "x"); return err },
		"backup":  func() error { _, err := spool.Backup(ctx, o, spool.SnapshotOptions{}); return err },
	} {
		if err := do(); !errors.Is(err, spool.ErrLocked) {
			t.Errorf("%s: got %v", name, err)
		}
	}
}
