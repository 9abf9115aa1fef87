package main

import (
	"context"
	"errors"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/tgspool/tgspool/scripts/bench/kit"
)

// natsQueue is a JetStream work queue in an embedded server that syncs every
// message before it confirms it (sync_interval: always). Who has a message isn't
// synced, so that a claim is cheaper than elsewhere.
type natsQueue struct {
	server *server.Server
	conn   *nats.Conn
	stream jetstream.JetStream
	worker jetstream.Consumer
}

const patience = 30 * time.Second

func (q *natsQueue) Open(dir string) (err error) {
	q.server, err = server.NewServer(&server.Options{
		JetStream: true, StoreDir: dir, SyncAlways: true, DontListen: true, NoSigs: true, NoLog: true,
	})
	if err != nil {
		return err
	}
	q.server.Start()
	if !q.server.ReadyForConnections(patience) {
		return errors.New("the NATS server isn't ready")
	}
	if q.conn, err = nats.Connect("", nats.InProcessServer(q.server)); err != nil {
		return err
	}
	if q.stream, err = jetstream.New(q.conn); err != nil {
		return err
	}
	ctx := context.Background()
	s, err := q.stream.CreateStream(ctx, jetstream.StreamConfig{
		Name: "jobs", Subjects: []string{"jobs"}, Retention: jetstream.WorkQueuePolicy, Storage: jetstream.FileStorage,
	})
	if err != nil {
		return err
	}
	q.worker, err = s.CreateConsumer(ctx, jetstream.ConsumerConfig{
		Durable: "worker", AckPolicy: jetstream.AckExplicitPolicy, AckWait: time.Minute,
	})
	return err
}

func (q *natsQueue) Close() error {
	q.conn.Close()
	q.server.Shutdown()
	q.server.WaitForShutdown()
	return nil
}

// Ended: a work queue deletes what is over.
func (q *natsQueue) Ended(int) error { return nil }

func (q *natsQueue) Fill(n int) error {
	for i := range int64(n) {
		if err := q.Enqueue(i, false); err != nil {
			return err
		}
	}
	return nil
}

func (q *natsQueue) Enqueue(i int64, _ bool) error {
	_, err := q.stream.Publish(context.Background(), "jobs", kit.Payload(i))
	return err
}

func (q *natsQueue) Drain(workers, n int, limit time.Duration) (int, error) {
	return kit.Together(workers, n, limit, func() (bool, error) {
		batch, err := q.worker.Fetch(1, jetstream.FetchMaxWait(time.Second))
		if err != nil {
			return false, err
		}
		m, ok := <-batch.Messages()
		if !ok {
			return false, batch.Error()
		}
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		return true, m.DoubleAck(ctx)
	})
}
