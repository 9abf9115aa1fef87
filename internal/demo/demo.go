package demo

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"sync"
	"time"

	"github.com/tgspool/tgspool/internal/spool"
	"github.com/tgspool/tgspool/internal/telegramsim"
)

const (
	loadTime  = 4 * time.Minute // for the script; a fast machine needs 20 s
	drainTime = 2 * time.Minute // for what is left then
	lookEvery = 300 * time.Millisecond
)

// Options are what the command line says.
type Options struct {
	Executable string    // the program itself, which the demo runs
	Progress   io.Writer // for people
	Live       bool      // Progress is a terminal
	Keep       bool      // leave the folder with spool and logs
}

// run is one run of the demo.
type run struct {
	site *site
	show *progress
	seen *arrivals

	lag int // the fault that makes calls take time; the script's goroutine alone uses it

	mu     sync.Mutex // guards the record
	record Record
}

// Run runs the demo. An error means that it couldn't be carried out; what went
// wrong in it stands in the result. When ctx ends it cleans up first.
func Run(ctx context.Context, o Options) (result Result, err error) {
	s, err := newSite(ctx, o.Executable)
	if err != nil {
		return Result{}, err
	}
	r := &run{site: s, show: newProgress(o.Progress, o.Live), seen: newArrivals()}
	defer func() {
		r.show.end()
		if err != nil && ctx.Err() == nil {
			r.show.say("the daemon's last words:\n%s", tail(s.path("daemon.log"), 15))
		}
		err = errors.Join(err, s.close(o.Keep))
		if o.Keep {
			r.show.say("kept: %s", s.dir)
		}
	}()
	r.show.say("%d chats write to a bot whose daemon is killed %d times, flooded and cut off", chatCount, kills)
	if err := r.load(ctx); err != nil {
		return Result{}, err
	}
	drained := r.drain(ctx)
	if ctx.Err() != nil {
		return Result{}, ctx.Err()
	}
	stopped := s.daemon.stop()
	if err := r.readRecords(ctx); err != nil {
		return Result{}, err
	}
	result = Tally(r.record)
	for _, problem := range []error{drained, stopped} {
		if problem != nil {
			result.Problems = append(result.Problems, problem.Error())
		}
	}
	return result, nil
}

// load has updates and jobs come in while the script is played.
func (r *run) load(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, loadTime, fmt.Errorf("the demo was not over within %s", loadTime))
	defer cancel()
	if err := r.begin(ctx); err != nil {
		return err
	}
	watching, stopWatching := context.WithCancel(ctx)
	watched := make(chan error, 1)
	go func() { watched <- r.seen.follow(watching, r.site.control) }()
	go r.show.follow(watching, r.figures)
	err := together(ctx, r.feed, r.sendFromOutside, r.play)
	stopWatching()
	return errors.Join(err, <-watched)
}

// begin starts the daemon and waits until it asks for updates: only then does
// the simulator know which kinds it wants.
func (r *run) begin(ctx context.Context) error {
	if err := r.site.startDaemon(); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, startTimeout, errors.New("the daemon asked for no updates"))
	defer cancel()
	return r.until(ctx, func(ctx context.Context) (bool, error) {
		return r.site.control.Polling(ctx, botID)
	})
}

// together runs all functions at once. The first error ends the others.
func together(ctx context.Context, all ...func(context.Context) error) error {
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	var group sync.WaitGroup
	for _, one := range all {
		group.Go(func() {
			if err := one(ctx); err != nil {
				fail(err)
			}
		})
	}
	group.Wait()
	return context.Cause(ctx)
}

// until asks again and again, as a person would, until the answer is yes. It
// ends early when the daemon does.
func (r *run) until(ctx context.Context, ask func(context.Context) (bool, error)) error {
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for {
		if yes, err := ask(ctx); yes || err != nil {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			return err
		}
		select {
		case <-tick.C:
		case <-r.site.daemon.ended:
			return r.daemonEnded()
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// daemonEnded is the error of a daemon that ended though nobody asked it to.
func (r *run) daemonEnded() error {
	if err := r.site.daemon.err; err != nil {
		return fmt.Errorf("the daemon has ended by itself: %w", err)
	}
	return errors.New("the daemon has ended by itself")
}

// drain waits until nothing is left to be handled or sent.
func (r *run) drain(ctx context.Context) error {
	r.show.say("all updates are in; waiting for the queue to run dry")
	ctx, cancel := context.WithTimeoutCause(ctx, drainTime, fmt.Errorf("the queue was not empty within %s", drainTime))
	defer cancel()
	return r.until(ctx, func(ctx context.Context) (bool, error) {
		if left, err := r.site.control.Pending(ctx, botID); err != nil || left > 0 {
			return false, err
		}
		return r.idle(ctx)
	})
}

// idle asks the daemon whether it has anything left to do.
func (r *run) idle(ctx context.Context) (bool, error) {
	out, err := r.site.tgspool(ctx, "status", "--json")
	if err != nil || out.code != 0 {
		return false, err // it may just be starting
	}
	var status struct {
		Bots map[string]struct {
			QueueDepth     int64 `json:"queue_depth"`
			InboxUnhandled int64 `json:"inbox_unhandled"`
		} `json:"bots"`
	}
	if err := json.Unmarshal([]byte(out.stdout), &status); err != nil {
		return false, fmt.Errorf("reading the daemon's status: %w", err)
	}
	bot, ok := status.Bots[botName]
	return ok && bot.QueueDepth == 0 && bot.InboxUnhandled == 0, nil
}

// readRecords reads what spool and simulator say at the end.
func (r *run) readRecords(ctx context.Context) (err error) {
	if r.record.Journal, err = r.site.control.Journal(ctx); err != nil {
		return err
	}
	r.record.Spool, err = ReadAll(ctx, r.site.path("spool.db"), spool.BotConfig{
		ID: botID, Name: botName, Limits: spool.Limits{ChatGap: chatGap, GroupPerMinute: groupPerMinute},
	})
	if errors.Is(err, os.ErrNotExist) {
		return errors.New("there is no spool")
	}
	return err
}

// fed notes an update that the simulator has, and the answers to it.
func (r *run) fed(update, from int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.record.Updates = append(r.record.Updates, update)
	r.record.Expected = append(r.record.Expected, Replies(update, from)...)
}

// queued notes a message that the daemon has taken from outside.
func (r *run) queued(m Message) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.record.Expected = append(r.record.Expected, m)
}

func (r *run) figures() figures {
	r.mu.Lock()
	defer r.mu.Unlock()
	return figures{
		in: len(r.record.Updates), expected: len(r.record.Expected), sent: r.seen.count(), kills: len(r.record.Kills),
	}
}

// arrivals counts what has arrived.
type arrivals struct {
	mu       sync.Mutex
	messages int
	floods   int           // calls that were answered 429
	changed  chan struct{} // closed and replaced at every change
}

func newArrivals() *arrivals { return &arrivals{changed: make(chan struct{})} }

// follow reads the simulator's journal as it grows, until ctx ends.
func (a *arrivals) follow(ctx context.Context, sim *telegramsim.Remote) error {
	const patience = 10 * time.Second
	for read := 0; ctx.Err() == nil; {
		list, err := sim.JournalAfter(ctx, read, patience)
		if err != nil && ctx.Err() == nil {
			return err
		}
		read += len(list)
		a.mu.Lock()
		for _, call := range list {
			switch {
			case call.Effect && call.Text != "":
				a.messages++
			case call.Status == http.StatusTooManyRequests:
				a.floods++
			}
		}
		close(a.changed)
		a.changed = make(chan struct{})
		a.mu.Unlock()
	}
	return nil
}

func (a *arrivals) count() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.messages
}

// reached tells whether so many messages, and so many floods, have arrived, and
// returns a channel that is closed when there is more.
func (a *arrivals) reached(messages, floods int) (bool, <-chan struct{}) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.messages >= messages && a.floods >= floods, a.changed
}
