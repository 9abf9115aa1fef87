package spool_test

import (
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tgspool/tgspool/internal/spool"
)

// heard drains a feed.
func heard(f *spool.Feed) (all []string) {
	synctest.Wait()
	for {
		select {
		case c := <-f.C():
			switch {
			case c.Job != nil:
				all = append(all, fmt.Sprintf("%s job %d %s %d", c.Bot, c.Job.ID, c.Job.State, c.Job.Attempts))
				if c.Job.Params != nil || c.Job.Result != nil {
					all = append(all, "with its text")
				}
			case c.Update != nil:
				all = append(all, fmt.Sprintf("%s update %d %s", c.Bot, c.Update.Seq, c.Update.State))
				if c.Update.Raw != nil {
					all = append(all, "with its bytes")
				}
			case c.Chat != nil:
				all = append(all, fmt.Sprintf("%s chat %d %v", c.Bot, *c.Chat.ChatID, c.Chat.Active))
			}
		default:
			return all
		}
	}
}

// TestFeed: each change of state is told once, in order, when it is on disk.
func TestFeed(t *testing.T) {
	bubble(t, spool.Limits{}, func(t *testing.T, f *fixture) {
		feed := f.store.Feed(100)
		want := func(what string, want ...string) {
			t.Helper()
			if got := heard(feed); !slices.Equal(got, want) {
				t.Errorf("%s: heard %q, want %q", what, got, want)
			}
		}
		f.intake(text(5, 9))
		want("an update", "home chat 9 true", "home update 1 open")
		l := f.lease(time.Second)
		want("its lease", "home update 1 leased")
		if _, err := f.bot.Handled(t.Context(), l, spool.Handling{Jobs: []spool.NewJob{message("9", "hi")}}); err != nil {
			t.Fatal(err)
		}
		want("its end", "home job 1 pending 0", "home update 1 handled")
		c := f.mustClaim()
		want("a claim", "home job 1 running 1")
		f.settle(c, spool.Verdict{State: spool.Pending, GiveBack: true})
		want("given back", "home job 1 pending 0")
		f.settle(f.mustClaim(), spool.Verdict{State: spool.Uncertain})
		want("uncertain", "home job 1 running 1", "home job 1 uncertain 1")
		if _, err := f.store.Resolve(t.Context(), 1, spool.Resolution{Outcome: "resend"}); err != nil {
			t.Fatal(err)
		}
		f.settle(f.mustClaim(), spool.Verdict{State: spool.Dead, ChatGone: "Forbidden: bot was blocked by the user"})
		want("dead", "home job 1 pending 1", "home job 1 running 2", "home chat 9 false", "home job 1 dead 2")
		if _, err := f.store.Retry(t.Context(), 1); err != nil {
			t.Fatal(err)
		}
		if _, err := f.store.Hold(t.Context(), 1); err != nil {
			t.Fatal(err)
		}
		want("decisions", "home job 1 pending 0", "home job 1 held 0")
		if _, err := f.store.Cancel(t.Context(), 99); err == nil {
			t.Error("a job that isn't there was called off")
		}
		want("a refusal")
		feed.Close()
		feed.Close()
		f.send("10", "unheard")
		want("after its end")
	})
}

// TestFeed_Full: a feed that nobody reads holds nobody up, and knows what it missed.
func TestFeed_Full(t *testing.T) {
	bubble(t, spool.Limits{}, func(t *testing.T, f *fixture) {
		f.send("9", "before")
		feed := f.store.Feed(2)
		defer feed.Close()
		for range 5 {
			f.send("9", "x")
		}
		if got := feed.Missed(); got != 3 {
			t.Errorf("missed %d, want 3", got)
		}
		if got := heard(feed); len(got) != 2 {
			t.Errorf("heard %q", got)
		}
		if got := feed.Missed(); got != 0 {
			t.Errorf("missed %d more", got)
		}
	})
}
