package telegramsim_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tgspool/tgspool/internal/botapi"
	"github.com/tgspool/tgspool/internal/telegramsim"
)

// pollResult is the end of a poll made in the background.
type pollResult struct {
	reply
	err  error
	took time.Duration
}

// poll makes a poll in the background.
func poll(ctx context.Context, s *telegramsim.Sim, in args) <-chan pollResult {
	out := make(chan pollResult, 1)
	go func() {
		start := time.Now()
		r, err := roundTrip(ctx, s.Transport(), "https://bot.invalid", token, "getUpdates", in)
		out <- pollResult{r, err, time.Since(start)}
	}()
	return out
}

func TestLongPollEndsEmptyAfterFiftySeconds(t *testing.T) {
	for _, asked := range []int{50, 600} {
		synctest.Test(t, func(t *testing.T) {
			s := newSim(t, telegramsim.Options{})
			got := <-poll(t.Context(), s, args{"timeout": asked})
			if got.err != nil || string(got.Result) != "[]" || got.took != 50*time.Second {
				t.Fatalf("timeout %d: got %s after %s, %v; want [] after 50s", asked, got.Result, got.took, got.err)
			}
		})
	}
}

func TestLongPollAnswersSoonAfterAnUpdate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSim(t, telegramsim.Options{})
		parked := poll(t.Context(), s, args{"timeout": 50})
		time.Sleep(20 * time.Second)
		id := s.FeedText(5, 5, "hello")
		got := <-parked
		if got.took < 20*time.Second || got.took > 20*time.Second+5*time.Millisecond {
			t.Errorf("the poll took %s, want 20 s and a moment", got.took)
		}
		if !strings.Contains(string(got.Result), "hello") {
			t.Errorf("got %s, want update %d", got.Result, id)
		}
	})
}

func TestOffsets(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSim(t, telegramsim.Options{})
		s.JumpUpdateID(0, 1000)
		for range 5 {
			s.FeedText(5, 5, "x") // 1000 … 1004
		}
		steps := []struct {
			in      args
			want    []int64
			pending int
		}{
			{args{}, []int64{1000, 1001, 1002, 1003, 1004}, 5},
			{args{"offset": 0, "limit": 2}, []int64{1000, 1001}, 5},
			{args{"offset": 1001, "limit": 1000}, []int64{1001, 1002, 1003, 1004}, 4}, // confirms before answering
			{args{"offset": 1016}, []int64{1001, 1002, 1003, 1004}, 4},                // beyond tail+10: from the head
			{args{"offset": -200_000_000}, []int64{1001, 1002, 1003, 1004}, 4},
			{args{"offset": 1}, []int64{1001, 1002, 1003, 1004}, 4},
			{args{"offset": "abc"}, []int64{1001, 1002, 1003, 1004}, 4}, // no number is 0
			{args{"offset": -2}, []int64{1003, 1004}, 2},                // drops all but the newest two
			{args{"offset": 1015}, []int64{}, 0},                        // tail+10 still counts
		}
		for _, step := range steps {
			time.Sleep(5 * time.Second) // away from the anti-spin rules
			got := updates(t, s, step.in)
			if !slices.Equal(got, step.want) || s.Pending(0) != step.pending {
				t.Fatalf("%v: got %v with %d pending, want %v with %d", step.in, got, s.Pending(0), step.want, step.pending)
			}
		}
	})
}

func TestSameOffsetAgainIsSlowedDown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSim(t, telegramsim.Options{})
		if got := <-poll(t.Context(), s, args{"offset": 7}); got.took != 0 {
			t.Errorf("the first empty poll took %s, want 0", got.took)
		}
		if got := <-poll(t.Context(), s, args{"offset": 7}); got.took != 3*time.Second {
			t.Errorf("the same offset again took %s, want 3s", got.took)
		}
		time.Sleep(time.Minute)
		s.JumpUpdateID(0, 10)
		s.FeedText(5, 5, "a")
		s.FeedText(5, 5, "b")
		if got := updates(t, s, args{"offset": 7}); len(got) != 2 {
			t.Errorf("got %v, want both", got)
		}
		time.Sleep(400 * time.Millisecond)
		if got := updates(t, s, args{"offset": 7}); len(got) != 1 {
			t.Errorf("within half a second got %v, want one", got)
		}
	})
}

func TestNewcomerWins(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const want = "Conflict: terminated by other getUpdates request; make sure that only one bot instance is running"
		s := newSim(t, telegramsim.Options{})
		first := poll(t.Context(), s, args{"timeout": 50})
		time.Sleep(10 * time.Second)
		second := poll(t.Context(), s, args{"timeout": 50})
		if got := <-first; got.Status != 409 || got.Description != want || got.took != 10*time.Second {
			t.Fatalf("the parked poll got %d %q after %s", got.Status, got.Description, got.took)
		}
		third := poll(t.Context(), s, args{"timeout": 50})
		if got := <-second; got.Status != 409 || got.took != 3*time.Second {
			t.Fatalf("a conflict at once after another got %d after %s, want 409 after 3s", got.Status, got.took)
		}
		if got := <-third; got.Status != 200 || got.took != 50*time.Second {
			t.Fatalf("the newest got %d after %s, want 200 after 50s", got.Status, got.took)
		}
	})
}

func TestNewcomerWithUpdatesLeavesTheParkedOneAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSim(t, telegramsim.Options{})
		s.JumpUpdateID(0, 100)
		parked := poll(t.Context(), s, args{"offset": 100, "timeout": 50})
		synctest.Wait()
		s.FeedText(5, 5, "for whoever looks first")
		newcomer := poll(t.Context(), s, args{"offset": 99, "timeout": 50})
		if got := <-newcomer; got.Status != 200 {
			t.Errorf("the newcomer got %d %s", got.Status, got.Description)
		}
		if got := <-parked; got.Status != 200 {
			t.Errorf("the parked poll got %d %s", got.Status, got.Description)
		}
	})
}

func TestPollWhileWebhookIsSet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSim(t, telegramsim.Options{Push: hookFunc(nil)})
		parked := poll(t.Context(), s, args{"timeout": 50})
		synctest.Wait()
		must[bool](t, s, "setWebhook", args{"url": "http://hook.invalid/x"})
		if got := <-parked; got.Status != 409 || got.Description != "Conflict: terminated by setWebhook request" {
			t.Errorf("the parked poll got %d %q", got.Status, got.Description)
		}
		time.Sleep(5 * time.Second)
		refused(t, s, "getUpdates", args{}, 409,
			"Conflict: can't use getUpdates method while webhook is active; use deleteWebhook to delete the webhook first")
		must[bool](t, s, "deleteWebhook", args{})
		must[[]json.RawMessage](t, s, "getUpdates", args{})
		s.Close()
	})
}

func TestAllowedUpdatesFilterWhenMade(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSim(t, telegramsim.Options{})
		reaction := json.RawMessage(`{"message_reaction":{"chat":{"id":-1001,"type":"group"},"message_id":1}}`)
		if id := s.Feed(0, reaction); id != 0 {
			t.Errorf("a kind outside the default set was taken as %d", id)
		}
		early := s.FeedText(5, 5, "before the filter")
		must[[]json.RawMessage](t, s, "getUpdates", args{"allowed_updates": []string{"Message_Reaction", "no_such_kind"}})
		if id := s.FeedText(5, 5, "not asked for"); id != 0 {
			t.Errorf("a message was taken as %d although only reactions were asked for", id)
		}
		late := s.Feed(0, reaction)
		time.Sleep(time.Second)
		if got := updates(t, s, args{"allowed_updates": "broken ["}); !slices.Equal(got, []int64{early, late}) {
			t.Errorf("got %v, want %v: older updates stay, a broken list changes nothing", got, []int64{early, late})
		}
		must[[]json.RawMessage](t, s, "getUpdates", args{"offset": 1, "allowed_updates": []string{}})
		if s.FeedText(5, 5, "default again") == 0 {
			t.Error("an empty list did not bring the default set back")
		}
	})
}

func TestRetentionByKind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSim(t, telegramsim.Options{})
		s.Feed(0, json.RawMessage(`{"inline_query":{"id":"1","from":{"id":5},"query":""}}`))
		s.Feed(0, json.RawMessage(`{"callback_query":{"id":"2","from":{"id":5},"data":"x"}}`))
		s.Feed(0, json.RawMessage(`{"chosen_inline_result":{"result_id":"3","from":{"id":5},"query":""}}`))
		s.FeedText(5, 5, "text")
		start := time.Now()
		for _, step := range []struct {
			at   time.Duration
			left int
		}{
			{29 * time.Second, 4},
			{31 * time.Second, 3},
			{149 * time.Second, 3},
			{151 * time.Second, 2},
			{601 * time.Second, 1},
			{24*time.Hour - time.Second, 1},
			{24*time.Hour + time.Second, 0},
		} {
			time.Sleep(step.at - time.Since(start))
			if got := s.Pending(0); got != step.left {
				t.Errorf("after %s %d are left, want %d", step.at, got, step.left)
			}
		}
	})
}

func TestIDsThatStartAnewFurtherDown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSim(t, telegramsim.Options{})
		s.JumpUpdateID(0, 727_334_708)
		s.FeedText(5, 5, "last of an era")
		s.JumpUpdateID(0, 117_314_199)
		s.FeedText(5, 5, "first of the next")
		if got := updates(t, s, args{}); !slices.Equal(got, []int64{727_334_708}) {
			t.Fatalf("got %v: one answer holds ascending ids only", got)
		}
		time.Sleep(time.Minute)
		for range 2 { // a client that keeps its old offset sees the update again and again
			if got := updates(t, s, args{"offset": 727_334_709}); !slices.Equal(got, []int64{117_314_199}) {
				t.Fatalf("got %v, want the first of the next era", got)
			}
			time.Sleep(time.Minute)
		}
		if got := updates(t, s, args{"offset": 117_314_200}); len(got) != 0 {
			t.Errorf("got %v after the right offset, want nothing", got)
		}
	})
}

func TestAnswersAreCutAtFourMiB(t *testing.T) {
	s := newSim(t, telegramsim.Options{})
	big := `{"message":{"message_id":1,"chat":{"id":5},"date":1,"text":"` + strings.Repeat("x", 1<<20) + `"}}`
	for range 6 {
		s.Feed(0, json.RawMessage(big))
	}
	if got := updates(t, s, args{}); len(got) != 3 {
		t.Errorf("got %d updates of 1 MiB in one answer, want 3", len(got))
	}
	s.Feed(0, json.RawMessage(`{"message":{"text":"`+strings.Repeat("x", 5<<20)+`"}}`))
	if got := updates(t, s, args{"offset": -1}); len(got) != 1 {
		t.Errorf("an update larger than an answer was not given out alone: %v", got)
	}
}

func TestMalformedElementsComeThrough(t *testing.T) {
	s := newSim(t, telegramsim.Options{})
	for _, raw := range []string{`"text"`, `{"update_id":"x","message":{}}`, `[1]`, `{"update_id":7}`, `{"update_id":9223372036854775808}`} {
		if s.Feed(0, json.RawMessage(raw)) == 0 {
			t.Errorf("%s was dropped", raw)
		}
	}
	list := must[[]json.RawMessage](t, s, "getUpdates", args{})
	if len(list) == 0 || string(list[0]) != `"text"` {
		t.Errorf("got %s", list)
	}
	for _, id := range []int64{7, 7, 3} { // given ids stay as they are
		if got := s.Feed(0, json.RawMessage(`{"update_id":`+string(rune('0'+id))+`,"message":{"text":"x"}}`)); got != id {
			t.Errorf("update_id %d became %d", id, got)
		}
	}
}

func TestPollThatTheCallerLeaves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSim(t, telegramsim.Options{})
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		got := <-poll(ctx, s, args{"timeout": 50})
		var phase *botapi.PhaseError
		if !errors.As(got.err, &phase) || phase.At != botapi.PhaseWritten || phase.Written == 0 {
			t.Fatalf("got %v, want a PhaseError after writing", got.err)
		}
		if !errors.Is(got.err, context.DeadlineExceeded) {
			t.Errorf("got %v, want the context's error inside", got.err)
		}
		s.FeedText(5, 5, "not lost")
		if got := updates(t, s, args{}); len(got) != 1 {
			t.Errorf("the update was lost with the connection: %v", got)
		}
	})
}

func TestPollEndsWithTokenAndSimulator(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSim(t, telegramsim.Options{})
		parked := poll(t.Context(), s, args{"timeout": 50})
		synctest.Wait()
		s.RevokeToken(token)
		if got := <-parked; got.Status != 401 {
			t.Errorf("after the token was revoked got %d", got.Status)
		}
		refused(t, s, "getMe", args{}, 401, "Unauthorized")
		s.RestoreToken(token)
		parked = poll(t.Context(), s, args{"timeout": 50})
		synctest.Wait()
		s.Close()
		if got := <-parked; got.Status != 200 || string(got.Result) != "[]" {
			t.Errorf("at the end got %d %s, want a normal empty answer", got.Status, got.Result)
		}
		if polls := s.Polls(); len(polls) != 2 || polls[0].Status != 401 || polls[1].Status != 200 {
			t.Errorf("polls on record: %+v", polls)
		}
	})
}
