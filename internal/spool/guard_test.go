package spool_test

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tgspool/tgspool/internal/spool"
)

// past is a store with a history: what its file held at the end, its snapshot
// from half way, and what had been sent by then.
type past struct {
	file     []byte
	snapshot []byte
	accepted []int64
	sent     map[int64]bool // claimed at least once, before or after the snapshot
	handled  map[int64]bool // update_ids that a handler has had
	offset   int64
	reserve  string // a reserve to be linked, since it takes long to be written
}

// makePast lives a store's life: jobs in every state, updates in every state, a
// snapshot in the middle and more of all that after it.
func makePast(t *testing.T) *past {
	t.Helper()
	p := &past{sent: map[int64]bool{}, handled: map[int64]bool{}}
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		f := &fixture{t: t, dir: dir, cfg: spool.BotConfig{ID: 7, Name: "home", Limits: spool.Limits{MaxAttempts: 8}}}
		f.open()
		p.live(f, 0)
		info, err := f.store.Snapshot(t.Context(), spool.SnapshotOptions{})
		if err != nil {
			t.Fatal(err)
		}
		p.live(f, 100)
		f.check()
		if err := f.store.Close(); err != nil {
			t.Fatal(err)
		}
		p.reserve = filepath.Join(dir, "spool.reserve")
		p.file, p.snapshot = mustRead(t, filepath.Join(dir, "spool.db")), mustRead(t, info.Path)
	})
	return p
}

// put makes a store's folder with a file and, unless it is nil, a snapshot.
func (p *past) put(t *testing.T, file, snapshot []byte) (dir string) {
	t.Helper()
	dir = t.TempDir()
	write(t, filepath.Join(dir, "spool.db"), file)
	if snapshot != nil {
		write(t, filepath.Join(dir, "snapshots", "spool-20260101T030000Z.db"), snapshot)
	}
	if err := os.Link(p.reserve, filepath.Join(dir, "spool.reserve")); err != nil {
		t.Fatal(err)
	}
	return dir
}

func mustRead(t *testing.T, path string) []byte {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func (p *past) live(f *fixture, base int64) {
	send := func(chat, text string) int64 {
		id := f.send(chat, text)
		p.accepted = append(p.accepted, id)
		return id
	}
	for i := range 18 {
		send(fmt.Sprint(base+int64(i%7)+1), strings.Repeat("word ", 1+i*33))
	}
	f.setSession(key(base+1, 0), fmt.Sprintf(`{"base":%d}`, base), 0)
	late := message("5", "later")
	late.NotBefore = time.Now().Add(time.Hour)
	p.accepted = append(p.accepted, f.enqueue(late)[0].Job.ID)
	for i := range 12 {
		c := f.mustClaim()
		p.sent[c.ID] = true
		switch i % 6 {
		case 4:
			f.settle(c, spool.Verdict{State: spool.Uncertain, Reached: true, MaybeSent: true})
		case 5: // stays running
		default:
			f.done(c)
		}
	}
	if _, err := f.store.Hold(f.t.Context(), send("held", "held")); err != nil {
		f.t.Fatal(err)
	}
	ids := []int64{base + 1, base + 2, base + 3, base + 4}
	var batch []spool.NewUpdate
	for _, id := range ids {
		batch = append(batch, text(id, id))
	}
	p.offset = base + 5
	if _, err := f.bot.Intake(f.t.Context(), spool.Batch{Updates: batch, Offset: p.offset, SetOffset: true}); err != nil {
		f.t.Fatal(err)
	}
	for i := range 3 {
		l := f.lease(time.Minute)
		p.handled[*l.UpdateID] = true
		if i < 2 { // the third stays leased
			if _, err := f.bot.Handled(f.t.Context(), l, spool.Handling{Jobs: []spool.NewJob{message("9", "reply")}}); err != nil {
				f.t.Fatal(err)
			}
		}
	}
}

// damage is one way to spoil a file.
type damage struct {
	name  string
	spoil func(b []byte) []byte
}

func damages(size int) []damage {
	var list []damage
	add := func(name string, spoil func([]byte) []byte) { list = append(list, damage{name, spoil}) }
	for _, n := range []int{0, 1, 17, 100, 4095, 4096, 4097, 8192, 8200, 12288, size / 4, size / 2, size - 4096, size - 1} {
		add(fmt.Sprintf("cut to %d", n), func(b []byte) []byte { return b[:n] })
	}
	for _, z := range [][2]int{{0, 4096}, {4096, 4096}, {0, 8192}, {0, 64 << 10}, {8192, 4096}, {16384, 4096}, {size / 2, 4096}, {size / 2, 16384}, {size - 4096, 4096}, {0, size}} {
		add(fmt.Sprintf("zeroed %d+%d", z[0], z[1]), func(b []byte) []byte {
			clear(b[z[0]:min(z[0]+z[1], len(b))])
			return b
		})
	}
	add("wrong magic", func(b []byte) []byte { b[16], b[4096+16] = 1, 1; return b })
	add("one wrong magic", func(b []byte) []byte { b[4096+16] = 1; return b })
	for seed := range uint64(90) {
		r := rand.New(rand.NewPCG(seed, 1))
		at, bit := r.IntN(size), r.IntN(8)
		if seed%3 == 0 {
			at = at % (24 << 10) // heads, and the pages that everything hangs on
		}
		add(fmt.Sprintf("bit %d of byte %d flipped", bit, at), func(b []byte) []byte { b[at] ^= 1 << bit; return b })
	}
	for seed := range uint64(12) {
		add(fmt.Sprintf("page of noise, seed %d", seed), func(b []byte) []byte {
			r := rand.New(rand.NewPCG(seed, 2))
			at := r.IntN(size/4096) * 4096
			for i := at; i < at+4096; i++ {
				b[i] = byte(r.Uint32())
			}
			return b
		})
	}
	return list
}

// TestOpen_DamagedFiles opens files with every kind of damage. None may end the
// process; after each the store works, no job that was sent goes out again, no
// update that was handled is handled again, and what is missing is told.
func TestOpen_DamagedFiles(t *testing.T) {
	p := makePast(t)
	for _, withSnapshot := range []bool{true, false} {
		for i, d := range damages(len(p.file)) {
			if !withSnapshot && i%3 != 0 {
				continue // the paths differ little
			}
			t.Run(fmt.Sprintf("%s, snapshot %v", d.name, withSnapshot), func(t *testing.T) {
				t.Parallel()
				snapshot := p.snapshot
				if !withSnapshot {
					snapshot = nil
				}
				dir := p.put(t, d.spoil(slices.Clone(p.file)), snapshot)
				synctest.Test(t, func(t *testing.T) { p.reopen(t, dir) })
			})
		}
	}
}

func write(t *testing.T, path string, b []byte) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
}

func (p *past) reopen(t *testing.T, dir string) {
	var said bytes.Buffer
	f := &fixture{t: t, dir: dir}
	var err error
	f.store, err = spool.Open(t.Context(), spool.Options{
		Path: filepath.Join(dir, "spool.db"), OnDamage: spool.OnDamageSnapshot,
		Logger: slog.New(slog.NewTextHandler(&said, nil)),
	})
	if err != nil {
		t.Fatalf("the store can't be opened at all: %v", err)
	}
	defer func() {
		if err := f.store.Close(); err != nil {
			t.Error(err)
		}
	}()
	if f.bot, err = f.store.Attach(t.Context(), spool.BotConfig{ID: 7, Name: "home", Limits: spool.Limits{MaxAttempts: 8}}); err != nil {
		t.Fatal(err)
	}
	for c := f.claim(3 * time.Minute); c != nil; c = f.claim(3 * time.Minute) {
		if p.sent[c.ID] {
			t.Errorf("job %d was sent before and goes out again", c.ID)
		}
		f.done(c)
	}
	// Telegram repeats what it may not know to be taken in.
	f.intake(text(p.offset-1, p.offset-1), text(p.offset-2, p.offset-2), text(p.offset, p.offset))
	for l := f.lease(time.Second); l != nil; l = f.lease(time.Second) {
		if _, whole := f.store.Recovered(); whole && p.handled[*l.UpdateID] {
			t.Errorf("update %d was handled before and is handed out again", *l.UpdateID)
		}
		if _, err := f.bot.Handled(t.Context(), l, spool.Handling{}); err != nil {
			t.Fatal(err)
		}
	}
	for _, id := range p.accepted {
		j, err := f.store.Job(id)
		if err != nil && !strings.Contains(said.String(), "level=ERROR") {
			t.Errorf("job %d is gone without a word: %v", id, err)
		}
		if err == nil && j.State == spool.Pending && j.NotBefore == nil {
			why, _ := f.store.Why(id)
			t.Errorf("job %d waits for nothing: %+v\n%s", id, why.Gates, said.String())
		}
	}
	id := f.send("1", "new")
	if slices.Contains(p.accepted, id) {
		t.Errorf("id %d is given a second time", id)
	}
	if r, ok := f.store.Recovered(); ok && r.MovedTo != "" {
		if _, err := os.Stat(r.MovedTo); err != nil {
			t.Errorf("the old file isn't kept: %v", err)
		}
	}
}

// TestOpen_RefusedFiles are those that are never touched.
func TestOpen_RefusedFiles(t *testing.T) {
	p := makePast(t)
	foreign := bytes.Repeat([]byte("SQLite format 3\x00 and more of it"), 1000)
	tests := []struct {
		name string
		file []byte // nil: a folder
		stop bool
		want error
		say  string
	}{
		{"a folder", nil, false, spool.ErrForeign, "no file"},
		{"another program's file", foreign, false, spool.ErrForeign, "another program"},
		{"somebody else's bolt file", mustRead(t, otherBolt(t)), false, spool.ErrForeign, "another program"},
		{"damaged and told to stop", p.file[:20000], true, spool.ErrDamaged, "tgspool db restore"},
		{"one head damaged and told to stop", spoilHead(p.file), true, spool.ErrDamaged, "heads"},
		{"of a newer version", newerFile(t), false, spool.ErrNewer, "version 99"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			path := filepath.Join(dir, "spool.db")
			write(t, filepath.Join(dir, "snapshots", "spool-20260101T030000Z.db"), p.snapshot)
			if tt.file == nil {
				if err := os.Mkdir(path, 0o700); err != nil {
					t.Fatal(err)
				}
			} else {
				write(t, path, tt.file)
			}
			o := spool.Options{Path: path, OnDamage: spool.OnDamageSnapshot}
			if tt.stop {
				o.OnDamage = spool.OnDamageStop
			}
			_, err := spool.Open(t.Context(), o)
			if !errors.Is(err, tt.want) || !strings.Contains(err.Error(), tt.say) || !strings.Contains(err.Error(), path) {
				t.Fatalf("got %v, want %v naming %s and saying %q", err, tt.want, path, tt.say)
			}
			if tt.file != nil && !bytes.Equal(mustRead(t, path), tt.file) {
				t.Error("the file was touched")
			}
		})
	}
}

func spoilHead(file []byte) []byte {
	b := slices.Clone(file)
	b[4096+20] ^= 1
	return b
}

// TestOpen_RestoreHoldsWhatMayBeSent looks at a restore in detail.
func TestOpen_RestoreHoldsWhatMayBeSent(t *testing.T) {
	p := makePast(t)
	dir := t.TempDir()
	path := filepath.Join(dir, "spool.db")
	write(t, path, p.file[:len(p.file)/2])
	snapshot := filepath.Join(dir, "snapshots", "spool-20260101T030000Z.db")
	write(t, snapshot, p.snapshot)
	synctest.Test(t, func(t *testing.T) {
		f := &fixture{t: t, dir: dir, cfg: spool.BotConfig{ID: 7, Name: "home", Limits: spool.Limits{MaxAttempts: 8}}}
		f.open()
		defer func() { _ = f.store.Close() }()
		r, ok := f.store.Recovered()
		if !ok || r.Snapshot != snapshot || r.Held == 0 || r.Dead != 2 || !strings.Contains(r.MovedTo, "spool.db.corrupt-") {
			t.Fatalf("recovered: %+v, %v", r, ok)
		}
		if c := f.claim(time.Hour * 100); c != nil {
			t.Errorf("job %d goes out by itself", c.ID)
		}
		page, err := f.bot.Jobs(spool.JobFilter{State: spool.Held})
		if err != nil || int64(len(page.Items)) != r.Held {
			t.Fatalf("%d jobs are held, the recovery says %d: %v", len(page.Items), r.Held, err)
		}
		for _, j := range page.Items {
			if j.HeldBy == nil || *j.HeldBy != spool.HeldByRestore {
				t.Errorf("job %d is held by %v", j.ID, j.HeldBy)
			}
		}
		dead, err := f.bot.Updates(spool.UpdateFilter{State: spool.UpdateDead})
		if err != nil || len(dead.Items) != 2 || *dead.Items[0].Error != "restored" {
			t.Errorf("dead updates: %+v, %v", dead.Items, err)
		}
		f.check()
		if _, err := f.store.Release(t.Context(), page.Items[0].ID); err != nil {
			t.Fatal(err)
		}
		if c := f.mustClaim(); c.ID != page.Items[0].ID || !c.MaybeSent {
			t.Errorf("claimed %+v after the release", c.Job)
		}
		f.reopen() // the recovery is over: it isn't begun again
		if again, _ := f.store.Recovered(); again.At != r.At || again.Held != r.Held {
			t.Errorf("recovered again: %+v", again)
		}
	})
}
