package spool_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	bolt "go.etcd.io/bbolt"

	"github.com/tgspool/tgspool/internal/spool"
)

func key(chat, user int64) spool.SessionKey { return spool.SessionKey{Chat: chat, User: user} }

func change(data string, version int64) *spool.SessionChange {
	return &spool.SessionChange{Data: json.RawMessage(data), Version: version}
}

func (f *fixture) setSession(k spool.SessionKey, data string, version int64) spool.Session {
	f.t.Helper()
	s, _, err := f.bot.SetSession(f.t.Context(), k, json.RawMessage(data), version)
	if err != nil {
		f.t.Fatal(err)
	}
	return s
}

// wantSession compares a session with "version data", "" for none.
func (f *fixture) wantSession(k spool.SessionKey, want string) {
	f.t.Helper()
	s, err := f.bot.Session(k)
	got := fmt.Sprint(s.Version, " ", string(s.Data))
	if errors.Is(err, spool.ErrNotFound) {
		got, err = "", nil
	}
	if err != nil || got != want {
		f.t.Errorf("session %s is %q (%v), want %q", k, got, err, want)
	}
}

func (f *fixture) mustLease() *spool.Lease {
	f.t.Helper()
	l := f.lease(time.Minute)
	if l == nil {
		f.t.Fatal("no update could be leased within a minute")
	}
	return l
}

// TestSession_WithTheHandledMark: the change, the mark and the jobs are one.
func TestSession_WithTheHandledMark(t *testing.T) {
	bubble(t, limits(), func(t *testing.T, f *fixture) {
		f.intake(text(1, 5), text(2, 5), text(3, 5))
		l := f.mustLease()
		if l.Session.Key != "5" || l.Session.Version != 0 || l.Session.Data != nil {
			t.Errorf("before there was one: %+v", l.Session)
		}
		if _, err := f.bot.Handled(t.Context(), l, spool.Handling{Session: change(`{"step": 1}`, 0)}); err != nil {
			t.Fatal(err)
		}
		f.wantSession(key(5, 0), `1 {"step":1}`)

		l = f.mustLease()
		if string(l.Session.Data) != `{"step":1}` || l.Session.Version != 1 {
			t.Errorf("leased with %+v", l.Session)
		}
		f.setSession(key(5, 0), `{"step":9}`, spool.AnyVersion) // somebody else, meanwhile
		_, err := f.bot.Handled(t.Context(), l, spool.Handling{Jobs: []spool.NewJob{message("5", "x")}, Session: change(`{"step":2}`, 1)})
		stale := &spool.StaleError{}
		if !errors.Is(err, spool.ErrStale) || !errors.As(err, &stale) || stale.Now != 2 {
			t.Fatalf("a stale change: %v", err)
		}
		if u, err := f.bot.Update(l.Seq); err != nil || u.State != spool.UpdateLeased || len(u.Jobs) != 0 {
			t.Errorf("after a stale change: %+v, %v", u, err)
		}
		f.wantSession(key(5, 0), `2 {"step":9}`)
		if err := f.bot.FailUpdate(t.Context(), l, spool.Failure{State: spool.UpdateOpen, GiveBack: true}); err != nil {
			t.Fatal(err)
		}
		l = f.mustLease()
		if l.Attempts != 1 || string(l.Session.Data) != `{"step":9}` {
			t.Errorf("again: attempt %d, session %s", l.Attempts, l.Session.Data)
		}
		if _, err := f.bot.Handled(t.Context(), l, spool.Handling{Jobs: []spool.NewJob{message("5", "x")}, Session: change(`{}`, 2)}); err != nil {
			t.Fatal(err)
		}
		f.wantSession(key(5, 0), "")
		l = f.mustLease()
		if l.Session.Version != 0 {
			t.Errorf("after its end: %+v", l.Session)
		}
		if _, err := f.bot.Handled(t.Context(), l, spool.Handling{Session: change(`{"new":true}`, 0)}); err != nil {
			t.Fatal(err)
		}
		f.wantSession(key(5, 0), `3 {"new":true}`) // no old version fits again
		f.reopen()
		f.wantSession(key(5, 0), `3 {"new":true}`)
	})
}

// TestSession_OfAUser: one for each user of a chat where the route says so.
func TestSession_OfAUser(t *testing.T) {
	bubble(t, limits(), func(t *testing.T, f *fixture) {
		u := text(1, -5)
		u.Route.PerUser, u.UserID = true, 77
		nobody := text(2, -5)
		nobody.Route.PerUser = true
		f.intake(u, nobody)
		for _, want := range []string{"-5:77", "-5"} {
			l := f.mustLease()
			if l.Session.Key != want {
				t.Errorf("key %q, want %q", l.Session.Key, want)
			}
			if _, err := f.bot.Handled(t.Context(), l, spool.Handling{Session: change(`{"k":"`+want+`"}`, 0)}); err != nil {
				t.Fatal(err)
			}
		}
		f.wantSession(key(-5, 77), `1 {"k":"-5:77"}`)
		f.wantSession(key(-5, 0), `1 {"k":"-5"}`)

		f.intake(spool.NewUpdate{ID: 3, HasID: true, Kind: "poll", Raw: []byte(`{}`), Route: spool.Route{Handler: "echo"}})
		l := f.mustLease()
		_, err := f.bot.Handled(t.Context(), l, spool.Handling{Session: change(`{"a":1}`, 0)})
		if !errors.Is(err, spool.ErrInvalid) || l.Session.Key != "" {
			t.Errorf("an update without a chat has session %+v; a change is answered %v", l.Session, err)
		}
	})
}

// TestSession_Conditions walks what may be asked for.
func TestSession_Conditions(t *testing.T) {
	bubble(t, limits(), func(t *testing.T, f *fixture) {
		k := key(5, 0)
		set := func(version int64) error {
			_, _, err := f.bot.SetSession(t.Context(), k, json.RawMessage(`{}`), version)
			return err
		}
		steps := []struct {
			do   func() error
			want error
		}{
			{func() error { return set(spool.SomeVersion) }, spool.ErrStale},
			{func() error { return set(1) }, spool.ErrStale},
			{func() error { return f.bot.DeleteSession(t.Context(), k, spool.AnyVersion) }, spool.ErrNotFound},
			{func() error { return set(0) }, nil},
			{func() error { return set(0) }, spool.ErrStale},
			{func() error { return set(1) }, nil},
			{func() error { return set(1) }, spool.ErrStale},
			{func() error { return set(spool.SomeVersion) }, nil},
			{func() error { return f.bot.DeleteSession(t.Context(), k, 2) }, spool.ErrStale},
			{func() error { return f.bot.DeleteSession(t.Context(), k, 3) }, nil},
			{func() error { return set(3) }, spool.ErrStale},
			{func() error { return set(spool.AnyVersion) }, nil},
		}
		for i, s := range steps {
			if err := s.do(); !errors.Is(err, s.want) {
				t.Errorf("step %d: %v, want %v", i, err, s.want)
			}
		}
		f.wantSession(k, "4 {}")
	})
}

func TestSession_Data(t *testing.T) {
	big := `{"a":"` + strings.Repeat("x", spool.MaxSession-8) + `"}`
	for data, want := range map[string]error{
		big: nil, strings.Replace(big, ":", ": ", 1): nil, strings.Replace(big, "x", "xx", 1): spool.ErrTooLarge,
		`{"n":9007199254740993}`: nil, ``: spool.ErrInvalid, `[]`: spool.ErrInvalid, `null`: spool.ErrInvalid, `{`: spool.ErrInvalid, `{} {}`: spool.ErrInvalid, "{\"a\":1}\n": nil,
	} {
		if _, err := spool.CompactSession(json.RawMessage(data)); !errors.Is(err, want) {
			t.Errorf("%.20q of %d bytes: %v, want %v", data, len(data), err, want)
		}
	}
	for text, want := range map[string]string{"5": "5", "-100:7": "-100:7", "05": "5", "": "", "0": "", "5:": "", "5:0": "", "5:-7": "", "a": "", "5:7:9": "", "@news": ""} {
		k, err := spool.ParseSessionKey(text)
		if (err == nil) != (want != "") || err == nil && k.String() != want {
			t.Errorf("key %q is %q, %v; want %q", text, k, err, want)
		}
	}
}

// TestSession_ListInPages: in the order of the chats' ids, each once.
func TestSession_ListInPages(t *testing.T) {
	bubble(t, limits(), func(t *testing.T, f *fixture) {
		for _, k := range []spool.SessionKey{key(5, 0), key(-1001234567890, 0), key(5, 7), key(-7, 0), key(6, 0)} {
			f.setSession(k, `{}`, 0)
		}
		for _, limit := range []int{1, 2, 5, 100} {
			var got []string
			for after := ""; ; {
				var k spool.SessionKey
				if after != "" {
					var err error
					if k, err = spool.ParseSessionKey(after); err != nil {
						t.Fatal(err)
					}
				}
				page, err := f.bot.Sessions(k, limit)
				if err != nil {
					t.Fatal(err)
				}
				for _, s := range page.Items {
					got = append(got, s.Key)
				}
				if after = page.Next; after == "" {
					break
				}
			}
			if want := "-1001234567890 -7 5 5:7 6"; strings.Join(got, " ") != want {
				t.Errorf("limit %d: %v, want %s", limit, got, want)
			}
		}
	})
}

// TestSession_Migration: a group takes its sessions along; who still has the old
// id finds them, a handler at work, too.
func TestSession_Migration(t *testing.T) {
	bubble(t, limits(), func(t *testing.T, f *fixture) {
		const old, now = -5, -1005
		f.setSession(key(old, 0), `{"a":1}`, 0)
		f.setSession(key(old, 7), `{"u":7}`, 0)
		f.setSession(key(old, 8), `{"u":8}`, 0)
		f.setSession(key(now, 8), `{"u":"newer"}`, 0)
		f.intake(text(1, old), text(2, old))
		l := f.mustLease()
		moved := text(3, old)
		moved.MigrateTo = now
		f.intake(moved)
		f.wantSession(key(now, 0), `1 {"a":1}`)
		f.wantSession(key(old, 7), `1 {"u":7}`)
		f.wantSession(key(now, 8), `2 {"u":"newer"}`) // of two what was written last, news to readers of both
		if _, err := f.bot.Handled(t.Context(), l, spool.Handling{Session: change(`{"a":2}`, l.Session.Version)}); err != nil {
			t.Fatal(err)
		}
		if l = f.mustLease(); l.Session.Key != "-1005" || string(l.Session.Data) != `{"a":2}` {
			t.Errorf("an update of before gets %+v", l.Session)
		}
		page, err := f.bot.Sessions(spool.SessionKey{}, 0)
		if err != nil || len(page.Items) != 3 {
			t.Errorf("%d sessions, %v", len(page.Items), err)
		}
	})
}

// TestSession_Damaged: one that can't be read is set aside; its update is handled.
func TestSession_Damaged(t *testing.T) {
	dir := t.TempDir()
	f := &fixture{t: t, dir: dir, cfg: spool.BotConfig{ID: 7, Name: "home", Limits: limits()}}
	f.open()
	for chat := range int64(3) {
		f.setSession(key(chat+1, 0), `{"a":1}`, 0)
	}
	if err := f.store.Close(); err != nil {
		t.Fatal(err)
	}
	editBolt(t, filepath.Join(dir, "spool.db"), func(tx *bolt.Tx) error {
		b := tx.Bucket([]byte("session"))
		return b.ForEach(func(k, v []byte) error {
			v[len(v)-1] ^= 1
			return b.Put(k, v)
		})
	})
	f.open()
	defer func() { _ = f.store.Close() }()
	if _, err := f.bot.Session(key(1, 0)); !errors.Is(err, spool.ErrDamaged) {
		t.Errorf("reading a damaged one: %v", err)
	}
	f.intake(text(1, 1))
	l, err := f.bot.ClaimUpdate(t.Context(), "echo")
	if err != nil {
		t.Fatal(err)
	}
	if l.Session.Version != 0 {
		t.Errorf("leased with %+v", l.Session)
	}
	if _, err := f.bot.Handled(t.Context(), l, spool.Handling{Session: change(`{"a":2}`, 0)}); err != nil {
		t.Fatal(err)
	}
	f.wantSession(key(1, 0), `1 {"a":2}`)
	f.setSession(key(2, 0), `{"a":3}`, spool.AnyVersion)
	f.wantSession(key(2, 0), `1 {"a":3}`)
	if err := f.bot.DeleteSession(t.Context(), key(3, 0), spool.AnyVersion); err != nil {
		t.Error(err)
	}
	f.wantSession(key(3, 0), "")
}

// TestSession_OlderFile: a file of before there were sessions is given a place for
// them.
func TestSession_OlderFile(t *testing.T) {
	bubble(t, limits(), func(t *testing.T, f *fixture) {
		f.send("1", "x")
		if err := f.store.Close(); err != nil {
			t.Fatal(err)
		}
		editBolt(t, filepath.Join(f.dir, "spool.db"), func(tx *bolt.Tx) error { return tx.DeleteBucket([]byte("session")) })
		f.open()
		f.setSession(key(5, 0), `{}`, 0)
		f.wantState(1, spool.Pending)
	})
}

// TestSession_TenThousandConflicts: many read, change and write one session at
// once, as handlers and from outside; each that is refused tries again, and in
// the end every change is in it.
func TestSession_TenThousandConflicts(t *testing.T) {
	const writers, conflicts = 24, 10_000
	bubble(t, limits(), func(t *testing.T, f *fixture) {
		k := key(5, 0)
		f.setSession(k, `{"n":0}`, 0)
		var refused, written atomic.Int64
		var all sync.WaitGroup
		for range writers {
			all.Go(func() {
				for refused.Load() < conflicts {
					s, err := f.bot.Session(k)
					var data struct{ N int64 }
					if err == nil {
						err = json.Unmarshal(s.Data, &data)
					}
					if err == nil {
						_, _, err = f.bot.SetSession(context.Background(), k, fmt.Appendf(nil, `{"n":%d}`, data.N+1), s.Version)
					}
					switch {
					case err == nil:
						written.Add(1)
					case errors.Is(err, spool.ErrStale):
						refused.Add(1)
					default:
						t.Error(err)
						return
					}
				}
			})
		}
		all.Wait()
		synctest.Wait()
		f.wantSession(k, fmt.Sprintf(`%d {"n":%d}`, written.Load()+1, written.Load()))
		t.Logf("%d conflicts, %d changes", refused.Load(), written.Load())
	})
}
