package spool_test

import (
	"bytes"
	"compress/gzip"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"

	bolt "go.etcd.io/bbolt"

	"github.com/tgspool/tgspool/internal/spool"
)

var update = flag.Bool("update", false, "write the stored file of the present schema version anew")

// stored is the stored file of a version.
func stored(version int) string {
	return filepath.Join("testdata", fmt.Sprintf("spool.v%d.db.gz", version))
}

// TestOpen_StoredFiles opens a file of every version that has ever been
// released. The one of the present version is written by -update; those of
// older versions are never written again.
func TestOpen_StoredFiles(t *testing.T) {
	if *update {
		var buf bytes.Buffer
		zip := gzip.NewWriter(&buf)
		if _, err := zip.Write(makePast(t).snapshot); err != nil {
			t.Fatal(err)
		}
		if err := zip.Close(); err != nil {
			t.Fatal(err)
		}
		write(t, stored(spool.SchemaVersion), buf.Bytes())
	}
	for v := 1; v <= spool.SchemaVersion; v++ {
		t.Run(fmt.Sprint("version ", v), func(t *testing.T) {
			dir := t.TempDir()
			path := filepath.Join(dir, "spool.db")
			file := unzip(t, stored(v))
			write(t, path, file)
			synctest.Test(t, func(t *testing.T) {
				f := &fixture{t: t, dir: dir, cfg: spool.BotConfig{ID: 7, Name: "home", Limits: spool.Limits{MaxAttempts: 8}}}
				f.open()
				defer func() { _ = f.store.Close() }()
				if _, ok := f.store.Recovered(); ok {
					t.Error("it was taken for damaged")
				}
				st := f.store.Status().Bots[0]
				got := fmt.Sprint(st.Jobs[spool.Done], st.Jobs[spool.Uncertain], st.Jobs[spool.Held], st.Updates[spool.UpdateHandled], st.Offset)
				if got != "8 4 1 2 5" {
					t.Errorf("it holds %s", got)
				}
				f.wantSession(key(1, 0), `1 {"base":0}`)
				f.check()
				c := f.mustClaim()
				f.done(c)
			})
			kept := path + fmt.Sprintf(".v%d", v)
			if _, err := os.Stat(kept); v < spool.SchemaVersion && err != nil {
				t.Errorf("no copy from before is kept: %v", err)
			}
		})
	}
}

func unzip(t *testing.T, path string) []byte {
	t.Helper()
	zip, err := gzip.NewReader(bytes.NewReader(mustRead(t, path)))
	if err != nil {
		t.Fatal(err)
	}
	b, err := io.ReadAll(zip)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// marks counts the marks that the test's own migrations have left in a file.
func marks(t *testing.T, path string) (n int, version byte) {
	t.Helper()
	editBolt(t, path, func(tx *bolt.Tx) error {
		meta := tx.Bucket([]byte("meta"))
		n, version = len(meta.Get([]byte("mark"))), meta.Get([]byte("schema"))[7]
		return nil
	})
	return n, version
}

func addMark(tx *bolt.Tx) error {
	meta := tx.Bucket([]byte("meta"))
	return meta.Put([]byte("mark"), append(bytes.Clone(meta.Get([]byte("mark"))), 'x'))
}

// TestMigrate_EachOnceAndACopyKept runs a table of two migrations.
func TestMigrate_EachOnceAndACopyKept(t *testing.T) {
	path := filepath.Join(t.TempDir(), "spool.db")
	before := unzip(t, stored(1))
	write(t, path, before)
	if err := spool.Migrate(t.Context(), spool.Options{Path: path}, 1, addMark, addMark); err != nil {
		t.Fatal(err)
	}
	if n, v := marks(t, path); n != 2 || v != 3 {
		t.Errorf("%d migrations, version %d; want 2, 3", n, v)
	}
	if !bytes.Equal(mustRead(t, path+".v1"), before) {
		t.Error("the copy isn't the file from before")
	}
}

// TestMigrate_Fails leaves the file at the last version that it has reached, and
// goes on from there.
func TestMigrate_Fails(t *testing.T) {
	path := filepath.Join(t.TempDir(), "spool.db")
	write(t, path, unzip(t, stored(1)))
	broken := errors.New("no")
	fail := func(tx *bolt.Tx) error { return errors.Join(addMark(tx), broken) }
	err := spool.Migrate(t.Context(), spool.Options{Path: path}, 1, addMark, fail)
	if !errors.Is(err, broken) || !strings.Contains(err.Error(), path+".v1") {
		t.Fatalf("got %v", err)
	}
	if n, v := marks(t, path); n != 1 || v != 2 {
		t.Fatalf("%d migrations, version %d; want 1, 2", n, v)
	}
	if err := spool.Migrate(t.Context(), spool.Options{Path: path}, 2, addMark, addMark); err != nil {
		t.Fatal(err)
	}
	if n, v := marks(t, path); n != 2 || v != 3 {
		t.Errorf("%d migrations, version %d; want 2, 3", n, v)
	}
}

// TestMigrate_KilledAtEveryStep: the next try ends where the first would have.
func TestMigrate_KilledAtEveryStep(t *testing.T) {
	for n := 1; ; n++ {
		dir := t.TempDir()
		path := filepath.Join(dir, "spool.db")
		write(t, path, unzip(t, stored(1)))
		said, code, killed := runChild(t, dir, "migrate", n)
		if !killed && code != 0 {
			t.Fatalf("exit code %d, saying:\n%s", code, said)
		}
		_, v := marks(t, path)
		if err := spool.Migrate(t.Context(), spool.Options{Path: path}, uint64(v), addMark, addMark); err != nil {
			t.Fatal(err)
		}
		if _, v := marks(t, path); v != 3 {
			t.Errorf("step %d: version %d", n, v)
		}
		if !killed {
			if n < 4 {
				t.Errorf("only %d steps", n-1)
			}
			return
		}
	}
}

// TestOpen_NewerNamesTheCopy: the way back is told.
func TestOpen_NewerNamesTheCopy(t *testing.T) {
	path := filepath.Join(t.TempDir(), "spool.db")
	write(t, path, newerFile(t))
	kept := fmt.Sprintf("%s.v%d", path, spool.SchemaVersion)
	write(t, kept, unzip(t, stored(spool.SchemaVersion)))
	_, err := spool.Open(t.Context(), spool.Options{Path: path})
	if !errors.Is(err, spool.ErrNewer) || !strings.Contains(err.Error(), "tgspool db restore "+kept) {
		t.Fatalf("got %v", err)
	}
	r, err := spool.Restore(t.Context(), spool.Options{Path: path}, kept)
	if err != nil || r.Held == 0 || r.MovedTo == "" {
		t.Fatalf("restored %+v: %v", r, err)
	}
}
