package demo

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestProgress(t *testing.T) {
	now := figures{in: 3, expected: 5, sent: 2, kills: 1}
	for name, c := range map[string]struct {
		live bool
		want string
	}{
		"plain": {false, "  0.0 s  begun\n  5.0 s  in 3 updates, sent 2 of 5 messages, kills 1\n  6.0 s  an event\n"},
		"live": {true, "  0.0 s  begun\n" +
			"  0.2 s  in 3 updates, sent 2 of 5 messages, kills 1" +
			"\r" + strings.Repeat(" ", 52) + "\r  0.4 s  in 3 updates, sent 2 of 5 messages, kills 1" +
			"\r" + strings.Repeat(" ", 52) + "\r  0.5 s  an event\n"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var out strings.Builder
				p := newProgress(&out, c.live)
				p.say("begun")
				go p.follow(t.Context(), func() figures { return now })
				if c.live {
					time.Sleep(500 * time.Millisecond)
				} else {
					time.Sleep(6 * time.Second)
				}
				p.say("an %s", "event")
				p.end()
				if out.String() != c.want {
					t.Errorf("shown\n%q\nwant\n%q", out.String(), c.want)
				}
			})
		})
	}
}

func TestPlural(t *testing.T) {
	for n, want := range map[int]string{0: "0 calls", 1: "1 call", 2: "2 calls"} {
		if got := plural(n, "call"); got != want {
			t.Errorf("plural(%d) is %q", n, got)
		}
	}
}

// TestFeeders: every sample and every text is fed, and they are mixed.
func TestFeeders(t *testing.T) {
	if got, want := len(feeders()), chatCount*textsPerChat; got <= want+50 {
		t.Errorf("%d updates, want more than the %d texts and 50 samples", got, want)
	}
	seen := map[int64]bool{}
	for n := range chatCount {
		if id := chat(n); !isOurs(id) || seen[id] {
			t.Errorf("chat %d is %d: ours %v, seen %v", n, id, isOurs(id), seen[id])
		}
		seen[chat(n)] = true
	}
	for _, id := range []int64{0, 1, firstUser, firstUser + chatCount, firstGroup + 1, firstGroup - groupCount} {
		if isOurs(id) {
			t.Errorf("%d is taken for one of the chats", id)
		}
	}
}
