package demo

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/tgspool/tgspool/internal/telegramsim"
)

const (
	textsPerChat = 2
	outsideJobs  = 40 // queued by `tgspool send`
	sendTwice    = 4  // one in so many is sent a second time with the same key

	// What comes in is spread over the script, so that each kill meets some of it.
	feedEvery  = 500 * time.Millisecond
	feedAtOnce = 24
	sendEvery  = 250 * time.Millisecond
	againAfter = 200 * time.Millisecond // when the daemon isn't there
)

// sampleKinds are the kinds of the simulator's sample updates, for
// allowed_updates: without it Telegram keeps some kinds to itself.
func sampleKinds() []string {
	var kinds []string
	for _, sample := range telegramsim.SampleUpdates() {
		var members map[string]json.RawMessage
		if json.Unmarshal(sample, &members) != nil {
			continue // one that is broken on purpose has no kind
		}
		for kind := range members {
			if !slices.Contains(kinds, kind) {
				kinds = append(kinds, kind)
			}
		}
	}
	slices.Sort(kinds)
	return kinds
}

// feeder is what makes one update. It returns the update's id and its chat, 0
// for one that is none of ours.
type feeder func(ctx context.Context, sim *telegramsim.Remote) (update, from int64, err error)

// feeders are all updates of the demo, texts and samples mixed.
func feeders() []feeder {
	var list []feeder
	samples := telegramsim.SampleUpdates()
	texts := chatCount * textsPerChat
	every := texts / len(samples)
	for n := range texts {
		list = append(list, text(n))
		if n%every == 0 && n/every < len(samples) {
			list = append(list, sample(samples[n/every]))
		}
	}
	return list
}

func text(n int) feeder {
	words := "hello, this is number " + strconv.Itoa(n)
	if n < chatCount {
		words = "/start"
	}
	return func(ctx context.Context, sim *telegramsim.Remote) (int64, int64, error) {
		update, err := sim.FeedText(ctx, chat(n), firstUser+int64(n%chatCount), words)
		return update, chat(n), err
	}
}

func sample(raw json.RawMessage) feeder {
	return func(ctx context.Context, sim *telegramsim.Remote) (int64, int64, error) {
		ids, err := sim.Feed(ctx, botID, raw)
		if err != nil || len(ids) != 1 {
			return 0, 0, err
		}
		return ids[0], 0, nil
	}
}

// feed hands the simulator one update after the other, so that some come at
// every moment of the script.
func (r *run) feed(ctx context.Context) error {
	tick := time.NewTicker(feedEvery)
	defer tick.Stop()
	for n, make := range feeders() {
		if n%feedAtOnce == 0 {
			select {
			case <-tick.C:
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		update, from, err := make(ctx, r.site.control)
		if err != nil {
			return fmt.Errorf("feeding an update: %w", err)
		}
		if update == 0 {
			return fmt.Errorf("the simulator dropped update %d of the demo", n+1)
		}
		r.fed(update, from)
	}
	return nil
}

// sendFromOutside queues messages by commands, as cron jobs and scripts do.
func (r *run) sendFromOutside(ctx context.Context) error {
	tick := time.NewTicker(sendEvery)
	defer tick.Stop()
	for n := range outsideJobs {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return ctx.Err()
		}
		m := Message{ChatID: chat(n * 7), Text: "outside " + strconv.Itoa(n+1)}
		key := "demo-" + strconv.Itoa(n+1)
		job, err := r.send(ctx, m, key)
		if err != nil {
			return err
		}
		m.JobID = job
		r.queued(m)
		if n%sendTwice != 0 {
			continue
		}
		switch again, err := r.send(ctx, m, key); {
		case err != nil:
			return err
		case again != job:
			return fmt.Errorf("key %s named job %d and then job %d", key, job, again)
		}
	}
	return nil
}

// send runs `tgspool send` until the daemon has taken the job. One that isn't
// there now is back in a moment; the key makes asking again harmless.
func (r *run) send(ctx context.Context, m Message, key string) (int64, error) {
	tick := time.NewTicker(againAfter)
	defer tick.Stop()
	for {
		out, err := r.site.tgspool(ctx, "send", "--json", "--key", key, "--chat", strconv.FormatInt(m.ChatID, 10), m.Text)
		if err != nil {
			return 0, err
		}
		switch out.code {
		case 0:
			var job struct {
				ID int64 `json:"id"`
			}
			if err := json.Unmarshal([]byte(out.stdout), &job); err != nil || job.ID == 0 {
				return 0, fmt.Errorf("tgspool send printed no job: %q", out.stdout)
			}
			return job.ID, nil
		case 64, 65, 78: // asking again would change nothing
			return 0, fmt.Errorf("tgspool send ended with %d: %s", out.code, out.stderr)
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return 0, ctx.Err()
		}
	}
}
