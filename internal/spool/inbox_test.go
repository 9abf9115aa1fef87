package spool_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tgspool/tgspool/internal/spool"
)

func reply(chat, text string) spool.NewJob {
	j := message(chat, text)
	j.Origin = "handler:echo"
	return j
}

func TestInbox_HandledAndItsJobsAreOne(t *testing.T) {
	bubble(t, limits(), func(t *testing.T, f *fixture) {
		if taken := f.intake(text(500, 1)); taken.Stored != 1 {
			t.Fatalf("taken %+v", taken)
		}
		l := f.lease(time.Minute)
		if l == nil || l.State != spool.UpdateLeased || l.Attempts != 1 || l.ChatID != 1 {
			t.Fatalf("lease %+v", l)
		}
		out, err := f.bot.Handled(t.Context(), l, spool.Handling{Jobs: []spool.NewJob{reply("1", "a"), reply("1", "b")}})
		if err != nil || len(out) != 2 || *out[0].Job.DedupeKey != "reply:500:1" || *out[1].Job.DedupeKey != "reply:500:2" {
			t.Fatalf("handled: %+v %v", out, err)
		}
		u, err := f.bot.Update(l.Seq)
		if err != nil || u.State != spool.UpdateHandled || len(u.Jobs) != 2 || u.Jobs[1] != out[1].Job.ID {
			t.Errorf("update: %+v %v", u, err)
		}
		if out[0].Job.Lane != spool.Interactive {
			t.Errorf("lane %s", out[0].Job.Lane)
		}
		if _, err := f.bot.Handled(t.Context(), l, spool.Handling{}); !errors.Is(err, spool.ErrLeaseLost) {
			t.Errorf("handled twice: %v", err)
		}
		page, err := f.bot.Jobs(spool.JobFilter{Key: "reply:500:2"})
		if err != nil || len(page.Items) != 1 || page.Items[0].ID != out[1].Job.ID {
			t.Errorf("by key: %+v %v", page, err)
		}
	})
}

func TestInbox_SameIDIsOneUpdate(t *testing.T) {
	bubble(t, limits(), func(t *testing.T, f *fixture) {
		a := f.intake(text(500, 1), text(501, 1), text(500, 1))
		f.reopen()
		b := f.intake(text(500, 1), text(3, 1))
		if a != (spool.Taken{Stored: 2, Duplicates: 1}) || b != (spool.Taken{Stored: 1, Duplicates: 1}) {
			t.Errorf("taken %+v, then %+v", a, b)
		}
	})
}

func TestInbox_AnIDIsRememberedAsLongAsItsUpdate(t *testing.T) {
	bubble(t, limits(), func(t *testing.T, f *fixture) {
		f.intake(text(500, 1))
		if _, err := f.bot.Handled(t.Context(), f.lease(time.Minute), spool.Handling{}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(49 * time.Hour)
		if taken := f.intake(text(500, 1)); taken.Duplicates != 1 {
			t.Errorf("after 49 h: %+v", taken)
		}
		time.Sleep(26 * time.Hour)
		synctest.Wait()
		if taken := f.intake(text(500, 1)); taken.Stored != 1 {
			t.Errorf("after retention: %+v", taken)
		}
	})
}

func TestInbox_OffsetIsPartOfTheBatch(t *testing.T) {
	bubble(t, limits(), func(t *testing.T, f *fixture) {
		if _, err := f.bot.Intake(t.Context(), spool.Batch{Updates: []spool.NewUpdate{text(9, 1)}, Offset: 10, SetOffset: true}); err != nil {
			t.Fatal(err)
		}
		f.reopen()
		if got := f.bot.Offset(); got != 10 {
			t.Errorf("offset %d", got)
		}
		if _, err := f.bot.Intake(t.Context(), spool.Batch{Offset: 4, SetOffset: true}); err != nil {
			t.Fatal(err)
		}
		if got := f.bot.Offset(); got != 4 {
			t.Errorf("offset %d: it may move down when Telegram restarts its ids", got)
		}
	})
}

func TestInbox_MalformedIsKeptOnceAndBlocksNobody(t *testing.T) {
	bubble(t, limits(), func(t *testing.T, f *fixture) {
		bad := spool.NewUpdate{Raw: []byte("\xff not json"), Error: "no update_id"}
		first, again := f.intake(bad, text(1, 1)), f.intake(bad)
		if first != (spool.Taken{Stored: 1, Malformed: 1}) || again != (spool.Taken{Duplicates: 1}) {
			t.Errorf("taken %+v, then %+v", first, again)
		}
		page, err := f.bot.Updates(spool.UpdateFilter{State: spool.UpdateDead})
		if err != nil || len(page.Items) != 1 || page.Items[0].UpdateID != nil || *page.Items[0].Error != "no update_id" {
			t.Fatalf("dead: %+v %v", page, err)
		}
		if !json.Valid(page.Items[0].Raw) {
			t.Errorf("shown as %s, which is no JSON", page.Items[0].Raw)
		}
		if l := f.lease(time.Minute); l == nil || *l.UpdateID != 1 {
			t.Errorf("the neighbour: %+v", l)
		}
	})
}

func TestInbox_OneOfAKeyAtATimeOldestFirst(t *testing.T) {
	bubble(t, limits(), func(t *testing.T, f *fixture) {
		f.intake(text(1, 100), text(2, 100), text(3, 200))
		a, b := f.lease(time.Minute), f.lease(time.Minute)
		if *a.UpdateID != 1 || *b.UpdateID != 3 {
			t.Fatalf("leased %d and %d", *a.UpdateID, *b.UpdateID)
		}
		if c := f.lease(time.Hour); c != nil {
			t.Fatalf("leased %d beside its predecessor", *c.UpdateID)
		}
		retry := spool.Failure{State: spool.UpdateOpen, Error: "exit 1", RetryAt: time.Now().Add(time.Minute)}
		if err := f.bot.FailUpdate(t.Context(), a, retry); err != nil {
			t.Fatal(err)
		}
		f.reopen()
		if c := f.lease(30 * time.Second); c == nil || *c.UpdateID != 3 || c.Attempts != 2 {
			t.Fatalf("after the restart: %+v", c)
		}
		c := f.lease(2 * time.Minute)
		if c == nil || *c.UpdateID != 1 || c.Attempts != 2 {
			t.Fatalf("the failed one comes first: %+v", c)
		}
		if err := f.bot.FailUpdate(t.Context(), c, spool.Failure{State: spool.UpdateDead, Error: "exit 65", Output: "half"}); err != nil {
			t.Fatal(err)
		}
		if c := f.lease(time.Minute); c == nil || *c.UpdateID != 2 {
			t.Fatalf("behind the dead one: %+v", c)
		}
	})
}

func TestInbox_GiveBackCountsNoAttempt(t *testing.T) {
	bubble(t, limits(), func(t *testing.T, f *fixture) {
		f.intake(text(1, 100))
		for range 10 {
			l := f.lease(time.Minute)
			if l.Attempts != 1 {
				t.Fatalf("attempt %d", l.Attempts)
			}
			if err := f.bot.FailUpdate(t.Context(), l, spool.Failure{State: spool.UpdateOpen, GiveBack: true}); err != nil {
				t.Fatal(err)
			}
		}
	})
}

func TestInbox_StaleQueriesExpire(t *testing.T) {
	bubble(t, limits(), func(t *testing.T, f *fixture) {
		u := text(1, 100)
		u.StaleAt = time.Now().Add(150 * time.Second)
		f.intake(u, text(2, 100))
		time.Sleep(151 * time.Second)
		if l := f.lease(time.Minute); *l.UpdateID != 2 {
			t.Errorf("leased %d", *l.UpdateID)
		}
		if got, err := f.bot.UpdateByID(1); err != nil || got.State != spool.UpdateExpired {
			t.Errorf("the stale one: %+v %v", got, err)
		}
	})
}

func TestInbox_ReplayKeepsItsJobsUnlessFresh(t *testing.T) {
	bubble(t, limits(), func(t *testing.T, f *fixture) {
		f.intake(text(500, 1))
		handle := func() []spool.Queued {
			out, err := f.bot.Handled(t.Context(), f.lease(time.Minute), spool.Handling{Jobs: []spool.NewJob{reply("1", "a")}})
			if err != nil {
				t.Fatal(err)
			}
			return out
		}
		first := handle()[0]
		if _, err := f.bot.Replay(t.Context(), 1, false); err != nil {
			t.Fatal(err)
		}
		if again := handle()[0]; !again.Duplicate || again.Job.ID != first.Job.ID {
			t.Errorf("replayed: %+v", again)
		}
		if _, err := f.bot.Replay(t.Context(), 1, true); err != nil {
			t.Fatal(err)
		}
		if fresh := handle()[0]; fresh.Duplicate || fresh.Job.ID == first.Job.ID {
			t.Errorf("fresh: %+v", fresh)
		}
	})
}

func TestInbox_RoutesChangeOverARestart(t *testing.T) {
	bubble(t, limits(), func(t *testing.T, f *fixture) {
		f.intake(text(1, 100), text(2, 100), text(3, 200))
		f.cfg.Routes = "v2"
		f.cfg.Route = func(raw []byte) spool.Route {
			if strings.Contains(string(raw), `"update_id":3`) {
				return spool.Route{Ignore: "unmatched"}
			}
			return spool.Route{Handler: "other"}
		}
		f.reopen()
		if l := f.lease(time.Minute); l != nil {
			t.Errorf("the old route still gets %d", *l.UpdateID)
		}
		l, err := f.bot.ClaimUpdate(t.Context(), "other")
		if err != nil || *l.UpdateID != 1 {
			t.Errorf("the new route: %+v %v", l, err)
		}
		if u, err := f.bot.UpdateByID(3); err != nil || u.State != spool.UpdateIgnored || *u.Error != "unmatched" {
			t.Errorf("the ignored one: %+v %v", u, err)
		}
	})
}

func TestInbox_UpdatesTellOfTheirChats(t *testing.T) {
	bubble(t, limits(), func(t *testing.T, f *fixture) {
		f.send("1", "waits")
		gone := text(1, 1)
		gone.Active, gone.Gone = false, "the user blocked the bot"
		f.intake(gone)
		f.wantState(1, spool.Dead)
		if _, err := f.bot.Enqueue(t.Context(), message("1", "x")); !errors.Is(err, spool.ErrChatInactive) {
			t.Errorf("posted to a gone chat: %v", err)
		}
		f.intake(text(2, 1))
		f.send("1", "back again")

		f.send("-4444", "old group")
		moved := text(3, -4444)
		moved.MigrateTo = -1001557000000
		f.intake(moved)
		for want := range 2 {
			c := f.mustClaim()
			if want == 1 && c.Chat != "-1001557000000" {
				t.Errorf("goes to %s", c.Chat)
			}
			f.done(c)
		}
	})
}

func TestInbox_AHandlersCallToAGoneChatIsStoredDead(t *testing.T) {
	bubble(t, limits(), func(t *testing.T, f *fixture) {
		f.intake(text(1, 5))
		l := f.lease(time.Minute)
		f.send("1", "a")
		f.settle(f.mustClaim(), spool.Verdict{State: spool.Dead, ChatGone: "Forbidden: bot was blocked by the user"})
		out, err := f.bot.Handled(t.Context(), l, spool.Handling{Jobs: []spool.NewJob{reply("1", "x"), reply("5", "y")}})
		if err != nil || out[0].Job.State != spool.Dead || out[1].Job.State != spool.Pending {
			t.Errorf("handled: %+v %v", out, err)
		}
	})
}

func TestInbox_BigUpdatesAndPages(t *testing.T) {
	bubble(t, limits(), func(t *testing.T, f *fixture) {
		big := text(1, 1)
		big.Raw = fmt.Appendf(nil, `{"update_id":1,"message":{"text":%q}}`, strings.Repeat("ж", 2_500_000))
		f.intake(big)
		for i := range 250 {
			f.intake(text(int64(i+2), int64(i+2)))
		}
		l := f.lease(time.Minute)
		if string(l.Raw) != string(big.Raw) {
			t.Error("5 MB came back changed")
		}
		seen, after := 0, int64(0)
		for {
			page, err := f.bot.Updates(spool.UpdateFilter{After: after})
			if err != nil {
				t.Fatal(err)
			}
			for _, u := range page.Items {
				if u.Seq <= after {
					t.Fatalf("seq %d after %d", u.Seq, after)
				}
				after = u.Seq
			}
			if seen += len(page.Items); page.Next == 0 {
				break
			}
			after = page.Next
		}
		if seen != 251 {
			t.Errorf("%d updates on all pages", seen)
		}
	})
}

func TestInbox_AStaleQueryExpiresBehindAHandlerThatIsAway(t *testing.T) {
	bubble(t, limits(), func(t *testing.T, f *fixture) {
		u := text(5, 1)
		u.StaleAt = time.Now().Add(150 * time.Second)
		f.intake(u)
		time.Sleep(151 * time.Second)
		synctest.Wait()
		if got, err := f.bot.Update(1); err != nil || got.State != spool.UpdateExpired {
			t.Errorf("after its time: %+v %v", got, err)
		}
	})
}

// TestReplay_AnswersAfterAnApology: what a user was told when an update died isn't
// taken for the handler's answer when a replay goes well; a further replay of that
// makes no second one.
func TestReplay_AnswersAfterAnApology(t *testing.T) {
	bubble(t, limits(), func(t *testing.T, f *fixture) {
		f.intake(text(500, 1))
		seq := int64(1)
		sorry, answer := message("1", "sorry"), message("1", "the answer")
		if err := f.bot.FailUpdate(t.Context(), f.lease(time.Second), spool.Failure{State: spool.UpdateDead, Jobs: []spool.NewJob{sorry}}); err != nil {
			t.Fatal(err)
		}
		f.done(f.mustClaim())
		var answered int64
		for i := range 3 {
			if _, err := f.bot.Replay(t.Context(), seq, false); err != nil {
				t.Fatal(err)
			}
			l := f.lease(time.Second)
			if i == 1 {
				if err := f.bot.FailUpdate(t.Context(), l, spool.Failure{State: spool.UpdateDead, Jobs: []spool.NewJob{sorry}}); err != nil {
					t.Fatal(err)
				}
				continue
			}
			out, err := f.bot.Handled(t.Context(), l, spool.Handling{Jobs: []spool.NewJob{answer}})
			if err != nil {
				t.Fatal(err)
			}
			if i == 0 && (out[0].Duplicate || !strings.Contains(string(f.job(out[0].Job.ID).Params), "the answer")) {
				t.Errorf("the answer is taken for %+v", out[0])
			}
			if i == 0 {
				answered = out[0].Job.ID
			} else if !out[0].Duplicate || out[0].Job.ID != answered {
				t.Errorf("a second answer: %+v", out[0])
			}
		}
		if u, err := f.bot.Update(seq); err != nil || len(u.Jobs) != 3 {
			t.Errorf("jobs %v, %v", u.Jobs, err)
		}
	})
}
