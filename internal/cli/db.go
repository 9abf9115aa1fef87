package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/tgspool/tgspool/internal/config"
	"github.com/tgspool/tgspool/internal/localapi"
	"github.com/tgspool/tgspool/internal/manage"
	"github.com/tgspool/tgspool/internal/spool"
)

func (a *app) dbCommand() *cobra.Command {
	c := &cobra.Command{
		Use: "db", Short: "Look after the spool's file",
		Long: "Look after the spool's file: check it, make it smaller, copy it, go back to a copy.\n" +
			"The file is the settings' [store] path.",
	}
	c.AddCommand(a.dbCheck(), a.dbCompact(), a.dbBackup(), a.dbRestore())
	return c
}

func (a *app) dbCheck() *cobra.Command {
	repair := false
	c := a.jsonFlag(&cobra.Command{
		Use: "check", Short: "Look at every page, record and index of the spool", Args: cobra.NoArgs,
		Long: `Look at every page, record, index and counter of the spool, and print what
doesn't fit. While the daemon runs, a copy is looked at.

With --repair indexes and counters are made again from the records; the daemon
must be stopped. Damaged records are set aside, jobs of which nothing says
whether they were sent are held, and a copy of the old file is kept.`,
		Example: "  tgspool db check\n  sudo systemctl stop tgspool && sudo -u tgspool tgspool db check --repair",
		RunE: func(c *cobra.Command, _ []string) error {
			if repair {
				return a.repair(c.Context())
			}
			problems, err := a.checkStore(c.Context())
			if err != nil {
				return storeFailure(err)
			}
			if a.json {
				if err := a.printJSON(map[string]any{"problems": problems}); err != nil {
					return err
				}
			}
			if len(problems) == 0 {
				a.say("the spool is whole\n")
				return nil
			}
			for _, p := range problems {
				a.say("%s\n", safe(p))
			}
			return withHint(&exitError{code: exitIO, msg: plural(len(problems), "problem") + " found"},
				"stop the daemon, then tgspool db check --repair makes indexes and counters again from the records")
		},
	})
	c.Flags().BoolVar(&repair, "repair", false, "make indexes and counters again from the records")
	return c
}

// say prints for people: nothing where JSON is asked for.
func (a *app) say(format string, args ...any) {
	if !a.json {
		a.out.printf(format, args...)
	}
}

func (a *app) printJSON(v any) error {
	raw, err := json.Marshal(v)
	if err != nil {
		return err
	}
	a.out.jsonLine(raw)
	return nil
}

// checkStore asks the daemon, or looks itself when none runs.
func (a *app) checkStore(ctx context.Context) ([]string, error) {
	var done manage.Backup
	err := a.askBackup(ctx, map[string]any{"check": true}, &done)
	if err == nil {
		return done.Problems, nil
	}
	o, err := a.offline(err)
	if err != nil {
		return nil, err
	}
	defer a.handBack(o)
	problems, err := spool.CheckFile(ctx, o)
	if problems == nil {
		problems = []string{}
	}
	return problems, err
}

func (a *app) askBackup(ctx context.Context, body map[string]any, done *manage.Backup) error {
	client, err := a.dial()
	if err != nil {
		return err
	}
	defer client.Close()
	raw, err := json.Marshal(body)
	if err != nil {
		return err
	}
	return client.Do(ctx, localapi.Request{Method: http.MethodPost, Path: "/v1/db/backup", Body: raw}, done)
}

// offline decides what an answer of the daemon means: when none runs, the
// command works on the file itself.
func (a *app) offline(answer error) (spool.Options, error) {
	absent, ok := errors.AsType[*localapi.NoDaemonError](answer)
	if !ok || absent.Denied() {
		return spool.Options{}, answer
	}
	return a.storeOptions()
}

// storeOptions are those of the settings' store. What is found wrong is refused
// instead of replaced: the commands never decide that.
func (a *app) storeOptions() (spool.Options, error) {
	path, _ := config.Resolve(a.configPath, a.env)
	cfg, err := config.Load(path, a.env)
	if err != nil {
		return spool.Options{}, err
	}
	return spool.Options{
		Path: cfg.Store.Path, MaxSize: cfg.Store.MaxSize, KeepSize: cfg.Store.KeepSize,
		OnDamage: spool.OnDamageStop, Snapshots: cfg.SnapshotDir(),
		Keep:   spool.Keep{Done: cfg.Store.Keep.Done, Handled: cfg.Store.Keep.Handled, Dead: cfg.Store.Keep.Dead},
		Logger: slog.New(slog.DiscardHandler),
	}, nil
}

// storeFailure gives what a store says its code and hint.
func storeFailure(err error) error {
	switch {
	case errors.Is(err, spool.ErrLocked):
		return &exitError{code: exitTempFail, msg: err.Error(), hint: "stop the daemon first: systemctl stop tgspool"}
	case errors.Is(err, os.ErrNotExist):
		return &exitError{code: exitIO, msg: err.Error(), hint: "is [store] path right, and has the daemon ever run?"}
	case errors.Is(err, os.ErrPermission):
		return &exitError{code: exitIO, msg: err.Error(), hint: "run it as the daemon's user: sudo -u tgspool tgspool db …"}
	case errors.Is(err, spool.ErrDamaged):
		return &exitError{code: exitIO, msg: err.Error(), hint: "tgspool db restore goes back to a snapshot, holding what may have been sent since"}
	case errors.Is(err, spool.ErrNewer), errors.Is(err, spool.ErrForeign), errors.Is(err, spool.ErrFull),
		errors.Is(err, spool.ErrReadOnly), errors.Is(err, spool.ErrFileSystem):
		return &exitError{code: exitIO, msg: err.Error()}
	case errors.Is(err, os.ErrExist), errors.Is(err, spool.ErrConflict), errors.Is(err, spool.ErrInvalid):
		return &exitError{code: exitData, msg: err.Error()}
	}
	return err
}

func (a *app) repair(ctx context.Context) error {
	o, err := a.storeOptions()
	if err != nil {
		return err
	}
	defer a.handBack(o)
	done, err := spool.Repair(ctx, o)
	if err != nil {
		return storeFailure(err)
	}
	if a.json {
		return a.printJSON(done)
	}
	a.out.printf("indexes and counters are made again; the file from before is %s\n", safe(done.MovedTo))
	a.sayHeld(done)
	return nil
}

// sayHeld tells what waits for a decision now.
func (a *app) sayHeld(done spool.Recovery) {
	if done.Held > 0 {
		a.out.printf("%s held, since they may have been sent: tgspool queue list --state held shows them, release sends them\n", plural(int(done.Held), "job"))
	}
	if done.Dead > 0 {
		a.out.printf("%s dead, since they may have been handled: tgspool inbox list --state dead shows them, replay runs them\n", plural(int(done.Dead), "update"))
	}
}

func (a *app) dbCompact() *cobra.Command {
	return a.jsonFlag(&cobra.Command{
		Use: "compact", Short: "Write the spool's file anew without free pages", Args: cobra.NoArgs,
		Long: `Write the spool's file anew without the pages that are free. The daemon must be
stopped, and the disk needs room for the copy. The daemon does the same at its
start when more than half of a file over 64 MiB is free.`,
		Example: "  sudo systemctl stop tgspool && sudo -u tgspool tgspool db compact",
		RunE: func(c *cobra.Command, _ []string) error {
			o, err := a.storeOptions()
			if err != nil {
				return err
			}
			defer a.handBack(o)
			done, err := spool.Compact(c.Context(), o)
			if err != nil {
				return storeFailure(err)
			}
			if a.json {
				return a.printJSON(map[string]int64{"before_bytes": done.Before, "after_bytes": done.After})
			}
			a.out.printf("%s: %d bytes, before %d\n", safe(o.Path), done.After, done.Before)
			return nil
		},
	})
}

func (a *app) dbBackup() *cobra.Command {
	to := ""
	c := a.jsonFlag(&cobra.Command{
		Use: "backup", Short: "Make a snapshot of the spool", Args: cobra.NoArgs,
		Long: `Make a consistent copy of the spool and check it as a whole, while the daemon
runs or not. Without --to it goes where the daily snapshots go. A running daemon
writes the file itself: as its user, and where that user may.`,
		Example: "  tgspool db backup\n  tgspool db backup --to /mnt/usb/spool.db",
		RunE: func(c *cobra.Command, _ []string) error {
			if to != "" {
				abs, err := filepath.Abs(to)
				if err != nil {
					return usagef("--to %s: %v", to, err)
				}
				to = abs
			}
			done, err := a.backup(c.Context(), to)
			if err != nil {
				return storeFailure(err)
			}
			if a.json {
				return a.printJSON(done)
			}
			a.out.printf("%s: %d bytes, checked\n", safe(done.Path), done.Size)
			return nil
		},
	})
	c.Flags().StringVar(&to, "to", "", "the new `file`")
	return c
}

func (a *app) backup(ctx context.Context, to string) (spool.SnapshotInfo, error) {
	var done manage.Backup
	err := a.askBackup(ctx, map[string]any{"to": to}, &done)
	if err == nil {
		return done.SnapshotInfo, nil
	}
	o, err := a.offline(err)
	if err != nil {
		return spool.SnapshotInfo{}, err
	}
	defer a.handBack(o)
	return spool.Backup(ctx, o, spool.SnapshotOptions{To: to})
}

func (a *app) dbRestore() *cobra.Command {
	return a.jsonFlag(&cobra.Command{
		Use: "restore [FILE]", Short: "Go back to a snapshot", Args: cobra.MaximumNArgs(1),
		Long: `Put a snapshot in the spool's place. The daemon must be stopped. The old file is
kept beside it.

Nothing goes out twice: jobs that may have been sent since the snapshot are held,
updates that were open then are dead with the reason "restored". Cooldowns and ids
don't fall back. Without FILE the snapshots are listed.`,
		Example: "  tgspool db restore\n  sudo systemctl stop tgspool\n  sudo -u tgspool tgspool db restore /var/lib/tgspool/snapshots/spool-20260301T024000Z.db",
		RunE: func(c *cobra.Command, args []string) error {
			o, err := a.storeOptions()
			if err != nil {
				return err
			}
			if len(args) == 0 {
				return a.listSnapshots(o.Snapshots)
			}
			defer a.handBack(o)
			done, err := spool.Restore(c.Context(), o, args[0])
			if errors.Is(err, os.ErrNotExist) {
				return &exitError{code: exitIO, msg: err.Error(), hint: "tgspool db restore alone lists the snapshots"}
			}
			if err != nil {
				return storeFailure(err)
			}
			if a.json {
				return a.printJSON(done)
			}
			a.out.printf("%s is in use as %s\n", safe(args[0]), safe(o.Path))
			if done.MovedTo != "" {
				a.out.printf("the old file is kept as %s\n", safe(done.MovedTo))
			}
			a.sayHeld(done)
			return nil
		},
	})
}

func (a *app) listSnapshots(dir string) error {
	list := spool.Snapshots(dir)
	for _, s := range list {
		if a.json {
			if err := a.printJSON(s); err != nil {
				return err
			}
			continue
		}
		a.out.printf("%s  %10d  %s\n", s.At.Local().Format(time.DateTime), s.Size, safe(s.Path))
	}
	if len(list) == 0 && !a.json {
		a.out.printf("there are no snapshots in %s\n", safe(dir))
	}
	if !a.json && len(list) > 0 {
		_, _ = fmt.Fprintln(a.stderr, "tgspool: hint: name one of them, with the daemon stopped, to go back to it")
	}
	return nil
}
