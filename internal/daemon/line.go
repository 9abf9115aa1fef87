package daemon

import (
	"context"
	"net/http"
	"sync"
	"time"

	"github.com/tgspool/tgspool/internal/botapi"
	"github.com/tgspool/tgspool/internal/config"
	"github.com/tgspool/tgspool/internal/spool"
)

// client makes a client of a bot's settings.
func (d *daemon) client(c config.Bot, token botapi.Token) (*botapi.Client, error) {
	return botapi.NewClient(botapi.Config{
		Token: token, BaseURL: c.APIBase, Proxy: c.Proxy, IPFamily: c.IPFamily,
		RequestTimeout: c.Sender.RequestTimeout, StallTimeout: c.Sender.StallTimeout,
		Now: d.store.BestTime,
	})
}

// line is a bot's way to Telegram: a client that can be replaced by one with
// another token, and whose every answer tells the store what time it is.
type line struct {
	store *spool.Store
	pulse *pulse
	bound func(botapi.Request) time.Duration // of a call
	id    int64
	flood func() // told each 429

	mu       sync.Mutex // guards all below
	client   *botapi.Client
	replaced chan struct{} // closed when client is another's
	date     time.Time     // what Telegram has said the time is
	dateAt   time.Time     // when it did, with its monotonic reading
}

func newLine(c *botapi.Client, d *daemon, cfg config.Bot) *line {
	return &line{
		store: d.store, pulse: d.pulse, id: c.BotID(), client: c, replaced: make(chan struct{}),
		flood: func() { d.metrics.Flood(cfg.Name) },
		bound: func(r botapi.Request) time.Duration { return callBound(cfg, r) },
	}
}

// BotID returns the id of the bot, which every client of a line shares.
func (l *line) BotID() int64 { return l.id }

func (l *line) now() (*botapi.Client, <-chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.client, l.replaced
}

// Call makes a call. A long poll under way changes over to a new token at once:
// nothing of it was acknowledged. Other calls end as they began.
func (l *line) Call(ctx context.Context, r botapi.Request) botapi.Seen {
	for {
		client, replaced := l.now()
		seen := l.call(ctx, client, replaced, r)
		if seen.Status == 0 && ctx.Err() == nil && r.Method == "getUpdates" && closed(replaced) {
			continue
		}
		return seen
	}
}

func (l *line) call(ctx context.Context, client *botapi.Client, replaced <-chan struct{}, r botapi.Request) botapi.Seen {
	if r.Method == "getUpdates" {
		var cancel context.CancelFunc
		ctx, cancel = context.WithCancel(ctx)
		defer cancel()
		go func() { // ends with the call
			select {
			case <-replaced:
				cancel()
			case <-ctx.Done():
			}
		}()
	}
	done := l.pulse.expect(r.Method, l.bound(r))
	defer done()
	seen := client.Call(ctx, r)
	l.hear(seen.ServerDate)
	if seen.Status == http.StatusTooManyRequests {
		l.flood()
	}
	// Only a server that has proved who it is bears witness.
	if seen.TLSVerified && !seen.ServerDate.IsZero() {
		l.store.Witness(seen.ServerDate)
	}
	return seen
}

// hear keeps what time a server has put on an answer. It dates messages by the
// same clock.
func (l *line) hear(date time.Time) {
	if date.IsZero() {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.date, l.dateAt = date, time.Now()
}

// telegramTime is the time by the clock of Telegram, as long as it has been heard
// of in this run, else our own; known tells whether that is known to be right.
func (l *line) telegramTime() (now time.Time, known bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.date.IsZero() {
		return time.Now(), l.store.ClockKnown()
	}
	return l.date.Add(time.Since(l.dateAt)), true
}

// replace takes another client of the same bot into use.
func (l *line) replace(c *botapi.Client) {
	l.mu.Lock()
	old, replaced := l.client, l.replaced
	l.client, l.replaced = c, make(chan struct{})
	l.mu.Unlock()
	close(replaced)
	old.Close()
}

// Close gives up the idle connections.
func (l *line) Close() {
	client, _ := l.now()
	client.Close()
}

func closed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
