package spool_test

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/tgspool/tgspool/internal/spool"
)

// upload stores a file for a job and queues the job.
func (f *fixture) upload() (id int64, dir string) {
	f.t.Helper()
	id, err := f.store.ReserveJob(f.t.Context())
	if err != nil {
		f.t.Fatal(err)
	}
	if dir, err = f.store.MakeFiles(id); err != nil {
		f.t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "0"), []byte("x"), 0o600); err != nil {
		f.t.Fatal(err)
	}
	if err := f.store.SyncFiles(id); err != nil {
		f.t.Fatal(err)
	}
	j := message("5", "a file")
	j.ID = id
	j.Files = []spool.File{{Field: "photo", Path: "files/" + strconv.FormatInt(id, 10) + "/0", Size: 1}}
	if got := f.enqueue(j)[0].Job; got.ID != id || len(got.Files) != 1 {
		f.t.Fatalf("job %+v, want id %d", got, id)
	}
	return id, dir
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return !errors.Is(err, os.ErrNotExist)
}

func TestFiles_LiveAsLongAsTheJob(t *testing.T) {
	ends := map[string]func(f *fixture, id int64){
		"done": func(f *fixture, _ int64) { f.done(f.mustClaim()) },
		"dead": func(f *fixture, _ int64) { f.settle(f.mustClaim(), spool.Verdict{State: spool.Dead}) },
		"cancelled": func(f *fixture, id int64) {
			if _, err := f.store.Cancel(f.t.Context(), id); err != nil {
				f.t.Fatal(err)
			}
		},
	}
	for name, end := range ends {
		t.Run(name, func(t *testing.T) {
			bubble(t, spool.Limits{}, func(t *testing.T, f *fixture) {
				f.send("5", "before it")
				f.done(f.mustClaim())
				id, dir := f.upload()
				f.reopen()
				if err := f.store.TidyFiles(); err != nil || !exists(dir) {
					t.Fatalf("the files of a waiting job are gone, %v", err)
				}
				end(f, id)
				if exists(dir) {
					t.Error("the files are left")
				}
			})
		})
	}
}

func TestFiles_RetryWithoutThemIsRefused(t *testing.T) {
	bubble(t, spool.Limits{}, func(t *testing.T, f *fixture) {
		id, _ := f.upload()
		f.settle(f.mustClaim(), spool.Verdict{State: spool.Dead})
		if _, err := f.store.Retry(t.Context(), id); !errors.Is(err, spool.ErrConflict) {
			t.Errorf("retry: %v", err)
		}
		f.wantState(id, spool.Dead)
	})
}

func TestFiles_UncertainKeepsThem(t *testing.T) {
	bubble(t, spool.Limits{}, func(t *testing.T, f *fixture) {
		_, dir := f.upload()
		f.settle(f.mustClaim(), spool.Verdict{State: spool.Uncertain})
		f.reopen()
		if err := f.store.TidyFiles(); err != nil || !exists(dir) {
			t.Errorf("the files of an uncertain job are gone, %v", err)
		}
	})
}

func TestFiles_OrphansGo(t *testing.T) {
	bubble(t, spool.Limits{}, func(t *testing.T, f *fixture) {
		id, err := f.store.ReserveJob(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		dir, err := f.store.MakeFiles(id)
		if err != nil {
			t.Fatal(err)
		}
		other := filepath.Join(f.dir, "files", "notes")
		if err := os.Mkdir(other, 0o700); err != nil {
			t.Fatal(err)
		}
		f.reopen()
		if err := f.store.TidyFiles(); err != nil {
			t.Fatal(err)
		}
		if exists(dir) || !exists(other) {
			t.Errorf("the orphan is there: %v, another's folder: %v", exists(dir), exists(other))
		}
		if next := f.send("5", "x"); next != id+1 {
			t.Errorf("after a reserved id %d came %d", id, next)
		}
	})
}
