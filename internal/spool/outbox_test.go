package spool_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tgspool/tgspool/internal/spool"
)

func TestOutbox_OneMessageGoesThrough(t *testing.T) {
	bubble(t, limits(), func(t *testing.T, f *fixture) {
		id := f.send("42", "hello")
		f.wantState(id, spool.Pending)
		c := f.mustClaim()
		if c.ID != id || c.Chat != "42" || c.Attempts != 1 || c.State != spool.Running {
			t.Fatalf("claimed %+v", c)
		}
		f.wantState(id, spool.Running)
		f.done(c)
		j := f.wantState(id, spool.Done)
		if string(j.Result) != `{"message_id":1}` || string(j.Params) != `{"chat_id":"42","text":"hello"}` || string(j.SentChatID) != "42" {
			t.Errorf("job at its end: %+v", j)
		}
	})
}

func TestOutbox_ParkedClaimIsOneCommitWithEnqueue(t *testing.T) {
	bubble(t, limits(), func(t *testing.T, f *fixture) {
		got := make(chan *spool.Claim)
		go func() { c, _ := f.bot.Claim(f.t.Context()); got <- c }()
		synctest.Wait()
		id := f.send("42", "hello")
		c := <-got
		if c.ID != id {
			t.Fatalf("claimed %d, want %d", c.ID, id)
		}
		f.done(c)
	})
}

func TestOutbox_ChatGapAndOneInFlight(t *testing.T) {
	bubble(t, limits(), func(t *testing.T, f *fixture) {
		for i := range 3 {
			f.send("42", fmt.Sprint(i))
		}
		first := f.mustClaim()
		if c := f.claim(time.Hour); c != nil {
			t.Fatalf("job %d claimed while job %d of the same chat is in flight", c.ID, first.ID)
		}
		end := time.Now()
		f.done(first)
		for want := int64(2); want <= 3; want++ {
			c := f.mustClaim()
			if c.ID != want {
				t.Fatalf("claimed %d, want %d", c.ID, want)
			}
			if d := time.Since(end); d < 1050*time.Millisecond || d > 1060*time.Millisecond {
				t.Errorf("gap of %s, want 1.05s", d)
			}
			end = time.Now()
			f.done(c)
		}
	})
}

func TestOutbox_GroupWindowHoldsOverRestart(t *testing.T) {
	bubble(t, limits(), func(t *testing.T, f *fixture) {
		for i := range 25 {
			f.send("-100123", fmt.Sprint(i))
		}
		start := time.Now()
		var ends []time.Time
		for i := range 25 {
			c := f.mustClaim()
			if c.ID != int64(i+1) {
				t.Fatalf("claimed %d, want %d", c.ID, i+1)
			}
			f.done(c)
			ends = append(ends, time.Now())
			if i == 19 {
				f.reopen()
			}
		}
		for i := 20; i < 25; i++ {
			if d := ends[i].Sub(ends[i-20]); d < time.Minute {
				t.Errorf("messages %d and %d are %s apart: 21 in a minute", i-20, i, d)
			}
		}
		if d := time.Since(start); d > 70*time.Second {
			t.Errorf("took %s", d)
		}
	})
}

// TestOutbox_ChatTurnsOutToBeAChannel, and a group again: the head that waits
// learns of it.
func TestOutbox_ChatTurnsOutToBeAChannel(t *testing.T) {
	bubble(t, limits(), func(t *testing.T, f *fixture) {
		shows := func(id int64, kind string) {
			u := text(id, -100123)
			u.Chat.Type = kind
			f.intake(u)
			f.check()
		}
		for i := range 22 {
			f.send("-100123", fmt.Sprint(i))
		}
		for range 20 {
			f.done(f.mustClaim())
		}
		if c := f.claim(2 * time.Second); c != nil {
			t.Fatalf("job %d goes as the 21st in a minute", c.ID)
		}
		shows(1, "channel")
		if c := f.claim(time.Millisecond); c == nil {
			t.Fatal("a channel waits for the group's window")
		} else {
			f.done(c)
		}
		shows(2, "supergroup")
		if c := f.claim(2 * time.Second); c != nil {
			t.Errorf("job %d goes as the 22nd in a minute", c.ID)
		}
		f.done(f.mustClaim())
		f.check()
	})
}

func TestOutbox_PrivateChatsAreNotSlowedByAGroup(t *testing.T) {
	l := limits()
	l.ChatGap = 0
	bubble(t, l, func(t *testing.T, f *fixture) {
		for i := range 40 {
			f.send("-100123", fmt.Sprint("g", i))
			f.send("55", fmt.Sprint("p", i))
		}
		start, private := time.Now(), 0
		for private < 40 {
			c := f.mustClaim()
			f.done(c)
			if c.Chat == "55" {
				private++
			}
		}
		if d := time.Since(start); d > time.Second {
			t.Errorf("the private chat took %s", d)
		}
	})
}

func TestOutbox_WeightlessCallsKeepOrderButNotTheGap(t *testing.T) {
	bubble(t, limits(), func(t *testing.T, f *fixture) {
		f.send("42", "a")
		del := message("42", "")
		del.Method, del.Weight = "deleteMessage", 0
		f.enqueue(del)
		f.done(f.mustClaim())
		start := time.Now()
		if c := f.mustClaim(); c.Method != "deleteMessage" {
			t.Errorf("claimed %s", c.Method)
		}
		if d := time.Since(start); d > 10*time.Millisecond {
			t.Errorf("a delete waited %s for the gap", d)
		}
	})
}

func TestOutbox_RetryHoldsItsPlace(t *testing.T) {
	bubble(t, limits(), func(t *testing.T, f *fixture) {
		a, b, other := f.send("1", "a"), f.send("1", "b"), f.send("2", "other")
		c := f.mustClaim()
		if c.ID != a {
			t.Fatalf("claimed %d", c.ID)
		}
		f.settle(c, spool.Verdict{State: spool.Pending, RetryAt: time.Now().Add(time.Minute), Error: &spool.JobError{Class: "transient", At: time.Now()}})
		if c := f.mustClaim(); c.ID != other {
			t.Fatalf("claimed %d: other chats must go on", c.ID)
		} else {
			f.done(c)
		}
		f.reopen()
		start := time.Now()
		if c = f.claim(2 * time.Minute); c == nil || c.ID != a || c.Attempts != 2 {
			t.Fatalf("claimed %+v, want job %d again before job %d", c, a, b)
		}
		if d := time.Since(start); d < 59*time.Second {
			t.Errorf("came back after %s", d)
		}
		f.done(c)
		if c = f.mustClaim(); c.ID != b {
			t.Fatalf("claimed %d, want %d", c.ID, b)
		}
	})
}

func TestOutbox_GiveBackCountsNoAttempt(t *testing.T) {
	bubble(t, limits(), func(t *testing.T, f *fixture) {
		id := f.send("1", "a")
		for range 20 {
			f.settle(f.mustClaim(), spool.Verdict{State: spool.Pending, GiveBack: true})
		}
		if j := f.wantState(id, spool.Pending); j.Attempts != 0 {
			t.Errorf("%d attempts counted", j.Attempts)
		}
	})
}

func TestOutbox_UncertainDoesNotHoldUpThoseBehind(t *testing.T) {
	bubble(t, limits(), func(t *testing.T, f *fixture) {
		a, b := f.send("1", "a"), f.send("1", "b")
		f.settle(f.mustClaim(), spool.Verdict{State: spool.Uncertain, Reached: true})
		if c := f.mustClaim(); c.ID != b {
			t.Fatalf("claimed %d", c.ID)
		}
		f.wantState(a, spool.Uncertain)
	})
}

func TestOutbox_UncertainEndsWhenNobodyDecides(t *testing.T) {
	bubble(t, limits(), func(t *testing.T, f *fixture) {
		id := f.send("1", "a")
		f.settle(f.mustClaim(), spool.Verdict{State: spool.Uncertain, Reached: true})
		time.Sleep(71 * time.Hour)
		f.wantState(id, spool.Uncertain)
		time.Sleep(time.Hour + time.Second)
		synctest.Wait()
		if j := f.wantState(id, spool.Cancelled); j.LastError == nil || j.LastError.Class != "unknown_outcome" {
			t.Errorf("last error: %+v", j.LastError)
		}
	})
}

func TestOutbox_RunningAtStartIsAnUnknownOutcome(t *testing.T) {
	for _, c := range []struct {
		policy spool.Policy
		safe   bool
		want   spool.State
	}{
		{spool.PolicyHold, false, spool.Uncertain},
		{spool.PolicyHold, true, spool.Pending},
		{spool.PolicyResend, false, spool.Pending},
		{spool.PolicyResendMarked, false, spool.Pending},
		{spool.PolicyDrop, false, spool.Cancelled},
	} {
		bubble(t, limits(), func(t *testing.T, f *fixture) {
			j := message("1", "a")
			j.OnUncertain, j.SafeToRepeat, j.DedupeKey = c.policy, c.safe, "k"
			id := f.enqueue(j)[0].Job.ID
			f.mustClaim()
			f.reopen()
			got := f.wantState(id, c.want)
			if got.Attempts != 1 || got.LastError == nil || got.LastError.Class != "unknown_outcome" {
				t.Errorf("%+v: %+v %+v", c, got, got.LastError)
			}
			if q := f.enqueue(j)[0]; !q.Duplicate {
				t.Errorf("%+v: the key of a job that may have been sent was freed", c)
			}
			if next := f.claim(time.Minute); (next != nil) != (c.want == spool.Pending) {
				t.Errorf("%+v: claimed %+v", c, next)
			} else if next != nil && !next.MaybeSent {
				t.Errorf("%+v: the second attempt doesn't know of the first", c)
			}
		})
	}
}

func TestOutbox_RecoveryOpensTheChatForAnOlderJobToo(t *testing.T) {
	bubble(t, limits(), func(t *testing.T, f *fixture) {
		old := f.send("1", "old")
		if _, err := f.store.Cancel(t.Context(), old); err != nil {
			t.Fatal(err)
		}
		j := message("1", "running at the end")
		j.SafeToRepeat = true
		running := f.enqueue(j)[0].Job.ID
		f.mustClaim()
		if _, err := f.store.Retry(t.Context(), old); err != nil {
			t.Fatal(err)
		}
		f.reopen()
		for _, want := range []int64{old, running} {
			c := f.mustClaim()
			if c.ID != want {
				t.Fatalf("claimed %d, want %d", c.ID, want)
			}
			f.done(c)
		}
	})
}

func TestOutbox_DedupeKey(t *testing.T) {
	bubble(t, limits(), func(t *testing.T, f *fixture) {
		j := message("1", "a")
		j.DedupeKey = "door-open"
		first := f.enqueue(j)[0]
		second := f.enqueue(j)[0]
		if first.Duplicate || !second.Duplicate || first.Job.ID != second.Job.ID {
			t.Fatalf("first %+v, second %+v", first, second)
		}
		f.done(f.mustClaim())
		if q := f.enqueue(j)[0]; !q.Duplicate || q.Job.State != spool.Done {
			t.Errorf("after the end: %+v", q)
		}
		page, err := f.bot.Jobs(spool.JobFilter{Key: "door-open"})
		if err != nil || len(page.Items) != 1 || page.Items[0].ID != first.Job.ID {
			t.Errorf("by key: %+v %v", page, err)
		}
		time.Sleep(75 * time.Hour)
		synctest.Wait()
		if q := f.enqueue(j)[0]; q.Duplicate {
			t.Error("the key outlived its record")
		}
	})
}

func TestOutbox_EndsFreeTheKeyUnlessItMayHaveArrived(t *testing.T) {
	bubble(t, limits(), func(t *testing.T, f *fixture) {
		j := message("1", "a")
		j.DedupeKey = "k"
		f.enqueue(j)
		f.settle(f.mustClaim(), spool.Verdict{State: spool.Dead, Error: &spool.JobError{Class: "rejected"}})
		second := f.enqueue(j)[0]
		if second.Duplicate {
			t.Fatal("a dead job kept its key")
		}
		f.settle(f.mustClaim(), spool.Verdict{State: spool.Dead, MaybeSent: true})
		if q := f.enqueue(j)[0]; !q.Duplicate || q.Job.ID != second.Job.ID {
			t.Errorf("a job that may have arrived gave up its key: %+v", q)
		}
	})
}

func TestOutbox_NotBeforeAndExpiry(t *testing.T) {
	bubble(t, limits(), func(t *testing.T, f *fixture) {
		late, soon := message("1", "late"), message("1", "soon")
		late.NotBefore = time.Now().Add(time.Hour)
		soon.ExpiresAt = time.Now().Add(10 * time.Minute)
		lateID, soonID := f.enqueue(late)[0].Job.ID, f.enqueue(soon)[0].Job.ID
		f.reopen()
		time.Sleep(10*time.Minute + time.Second)
		synctest.Wait()
		f.wantState(soonID, spool.Expired)
		if c := f.claim(40 * time.Minute); c != nil {
			t.Fatalf("claimed job %d before its time", c.ID)
		}
		if c := f.claim(20 * time.Minute); c == nil || c.ID != lateID {
			t.Fatalf("claimed %+v, want job %d", c, lateID)
		}
	})
}

func TestOutbox_LaterJobsTakeTheirPlaceWhenDue(t *testing.T) {
	bubble(t, limits(), func(t *testing.T, f *fixture) {
		late := message("1", "late")
		late.NotBefore = time.Now().Add(time.Minute)
		lateID := f.enqueue(late)[0].Job.ID
		time.Sleep(30 * time.Second)
		block := f.send("1", "x")
		c := f.mustClaim()
		if c.ID != block {
			t.Fatalf("claimed %d", c.ID)
		}
		before := f.send("1", "accepted before the late one is due")
		time.Sleep(40 * time.Second)
		after := f.send("1", "accepted after that")
		f.done(c)
		for _, want := range []int64{before, lateID, after} {
			c := f.mustClaim()
			if c.ID != want {
				t.Fatalf("claimed %d, want %d", c.ID, want)
			}
			f.done(c)
		}
	})
}

func TestOutbox_HoldStopsTheExpiryClock(t *testing.T) {
	bubble(t, limits(), func(t *testing.T, f *fixture) {
		j := message("1", "a")
		j.ExpiresAt = time.Now().Add(10 * time.Minute)
		id := f.enqueue(j)[0].Job.ID
		time.Sleep(5 * time.Minute)
		if _, err := f.store.Hold(t.Context(), id); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Hour)
		f.wantState(id, spool.Held)
		if _, err := f.store.Release(t.Context(), id); err != nil {
			t.Fatal(err)
		}
		time.Sleep(4 * time.Minute)
		f.wantState(id, spool.Pending)
		time.Sleep(2 * time.Minute)
		f.wantState(id, spool.Expired)
	})
}

func TestOutbox_LanesAndTheLowerLanesShare(t *testing.T) {
	l := limits()
	l.ChatGap = 0
	bubble(t, l, func(t *testing.T, f *fixture) {
		for i := range 40 {
			for _, lane := range spool.Lanes() {
				j := message(fmt.Sprint(1000*len(lane)+i), "x")
				j.Lane = lane
				f.enqueue(j)
			}
		}
		count := map[spool.Lane]int{}
		for range 40 {
			c := f.mustClaim()
			count[c.Lane]++
			f.done(c)
		}
		if count[spool.Interactive] != 36 || count[spool.Normal] != 2 || count[spool.Bulk] != 2 {
			t.Errorf("40 calls went to %v, want 36, 2 and 2", count)
		}
	})
}

func TestOutbox_FloodedJobsComeBackTogetherWithTheBot(t *testing.T) {
	bubble(t, limits(), func(t *testing.T, f *fixture) {
		id := f.send("1", "a")
		until := time.Now().Add(5 * time.Second)
		f.settle(f.mustClaim(), spool.Verdict{State: spool.Held, HeldBy: spool.HeldByFlood, GiveBack: true, ReleaseAt: until, BotCooldown: until})
		if j := f.wantState(id, spool.Held); j.HeldBy == nil || *j.HeldBy != "flood" || j.Attempts != 0 {
			t.Errorf("held: %+v", j)
		}
		f.reopen()
		if !f.bot.Cooldown().Equal(until) {
			t.Errorf("cooldown %s, want %s", f.bot.Cooldown(), until)
		}
		time.Sleep(5*time.Second + time.Millisecond)
		synctest.Wait()
		f.wantState(id, spool.Pending)
	})
}

func TestOutbox_CooldownOnlyMovesLater(t *testing.T) {
	bubble(t, limits(), func(t *testing.T, f *fixture) {
		until := time.Now().Add(10072 * time.Second)
		for _, at := range []time.Time{until, time.Now().Add(time.Second), {}} {
			if err := f.bot.ExtendCooldown(t.Context(), at); err != nil {
				t.Fatal(err)
			}
		}
		f.reopen()
		if !f.bot.Cooldown().Equal(until) {
			t.Errorf("cooldown %s, want %s", f.bot.Cooldown(), until)
		}
	})
}

func TestOutbox_GateSaysNoAndKickOpensIt(t *testing.T) {
	open, tokens := make(chan bool, 1), 0
	open <- false
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		cfg := spool.BotConfig{ID: 7, Name: "home", Limits: limits(), Admit: func(time.Time, spool.Lane) (bool, time.Time) {
			ok := <-open
			open <- ok
			if ok {
				tokens++
			}
			return ok, time.Time{}
		}, Refund: func() { tokens-- }}
		f := &fixture{t: t, dir: dir, cfg: cfg}
		f.open()
		defer func() { _ = f.store.Close() }()
		f.send("1", "a")
		if c := f.claim(time.Hour); c != nil {
			t.Fatal("claimed through a closed gate")
		}
		<-open
		open <- true
		got := make(chan *spool.Claim)
		go func() { c, _ := f.bot.Claim(t.Context()); got <- c }()
		f.bot.Kick()
		f.done(<-got)
		if tokens != 1 {
			t.Errorf("%d tokens taken", tokens)
		}
	})
}

func TestOutbox_DeadChatEndsAllThatWait(t *testing.T) {
	bubble(t, limits(), func(t *testing.T, f *fixture) {
		for i := range 600 {
			f.send("1", fmt.Sprint(i))
		}
		f.settle(f.mustClaim(), spool.Verdict{State: spool.Dead, ChatGone: "Forbidden: bot was blocked by the user"})
		time.Sleep(time.Second)
		synctest.Wait()
		st := f.store.Status().Bots[0]
		if st.Jobs[spool.Dead] != 600 || st.QueueDepth != 0 || st.DeadLast24h != 600 {
			t.Errorf("status: %+v", st)
		}
		_, err := f.bot.Enqueue(t.Context(), message("1", "more"))
		var gone *spool.InactiveError
		if !errors.As(err, &gone) || gone.Reason != "Forbidden: bot was blocked by the user" {
			t.Errorf("a direct post: %v", err)
		}
		forced := message("1", "forced")
		forced.Force = true
		f.enqueue(forced)
		f.done(f.mustClaim())
		f.send("1", "active again after a success")
	})
}

func TestOutbox_AfterAWeekOneJobProbesADeadChat(t *testing.T) {
	bubble(t, limits(), func(t *testing.T, f *fixture) {
		f.send("1", "a")
		f.settle(f.mustClaim(), spool.Verdict{State: spool.Dead, ChatGone: "Forbidden: bot was kicked"})
		time.Sleep(7*24*time.Hour + time.Second)
		f.send("1", "probe")
		if _, err := f.bot.Enqueue(t.Context(), message("1", "second")); !errors.Is(err, spool.ErrChatInactive) {
			t.Errorf("a second probe: %v", err)
		}
		f.done(f.mustClaim())
	})
}

func TestOutbox_MigrationMovesTheQueueInOrder(t *testing.T) {
	bubble(t, limits(), func(t *testing.T, f *fixture) {
		ids := []int64{f.send("-4444", "1"), f.send("-4444", "2"), f.send("-4444", "3")}
		new3 := f.send("-1001557000000", "4")
		c := f.mustClaim()
		f.settle(c, spool.Verdict{State: spool.Pending, GiveBack: true, MigrateTo: -1001557000000})
		f.reopen()
		for _, want := range append(ids, new3) {
			c := f.mustClaim()
			if c.ID != want || c.Chat != "-1001557000000" {
				t.Fatalf("claimed %d to %s, want %d to the new id", c.ID, c.Chat, want)
			}
			f.done(c)
		}
		chat, err := f.bot.Chat("-4444")
		if err != nil || chat.ChatID == nil || *chat.ChatID != -1001557000000 {
			t.Errorf("chat by its old id: %+v %v", chat, err)
		}
		f.send("-4444", "5")
		c = f.mustClaim()
		if _, err := f.bot.Settle(t.Context(), c, spool.Verdict{State: spool.Pending, MigrateTo: -4444}); !errors.Is(err, spool.ErrConflict) {
			t.Errorf("a migration back: %v", err)
		}
		f.settle(c, spool.Verdict{State: spool.Dead})
	})
}

func TestOutbox_UsernameAndIDShareOneQueueAfterASuccess(t *testing.T) {
	bubble(t, limits(), func(t *testing.T, f *fixture) {
		a := f.send("@MyChan", "a")
		b := f.send("@mychan", "b")
		other := f.send("-1001222207990", "c")
		c := f.mustClaim()
		if c.ID != a {
			t.Fatalf("claimed %d", c.ID)
		}
		f.settle(c, spool.Verdict{State: spool.Done, Reached: true, Chat: &spool.ChatSeen{ID: -1001222207990, Type: "channel", Username: "MyChan"}})
		for _, want := range []int64{b, other} {
			c := f.mustClaim()
			if c.ID != want || c.Chat != "-1001222207990" {
				t.Fatalf("claimed %d to %s, want %d", c.ID, c.Chat, want)
			}
			if again := f.claim(time.Minute); again != nil {
				t.Fatal("two calls of one chat in flight")
			}
			f.done(c)
		}
	})
}

func TestOutbox_BroughtBackJobsGoBeforeYoungerOnes(t *testing.T) {
	bubble(t, limits(), func(t *testing.T, f *fixture) {
		old := f.send("1", "old")
		f.settle(f.mustClaim(), spool.Verdict{State: spool.Dead, Error: &spool.JobError{Class: "rejected"}})
		f.send("1", "in flight")
		c := f.mustClaim()
		young := f.send("1", "young")
		if _, err := f.store.Retry(t.Context(), old); err != nil {
			t.Fatal(err)
		}
		f.done(c)
		for _, want := range []int64{old, young} {
			c := f.mustClaim()
			if c.ID != want {
				t.Fatalf("claimed %d, want %d", c.ID, want)
			}
			f.done(c)
		}
	})
}

func TestOutbox_LateResultNeverUndoesADecision(t *testing.T) {
	bubble(t, limits(), func(t *testing.T, f *fixture) {
		f.send("1", "a")
		c := f.mustClaim()
		f.done(c)
		_, err := f.bot.Settle(t.Context(), c, spool.Verdict{State: spool.Dead})
		var moved *spool.StateError
		if !errors.As(err, &moved) || moved.Now != "done" {
			t.Errorf("second verdict: %v", err)
		}
		if _, err := f.store.Cancel(t.Context(), c.ID); !errors.Is(err, spool.ErrConflict) {
			t.Errorf("cancel of a done job: %v", err)
		}
	})
}

func TestOutbox_ResolveDecidesOnce(t *testing.T) {
	for outcome, want := range map[string]spool.State{"sent": spool.Done, "resend": spool.Pending, "drop": spool.Cancelled} {
		bubble(t, limits(), func(t *testing.T, f *fixture) {
			id := f.send("1", "a")
			f.settle(f.mustClaim(), spool.Verdict{State: spool.Uncertain, Reached: true})
			j, err := f.store.Resolve(t.Context(), id, spool.Resolution{Outcome: outcome, MessageID: 9})
			if err != nil || j.State != want {
				t.Errorf("%s: %s %v", outcome, j.State, err)
			}
			if outcome == "sent" && string(j.Result) != `{"message_id":9}` {
				t.Errorf("result %s", j.Result)
			}
			if _, err := f.store.Resolve(t.Context(), id, spool.Resolution{Outcome: outcome}); !errors.Is(err, spool.ErrConflict) {
				t.Errorf("%s twice: %v", outcome, err)
			}
		})
	}
}

func TestOutbox_BigParametersStandApart(t *testing.T) {
	bubble(t, limits(), func(t *testing.T, f *fixture) {
		j := message("1", strings.Repeat("x", 30_000))
		id := f.enqueue(j)[0].Job.ID
		c := f.mustClaim()
		if string(c.Params) != string(j.Params) {
			t.Error("the claim's parameters differ")
		}
		f.done(c)
		if got := f.wantState(id, spool.Done); string(got.Params) != string(j.Params) {
			t.Error("the job's parameters differ")
		}
	})
}

func TestOutbox_WaitReturnsAtTheEnd(t *testing.T) {
	bubble(t, limits(), func(t *testing.T, f *fixture) {
		id := f.send("1", "a")
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if j, err := f.store.Wait(ctx, id); !errors.Is(err, context.DeadlineExceeded) || j.State != spool.Pending {
			t.Errorf("wait: %s %v", j.State, err)
		}
		got := make(chan spool.Job)
		go func() { j, _ := f.store.Wait(t.Context(), id); got <- j }()
		synctest.Wait()
		f.done(f.mustClaim())
		if j := <-got; j.State != spool.Done {
			t.Errorf("woke at %s", j.State)
		}
	})
}

func TestStore_SecondOpenIsRefusedAndNamesTheFirst(t *testing.T) {
	bubble(t, limits(), func(t *testing.T, f *fixture) {
		start := time.Now()
		_, err := spool.Open(t.Context(), spool.Options{Path: filepath.Join(f.dir, "spool.db")})
		var locked *spool.LockedError
		if !errors.As(err, &locked) || locked.PID == 0 {
			t.Errorf("second open: %v", err)
		}
		if d := time.Since(start); d > 3*time.Second {
			t.Errorf("refused after %s", d)
		}
		f.send("1", "the first is unharmed")
	})
}

func TestStore_BotsKeepTheirSpoolUnderANewName(t *testing.T) {
	bubble(t, limits(), func(t *testing.T, f *fixture) {
		id := f.send("1", "a")
		f.cfg.Name = "house"
		f.reopen()
		if j := f.wantState(id, spool.Pending); j.Bot != "house" {
			t.Errorf("bot %q", j.Bot)
		}
		if _, err := f.store.Attach(t.Context(), spool.BotConfig{ID: 7, Name: "again"}); !errors.Is(err, spool.ErrInvalid) {
			t.Errorf("a second bot with the same id: %v", err)
		}
		other, err := f.store.Attach(t.Context(), spool.BotConfig{ID: 8, Name: "other", Limits: limits()})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := other.Enqueue(t.Context(), message("1", "b")); err != nil {
			t.Fatal(err)
		}
		if c := f.mustClaim(); c.ID != id {
			t.Errorf("claimed %d of another bot", c.ID)
		}
	})
}

func TestWhy_NamesTheGateThatIsClosed(t *testing.T) {
	bubble(t, limits(), func(t *testing.T, f *fixture) {
		f.send("1", "a")
		b := f.send("1", "b")
		closed := func(id int64) (names []string) {
			why, err := f.store.Why(id)
			if err != nil {
				t.Fatal(err)
			}
			for _, g := range why.Gates {
				if !g.Open {
					names = append(names, g.Name)
				}
			}
			return names
		}
		if got := closed(b); fmt.Sprint(got) != "[order]" {
			t.Errorf("behind another: %v", got)
		}
		f.done(f.mustClaim())
		if got := closed(b); fmt.Sprint(got) != "[chat_gap]" {
			t.Errorf("in the gap: %v", got)
		}
		if _, err := f.store.Hold(t.Context(), b); err != nil {
			t.Fatal(err)
		}
		if got := closed(b); fmt.Sprint(got) != "[chat_gap held]" {
			t.Errorf("held: %v", got)
		}
	})
}

func TestJob_JSONHasEveryFieldAlways(t *testing.T) {
	bubble(t, limits(), func(t *testing.T, f *fixture) {
		id := f.send("-1001222207990", "a")
		out, err := json.Marshal(f.wantState(id, spool.Pending))
		if err != nil {
			t.Fatal(err)
		}
		var m map[string]any
		if err := json.Unmarshal(out, &m); err != nil {
			t.Fatal(err)
		}
		for name := range strings.FieldsSeq(`id bot method chat_id sent_chat_id lane state params files dedupe_key not_before
			retry_at expires_at attempts max_attempts on_uncertain held_by origin created_at updated_at last_error evidence result`) {
			if _, ok := m[name]; !ok {
				t.Errorf("field %q is missing in %s", name, out)
			}
		}
	})
}

func TestOutbox_AUsernameThatChangesHandsTakesNoMessagesAlong(t *testing.T) {
	bubble(t, limits(), func(t *testing.T, f *fixture) {
		for id, chat := range map[int64]int64{1: 111, 2: 222} {
			u := text(id, chat)
			u.Chat = &spool.ChatSeen{ID: chat, Type: "private", Username: "alice"}
			f.intake(u)
		}
		f.send("111", "for 111 alone")
		f.send("222", "for 222 alone")
		for range 2 {
			c := f.mustClaim()
			if want := string(c.ChatID); c.Chat != strings.Trim(want, `"`) {
				t.Errorf("the job for %s goes to %s", want, c.Chat)
			}
			f.done(c)
		}
	})
}

func TestOutbox_AnAnswerMakesNoChatOfAQueueWithoutOne(t *testing.T) {
	bubble(t, limits(), func(t *testing.T, f *fixture) {
		story := message("", "")
		story.Method, story.Weight, story.ChatRaw = "postStory", 0, nil
		f.enqueue(story)
		f.settle(f.mustClaim(), spool.Verdict{State: spool.Done, Chat: &spool.ChatSeen{ID: 333, Type: "private"}})
		blocked := text(1, 333)
		blocked.Active, blocked.Gone = false, "the user blocked the bot"
		f.intake(blocked)
		if _, err := f.bot.Enqueue(t.Context(), story); err != nil {
			t.Errorf("a call without a chat: %v", err)
		}
	})
}

func TestOutbox_ResendOfALateJobIsTheDecidersWord(t *testing.T) {
	bubble(t, limits(), func(t *testing.T, f *fixture) {
		j := message("1", "a")
		j.ExpiresAt = time.Now().Add(time.Minute)
		id := f.enqueue(j)[0].Job.ID
		f.settle(f.mustClaim(), spool.Verdict{State: spool.Uncertain, MaybeSent: true})
		time.Sleep(time.Hour)
		if _, err := f.store.Resolve(t.Context(), id, spool.Resolution{Outcome: "resend"}); err != nil {
			t.Fatal(err)
		}
		if c := f.mustClaim(); c.ID != id {
			t.Errorf("claimed %d", c.ID)
		}
	})
}

func TestOutbox_ABotThatIsNotInTheSettingsKeepsUsualLimits(t *testing.T) {
	bubble(t, limits(), func(t *testing.T, f *fixture) {
		_ = f.store.Close()
		var err error
		if f.store, err = spool.Open(t.Context(), spool.Options{Path: filepath.Join(f.dir, "spool.db")}); err != nil {
			t.Fatal(err)
		}
		b, ok := f.store.Bot("home")
		if !ok || b.Attached() {
			t.Fatal("the bot should be known and not attached")
		}
		q, err := b.Enqueue(t.Context(), message("1", "a"))
		if err != nil || q[0].Job.MaxAttempts != 8 || q[0].Job.OnUncertain != spool.PolicyHold {
			t.Errorf("queued: %+v %v", q, err)
		}
	})
}
