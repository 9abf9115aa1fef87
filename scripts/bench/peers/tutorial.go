package main

import (
	"database/sql"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	_ "modernc.org/sqlite" // the driver

	"github.com/tgspool/tgspool/scripts/bench/kit"
)

// tutorial is the queue that a bot's author would write by hand: one table in
// SQLite. As tutorials have it (not grouped) each step is a statement of its
// own, the claim looks for pending jobs and for stale ones in one condition, and
// synchronous is NORMAL. Grouped it is what a careful author ends with: a claim
// that an index can serve, FULL, and a committer.
type tutorial struct {
	sync    string
	grouped bool

	db                  *sql.DB
	commit              *committer[*sql.Tx]
	insert, claim, done *sql.Stmt
}

const tutorialSchema = `
CREATE TABLE IF NOT EXISTS jobs (
	id INTEGER PRIMARY KEY AUTOINCREMENT,
	dedupe_key TEXT UNIQUE,
	chat_id INTEGER NOT NULL,
	method TEXT NOT NULL DEFAULT 'sendMessage',
	params TEXT NOT NULL,
	status TEXT NOT NULL DEFAULT 'pending',
	attempts INTEGER NOT NULL DEFAULT 0,
	run_after REAL NOT NULL,
	locked_until REAL,
	created_at REAL NOT NULL,
	updated_at REAL NOT NULL);
CREATE INDEX IF NOT EXISTS jobs_ready ON jobs (status, run_after);`

const (
	tutorialInsert = `INSERT OR IGNORE INTO jobs (dedupe_key, chat_id, params, status, run_after, created_at, updated_at)
		VALUES (?1, ?2, ?3, ?4, ?5, ?5, ?5)`
	tutorialClaim = `UPDATE jobs SET status = 'running', attempts = attempts + 1, locked_until = ?1 + 60, updated_at = ?1
		WHERE id = (SELECT id FROM jobs WHERE %s ORDER BY run_after LIMIT 1) RETURNING id, params`
	tutorialDue  = `(status = 'pending' AND run_after <= ?1) OR (status = 'running' AND locked_until < ?1)`
	indexedDue   = `status = 'pending' AND run_after <= ?1`
	tutorialDone = `UPDATE jobs SET status = 'done', locked_until = NULL, updated_at = ?1 WHERE id = ?2`
)

func (t *tutorial) Open(dir string) (err error) {
	if t.db, err = openSQLite(filepath.Join(dir, "tutorial.db"), t.sync); err != nil {
		return err
	}
	if _, err := t.db.Exec(tutorialSchema); err != nil {
		return err
	}
	due := tutorialDue
	if t.grouped {
		due = indexedDue
	}
	for stmt, text := range map[**sql.Stmt]string{
		&t.insert: tutorialInsert, &t.claim: fmt.Sprintf(tutorialClaim, due), &t.done: tutorialDone,
	} {
		if *stmt, err = t.db.Prepare(text); err != nil {
			return err
		}
	}
	t.commit = newCommitter(t.inOne)
	return nil
}

func openSQLite(path, sync string) (*sql.DB, error) {
	db, err := sql.Open("sqlite", fmt.Sprintf(
		"file:%s?_pragma=journal_mode(WAL)&_pragma=busy_timeout(5000)&_pragma=synchronous(%s)&_txlock=immediate", path, sync))
	if err == nil {
		db.SetMaxOpenConns(1)
	}
	return db, err
}

func (t *tutorial) inOne(fn func(*sql.Tx) error) error {
	tx, err := t.db.Begin()
	if err != nil {
		return err
	}
	if err := fn(tx); err != nil {
		return errors.Join(err, tx.Rollback())
	}
	return tx.Commit()
}

func (t *tutorial) Close() error {
	t.commit.close()
	return t.db.Close()
}

func (t *tutorial) Ended(n int) error { return t.store(n, "done") }
func (t *tutorial) Fill(n int) error  { return t.store(n, "pending") }

func (t *tutorial) store(n int, status string) error {
	return t.inOne(func(tx *sql.Tx) error {
		insert := tx.Stmt(t.insert)
		for i := range int64(n) {
			if _, err := insert.Exec(nil, kit.Chat(i), kit.Payload(i), status, now()); err != nil {
				return err
			}
		}
		return nil
	})
}

func now() float64 { return float64(time.Now().UnixMicro()) / 1e6 }

// run carries out one statement, alone or with what else waits.
func (t *tutorial) run(fn func(in func(*sql.Stmt) *sql.Stmt) error) error {
	if !t.grouped {
		return fn(func(s *sql.Stmt) *sql.Stmt { return s })
	}
	return t.commit.do(func(tx *sql.Tx) error { return fn(tx.Stmt) })
}

func (t *tutorial) Enqueue(i int64, _ bool) error {
	return t.run(func(in func(*sql.Stmt) *sql.Stmt) error {
		_, err := in(t.insert).Exec(fmt.Sprintf("reply:%d", i), kit.Chat(i), kit.Payload(i), "pending", now())
		return err
	})
}

func (t *tutorial) Drain(workers, n int, limit time.Duration) (int, error) {
	return kit.Together(workers, n, limit, func() (bool, error) {
		var id int64
		var params string
		err := t.run(func(in func(*sql.Stmt) *sql.Stmt) error {
			err := in(t.claim).QueryRow(now()).Scan(&id, &params)
			if errors.Is(err, sql.ErrNoRows) {
				return nil
			}
			return err
		})
		if err != nil || id == 0 {
			return false, err
		}
		return true, t.run(func(in func(*sql.Stmt) *sql.Stmt) error {
			_, err := in(t.done).Exec(now(), id)
			return err
		})
	})
}
