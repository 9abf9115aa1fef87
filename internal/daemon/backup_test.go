package daemon

import (
	"bytes"
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tgspool/tgspool/internal/config"
	"github.com/tgspool/tgspool/internal/spool"
)

func TestUntilBackup(t *testing.T) {
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	day := func(d, h, m int) time.Time { return time.Date(2026, 3, d, h, m, 0, 0, berlin) }
	tests := []struct {
		name      string
		now, last time.Time
		want      time.Duration
	}{
		{"later today", day(10, 1, 40), day(9, 3, 40), 2 * time.Hour},
		{"just made", day(10, 3, 41), day(10, 3, 40), 24*time.Hour - time.Minute},
		{"the moment itself", day(10, 3, 40), day(9, 3, 40), backupSettle},
		{"never made", day(10, 12, 0), time.Time{}, backupSettle},
		{"missed while off", day(12, 12, 0), day(9, 3, 40), backupSettle},
		{"made by hand since", day(10, 12, 0), day(10, 11, 0), 15*time.Hour + 40*time.Minute},
		{"over the change to summer time", day(28, 3, 41), day(28, 3, 40), 23*time.Hour - time.Minute},
	}
	for _, tt := range tests {
		if got := untilBackup(tt.now, tt.last, "03:40"); got != tt.want {
			t.Errorf("%s: %s, want %s", tt.name, got, tt.want)
		}
	}
}

// TestBackups_ThroughAWeek lives through days of snapshots, failures among them.
func TestBackups_ThroughAWeek(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		var said bytes.Buffer
		store, err := spool.Open(t.Context(), spool.Options{Path: filepath.Join(dir, "spool.db")})
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = store.Close() }()
		cfg := &config.Config{Store: config.Store{Path: filepath.Join(dir, "spool.db")}, Backup: config.Backup{At: "03:40", Keep: 3}}
		b := newBackups(store, cfg, slog.New(slog.NewTextHandler(&said, nil)))
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() { defer close(ended); b.run(ctx) }()
		snapshots := filepath.Join(dir, "snapshots")
		count := func(after time.Duration, want int) {
			t.Helper()
			time.Sleep(after)
			synctest.Wait()
			if got := len(spool.Snapshots(snapshots)); got != want {
				t.Errorf("%s later there are %d snapshots, want %d", after, got, want)
			}
		}
		count(2*time.Minute, 1)  // at once: there was none
		count(24*time.Hour, 2)   // each day
		count(5*24*time.Hour, 3) // the oldest go
		was := spool.Snapshots(snapshots)[0].At
		if err := os.RemoveAll(snapshots); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(snapshots, nil, 0o600); err != nil { // no folder can be made
			t.Fatal(err)
		}
		time.Sleep(30 * time.Hour)
		synctest.Wait()
		if n := strings.Count(said.String(), "snapshot failed"); n != 1 || b.trouble() == "" {
			t.Errorf("told %d times, shown %q:\n%s", n, b.trouble(), said.String())
		}
		if err := os.Remove(snapshots); err != nil {
			t.Fatal(err)
		}
		count(2*time.Hour, 1) // by itself, soon after it can be made again
		if b.trouble() != "" || !spool.Snapshots(snapshots)[0].At.After(was) {
			t.Errorf("still in trouble: %q", b.trouble())
		}
		other := filepath.Join(dir, "other")
		cfg.Backup.To = other
		b.use(cfg)
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		if len(spool.Snapshots(other)) != 1 {
			t.Error("the new folder isn't used")
		}
		stop()
		<-ended
	})
}

// TestBackups_AfterASuspend: what lets the clock go ahead of the timers lets the
// snapshot come no more than an hour late.
func TestBackups_AfterASuspend(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		store, err := spool.Open(t.Context(), spool.Options{Path: filepath.Join(dir, "spool.db")})
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = store.Close() }()
		at := time.Now().Add(10 * time.Hour).Format("15:04")
		cfg := &config.Config{Store: config.Store{Path: filepath.Join(dir, "spool.db")}, Backup: config.Backup{At: at, Keep: 3}}
		b := newBackups(store, cfg, slog.New(slog.DiscardHandler))
		var slept atomic.Int64
		b.now = func() time.Time { return time.Now().Add(time.Duration(slept.Load())) }
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() { defer close(ended); b.run(ctx) }()
		for _, want := range []int{1, 2} {
			time.Sleep(70 * time.Minute)
			synctest.Wait()
			if got := len(spool.Snapshots(filepath.Join(dir, "snapshots"))); got < want {
				t.Errorf("%d snapshots, want %d at least", got, want)
			}
			slept.Store(int64(9 * time.Hour))
		}
		stop()
		<-ended
	})
}
