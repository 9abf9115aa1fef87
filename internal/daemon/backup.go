package daemon

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/tgspool/tgspool/internal/config"
	"github.com/tgspool/tgspool/internal/spool"
)

const (
	// backupRate bounds the writing of the daily snapshot, in bytes a second: it
	// shares the card with the spool's own commits.
	backupRate = 8 << 20
	// backupSettle keeps a snapshot that was missed out of the rush of a start.
	backupSettle = time.Minute
	// backupRetry is how long a snapshot that failed waits for another try.
	backupRetry = time.Hour
	// backupLook bounds one wait: timers stand still while the box is suspended,
	// and a clock that is set right moves the time of day.
	backupLook = time.Hour
)

// backups makes the daily snapshot.
type backups struct {
	store   *spool.Store
	log     *slog.Logger
	changed chan struct{} // buffered by one: there are new settings
	now     func() time.Time

	mu  sync.Mutex // guards what follows
	cfg config.Backup
	dir string
	bad string // why the last one failed
}

func newBackups(store *spool.Store, cfg *config.Config, log *slog.Logger) *backups {
	b := &backups{store: store, log: log, changed: make(chan struct{}, 1), now: time.Now}
	b.use(cfg)
	return b
}

// use takes over settings. Those that run count from the next snapshot on.
func (b *backups) use(cfg *config.Config) {
	b.mu.Lock()
	b.cfg, b.dir = cfg.Backup, cfg.SnapshotDir()
	b.mu.Unlock()
	select {
	case b.changed <- struct{}{}:
	default:
	}
}

// trouble is why the last snapshot failed; "" when it didn't.
func (b *backups) trouble() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.bad
}

// run makes snapshots until ctx ends. It sleeps until the next one is due; one
// that was missed while the box was off is made up for soon after the start.
func (b *backups) run(ctx context.Context) {
	failed := false
	for {
		b.mu.Lock()
		at, dir := b.cfg.At, b.dir
		b.mu.Unlock()
		wait := never
		if at != "" {
			now := b.now()
			wait = untilBackup(now, lastSnapshot(dir, now), at)
			if failed {
				wait = max(wait, backupRetry)
			}
		}
		timer := time.NewTimer(min(wait, backupLook))
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-b.changed:
			timer.Stop()
			continue
		case <-timer.C:
		}
		if wait > backupLook {
			continue // a suspend or a corrected clock may have brought it nearer
		}
		failed = !b.make(ctx)
	}
}

// never is longer than any process runs.
const never time.Duration = 1<<63 - 1

// make makes one snapshot and removes the oldest ones.
func (b *backups) make(ctx context.Context) bool {
	b.mu.Lock()
	dir, keep := b.dir, b.cfg.Keep
	b.mu.Unlock()
	err := errors.New("the clock isn't known to be right: a snapshot's name would be wrong")
	if b.store.ClockKnown() {
		if _, err = b.store.Snapshot(ctx, spool.SnapshotOptions{Dir: dir, Rate: backupRate}); err == nil {
			err = spool.PruneSnapshots(dir, keep, b.now())
		}
	}
	if ctx.Err() != nil {
		return false
	}
	text := ""
	if err != nil {
		text = err.Error()
	}
	b.mu.Lock()
	was := b.bad
	b.bad = text
	b.mu.Unlock()
	switch {
	case err != nil && was == "":
		b.log.LogAttrs(ctx, slog.LevelError, "the daily snapshot failed; it is tried again every hour", slog.Any("err", err))
	case err == nil && was != "":
		b.log.LogAttrs(ctx, slog.LevelInfo, "the daily snapshot works again", slog.String("path", dir))
	}
	return err == nil
}

func lastSnapshot(dir string, now time.Time) time.Time {
	for _, s := range spool.Snapshots(dir) {
		if !s.FromAhead(now) {
			return s.At
		}
	}
	return time.Time{}
}

// untilBackup is how long to wait for the next snapshot at a local time of day
// (15:04), when the last one was made at last.
func untilBackup(now, last time.Time, at string) time.Duration {
	clock, err := time.Parse("15:04", at)
	if err != nil {
		return never // the settings are checked before
	}
	on := func(days int) time.Time {
		return time.Date(now.Year(), now.Month(), now.Day()+days, clock.Hour(), clock.Minute(), 0, 0, now.Location())
	}
	due := on(0)
	if due.After(now) {
		due = on(-1)
	}
	if last.Before(due) {
		return backupSettle
	}
	for days := 0; ; days++ {
		if next := on(days); next.After(now) {
			return next.Sub(now)
		}
	}
}
