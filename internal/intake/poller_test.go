package intake_test

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tgspool/tgspool/internal/botapi"
	"github.com/tgspool/tgspool/internal/intake"
	"github.com/tgspool/tgspool/internal/spool"
	"github.com/tgspool/tgspool/internal/telegramsim"
)

func TestPoller_AcknowledgesWhatIsCommitted(t *testing.T) {
	inBubble(t, func(t *testing.T, p *post) {
		p.text("one")
		last := p.text("two")
		p.poll()
		synctest.Wait()
		p.wantTexts("one", "two")
		if got := p.bot.Offset(); got != last+1 {
			t.Errorf("offset is %d, want %d", got, last+1)
		}
		last = p.text("three") // ends the parked poll, whose offset acknowledged the two
		after(time.Second)
		polls := p.sim.Polls()
		if got := polls[len(polls)-1].Offset; got != last {
			t.Errorf("the second poll had offset %d, want %d", got, last)
		}
		p.wantTexts("one", "two", "three")
		p.wantState(intake.OK, "")
		if p.changes() != 0 {
			t.Errorf("log:\n%s", p.logged())
		}
	})
}

func TestPoller_IdleIsOneOpenRequest(t *testing.T) {
	inBubble(t, func(t *testing.T, p *post) {
		p.poll()
		after(time.Hour)
		if n := len(p.sim.Polls()); n < 70 || n > 72 { // 3600 s / 50 s
			t.Errorf("%d polls in an hour", n)
		}
	})
}

// Case 40: three days of silence, then one update.
func TestPoller_SilenceThenOneUpdate(t *testing.T) {
	inBubble(t, func(t *testing.T, p *post) {
		p.poll()
		after(72 * time.Hour)
		p.text("hello")
		after(time.Second)
		p.wantTexts("hello")
	})
}

// After a quiet week the next id is random, also lower.
func TestPoller_IDsJumpDown(t *testing.T) {
	inBubble(t, func(t *testing.T, p *post) {
		p.sim.JumpUpdateID(0, 727334708)
		p.text("before")
		p.poll()
		synctest.Wait()
		p.sim.JumpUpdateID(0, 117314199)
		p.text("after")
		after(time.Minute)
		p.text("later")
		after(time.Minute)
		p.wantTexts("before", "after", "later")
		if got := p.bot.Offset(); got != 117314201 {
			t.Errorf("offset is %d", got)
		}
	})
}

// dying is an inbox of a process that is killed while it commits.
type dying struct{ intake.Inbox }

func (dying) Intake(context.Context, spool.Batch) (spool.Taken, error) {
	return spool.Taken{}, spool.ErrClosed
}

func TestPoller_CrashBetweenAnswerAndCommit(t *testing.T) {
	inBubble(t, func(t *testing.T, p *post) {
		p.text("one")
		p.text("two")
		p.poll(func(c *intake.Config) { c.Bot = dying{c.Bot} })
		if err := <-p.done; err == nil || !strings.Contains(err.Error(), "closed") {
			t.Errorf("Run: %v", err)
		}
		if got := p.bot.Offset(); got != 0 {
			t.Errorf("offset is %d", got)
		}
		p.close()
		p.open()
		p.poll()
		after(time.Second)
		p.wantTexts("one", "two")
	})
}

// Case 29: what was acknowledged never comes back, however often we restart.
func TestPoller_RestartsLoseAndDoubleNothing(t *testing.T) {
	inBubble(t, func(t *testing.T, p *post) {
		var want []string
		p.poll()
		for i := range 20 {
			s := fmt.Sprint("text ", i)
			p.text(s)
			want = append(want, s)
			if i%2 == 0 {
				synctest.Wait()
			}
			p.restart()
		}
		after(time.Minute)
		p.wantTexts(want...)
	})
}

func TestPoller_StopsAtOnce(t *testing.T) {
	inBubble(t, func(_ *testing.T, p *post) {
		p.poll()
		after(20 * time.Second)
		p.stop() // in the middle of a poll
		p.fault(telegramsim.Fault{Kind: telegramsim.FaultOffline})
		p.poll()
		after(10 * time.Minute)
		p.stop() // in the middle of a wait
	})
}

func TestPoller_AllowedUpdates(t *testing.T) {
	for _, tt := range []struct {
		name    string
		setting []string
		note    string
		want    string
	}{
		{"nothing said", nil, "", `{"limit":100,"timeout":50}`},
		{"setting", []string{"message", "chat_member"}, `["poll"]`, `{"limit":100,"timeout":50,"allowed_updates":["message","chat_member"]}`},
		{"empty setting is Telegram's default", []string{}, `["poll"]`, `{"limit":100,"timeout":50,"allowed_updates":[]}`},
		{"what a client asked for", nil, `["poll"]`, `{"limit":100,"timeout":50,"allowed_updates":["poll"]}`},
		{"an odd note", nil, `{"poll":1}`, `{"limit":100,"timeout":50}`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, p *post) {
				if tt.note != "" {
					if err := p.bot.SetNote(t.Context(), intake.NoteAllowedUpdates, []byte(tt.note)); err != nil {
						t.Fatal(err)
					}
				}
				got := make(chan string, 1)
				p.poll(func(c *intake.Config) {
					c.AllowedUpdates = tt.setting
					c.Client = caller(func(ctx context.Context, r botapi.Request) botapi.Seen {
						got <- string(r.Params)
						<-ctx.Done()
						return botapi.Seen{Err: ctx.Err()}
					})
				})
				if params := <-got; params != tt.want {
					t.Errorf("asked %s, want %s", params, tt.want)
				}
			})
		})
	}
}

// Malformed elements stand among good ones, alone, and behind all others, where
// no id can acknowledge them.
func TestPoller_MalformedElements(t *testing.T) {
	inBubble(t, func(t *testing.T, p *post) {
		for _, raw := range []string{`"what?"`, `[{"update_id":5}]`} {
			p.sim.Feed(0, []byte(raw))
		}
		p.text("good")
		p.sim.Feed(0, []byte(`{"update_id":"5","message":{}}`))
		p.poll()
		after(time.Second)
		want := []string{`"what?"`, `[{"update_id":5}]`, "good", `{"update_id":"5","message":{}}`}
		p.wantTexts(want...)
		for i, u := range p.updates() {
			if dead := i != 2; dead != (u.State == spool.UpdateDead) || dead != (u.UpdateID == nil) || dead != (u.Error != nil) {
				t.Errorf("element %d is %s, id %v, error %v", i, u.State, u.UpdateID, u.Error)
			}
		}
		after(time.Hour)
		if n := len(p.sim.Polls()); n > 200 {
			t.Errorf("%d polls in an hour with one that can't be acknowledged", n)
		}
		p.text("later")
		after(time.Minute)
		p.wantTexts(append(want, "later")...)
	})
}

// Case 32: what isn't UTF-8, and half a surrogate pair, stay as they came.
func TestPoller_OddTexts(t *testing.T) {
	inBubble(t, func(t *testing.T, p *post) {
		odd := []string{
			"{\"update_id\":500001,\"message\":{\"message_id\":1,\"date\":1,\"chat\":{\"id\":7,\"type\":\"private\"},\"text\":\"a\xff\xfeb\"}}",
			`{"update_id":500002,"message":{"message_id":2,"date":1,"chat":{"id":7,"type":"private"},"text":"half \ud83d"}}`,
			`{"update_id":500003,"telepathy":{"thought":"\u0000"}}`,
		}
		for _, raw := range odd {
			p.sim.Feed(0, []byte(raw))
		}
		p.text("next")
		p.poll()
		after(time.Minute)
		updates := p.updates()
		if len(updates) != 4 {
			t.Fatalf("%d updates", len(updates))
		}
		for i, raw := range odd {
			if string(updates[i].Raw) != raw || updates[i].State != spool.UpdateOpen {
				t.Errorf("update %d is %s: %q", i, updates[i].State, updates[i].Raw)
			}
		}
	})
}

// Case 31: nothing bounds a batch or an update but Telegram's own limits.
func TestPoller_BigUpdates(t *testing.T) {
	inBubble(t, func(t *testing.T, p *post) {
		for i := range 100 {
			p.text(fmt.Sprint(i, strings.Repeat("x", 15_000)))
		}
		big := p.text(strings.Repeat("y", 5<<20))
		p.text("next")
		p.poll()
		after(time.Minute)
		updates := p.updates()
		if len(updates) != 102 || *updates[100].UpdateID != big || len(updates[100].Raw) < 5<<20 {
			t.Fatalf("%d updates", len(updates))
		}
		p.wantState(intake.OK, "")
	})
}

// Case 38: nothing is taken for a double by its content.
func TestPoller_SamePressTwice(t *testing.T) {
	inBubble(t, func(t *testing.T, p *post) {
		for _, id := range []int{900001, 900002} {
			p.sim.Feed(0, fmt.Appendf(nil, `{"update_id":%d,"callback_query":{"id":"1","from":{"id":7},"chat_instance":"c","data":"d"}}`, id))
		}
		p.poll()
		after(time.Second)
		p.wantTexts("d", "d")
	})
}

// script is a Telegram that answers each poll with the same body, at once.
func script(polls *atomic.Int64, offsets *[]int64, t *testing.T, body string) caller {
	return func(ctx context.Context, r botapi.Request) botapi.Seen {
		polls.Add(1)
		if offsets != nil {
			*offsets = append(*offsets, offsetOf(t, r))
		}
		return answer(200, body)
	}
}

func TestPoller_WhatMovesNothingIsNoBusyLoop(t *testing.T) {
	for name, body := range map[string]string{
		"only malformed":      `{"ok":true,"result":[{"no":"id"},5]}`,
		"the same id for all": `{"ok":true,"result":[{"update_id":7,"message":{}}]}`,
		"empty at once":       `{"ok":true,"result":[]}`,
		"no id may be used":   fmt.Sprintf(`{"ok":true,"result":[{"update_id":%d}]}`, int64(math.MaxInt64)),
		"negative id":         `{"ok":true,"result":[{"update_id":-5}]}`,
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, p *post) {
				var polls atomic.Int64
				p.poll(func(c *intake.Config) { c.Client = script(&polls, nil, t, body) })
				after(time.Hour)
				if n := polls.Load(); n > 250 {
					t.Errorf("%d polls in an hour", n)
				}
			})
		})
	}
}

// A negative offset makes Telegram drop updates, so none is ever asked for.
func TestPoller_OddIDs(t *testing.T) {
	inBubble(t, func(t *testing.T, p *post) {
		body := fmt.Sprintf(`{"ok":true,"result":[{"update_id":41},{"update_id":41},{"update_id":-9},{"update_id":%d},{"update_id":1e3},{"update_id":9223372036854775808}]}`, int64(math.MaxInt64))
		var polls atomic.Int64
		var offsets []int64
		p.poll(func(c *intake.Config) { c.Client = script(&polls, &offsets, t, body) })
		after(time.Minute)
		p.stop()
		if slices.Min(offsets) != 0 || slices.Max(offsets) != 42 || offsets[len(offsets)-1] != 42 {
			t.Errorf("offsets asked for: %v", offsets)
		}
		var ids []string
		for _, u := range p.updates() {
			if u.UpdateID == nil {
				ids = append(ids, "none")
				continue
			}
			ids = append(ids, fmt.Sprint(*u.UpdateID))
		}
		if want := []string{"41", "-9", "9223372036854775807", "none", "none"}; !slices.Equal(ids, want) {
			t.Errorf("kept %v, want %v", ids, want)
		}
	})
}

// full is an inbox on a disk without room, until a time.
type full struct {
	intake.Inbox
	until time.Time
	tries int
}

func (f *full) Intake(ctx context.Context, b spool.Batch) (spool.Taken, error) {
	if f.tries++; time.Now().Before(f.until) {
		return spool.Taken{}, fmt.Errorf("storing updates: %w", spool.ErrFull)
	}
	return f.Inbox.Intake(ctx, b)
}

func TestPoller_FullDiskAcknowledgesNothing(t *testing.T) {
	inBubble(t, func(t *testing.T, p *post) {
		p.text("one")
		f := &full{until: time.Now().Add(time.Hour)}
		p.poll(func(c *intake.Config) { f.Inbox = c.Bot; c.Bot = f })
		after(30 * time.Minute)
		p.wantState(intake.Full, "spool is full")
		if p.sim.Pending(0) != 1 || p.bot.Offset() != 0 {
			t.Error("an update was acknowledged that isn't stored")
		}
		after(31 * time.Minute)
		p.wantTexts("one")
		p.wantState(intake.OK, "")
		if alerts := p.alerted(); len(alerts) != 1 || alerts[0].State != intake.Full || f.tries > 1000 {
			t.Errorf("alerts %v after %d tries", alerts, f.tries)
		}
	})
}

// TestPoller_Kick: what a client asks for counts at once, not after the poll
// under way, and nothing is lost by that.
func TestPoller_Kick(t *testing.T) {
	inBubble(t, func(t *testing.T, p *post) {
		p.poll()
		after(10 * time.Second)
		if err := p.bot.SetNote(t.Context(), intake.NoteAllowedUpdates, []byte(`["message","chat_member"]`)); err != nil {
			t.Fatal(err)
		}
		p.poller.Kick()
		p.poller.Kick()
		synctest.Wait()
		if id := p.sim.Feed(0, []byte(`{"chat_member":{"chat":{"id":1,"type":"private"},"from":{"id":1},"date":1}}`)); id == 0 {
			t.Error("Telegram wasn't asked for the kind")
		}
		p.text("one")
		after(time.Second)
		if n := len(p.updates()); n != 2 {
			t.Errorf("%d updates", n)
		}
		p.wantState(intake.OK, "")
	})
}
