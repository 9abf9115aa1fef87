package spool_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	bolt "go.etcd.io/bbolt"
	"pgregory.net/rapid"

	"github.com/tgspool/tgspool/internal/spool"
	"github.com/tgspool/tgspool/internal/telegramsim"
)

// pullText is a text that waits for a client.
func pullText(id, chat int64) spool.NewUpdate {
	u := text(id, chat)
	u.Route = spool.Route{Handler: spool.PullRoute}
	return u
}

// poll does what getUpdates does with an offset and a limit.
func (f *fixture) poll(offset int64, limit int) []int64 {
	f.t.Helper()
	if _, err := f.bot.Acknowledge(f.t.Context(), offset); err != nil {
		f.t.Fatal(err)
	}
	list, err := f.bot.Pull(f.t.Context(), limit)
	if err != nil {
		f.t.Fatal(err)
	}
	ids := []int64{}
	for _, u := range list {
		ids = append(ids, *u.UpdateID)
	}
	return ids
}

func (f *fixture) wantPoll(offset int64, limit int, want ...int64) {
	f.t.Helper()
	if got := f.poll(offset, limit); !slices.Equal(got, want) {
		f.t.Errorf("offset %d gives %v, want %v", offset, got, want)
	}
}

func (f *fixture) updateStates() string {
	f.t.Helper()
	page, err := f.bot.Updates(spool.UpdateFilter{})
	if err != nil {
		f.t.Fatal(err)
	}
	var out []string
	for _, u := range page.Items {
		out = append(out, fmt.Sprint(*u.UpdateID, " ", u.State))
	}
	return strings.Join(out, ", ")
}

// TestPull_LikeTelegram makes the same calls of a spool and of the simulator.
func TestPull_LikeTelegram(t *testing.T) {
	type call struct {
		feed   int64 // the id of a new update, or:
		offset int64
		limit  int
	}
	feed := func(ids ...int64) (list []call) {
		for _, id := range ids {
			list = append(list, call{feed: id})
		}
		return list
	}
	ask := func(offset int64, limit int) call { return call{offset: offset, limit: limit} }
	for name, calls := range map[string][]call{
		"nothing":                 {ask(0, 100), ask(1, 100), ask(-1, 100), ask(77, 100)},
		"from the oldest":         append(feed(500, 501, 502), ask(0, 100), ask(1, 100), ask(500, 100), ask(0, 2)),
		"acknowledged":            append(feed(500, 501, 502), ask(501, 100), ask(0, 100), ask(503, 100), ask(0, 100)),
		"far below":               append(feed(900_000, 900_001), ask(2, 100), ask(900_001, 100)),
		"a little above the tail": append(feed(500, 501), ask(512, 100), ask(0, 100)),
		"far above the tail":      append(feed(500, 501), ask(513, 100), ask(2_000_000_000, 100), ask(501, 100)),
		"only the newest":         append(feed(500, 501, 502, 503), ask(-2, 100), ask(0, 100)),
		"more than there are":     append(feed(500, 501), ask(-5, 100), ask(0, 100)),
		"the newest, one a call":  append(feed(500, 501), ask(-1, 1), ask(502, 1)),
		"between two ids":         append(feed(500, 505, 510), ask(503, 100), ask(507, 100), ask(511, 100)),
		"limits out of range":     append(feed(500, 501, 502), ask(0, 0), ask(0, -3), ask(0, 1000)),
		"a run of lower ids": append(feed(500, 501, 20, 21),
			ask(0, 100), ask(502, 100), ask(22, 100), ask(0, 100)),
		"asked again after more came": append(feed(500), append([]call{ask(501, 100)}, append(feed(501), ask(501, 100), ask(502, 100))...)...),
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, limits(), func(t *testing.T, f *fixture) {
				s := newPeer(t)
				for i, c := range calls {
					if c.feed != 0 {
						f.intake(pullText(c.feed, 1))
						s.feed(c.feed)
						continue
					}
					got, want := f.poll(c.offset, c.limit), s.poll(c.offset, c.limit)
					if !slices.Equal(got, want) {
						t.Errorf("call %d, offset %d, limit %d: got %v, Telegram gives %v", i, c.offset, c.limit, got, want)
					}
				}
			})
		})
	}
}

// TestPull_LikeTelegramAtRandom does the same with one run of ids, in which two
// rules that differ on purpose (what arrived before; lower ids) are the same.
func TestPull_LikeTelegramAtRandom(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		type step struct{ Gap, Offset, Limit int }
		steps := rapid.SliceOfN(rapid.Custom(func(r *rapid.T) step {
			return step{rapid.IntRange(-3, 3).Draw(r, "gap"), rapid.IntRange(-4, 16).Draw(r, "offset"), rapid.IntRange(1, 4).Draw(r, "limit")}
		}), 5, 30).Draw(r, "steps")
		var failed string
		bubble(t, limits(), func(t *testing.T, f *fixture) {
			s, next := newPeer(t), int64(500)
			for _, st := range steps {
				if st.Gap > 0 {
					next += int64(st.Gap)
					f.intake(pullText(next, int64(st.Limit)))
					s.feed(next)
					continue
				}
				offset := int64(st.Offset)
				if st.Offset > 0 {
					offset += next - 8
				}
				got, want := f.poll(offset, st.Limit), s.poll(offset, st.Limit)
				if !slices.Equal(got, want) && failed == "" {
					failed = fmt.Sprintf("newest %d, offset %d: got %v, Telegram gives %v", next, offset, got, want)
				}
			}
		})
		if failed != "" {
			r.Fatal(failed)
		}
	})
}

// peer is a simulated Telegram that is asked the same.
type peer struct {
	t   *testing.T
	sim *telegramsim.Sim
}

func newPeer(t *testing.T) *peer {
	s := telegramsim.New(telegramsim.Options{Bots: []telegramsim.Bot{{Token: "7:x"}}})
	t.Cleanup(s.Close)
	return &peer{t, s}
}

func (p *peer) feed(id int64) {
	p.sim.Feed(0, fmt.Appendf(nil, `{"update_id":%d,"message":{"date":%d,"chat":{"id":1,"type":"private"},"text":"x"}}`, id, time.Now().Unix()))
}

func (p *peer) poll(offset int64, limit int) []int64 {
	p.t.Helper()
	time.Sleep(4 * time.Second) // its guard against busy loops
	body := fmt.Sprintf(`{"offset":%d,"limit":%d}`, offset, limit)
	r, err := http.NewRequestWithContext(p.t.Context(), http.MethodPost, "https://bot.invalid/bot7:x/getUpdates", strings.NewReader(body))
	if err != nil {
		p.t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	a, err := p.sim.Transport().RoundTrip(r)
	if err != nil {
		p.t.Fatal(err)
	}
	defer func() { _ = a.Body.Close() }()
	var answer struct {
		Result []struct {
			ID int64 `json:"update_id"`
		} `json:"result"`
	}
	if err := json.NewDecoder(a.Body).Decode(&answer); err != nil {
		p.t.Fatal(err)
	}
	ids := []int64{}
	for _, u := range answer.Result {
		ids = append(ids, u.ID)
	}
	return ids
}

// TestAcknowledge_ByArrival: an offset speaks of all that arrived before, also
// across a restart of the ids, and of nothing that other handlers have.
func TestAcknowledge_ByArrival(t *testing.T) {
	bubble(t, limits(), func(t *testing.T, f *fixture) {
		f.intake(pullText(500, 1), text(501, 2), pullText(20, 1), pullText(21, 3))
		f.wantPoll(0, 100, 500)
		f.wantPoll(502, 100, 20, 21) // 501 went to another handler, after 500
		f.reopen()
		f.wantPoll(0, 100, 20, 21)
		f.wantPoll(21, 100, 21)
		if got := f.updateStates(); got != "500 handled, 501 open, 20 handled, 21 open" {
			t.Errorf("the inbox holds %s", got)
		}
		f.intake(pullText(600, 1))
		f.wantPoll(601, 100)
		if got := f.updateStates(); got != "500 handled, 501 open, 20 handled, 21 handled, 600 handled" {
			t.Errorf("the inbox holds %s", got)
		}
	})
}

// TestAcknowledge_NothingToSay writes nothing, as most calls of a quiet bot.
func TestAcknowledge_NothingToSay(t *testing.T) {
	bubble(t, limits(), func(t *testing.T, f *fixture) {
		f.intake(pullText(500, 1))
		f.poll(501, 100)
		before := f.store.Commits()
		f.poll(501, 100)
		f.poll(0, 100)
		f.poll(-1, 100)
		if n := f.store.Commits() - before; n != 0 {
			t.Errorf("%d commits for nothing", n)
		}
	})
}

// TestAcknowledge_Many goes in bounded transactions, and a negative offset and
// a drop leave the updates to be replayed.
func TestAcknowledge_Many(t *testing.T) {
	bubble(t, limits(), func(t *testing.T, f *fixture) {
		const n = 1300
		list := make([]spool.NewUpdate, n)
		for i := range list {
			list[i] = pullText(int64(1000+i), int64(i%7))
		}
		f.intake(list...)
		before := f.store.Commits()
		if ended, err := f.bot.Acknowledge(t.Context(), -100); err != nil || ended != n-100 {
			t.Fatalf("ended %d: %v", ended, err)
		}
		if c := f.store.Commits() - before; c != 3 {
			t.Errorf("%d commits", c)
		}
		if ended, err := f.bot.DropPulls(t.Context(), "asked for"); err != nil || ended != 100 {
			t.Fatalf("dropped %d: %v", ended, err)
		}
		st := f.store.Status().Bots[0]
		if st.Updates[spool.UpdateIgnored] != n || st.Updates[spool.UpdateOpen] != 0 {
			t.Errorf("states %v", st.Updates)
		}
		u, err := f.bot.UpdateByID(1000 + n - 1)
		if err != nil || u.Error == nil || *u.Error != "asked for" {
			t.Errorf("the last one: %+v, %v", u, err)
		}
	})
}

// TestPull_ReplayedOnceAlone: whatever the client's offset says.
func TestPull_ReplayedOnceAlone(t *testing.T) {
	bubble(t, limits(), func(t *testing.T, f *fixture) {
		f.intake(pullText(500, 1), pullText(501, 1), pullText(502, 2))
		f.poll(503, 100)
		u, err := f.bot.UpdateByID(500)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.bot.Replay(t.Context(), u.Seq, false); err != nil {
			t.Fatal(err)
		}
		f.intake(pullText(503, 1), pullText(504, 1))
		f.reopen()
		f.wantPoll(503, 100, 500)
		f.wantPoll(501, 100, 503, 504) // a client that follows the last id
		f.wantPoll(503, 100, 503, 504) // one that only raises its offset
		f.wantPoll(505, 100)
	})
}

// TestPull_TooLate: an old query is no use to a client.
func TestPull_TooLate(t *testing.T) {
	bubble(t, limits(), func(t *testing.T, f *fixture) {
		u := pullText(500, 1)
		u.StaleAt = time.Now().Add(150 * time.Second)
		f.intake(u, pullText(501, 1))
		f.wantPoll(0, 100, 500, 501)
		time.Sleep(151 * time.Second)
		f.wantPoll(0, 100, 501)
		if got := f.updateStates(); got != "500 expired, 501 open" {
			t.Errorf("the inbox holds %s", got)
		}
	})
}

// TestPull_LeavesLeasedOnes: what a webhook has is nobody else's.
func TestPull_LeavesLeasedOnes(t *testing.T) {
	bubble(t, limits(), func(t *testing.T, f *fixture) {
		f.intake(pullText(500, 1), pullText(501, 2))
		l, err := f.bot.ClaimUpdate(t.Context(), spool.PullRoute)
		if err != nil || *l.UpdateID != 500 {
			t.Fatalf("leased %+v: %v", l, err)
		}
		f.wantPoll(0, 100, 501)
		f.wantPoll(502, 100)
		if err := f.bot.FailUpdate(t.Context(), l, spool.Failure{State: spool.UpdateOpen, RetryAt: time.Now().Add(time.Hour)}); err != nil {
			t.Fatal(err)
		}
		f.wantPoll(0, 100, 500)
		f.wantPoll(501, 100)
	})
}

// TestPull_PageEndsBySize as Telegram's do.
func TestPull_PageEndsBySize(t *testing.T) {
	bubble(t, limits(), func(t *testing.T, f *fixture) {
		for i := range int64(10) {
			u := pullText(500+i, 1)
			u.Raw = fmt.Appendf(nil, `{"update_id":%d,"message":{"text":%q}}`, 500+i, strings.Repeat("x", 500<<10))
			f.intake(u)
		}
		if got := f.poll(0, 100); len(got) != 8 {
			t.Errorf("%d updates in a page", len(got))
		}
	})
}

// TestWatchPull is told after the commit, and only of what it may have.
func TestWatchPull(t *testing.T) {
	bubble(t, limits(), func(t *testing.T, f *fixture) {
		arrived, stop := f.bot.WatchPull()
		f.intake(text(500, 1))
		synctest.Wait()
		select {
		case <-arrived:
			t.Error("told of another handler's update")
		default:
		}
		f.intake(pullText(501, 1), pullText(502, 1))
		<-arrived
		f.wantPoll(0, 100, 501, 502)
		stop()
		f.intake(pullText(503, 1))
		synctest.Wait()
		select {
		case <-arrived:
			t.Error("told after the end")
		default:
		}
	})
}

// TestPull_RoutesChange: what a handler gets from now on isn't a client's.
func TestPull_RoutesChange(t *testing.T) {
	bubble(t, limits(), func(t *testing.T, f *fixture) {
		f.intake(pullText(500, 1), text(501, 1))
		f.cfg.Routes = "other"
		f.cfg.Route = func(raw []byte) spool.Route {
			if bytes.Contains(raw, []byte(`:500`)) {
				return spool.Route{Handler: "echo"}
			}
			return spool.Route{}
		}
		if err := f.bot.Configure(t.Context(), f.cfg); err != nil {
			t.Fatal(err)
		}
		f.wantPoll(0, 100, 501)
	})
}

// TestOpen_MakesThePullIndex in a file of before there was one, and again where
// it is damaged.
func TestOpen_MakesThePullIndex(t *testing.T) {
	inpull := []byte("inpull")
	for name, spoil := range map[string]func(tx *bolt.Tx) error{
		"missing": func(tx *bolt.Tx) error { return tx.DeleteBucket(inpull) },
		"an entry lost": func(tx *bolt.Tx) error {
			k, _ := tx.Bucket(inpull).Cursor().First()
			return tx.Bucket(inpull).Delete(k)
		},
		"an entry too many": func(tx *bolt.Tx) error {
			return tx.Bucket(inpull).Put([]byte{0, 1, 0, 0, 0, 0, 0, 0, 0, 99}, make([]byte, 9))
		},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, limits(), func(t *testing.T, f *fixture) {
				f.intake(pullText(500, 1), text(501, 1), pullText(502, 1))
				if err := f.store.Close(); err != nil {
					t.Fatal(err)
				}
				editBolt(t, filepath.Join(f.dir, "spool.db"), spoil)
				f.open()
				f.wantPoll(0, 100, 500, 502)
				f.wantPoll(501, 100, 502)
			})
		})
	}
}

// TestPull_Closed says so.
func TestPull_Closed(t *testing.T) {
	bubble(t, limits(), func(t *testing.T, f *fixture) {
		f.checked = true
		f.intake(pullText(500, 1))
		if err := f.store.Close(); err != nil {
			t.Fatal(err)
		}
		if _, err := f.bot.Pull(context.Background(), 1); !errors.Is(err, spool.ErrClosed) {
			t.Errorf("pull: %v", err)
		}
		if _, err := f.bot.Acknowledge(context.Background(), 501); !errors.Is(err, spool.ErrClosed) {
			t.Errorf("acknowledge: %v", err)
		}
	})
}
