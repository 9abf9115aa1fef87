package main

import (
	"context"
	"log/slog"
	"os"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivermigrate"

	"github.com/tgspool/tgspool/scripts/bench/kit"
)

// riverQueue is River on PostgreSQL with synchronous_commit on, its polling
// tuned for speed. It completes jobs in batches and behind the worker's back.
type riverQueue struct {
	postgres *postgres
	pool     *pgxpool.Pool
	client   *river.Client[pgx.Tx] // for inserting only
}

type riverJob struct {
	Params string `json:"params"`
}

// Kind names the job's kind.
func (riverJob) Kind() string { return "send" }

type riverWorker struct {
	river.WorkerDefaults[riverJob]
	did func()
}

// Work does nothing but count.
func (w *riverWorker) Work(context.Context, *river.Job[riverJob]) error {
	w.did()
	return nil
}

func (q *riverQueue) Open(dir string) (err error) {
	ctx := context.Background()
	if q.postgres, err = startPostgres(dir); err != nil {
		return err
	}
	settings, err := pgxpool.ParseConfig("host=" + q.postgres.dir + " user=postgres dbname=postgres pool_max_conns=64")
	if err != nil {
		return err
	}
	if q.pool, err = pgxpool.NewWithConfig(ctx, settings); err != nil {
		return err
	}
	migrator, err := rivermigrate.New(riverpgxv5.New(q.pool), nil)
	if err != nil {
		return err
	}
	if _, err := migrator.Migrate(ctx, rivermigrate.DirectionUp, nil); err != nil {
		return err
	}
	q.client, err = river.NewClient(riverpgxv5.New(q.pool), &river.Config{Logger: silent()})
	return err
}

func silent() *slog.Logger {
	return slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelError}))
}

func (q *riverQueue) Close() error {
	q.pool.Close()
	return q.postgres.stop()
}

// Ended completes n jobs; River keeps them for a day.
func (q *riverQueue) Ended(n int) error {
	if err := q.Fill(n); err != nil {
		return err
	}
	_, err := q.Drain(100, n, time.Minute)
	return err
}

func (q *riverQueue) Fill(n int) error {
	ctx := context.Background()
	for done := 0; done < n; {
		var list []river.InsertManyParams
		for end := min(done+5000, n); done < end; done++ {
			list = append(list, river.InsertManyParams{Args: riverJob{string(kit.Payload(int64(done)))}})
		}
		if _, err := q.client.InsertManyFast(ctx, list); err != nil {
			return err
		}
	}
	_, err := q.pool.Exec(ctx, "analyze river_job")
	return err
}

func (q *riverQueue) Enqueue(i int64, _ bool) error {
	_, err := q.client.Insert(context.Background(), riverJob{string(kit.Payload(i))}, nil)
	return err
}

func (q *riverQueue) Drain(workers, n int, limit time.Duration) (int, error) {
	ctx := context.Background()
	var done atomic.Int64
	all := make(chan struct{})
	work := river.NewWorkers()
	river.AddWorker(work, &riverWorker{did: func() {
		if done.Add(1) == int64(n) {
			close(all)
		}
	}})
	client, err := river.NewClient(riverpgxv5.New(q.pool), &river.Config{
		Logger: silent(), Workers: work, FetchCooldown: time.Millisecond, FetchPollInterval: 10 * time.Millisecond,
		Queues: map[string]river.QueueConfig{river.QueueDefault: {MaxWorkers: workers}},
	})
	if err != nil {
		return 0, err
	}
	if err := client.Start(ctx); err != nil {
		return 0, err
	}
	select {
	case <-all:
	case <-time.After(limit):
	}
	return int(done.Load()), client.Stop(ctx)
}
