package spool_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	bolt "go.etcd.io/bbolt"

	"github.com/tgspool/tgspool/internal/spool"
)

// TestMain makes the test's binary a process of its own where a test wants one
// that may die.
func TestMain(m *testing.M) {
	if op := os.Getenv("SPOOL_CHILD"); op != "" {
		os.Exit(child(op, os.Stderr)) //nolint:forbidigo // here it is a program
	}
	os.Exit(m.Run()) //nolint:forbidigo // as above
}

// child does one thing to a store and is killed at a step when told so.
func child(op string, out io.Writer) int {
	ctx := context.Background()
	dir, kill := os.Getenv("SPOOL_DIR"), os.Getenv("SPOOL_KILL")
	n := 0
	o := spool.WithHook(spool.Options{
		Path: filepath.Join(dir, "spool.db"), OnDamage: spool.OnDamageSnapshot, Logger: slog.New(slog.NewTextHandler(out, nil)),
	}, func(step string) {
		n++
		if strconv.Itoa(n) == kill {
			_, _ = fmt.Fprintln(out, "killed at", step)
			_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		}
	})
	var err error
	switch op {
	case "open":
		var s *spool.Store
		if s, err = spool.Open(ctx, o); err == nil {
			err = s.Close()
		}
	case "compact":
		_, err = spool.Compact(ctx, o)
	case "restore":
		_, err = spool.Restore(ctx, o, filepath.Join(dir, "old.db"))
	case "backup":
		_, err = spool.Backup(ctx, o, spool.SnapshotOptions{})
	case "repair":
		_, err = spool.Repair(ctx, o)
	case "migrate":
		mark := func(tx *bolt.Tx) error { return tx.Bucket([]byte("meta")).Put([]byte("mark"), []byte("x")) }
		err = spool.Migrate(ctx, o, 1, mark, mark)
	default:
		return cut(ctx, o, op)
	}
	if err != nil {
		_, _ = fmt.Fprintln(out, "error:", err)
		return 74
	}
	return 0
}

// cut lets the file be cut short under an open store: by the writer's or a
// reader's next look.
func cut(ctx context.Context, o spool.Options, op string) int {
	s, err := spool.Open(ctx, o)
	if err != nil {
		return 1
	}
	b, err := s.Attach(ctx, spool.BotConfig{ID: 7, Name: "home"})
	if err != nil {
		return 2
	}
	var jobs []spool.NewJob
	for i := range 400 {
		jobs = append(jobs, message(strconv.Itoa(i), strings.Repeat("x", 900)))
	}
	if _, err := b.Enqueue(ctx, jobs...); err != nil {
		return 3
	}
	to := int64(0)
	if strings.HasSuffix(op, "half") {
		to = 64 << 10
	}
	if err := os.Truncate(o.Path, to); err != nil {
		return 4
	}
	if strings.HasPrefix(op, "write") {
		_, err = b.Enqueue(ctx, jobs...)
	} else {
		_, err = b.Jobs(spool.JobFilter{State: spool.Pending})
	}
	if !errors.Is(err, spool.ErrDamaged) {
		_, _ = fmt.Fprintln(os.Stderr, "the answer:", err)
		return 5
	}
	<-s.Broken()
	if !errors.Is(s.Err(), spool.ErrDamaged) || s.Close() != nil {
		return 6
	}
	if _, err := b.Enqueue(ctx, jobs[0]); !errors.Is(err, spool.ErrClosed) {
		return 7
	}
	return 74
}

// runChild returns what the child has said, and whether it was killed.
func runChild(t *testing.T, dir, op string, kill int) (said string, code int, killed bool) {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), exe)
	cmd.Env = append(os.Environ(), "SPOOL_CHILD="+op, "SPOOL_DIR="+dir, "SPOOL_KILL="+strconv.Itoa(kill))
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err = cmd.Run()
	exit := &exec.ExitError{}
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	ws, _ := cmd.ProcessState.Sys().(syscall.WaitStatus)
	return out.String(), cmd.ProcessState.ExitCode(), ws.Signaled() && ws.Signal() == syscall.SIGKILL
}

// TestStore_FileCutWhileOpen cuts the file of an open store: an error and an
// end, no crash; the next start deals with it.
func TestStore_FileCutWhileOpen(t *testing.T) {
	for _, op := range []string{"write all", "write half", "read all", "read half"} {
		t.Run(op, func(t *testing.T) {
			dir := t.TempDir()
			said, code, _ := runChild(t, dir, op, 0)
			if code != 74 || strings.Contains(said, "goroutine ") || !strings.Contains(said, "level=ERROR") {
				t.Fatalf("exit code %d, saying:\n%s", code, said)
			}
			s, err := spool.Open(t.Context(), spool.Options{Path: filepath.Join(dir, "spool.db")})
			if err != nil {
				t.Fatal(err)
			}
			if _, ok := s.Recovered(); !ok {
				t.Error("the start hasn't noticed")
			}
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
		})
	}
}

// TestFiles_KilledAtEveryStep kills a process at each step of its work on the
// files. The next start finds a store that can be used, leaves nothing half made
// and sends nothing twice.
func TestFiles_KilledAtEveryStep(t *testing.T) {
	p := makePast(t)
	tests := []struct {
		op    string
		setup func(t *testing.T, dir string)
		whole bool // the store in place was whole all the time: nothing may be missing
		steps int  // at least
	}{
		{"open", func(*testing.T, string) {}, false, 1},
		{"open", func(t *testing.T, dir string) { write(t, filepath.Join(dir, "spool.db"), p.file[:len(p.file)/2]) }, false, 5},
		{"open", func(t *testing.T, dir string) { write(t, filepath.Join(dir, "spool.db"), spoilHead(p.file)) }, true, 4},
		{"restore", func(t *testing.T, dir string) { write(t, filepath.Join(dir, "spool.db"), p.file) }, false, 5},
		{"compact", func(t *testing.T, dir string) { write(t, filepath.Join(dir, "spool.db"), p.file) }, true, 2},
		{"backup", func(t *testing.T, dir string) { write(t, filepath.Join(dir, "spool.db"), p.file) }, true, 2},
		{"repair", func(t *testing.T, dir string) { write(t, filepath.Join(dir, "spool.db"), p.file) }, true, 6},
	}
	for i, tt := range tests {
		t.Run(fmt.Sprint(tt.op, " ", i), func(t *testing.T) {
			for n := 1; ; n++ {
				dir := t.TempDir()
				tt.setup(t, dir)
				write(t, filepath.Join(dir, "snapshots", "spool-20260101T030000Z.db"), p.snapshot)
				write(t, filepath.Join(dir, "old.db"), p.snapshot)
				if err := os.Link(p.reserve, filepath.Join(dir, "spool.reserve")); err != nil {
					t.Fatal(err)
				}
				said, code, killed := runChild(t, dir, tt.op, n)
				if !killed && code != 0 {
					t.Fatalf("step %d: exit code %d, saying:\n%s", n, code, said)
				}
				p.afterKill(t, dir, tt.whole)
				if t.Failed() {
					t.Fatalf("step %d, saying:\n%s", n, said)
				}
				if !killed {
					if n <= tt.steps {
						t.Errorf("only %d steps", n-1)
					}
					return
				}
			}
		})
	}
}

func (p *past) afterKill(t *testing.T, dir string, whole bool) {
	t.Helper()
	s, err := spool.Open(t.Context(), spool.Options{Path: filepath.Join(dir, "spool.db"), OnDamage: spool.OnDamageSnapshot})
	if err != nil {
		t.Fatalf("the store can't be opened: %v", err)
	}
	defer func() { _ = s.Close() }()
	_, err = s.Attach(t.Context(), spool.BotConfig{ID: 7, Name: "home"})
	if err != nil {
		t.Fatal(err)
	}
	for _, id := range p.accepted {
		j, err := s.Job(id)
		if whole && err != nil {
			t.Errorf("job %d is gone: %v", id, err)
		}
		if err == nil && p.sent[id] && j.State == spool.Pending {
			t.Errorf("job %d was sent and is pending", id)
		}
	}
	if problems, err := s.Check(); err != nil || len(problems) > 0 {
		t.Errorf("check: %q, %v", problems, err)
	}
	half, err := filepath.Glob(filepath.Join(dir, "*.new"))
	more, _ := filepath.Glob(filepath.Join(dir, "snapshots", "*.new"))
	if err != nil || len(half)+len(more) > 0 {
		t.Errorf("left behind: %v %v", half, more)
	}
	if r, ok := s.Recovered(); ok && r.MovedTo != "" {
		if _, err := os.Stat(r.MovedTo); err != nil {
			t.Errorf("the old file isn't kept: %v", err)
		}
	}
}
