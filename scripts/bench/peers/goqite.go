package main

import (
	"context"
	"database/sql"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"maragu.dev/goqite"

	"github.com/tgspool/tgspool/scripts/bench/kit"
)

// goqiteQueue is goqite on SQLite with synchronous FULL, so that what it has
// confirmed outlives a power cut.
type goqiteQueue struct {
	db    *sql.DB
	queue *goqite.Queue
}

func (g *goqiteQueue) Open(dir string) (err error) {
	if g.db, err = openSQLite(filepath.Join(dir, "goqite.db"), "FULL"); err != nil {
		return err
	}
	// The schema is a file of the module, not of the package.
	module, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "maragu.dev/goqite").Output()
	if err != nil {
		return err
	}
	schema, err := os.ReadFile(filepath.Join(strings.TrimSpace(string(module)), "schema_sqlite.sql"))
	if err != nil {
		return err
	}
	if _, err := g.db.Exec(string(schema)); err != nil {
		return err
	}
	g.queue = goqite.New(goqite.NewOpts{DB: g.db, Name: "jobs", Timeout: time.Minute})
	return nil
}

func (g *goqiteQueue) Close() error { return g.db.Close() }

// Ended: goqite deletes what is over.
func (g *goqiteQueue) Ended(int) error { return nil }

func (g *goqiteQueue) Fill(n int) error {
	tx, err := g.db.Begin()
	if err != nil {
		return err
	}
	for i := range int64(n) {
		if err := g.queue.SendTx(context.Background(), tx, goqite.Message{Body: kit.Payload(i)}); err != nil {
			return err
		}
	}
	return tx.Commit()
}

func (g *goqiteQueue) Enqueue(i int64, _ bool) error {
	return g.queue.Send(context.Background(), goqite.Message{Body: kit.Payload(i)})
}

func (g *goqiteQueue) Drain(workers, n int, limit time.Duration) (int, error) {
	ctx := context.Background()
	return kit.Together(workers, n, limit, func() (bool, error) {
		m, err := g.queue.Receive(ctx)
		if err != nil || m == nil {
			return false, err
		}
		return true, g.queue.Delete(ctx, m.ID)
	})
}
