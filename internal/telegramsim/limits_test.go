package telegramsim_test

import (
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tgspool/tgspool/internal/telegramsim"
)

// sendTo sends one message and returns retry_after, 0 when it passed.
func sendTo(t *testing.T, s *telegramsim.Sim, chat int64) int {
	t.Helper()
	got := call(t, s, "sendMessage", args{"chat_id": chat, "text": "x"})
	if got.OK {
		return 0
	}
	after := got.Parameters.RetryAfter
	if got.Status != 429 || after < 1 || got.Header.Get("Retry-After") != strconv.Itoa(after) {
		t.Fatalf("got %d %q, %+v, header %q", got.Status, got.Description, got.Parameters, got.Header.Get("Retry-After"))
	}
	return after
}

func TestChatLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSim(t, telegramsim.Options{Strict: telegramsim.DefaultLimits()})
		for range 3 {
			if after := sendTo(t, s, 5); after != 0 {
				t.Fatalf("a short burst was refused for %d s", after)
			}
		}
		want := []int{1, 2, 4, 8} // ignoring the wait makes it grow
		for i, w := range want {
			if after := sendTo(t, s, 5); after != w {
				t.Fatalf("refusal %d asks for %d s, want %d", i+1, after, w)
			}
		}
		if sendTo(t, s, 6) != 0 {
			t.Error("another chat is refused too")
		}
		time.Sleep(8 * time.Second)
		if after := sendTo(t, s, 5); after != 0 {
			t.Errorf("after the wait it is still refused for %d s", after)
		}
		for range 10 {
			time.Sleep(time.Second)
			if after := sendTo(t, s, 5); after != 0 {
				t.Errorf("one a second is refused for %d s", after)
			}
		}
	})
}

func TestGroupLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSim(t, telegramsim.Options{Strict: telegramsim.DefaultLimits()})
		passed := 0
		for range 60 {
			if sendTo(t, s, groupID) != 0 {
				break
			}
			passed++
			time.Sleep(time.Second)
		}
		if passed < 20 || passed > 31 {
			t.Errorf("%d messages passed at one a second, want about 30: 20 and one every 3 s", passed)
		}
	})
}

func TestBotLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSim(t, telegramsim.Options{Strict: telegramsim.DefaultLimits()})
		passed := 0
		for chat := range int64(40) {
			if sendTo(t, s, 1000+chat) == 0 {
				passed++
			}
		}
		if passed != 30 {
			t.Errorf("%d messages to as many chats passed at once, want 30", passed)
		}
	})
}

func TestAlbumsCountEachPart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSim(t, telegramsim.Options{Strict: &telegramsim.Limits{ChatGap: time.Second, ChatBurst: 3}})
		photo := args{"type": "photo", "media": "https://p.invalid/x"}
		in := args{"chat_id": 5, "media": []args{photo, photo, photo}}
		must[[]message](t, s, "sendMediaGroup", in)
		if got := call(t, s, "sendMediaGroup", in); got.Parameters.RetryAfter != 3 {
			t.Errorf("a second album is asked to wait %d s, want 3", got.Parameters.RetryAfter)
		}
	})
}

func TestShortWaitsAreAbsorbed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSim(t, telegramsim.Options{Strict: &telegramsim.Limits{ChatGap: 5 * time.Second, ChatBurst: 1, Absorb: 8 * time.Second}})
		start := time.Now()
		for i := range 3 {
			if after := sendTo(t, s, 5); after != 0 {
				t.Fatalf("message %d was refused for %d s", i, after)
			}
		}
		if took := time.Since(start); took < 10*time.Second || took > 11*time.Second {
			t.Errorf("three messages took %s, want 10s: slow, and none refused", took)
		}
	})
}

func TestNoLimitsUnlessStrict(t *testing.T) {
	s := newSim(t, telegramsim.Options{})
	for range 200 {
		if sendTo(t, s, 5) != 0 {
			t.Fatal("refused without limits")
		}
	}
}
