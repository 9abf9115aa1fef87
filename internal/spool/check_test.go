package spool_test

import (
	"path/filepath"
	"strconv"
	"sync"
	"testing"

	"github.com/tgspool/tgspool/internal/spool"
)

// TestCheck_DuringCommits checks a store that is being written to: what is
// found must be there, not come from looking at two states at once.
func TestCheck_DuringCommits(t *testing.T) {
	store, err := spool.Open(t.Context(), spool.Options{Path: filepath.Join(t.TempDir(), "spool.db")})
	if err != nil {
		t.Fatal(err)
	}
	bot, err := store.Attach(t.Context(), spool.BotConfig{ID: 1, Name: "check"})
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	var writers sync.WaitGroup
	for w := range 4 {
		writers.Go(func() {
			for n := 0; ; n++ {
				select {
				case <-done:
					return
				default:
				}
				if _, err := bot.Enqueue(t.Context(), message(strconv.Itoa(w), "text "+strconv.Itoa(n))); err != nil {
					t.Errorf("queueing: %v", err)
					return
				}
			}
		})
	}
	for range 30 {
		problems, err := store.Check()
		if err != nil {
			t.Error(err)
		}
		for _, p := range problems {
			t.Error(p)
		}
	}
	close(done)
	writers.Wait()
	if err := store.Close(); err != nil {
		t.Error(err)
	}
	if _, err := store.Check(); err == nil {
		t.Error("a closed store was checked")
	}
}
