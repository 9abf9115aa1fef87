package botserver_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tgspool/tgspool/internal/botapi"
	"github.com/tgspool/tgspool/internal/intake"
	"github.com/tgspool/tgspool/internal/spool"
)

// feed takes updates in as if Telegram had sent them: texts in chats of these ids.
func (k *kit) feed(firstID int64, chats ...int64) {
	k.t.Helper()
	var list []spool.NewUpdate
	for i, chat := range chats {
		raw := fmt.Appendf(nil, `{"update_id":%d, "message":{"message_id":1,"date":%d,"chat":{"id":%d,"type":"private"},"from":{"id":%d},"text":"<é>"}}`,
			firstID+int64(i), time.Now().Unix(), chat, chat)
		list = append(list, intake.NewUpdate(raw, func(botapi.Update) spool.Route { return spool.Route{} }))
	}
	_, err := k.bot.Intake(k.t.Context(), spool.Batch{Updates: list})
	k.must(err)
}

// ids are the ids in an answer to getUpdates.
func (k *kit) ids(a *answer) []int64 {
	k.t.Helper()
	var list []struct {
		ID int64 `json:"update_id"`
	}
	if a.status != http.StatusOK {
		k.t.Fatalf("status %d: %s", a.status, a.body)
	}
	k.must(json.Unmarshal(a.json.Result, &list))
	ids := []int64{}
	for _, u := range list {
		ids = append(ids, u.ID)
	}
	return ids
}

func (k *kit) wantIDs(a *answer, want ...int64) {
	k.t.Helper()
	if got := k.ids(a); !slices.Equal(got, want) {
		k.t.Errorf("got %v, want %v", got, want)
	}
}

func (k *kit) beginPoll(body string) *pendingCall {
	p := k.begin(request("getUpdates", "application/json", body))
	synctest.Wait()
	return p
}

// answered waits for a call under way and says how long it took.
func (k *kit) answered(p *pendingCall) (*answer, time.Duration) {
	from := time.Now()
	a := <-p.done
	return a, time.Since(from)
}

func TestGetUpdates_TakesAndAcknowledges(t *testing.T) {
	bubble(t, func(k *kit) {
		k.feed(500, 1, 2, 1)
		a := k.call("getUpdates", `{"timeout":30}`)
		k.wantIDs(a, 500, 501, 502)
		k.wantIDs(k.call("getUpdates", `{"offset":500,"limit":""}`), 500, 501, 502)
		if want := `[{"update_id":500, "message":{`; !strings.HasPrefix(string(a.json.Result), want) || !strings.Contains(a.body, "<é>") {
			t := a.json.Result
			k.t.Errorf("the bytes aren't as they came: %s", t)
		}
		k.wantIDs(k.call("getUpdates", `{"offset":502,"limit":"1"}`), 502)
		k.restart(true)
		k.wantIDs(k.call("getupdates", `{"offset":0}`), 502)
		k.wantIDs(k.call("getUpdates", `{"offset":"503","timeout":0}`))
		st := k.store.Status().Bots[0]
		if st.Updates[spool.UpdateHandled] != 3 {
			k.t.Errorf("states %v", st.Updates)
		}
	})
}

func TestGetUpdates_Parked(t *testing.T) {
	bubble(t, func(k *kit) {
		p := k.beginPoll(`{"offset":1,"timeout":30}`)
		k.pass(7 * time.Second)
		k.feed(500, 1)
		a, took := k.answered(p)
		k.wantIDs(a, 500)
		if took > 5*time.Millisecond {
			k.t.Errorf("it took %v to wake", took)
		}
	})
}

func TestGetUpdates_Waits(t *testing.T) {
	for _, tt := range []struct {
		timeout string
		want    time.Duration
	}{
		{"5", 5 * time.Second}, {`"10"`, 10 * time.Second}, {"100", 50 * time.Second}, {"-3", 0}, {`"x"`, 0}, {"0", 0}, {"null", 0},
	} {
		t.Run(tt.timeout, func(t *testing.T) {
			bubble(t, func(k *kit) {
				from := time.Now()
				k.wantIDs(k.call("getUpdates", `{"timeout":`+tt.timeout+`}`))
				if took := time.Since(from); took != tt.want {
					k.t.Errorf("it took %v, want %v", took, tt.want)
				}
			})
		})
	}
}

// TestGetUpdates_NoBusyLoop: a client that asks again at once with the same
// offset is slowed down, as at Telegram.
func TestGetUpdates_NoBusyLoop(t *testing.T) {
	bubble(t, func(k *kit) {
		k.feed(500, 1, 2)
		k.wantIDs(k.call("getUpdates", `{"offset":0}`), 500, 501)
		k.wantIDs(k.call("getUpdates", `{"offset":0}`), 500)
		k.wantIDs(k.call("getUpdates", `{"offset":502}`))
		from := time.Now()
		for range 10 {
			k.wantIDs(k.call("getUpdates", `{"offset":502}`))
		}
		if took := time.Since(from); took != 15*time.Second {
			k.t.Errorf("ten calls took %v", took) // every other one: 3 s after the last
		}
	})
}

// TestGetUpdates_TwoPollers: the newest wins, and hears of no conflict; one
// that has hung up is no conflict either.
func TestGetUpdates_TwoPollers(t *testing.T) {
	bubble(t, func(k *kit) {
		first := k.beginPoll(`{"timeout":50}`)
		k.pass(4 * time.Second)
		second := k.beginPoll(`{"timeout":50}`)
		a, _ := k.answered(first)
		const words = "Conflict: terminated by other getUpdates request; make sure that only one bot instance is running"
		if a.status != http.StatusConflict || a.json.Description != words {
			k.t.Errorf("the first hears %d: %s", a.status, a.body)
		}
		third := k.beginPoll(`{"timeout":50}`)
		if a, took := k.answered(second); a.status != http.StatusConflict || took != 3*time.Second {
			k.t.Errorf("the second hears %d after %v", a.status, took)
		}
		third.hangUp()
		<-third.done
		k.feed(500, 1)
		k.wantIDs(k.call("getUpdates", `{"offset":1,"limit":1}`), 500)
		// One that finds something leaves the parked one alone.
		parked := k.beginPoll(`{"offset":501,"timeout":50}`)
		k.feed(501, 1)
		a, _ = k.answered(parked)
		k.wantIDs(a, 501)
	})
}

// TestGetUpdates_BesideLeases: while updates are taken by leases, and a minute
// after, a poll is a conflict; while it waits, leases are.
func TestGetUpdates_BesideLeases(t *testing.T) {
	bubble(t, func(k *kit) {
		k.feed(500, 1)
		done, err := k.bot.TakenBy(spool.ByLeases)
		k.must(err)
		for _, call := range []string{`{}`, `{"timeout":50}`} {
			a := k.call("getUpdates", call)
			if a.status != http.StatusConflict || !strings.HasPrefix(a.json.Description, "Conflict: tgspool: updates are taken by leases") {
				k.t.Errorf("it hears %d: %s", a.status, a.body)
			}
		}
		done()
		k.pass(time.Minute)
		k.wantIDs(k.call("getUpdates", `{"offset":0}`), 500)
		parked := k.beginPoll(`{"offset":501,"timeout":50}`)
		if _, err := k.bot.TakenBy(spool.ByLeases); err == nil {
			k.t.Error("leases beside a poll that waits")
		}
		a, _ := k.answered(parked)
		k.wantIDs(a)
		k.pass(time.Minute)
		if _, err := k.bot.TakenBy(spool.ByLeases); err != nil {
			k.t.Error(err)
		}
	})
}

func TestGetUpdates_AtAStop(t *testing.T) {
	bubble(t, func(k *kit) {
		p := k.beginPoll(`{"timeout":50}`)
		k.stopping()
		a, took := k.answered(p)
		k.wantIDs(a)
		if took != 0 {
			k.t.Errorf("it took %v", took)
		}
	})
}

// TestGetUpdates_TelegramAway is none of the client's business.
func TestGetUpdates_TelegramAway(t *testing.T) {
	bubble(t, func(k *kit) {
		k.sim.SetOffline(true)
		k.wantIDs(k.call("getUpdates", `{"timeout":20}`))
		k.feed(500, 1)
		k.wantIDs(k.call("getUpdates", `{"timeout":20}`), 500)
	})
}

func TestGetUpdates_Replayed(t *testing.T) {
	bubble(t, func(k *kit) {
		k.feed(500, 1, 1, 1)
		k.wantIDs(k.call("getUpdates", `{}`), 500, 501, 502)
		k.wantIDs(k.call("getUpdates", `{"offset":503}`))
		p := k.beginPoll(`{"offset":503,"timeout":50}`)
		u, err := k.bot.UpdateByID(501)
		k.must(err)
		_, err = k.bot.Replay(k.t.Context(), u.Seq, false)
		k.must(err)
		a, _ := k.answered(p)
		k.wantIDs(a, 501)
		k.wantIDs(k.call("getUpdates", `{"offset":503}`))
	})
}

// TestGetUpdates_AllowedUpdates: the last wish that is news is kept; absent and
// unreadable ones change nothing, an empty list is Telegram's default.
func TestGetUpdates_AllowedUpdates(t *testing.T) {
	changes := 0
	bubble(t, func(k *kit) {
		k.allowedChanged = func() { changes++ }
		for i, tt := range []struct {
			body, note string
			changes    int
		}{
			{`{}`, "", 0},
			{`{"allowed_updates":null}`, "", 0},
			{`{"allowed_updates":"null"}`, "", 0},
			{`{"allowed_updates":"what"}`, "", 0},
			{`{"allowed_updates":[1]}`, "", 0},
			{`{"allowed_updates":["message","Poll","message"]}`, `["message","poll"]`, 1},
			{`{"allowed_updates":"[\"poll\",\"message\"]"}`, `["message","poll"]`, 1},
			{`{}`, `["message","poll"]`, 1},
			{`{"allowed_updates":[]}`, `[]`, 2},
			{`{"allowed_updates":["chat_member","some_kind_of_tomorrow"]}`, `["chat_member","some_kind_of_tomorrow"]`, 3},
		} {
			k.call("getUpdates", tt.body)
			note, err := k.bot.Note(intake.NoteAllowedUpdates)
			k.must(err)
			if string(note) != tt.note || changes != tt.changes {
				k.t.Errorf("%d: %s: the note is %s, %d changes", i, tt.body, note, changes)
			}
			k.pass(time.Minute)
		}
	})
}

// TestGetUpdates_TwoWishes: two clients that each repeat their own list don't
// take turns in changing what Telegram is asked for.
func TestGetUpdates_TwoWishes(t *testing.T) {
	changes := 0
	a, b := newClient("a"), newClient("b")
	bubble(t, func(k *kit) {
		k.allowedChanged = func() { changes++ }
		for range 5 {
			k.callAs(a.token, "getUpdates", `{"allowed_updates":["message"]}`)
			k.callAs(b.token, "getUpdates", `{"allowed_updates":["poll"]}`)
			k.pass(time.Minute)
		}
		if changes != 2 {
			k.t.Errorf("%d changes", changes)
		}
	}, withClients(a, b))
}
