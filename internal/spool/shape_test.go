package spool_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/tgspool/tgspool/internal/spool"
)

// TestShape: chats down, ages across, whatever the number of jobs.
func TestShape(t *testing.T) {
	bubble(t, spool.Limits{}, func(t *testing.T, f *fixture) {
		many := make([]spool.NewJob, 500)
		for i := range many {
			many[i] = message("@Full", "x")
		}
		for range 22 {
			f.enqueue(many...)
		}
		pass(7 * minute)
		f.send("9", "x")
		later := message("9", "y")
		later.NotBefore = time.Now().Add(time.Hour)
		f.enqueue(later)
		pass(minute)
		call := message("", "z")
		call.ChatRaw = nil
		f.enqueue(call)
		got, err := f.bot.Shape(t.Context(), []time.Duration{time.Minute, 5 * time.Minute})
		want := "[{@full 11000 [0 0 11000] 0} {9 2 [0 1 0] 1} { 1 [1 0 0] 0}]"
		if err != nil || fmt.Sprint(got) != want {
			t.Errorf("got %v, %v, want %s", got, err, want)
		}
	})
}
