package setup_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tgspool/tgspool/internal/botapi"
	"github.com/tgspool/tgspool/internal/setup"
	"github.com/tgspool/tgspool/internal/telegramsim"
)

const (
	simToken = "4242:SETUP-SETUP-SETUP-SETUP-SETUP-SETUP"
	botID    = 4242
	owner    = 7_000_000_001
)

// telegram is a simulator with a client, inside of a bubble.
func telegram(t *testing.T) (*telegramsim.Sim, *botapi.Client) {
	t.Helper()
	sim := telegramsim.New(telegramsim.Options{Bots: []telegramsim.Bot{{Token: simToken, Username: "setup_bot"}}})
	t.Cleanup(sim.Close)
	return sim, client(t, sim, simToken)
}

func client(t *testing.T, sim *telegramsim.Sim, text string) *botapi.Client {
	t.Helper()
	token, err := botapi.ParseToken(text)
	if err != nil {
		t.Fatal(err)
	}
	c, err := botapi.NewClient(botapi.Config{Token: token, Transport: sim.Transport()})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func noTrouble(t *testing.T) func(*setup.Error) {
	return func(e *setup.Error) { t.Errorf("trouble: %v", e) }
}

func TestAwaitOwner_OnlyTheNonceCounts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sim, c := telegram(t)
		nonce := setup.Nonce()
		found := make(chan setup.Owner, 1)
		go func() {
			o, err := setup.AwaitOwner(t.Context(), c, nonce, noTrouble(t))
			if err != nil {
				t.Error(err)
			}
			found <- o
		}()
		sim.FeedText(1, 1, "/start")
		sim.FeedText(2, 2, "/start "+nonce[:21])
		sim.FeedText(3, 3, "/start "+nonce+"x")
		sim.FeedText(4, 4, nonce)
		sim.FeedText(-1005, 5, "/start "+nonce) // in a group, where all can read it
		synctest.Wait()
		select {
		case o := <-found:
			t.Fatalf("a stranger is the owner: %+v", o)
		case <-time.After(10 * time.Second):
		}
		sim.FeedText(owner, owner, "/start "+nonce)
		if o := <-found; o.ID != owner || o.Name == "" {
			t.Errorf("owner is %+v", o)
		}
		if n := sim.Pending(botID); n != 6 {
			t.Errorf("%d updates wait for the daemon, want all 6: none may be acknowledged over others", n)
		}
	})
}

func TestAwaitOwner_TakesItsOwnUpdateAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sim, c := telegram(t)
		nonce := setup.Nonce()
		go func() { // the link is opened while a long poll waits
			if sim.WaitParked(t.Context(), botID) == nil {
				sim.FeedText(owner, owner, "/start "+nonce)
				sim.FeedText(8, 8, "hello")
			}
		}()
		o, err := setup.AwaitOwner(t.Context(), c, nonce, noTrouble(t))
		if err != nil || o.ID != owner {
			t.Fatalf("owner is %+v, %v", o, err)
		}
		synctest.Wait()
		if n := sim.Pending(botID); n != 1 {
			t.Errorf("%d updates wait, want the stranger's", n)
		}
	})
}

func TestAwaitOwner_Faults(t *testing.T) {
	tests := []struct {
		name    string
		prepare func(*telegramsim.Sim)
		want    setup.Fault
	}{
		{"nobody comes", func(*telegramsim.Sim) {}, setup.FaultTime},
		{"offline all the time", func(s *telegramsim.Sim) { s.SetOffline(true) }, setup.FaultTime},
		{"the token is revoked", func(s *telegramsim.Sim) { s.RevokeToken(simToken) }, setup.FaultRefused},
		{"too many of others", func(s *telegramsim.Sim) {
			for n := range int64(120) {
				s.FeedText(n+1, n+1, "hello")
			}
		}, setup.FaultCrowded},
		{"somebody polls", func(s *telegramsim.Sim) {
			s.AddFault(telegramsim.Fault{
				Method: "getUpdates", Kind: telegramsim.FaultCode, Code: 409,
				Body: "Conflict: terminated by other getUpdates request; make sure that only one bot instance is running",
			})
		}, setup.FaultConflict},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				sim, c := telegram(t)
				tt.prepare(sim)
				ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
				defer cancel()
				troubles := 0
				_, err := setup.AwaitOwner(ctx, c, setup.Nonce(), func(*setup.Error) { troubles++ })
				e, ok := errors.AsType[*setup.Error](err)
				if !ok || e.Fault != tt.want || e.Text == "" || e.Hint == "" {
					t.Errorf("got %#v, want fault %d with a hint", err, tt.want)
				}
				if troubles > 1 {
					t.Errorf("one outage was told of %d times", troubles)
				}
			})
		})
	}
}

func TestAwaitOwner_GoesOnAfterAnOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sim, c := telegram(t)
		sim.SetOffline(true)
		nonce := setup.Nonce()
		sim.FeedText(owner, owner, "/start "+nonce)
		o, err := setup.AwaitOwner(t.Context(), c, nonce, func(e *setup.Error) {
			if e.Fault != setup.FaultOffline {
				t.Errorf("trouble: %v", e)
			}
			sim.SetOffline(false)
		})
		if err != nil || o.ID != owner {
			t.Errorf("owner is %+v, %v", o, err)
		}
	})
}

func TestAsk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sim, c := telegram(t)
		if a, err := setup.Ask(t.Context(), c); err != nil || a.ID != botID || a.Username != "setup_bot" {
			t.Errorf("account is %+v, %v", a, err)
		}
		for fault, other := range map[setup.Fault]func() *botapi.Client{
			setup.FaultRefused: func() *botapi.Client { return client(t, sim, "4243:NOBODY-NOBODY-NOBODY-NOBODY-NOBODY") },
			setup.FaultOffline: func() *botapi.Client { sim.SetOffline(true); return c },
		} {
			_, err := setup.Ask(t.Context(), other())
			sim.SetOffline(false)
			e, ok := errors.AsType[*setup.Error](err)
			if !ok || e.Fault != fault || e.Hint == "" {
				t.Errorf("got %#v, want fault %d", err, fault)
			}
		}
	})
}

func TestNonce(t *testing.T) {
	seen := map[string]bool{}
	for range 1000 {
		n := setup.Nonce()
		if len(n) != 22 || seen[n] {
			t.Fatalf("nonce %q", n)
		}
		seen[n] = true
	}
	if got, want := setup.Link("my_bot", "abc"), "https://t.me/my_bot?start=abc"; got != want {
		t.Errorf("link is %s", got)
	}
}

func TestQR(t *testing.T) {
	text, err := setup.QR(setup.Link("a_bot_with_a_name_of_32_letters_", setup.Nonce()))
	if err != nil {
		t.Fatal(err)
	}
	rows := 0
	for _, line := range splitLines(text) {
		rows++
		if n := len([]rune(line)) - len([]rune("\x1b[30;107m\x1b[0m")); n > 78 {
			t.Errorf("a line of %d columns fits no terminal", n)
		}
	}
	if rows < 15 || rows > 24 {
		t.Errorf("%d rows", rows)
	}
	if _, err := setup.QR(strings.Repeat("x", 5000)); err == nil {
		t.Error("no code holds that much")
	}
}
