package demo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/tgspool/tgspool/internal/spool"
)

// InFlight reads from the spool of a daemon that was killed which jobs were
// running then. It looks at a copy, so that the next start meets the file as
// the kill has left it. There are none when there is no file yet.
func InFlight(ctx context.Context, path string) (ids []int64, err error) {
	store, done, err := openCopy(ctx, path)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, done()) }()
	for _, bot := range store.Bots() {
		page, err := bot.Jobs(spool.JobFilter{State: spool.Running, Limit: 1000})
		if err != nil {
			return nil, fmt.Errorf("listing the running jobs: %w", err)
		}
		for _, job := range page.Items {
			ids = append(ids, job.ID)
		}
	}
	return ids, nil
}

// openCopy opens a copy of a store's file; done closes and removes it.
func openCopy(ctx context.Context, path string) (store *spool.Store, done func() error, err error) {
	source, err := os.Open(path)
	if err != nil {
		return nil, nil, fmt.Errorf("opening the spool's file: %w", err)
	}
	defer func() { _ = source.Close() }()
	dir, err := os.MkdirTemp(filepath.Dir(path), "look-")
	if err != nil {
		return nil, nil, fmt.Errorf("making a folder: %w", err)
	}
	name := filepath.Join(dir, "spool.db")
	if err := write(name, source); err != nil {
		return nil, nil, errors.Join(err, os.RemoveAll(dir))
	}
	store, err = spool.Open(ctx, spool.Options{Path: name})
	if err != nil {
		return nil, nil, errors.Join(err, os.RemoveAll(dir))
	}
	return store, func() error { return errors.Join(store.Close(), os.RemoveAll(dir)) }, nil
}

func write(name string, source io.Reader) error {
	target, err := os.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("copying the spool's file: %w", err)
	}
	if _, err := io.Copy(target, source); err != nil {
		return errors.Join(fmt.Errorf("copying the spool's file: %w", err), target.Close())
	}
	return target.Close()
}

// Contents is all that a spool holds of one bot.
type Contents struct {
	Jobs    []spool.Job
	Updates []spool.Update
	// Faults are what Store.Check finds.
	Faults []string
}

// ReadAll reads the spool of a daemon that has ended and checks it. The limits
// are those that the daemon had.
func ReadAll(ctx context.Context, path string, bot spool.BotConfig) (c Contents, err error) {
	store, done, err := openCopy(ctx, path)
	if err != nil {
		return c, err
	}
	defer func() { err = errors.Join(err, done()) }()
	b, err := store.Attach(ctx, bot)
	if err != nil {
		return c, fmt.Errorf("reading the spool: %w", err)
	}
	if c.Faults, err = store.Check(); err != nil {
		return c, fmt.Errorf("checking the spool: %w", err)
	}
	for after := int64(0); ; {
		page, err := b.Jobs(spool.JobFilter{After: after, Limit: 1000})
		if err != nil {
			return c, fmt.Errorf("listing the jobs: %w", err)
		}
		c.Jobs = append(c.Jobs, page.Items...)
		if after = page.Next; after == 0 {
			break
		}
	}
	for after := int64(0); ; {
		page, err := b.Updates(spool.UpdateFilter{After: after, Limit: 1000})
		if err != nil {
			return c, fmt.Errorf("listing the updates: %w", err)
		}
		c.Updates = append(c.Updates, page.Items...)
		if after = page.Next; after == 0 {
			return c, nil
		}
	}
}
