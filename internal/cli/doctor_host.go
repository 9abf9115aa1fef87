package cli

import (
	"context"
	"errors"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/tgspool/tgspool/internal/localapi"
	"github.com/tgspool/tgspool/internal/manage"
	"github.com/tgspool/tgspool/internal/spool"
)

const (
	// lowSpace and scarceSpace are what should be free on the store's disk, in bytes.
	lowSpace    = 256 << 20
	scarceSpace = 64 << 20
	// flushes are measured; a good card takes a few milliseconds, one that is worn
	// out takes seconds.
	flushes   = 15
	slowFlush = 250 * time.Millisecond
	deadFlush = 3 * time.Second
	unitWait  = 5 * time.Second
)

// disk looks at where the store lies.
func (d *doctor) disk(dir string) {
	var st syscall.Statfs_t
	if err := syscall.Statfs(dir, &st); err != nil {
		d.say("disk", gradeFail, "make the folder, or name another in [store] path", "%s: %s", dir, err)
		return
	}
	free := int64(st.Bavail) * int64(st.Bsize) //nolint:unconvert // the fields' types differ between architectures
	switch on := spool.Volatile(dir); {
	case on != "":
		d.say("disk", gradeFail, "put [store] path on a disk that stays", "%s is on %s: a restart of the machine empties it", dir, on)
	case free < scarceSpace:
		d.say("disk", gradeFail, "make room: intake stops when it is full", "%s: %s free", dir, size(free))
	case free < lowSpace:
		d.say("disk", gradeWarn, "make room", "%s: %s free", dir, size(free))
	default:
		d.say("disk", gradeOK, "", "%s: %s free", dir, size(free))
	}
	d.card(dir)
}

// card measures how long a flush takes: each message waits for a few of them.
func (d *doctor) card(dir string) {
	took, err := measureFlushes(dir)
	switch {
	case errors.Is(err, os.ErrPermission):
		d.say("card", gradeWarn, "run it with sudo", "its speed can't be measured: %s may not be written to by this user", dir)
	case err != nil:
		d.say("card", gradeFail, "dmesg says more; a card that turned read-only is worn out", "%s", err)
	case took > deadFlush:
		d.say("card", gradeFail, "copy what you need and replace it", "a flush takes %s: it is about to fail", took.Round(time.Millisecond))
	case took > slowFlush:
		d.say("card", gradeWarn, "another card or disk makes the bot quicker", "a flush takes %s", took.Round(time.Millisecond))
	default:
		d.say("card", gradeOK, "", "a flush takes %s", took.Round(10*time.Microsecond))
	}
}

// measureFlushes is the median of a few writes with a sync each.
func measureFlushes(dir string) (time.Duration, error) {
	f, err := os.CreateTemp(dir, ".doctor-*")
	if err != nil {
		return 0, err
	}
	defer func() {
		_ = f.Close()
		_ = os.Remove(f.Name()) // it was only to measure
	}()
	took := make([]time.Duration, 0, flushes)
	page := make([]byte, 4096)
	for i, begin := 0, time.Now(); i < flushes && time.Since(begin) < 2*deadFlush; i++ {
		start := time.Now()
		if _, err := f.WriteAt(page, int64(i)*int64(len(page))); err != nil {
			return 0, err
		}
		if err := f.Sync(); err != nil {
			return 0, err
		}
		took = append(took, time.Since(start))
	}
	slices.Sort(took)
	return took[len(took)/2], nil
}

// store asks the daemon, or looks at the file where there is none.
func (d *doctor) store(ctx context.Context) {
	client, err := d.a.dial()
	if err != nil {
		d.say("store", gradeFail, "look at listen in [api]", "%s", err)
		return
	}
	defer client.Close()
	var s manage.Status
	err = client.Do(ctx, localapi.Request{Method: http.MethodGet, Path: "/v1/status"}, &s)
	absent, gone := errors.AsType[*localapi.NoDaemonError](err)
	switch {
	case gone && absent.Denied():
		d.say("store", gradeWarn, "run it with sudo, or as a member of the group tgspool", "the daemon runs, but not for this user")
		return
	case gone:
		d.closedStore()
		return
	case err != nil:
		d.say("store", gradeFail, "journalctl -u tgspool -n 50", "%s", err)
		return
	}
	d.openStore(s)
}

// closedStore looks at the file of a store that no daemon has open.
func (d *doctor) closedStore() {
	path := d.cfg.Store.Path
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, os.ErrNotExist):
		d.say("store", gradeWarn, "start the daemon: systemctl enable --now tgspool, or tgspool run", "no daemon runs, and there is no store yet")
	case err != nil:
		d.say("store", gradeWarn, "run it with sudo", "%s", err)
	default:
		d.say("store", gradeWarn, "start the daemon; tgspool db check looks at the whole file", "no daemon runs; %s has %s", filepath.Base(path), size(info.Size()))
	}
}

func (d *doctor) openStore(s manage.Status) {
	switch {
	case s.Store.Full:
		d.say("store", gradeFail, "make room on the disk, or raise max_size in [store]", "it takes nothing new")
	case s.Store.Recovered != nil:
		d.say("store", gradeWarn, "tgspool queue list --state held; tgspool inbox list --state dead", "it was restored; what may have been sent since is held")
	case s.Store.BackupError != "":
		d.say("store", gradeWarn, "look at to in [backup]", "the daily snapshot failed: %s", s.Store.BackupError)
	default:
		d.say("store", gradeOK, "", "%s, %s", s.Store.Path, size(s.Store.SizeBytes))
	}
	if s.Clock != "ok" {
		d.say("clock", gradeWarn, "timedatectl status", "the daemon doesn't know yet whether the clock is right: nothing expires meanwhile")
	}
	for _, f := range judged(s, limits(), time.Now()) {
		if f.Level > levelOK && f.Check != "free" && f.Check != "store" && f.Check != "backup" {
			g := gradeWarn
			if f.Level == levelCritical {
				g = gradeFail
			}
			d.say("work", g, "tgspool status; tgspool queue why ID", "%s", f.subject())
		}
	}
}

// unit looks at the service, where systemd runs the machine.
func (d *doctor) unit(ctx context.Context) {
	if _, err := os.Stat("/run/systemd/system"); err != nil {
		d.say("unit", gradeOK, "", "no systemd here")
		return
	}
	ctx, cancel := context.WithTimeout(ctx, unitWait)
	defer cancel()
	out, err := exec.CommandContext(ctx, "systemctl", "show", "tgspool.service", "--property=LoadState,ActiveState,SubState,NRestarts,Result").Output()
	if err != nil {
		d.say("unit", gradeWarn, "systemctl status tgspool", "systemctl doesn't answer: %s", err)
		return
	}
	p := map[string]string{}
	for line := range strings.Lines(string(out)) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), "=")
		p[name] = value
	}
	switch {
	case p["LoadState"] != "loaded":
		d.say("unit", gradeOK, "", "tgspool isn't installed as a service")
	case p["ActiveState"] == "failed":
		d.say("unit", gradeFail, "journalctl -u tgspool -n 50", "the service has failed: %s", p["Result"])
	case p["ActiveState"] != "active":
		d.say("unit", gradeWarn, "systemctl enable --now tgspool", "the service is %s", p["ActiveState"])
	case p["NRestarts"] != "0" && p["NRestarts"] != "":
		d.say("unit", gradeWarn, "journalctl -u tgspool says why", "the service runs, restarted %s times", p["NRestarts"])
	default:
		d.say("unit", gradeOK, "", "the service runs")
	}
}
