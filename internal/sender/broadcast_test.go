package sender_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/tgspool/tgspool/internal/gate"
	"github.com/tgspool/tgspool/internal/outbox"
	"github.com/tgspool/tgspool/internal/spool"
	"github.com/tgspool/tgspool/internal/telegramsim"
)

// A broadcast uses the rate that there is, is never told to slow down, and lets
// those pass who wait for an answer.
func TestSender_BroadcastUsesTheRateAndLetsRepliesPass(t *testing.T) {
	const (
		chats, replies = 400, 30
		first          = int64(7_000_000_000)
	)
	lane := func(l spool.Lane) func(*outbox.Options) { return func(o *outbox.Options) { o.Lane = l } }
	run(t, func(w *world) {
		for i := range int64(chats) {
			w.send(first+i, "announcement", lane(spool.Bulk))
		}
		accepted := map[int64]time.Time{}
		var last int64
		for i := range int64(replies) {
			w.pass(500 * time.Millisecond)
			chat := first + i*11 // where the broadcast has just been
			if i%2 == 1 {
				chat = first + chats - 1 - i // where it comes late
			}
			last = w.send(chat, "reply", lane(spool.Interactive))
			accepted[chat] = time.Now()
		}
		w.end(last, spool.Done)
		w.pass(time.Minute)

		journal := w.sim.Journal()
		var sent []telegramsim.Arrival
		before := map[int64]time.Time{}
		for _, a := range journal {
			if a.Status == http.StatusTooManyRequests {
				t.Fatalf("429 at call %d", a.N)
			}
			if a.Method != "sendMessage" {
				continue
			}
			sent = append(sent, a)
			if a.Text == "reply" {
				turn := accepted[a.ChatID]
				if open := before[a.ChatID].Add(w.setup.limits.ChatGap); open.After(turn) {
					turn = open
				}
				if late := a.At.Sub(turn); late > 250*time.Millisecond {
					t.Errorf("the reply to chat %d came %v after its turn", a.ChatID, late)
				}
			}
			before[a.ChatID] = a.At
		}
		if len(sent) != chats+replies {
			t.Fatalf("%d messages arrived, want %d", len(sent), chats+replies)
		}
		span := sent[len(sent)-1].At.Sub(sent[0].At).Seconds()
		if share := float64(len(sent)-gate.MaxBurst) / w.setup.rate / span; share < 0.98 {
			t.Errorf("%.1f %% of the rate used in %.1f s", 100*share, span)
		}
	}, func(s *setup) { s.sim.Strict = telegramsim.DefaultLimits() })
}
