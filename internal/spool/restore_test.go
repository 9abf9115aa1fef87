package spool_test

import (
	"bytes"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	bolt "go.etcd.io/bbolt"

	"github.com/tgspool/tgspool/internal/spool"
)

// drop removes the first keys of a bucket.
func drop(bucket string, n int) func(*bolt.Tx) error {
	return func(tx *bolt.Tx) error {
		c := tx.Bucket([]byte(bucket)).Cursor()
		for k, _ := c.First(); k != nil && n > 0; k, _ = c.Next() {
			if err := c.Delete(); err != nil {
				return err
			}
			n--
		}
		return nil
	}
}

// spoilFirst changes the first value of a bucket.
func spoilFirst(bucket string) func(*bolt.Tx) error {
	return func(tx *bolt.Tx) error {
		b := tx.Bucket([]byte(bucket))
		k, v := b.Cursor().First()
		v = bytes.Clone(v)
		v[len(v)-1] ^= 1
		return b.Put(bytes.Clone(k), v)
	}
}

// move gives the first record of a bucket another key, as a flipped bit does.
func move(bucket string) func(*bolt.Tx) error {
	return func(tx *bolt.Tx) error {
		b := tx.Bucket([]byte(bucket))
		k, v := b.Cursor().First()
		k, v = bytes.Clone(k), bytes.Clone(v)
		if err := b.Delete(k); err != nil {
			return err
		}
		k[len(k)-1] ^= 0x40
		return b.Put(k, v)
	}
}

// TestOpen_RepairsIndexes loses parts of every index, in pages that are whole.
// The start notices and makes the index again; every job that was never sent
// goes out, none that was sent does by itself.
func TestOpen_RepairsIndexes(t *testing.T) {
	p := makePast(t)
	for _, tt := range []struct {
		bucket string
		spoil  func(*bolt.Tx) error
		held   bool // what was lost says what was sent: jobs are held
	}{
		{"queue", drop("queue", 3), true},
		{"queue, all", drop("queue", 1<<20), true},
		{"queue, a key", move("queue"), true},
		{"run", drop("run", 1), true},
		{"run, a key", move("run"), true},
		{"ready", drop("ready", 1<<20), false},
		{"timer", drop("timer", 1<<20), true}, // also where a job waits for its time
		{"inqueue", drop("inqueue", 1), false},
		{"inready", drop("inready", 1<<20), false},
		{"inlease", move("inlease"), false},
		{"chat, a key", move("chat"), false},
		{"chat, all", drop("chat", 1<<20), false},
	} {
		t.Run(tt.bucket, func(t *testing.T) {
			dir := p.put(t, p.file, nil)
			editBolt(t, filepath.Join(dir, "spool.db"), tt.spoil)
			synctest.Test(t, func(t *testing.T) { p.repaired(t, dir, tt.held) })
		})
	}
}

func (p *past) repaired(t *testing.T, dir string, held bool) {
	var said bytes.Buffer
	f := &fixture{t: t, dir: dir}
	var err error
	f.store, err = spool.Open(t.Context(), spool.Options{Path: filepath.Join(dir, "spool.db"), Logger: slog.New(slog.NewTextHandler(&said, nil))})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.store.Close() }()
	if !strings.Contains(said.String(), "are damaged") {
		t.Errorf("nothing was noticed:\n%s", said.String())
	}
	if f.bot, err = f.store.Attach(t.Context(), spool.BotConfig{ID: 7, Name: "home", Limits: spool.Limits{MaxAttempts: 8}}); err != nil {
		t.Fatal(err)
	}
	f.check()
	var out []int64
	for c := f.claim(3 * time.Hour); c != nil; c = f.claim(3 * time.Hour) {
		if p.sent[c.ID] {
			t.Errorf("job %d was sent before", c.ID)
		}
		out = append(out, c.ID)
		f.done(c)
	}
	page, err := f.bot.Jobs(spool.JobFilter{State: spool.Held})
	if err != nil {
		t.Fatal(err)
	}
	for _, j := range page.Items {
		if *j.HeldBy == spool.HeldByRestore {
			held = false // seen
		}
		out = append(out, j.ID)
	}
	if held {
		t.Error("no job is held")
	}
	for _, id := range p.accepted {
		if !p.sent[id] && !slices.Contains(out, id) {
			j, err := f.store.Job(id)
			t.Errorf("job %d neither goes out nor is held: %s, %v", id, j.State, err)
		}
	}
	updates := 0
	for l := f.lease(time.Hour); l != nil; l = f.lease(time.Hour) {
		updates++
		if _, err := f.bot.Handled(t.Context(), l, spool.Handling{}); err != nil {
			t.Fatal(err)
		}
	}
	if updates != 4 { // each half of its life has left one open and one leased
		t.Errorf("%d updates are handed out, want 4", updates)
	}
	f.check()
}

// TestCheckFile_FindsAndRepairMends is what tgspool db check does.
func TestCheckFile_FindsAndRepairMends(t *testing.T) {
	p := makePast(t)
	for bucket, spoil := range map[string]func(*bolt.Tx) error{
		"ready": drop("ready", 2), "queue": drop("queue", 2), "live": spoilFirst("live"), "ended": drop("ended", 1),
		"alias": drop("alias", 2), "inbox": spoilFirst("inbox"), "seen": drop("seen", 2),
	} {
		t.Run(bucket, func(t *testing.T) {
			path := filepath.Join(p.put(t, p.file, nil), "spool.db")
			o := spool.Options{Path: path}
			if problems, err := spool.CheckFile(t.Context(), o); err != nil || len(problems) > 0 {
				t.Fatalf("before: %q %v", problems, err)
			}
			editBolt(t, path, spoil)
			problems, err := spool.CheckFile(t.Context(), o)
			if err != nil || len(problems) == 0 && bucket != "alias" && bucket != "seen" {
				t.Fatalf("found %q %v", problems, err)
			}
			r, err := spool.Repair(t.Context(), o)
			if err != nil {
				t.Fatal(err)
			}
			mustRead(t, r.MovedTo)
			problems, err = spool.CheckFile(t.Context(), o)
			problems = slices.DeleteFunc(problems, func(s string) bool { return strings.Contains(s, "set aside") })
			if err != nil || len(problems) > 0 {
				t.Errorf("after: %q %v", problems, err)
			}
		})
	}
}

// TestRestore_KeepsWhatMustNotFallBack restores an old snapshot over a healthy
// store: deadlines, ids and what was taken in stay as they were.
func TestRestore_KeepsWhatMustNotFallBack(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		f := &fixture{t: t, dir: dir, cfg: spool.BotConfig{ID: 7, Name: "home", Limits: limits()}}
		f.open()
		f.intake(text(10, 1))
		f.send("1", "before")
		info, err := f.store.Snapshot(t.Context(), spool.SnapshotOptions{})
		if err != nil {
			t.Fatal(err)
		}
		c := f.mustClaim()
		later := time.Now().Add(5 * time.Hour)
		f.settle(c, spool.Verdict{State: spool.Pending, GiveBack: true, BotCooldown: later, ChatCooldown: later.Add(time.Hour)})
		last := f.send("2", "lost")
		if _, err := f.bot.Intake(t.Context(), spool.Batch{Updates: []spool.NewUpdate{text(11, 1)}, Offset: 12, SetOffset: true}); err != nil {
			t.Fatal(err)
		}
		if err := f.store.Close(); err != nil {
			t.Fatal(err)
		}
		r, err := spool.Restore(t.Context(), spool.Options{Path: filepath.Join(dir, "spool.db")}, info.Path)
		if err != nil || r.Held != 1 || r.Dead != 1 || r.Snapshot != info.Path || !strings.Contains(r.MovedTo, ".replaced-") {
			t.Fatalf("restored %+v: %v", r, err)
		}
		f.open()
		defer func() { _ = f.store.Close() }()
		if got := f.bot.Cooldown(); got.Before(later.Add(-time.Second)) {
			t.Errorf("the bot's cooldown fell back to %s", got)
		}
		chat, err := f.bot.Chat("1")
		if err != nil || chat.CooldownUntil == nil {
			t.Errorf("the chat's cooldown is forgotten: %+v %v", chat, err)
		}
		if f.bot.Offset() != 0 {
			t.Errorf("offset %d: what was never confirmed would not come again", f.bot.Offset())
		}
		if id := f.send("3", "new"); id <= last {
			t.Errorf("id %d is given again", id)
		}
		// Telegram gives 11 again, which the lost file had taken in, and 12, which is new.
		f.intake(text(11, 1), text(12, 2))
		l := f.lease(time.Minute)
		if l == nil || *l.UpdateID != 12 {
			t.Fatalf("handed out: %+v", l)
		}
		if u, err := f.bot.UpdateByID(11); err != nil || u.State != spool.UpdateDead || *u.Error != "restored" {
			t.Errorf("update 11: %+v %v", u, err)
		}
		f.intake(text(5, 3)) // Telegram begins to count anew: only the first batch is doubtful
		if u, err := f.bot.UpdateByID(5); err != nil || u.State != spool.UpdateOpen {
			t.Errorf("update 5: %+v %v", u, err)
		}
		f.check()
	})
}

// TestOpen_EmptyInstead has no snapshot: what the damaged file still says about
// its bots is kept.
func TestOpen_EmptyInstead(t *testing.T) {
	p := makePast(t)
	dir := t.TempDir()
	path := filepath.Join(dir, "spool.db")
	write(t, path, p.file)
	var root int64 // a page that is in use: which ones are differs from run to run
	editBolt(t, path, func(tx *bolt.Tx) error { root = int64(tx.Bucket([]byte("live")).Root()); return nil })
	if root == 0 {
		t.Fatal("the bucket of live jobs has no page of its own")
	}
	file := slices.Clone(p.file)
	clear(file[root*4096:][:4096])
	write(t, path, file)
	synctest.Test(t, func(t *testing.T) {
		f := &fixture{t: t, dir: dir, cfg: spool.BotConfig{ID: 7, Name: "home", Limits: limits()}}
		f.open()
		defer func() { _ = f.store.Close() }()
		if r, ok := f.store.Recovered(); !ok || r.Snapshot != "" || r.MovedTo == "" {
			t.Fatalf("recovered %+v %v", r, ok)
		}
		f.intake(text(p.offset-1, 1))
		if l := f.lease(time.Minute); l != nil {
			t.Errorf("update %d, which the lost file had taken in, is handed out", *l.UpdateID)
		}
		f.intake(text(p.offset, 1))
		if l := f.lease(time.Minute); l == nil {
			t.Error("a new update isn't handed out")
		}
		f.check()
	})
}

// TestOpen_EmptyKeepsDeadlines has no snapshot either: a flood that Telegram has
// asked to wait for is waited for.
func TestOpen_EmptyKeepsDeadlines(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "spool.db")
	synctest.Test(t, func(t *testing.T) {
		f := &fixture{t: t, dir: dir, cfg: spool.BotConfig{ID: 7, Name: "home", Limits: limits()}}
		f.open()
		f.send("1", "x")
		until := time.Now().Add(3 * time.Hour)
		f.settle(f.mustClaim(), spool.Verdict{State: spool.Done, BotCooldown: until, ChatCooldown: until})
		if err := f.store.Close(); err != nil {
			t.Fatal(err)
		}
		editBolt(t, path, func(tx *bolt.Tx) error { return tx.DeleteBucket([]byte("ready")) })
		f.open()
		defer func() { _ = f.store.Close() }()
		if r, ok := f.store.Recovered(); !ok || !strings.Contains(r.Reason, "ready") {
			t.Fatalf("recovered %+v %v", r, ok)
		}
		chat, err := f.bot.Chat("1")
		if err != nil || chat.CooldownUntil == nil || chat.CooldownUntil.Before(until.Add(-time.Second)) {
			t.Errorf("the chat's deadline: %+v %v", chat, err)
		}
		if f.bot.Cooldown().Before(until.Add(-time.Second)) {
			t.Errorf("the bot's deadline: %s", f.bot.Cooldown())
		}
		f.send("1", "y")
		if c := f.claim(2 * time.Hour); c != nil {
			t.Error("a job goes out before the deadline")
		}
		if c := f.claim(2 * time.Hour); c == nil {
			t.Error("no job goes out after the deadline")
		}
		f.check()
	})
}

// TestOpen_CountsOnFromJobs has lost the number of the last job, which has no
// checksum: no id that a job still bears is given again.
func TestOpen_CountsOnFromJobs(t *testing.T) {
	p := makePast(t)
	for name, spoil := range map[string]func(*bolt.Bucket) error{
		"gone":     func(meta *bolt.Bucket) error { return meta.Delete([]byte("next_job")) },
		"too low":  func(meta *bolt.Bucket) error { return meta.Put([]byte("next_job"), make([]byte, 8)) },
		"negative": func(meta *bolt.Bucket) error { return meta.Put([]byte("next_job"), bytes.Repeat([]byte{0xff}, 8)) },
		"too high": func(meta *bolt.Bucket) error {
			return meta.Put([]byte("next_job"), []byte{0x40, 0, 0, 0, 0, 0, 0, 1})
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := p.put(t, p.file, nil)
			editBolt(t, filepath.Join(dir, "spool.db"), func(tx *bolt.Tx) error { return spoil(tx.Bucket([]byte("meta"))) })
			synctest.Test(t, func(t *testing.T) {
				f := &fixture{t: t, dir: dir, cfg: spool.BotConfig{ID: 7, Name: "home", Limits: limits()}}
				f.open()
				defer func() { _ = f.store.Close() }()
				if last, id := slices.Max(p.accepted), f.send("1", "new"); id <= last || id > last+1<<40 {
					t.Errorf("job %d follows job %d", id, last)
				}
			})
		})
	}
}

// TestClaim_ChatIsGone loses the record of a chat while the store is used, as a
// store that is too large to be looked at before may have lost it already.
func TestClaim_ChatIsGone(t *testing.T) {
	for name, lost := range map[string]struct {
		buckets []string
		goes    bool
	}{
		"the chat":               {[]string{"chat"}, true},
		"the chat and its queue": {[]string{"chat", "queue"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, limits(), func(t *testing.T, f *fixture) {
				id := f.send("1", "a")
				for _, bucket := range lost.buckets {
					if err := spool.Damage(f.store, drop(bucket, 1<<20)); err != nil {
						t.Fatal(err)
					}
				}
				f.checked = !lost.goes // what has no place is for the check to find
				c := f.claim(3 * time.Minute)
				if got := c != nil && c.ID == id; got != lost.goes {
					t.Errorf("claimed %+v", c)
				}
				other := f.send("2", "b")
				if c := f.claim(time.Minute); c == nil || c.ID != other {
					t.Errorf("the neighbour: %+v", c)
				}
			})
		})
	}
}
