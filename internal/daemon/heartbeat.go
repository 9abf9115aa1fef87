package daemon

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"time"

	"github.com/tgspool/tgspool/internal/config"
)

const (
	// heartbeatTimeout bounds one ping.
	heartbeatTimeout = 30 * time.Second
	// heartbeatAnswer is how much of an answer is read, in bytes: enough that the
	// connection can be used again.
	heartbeatAnswer = 64 << 10
)

// heartbeats pings a URL while the daemon is well, so that somebody elsewhere
// notices when it is not, or when the machine is gone. The URL is a secret: who
// has it can pretend that we are well.
type heartbeats struct {
	unwell    func(config.Monitor, time.Time) string
	log       *slog.Logger
	client    *http.Client
	userAgent string // %s is this machine's name
	changed   chan config.Monitor

	sick, failed string // what was logged last
}

func newHeartbeats(d *daemon) *heartbeats {
	return &heartbeats{
		unwell: d.unwell, log: d.log.With(slog.String("component", "heartbeat")),
		client: &http.Client{Timeout: heartbeatTimeout}, userAgent: "tgspool/" + d.o.Version + " (%s)",
		changed: make(chan config.Monitor, 1),
	}
}

// use takes over settings. Only one goroutine may call it.
func (h *heartbeats) use(m config.Monitor) {
	select {
	case <-h.changed: // superseded before they were seen
	default:
	}
	h.changed <- m
}

// useMonitor takes over the settings of both, at the start and a reload.
func (d *daemon) useMonitor(m config.Monitor) {
	d.beats.use(m)
	d.stats.use(m.StatsInterval)
}

// run pings until ctx ends. Without a URL it waits for one and does nothing.
func (h *heartbeats) run(ctx context.Context) {
	var m config.Monitor
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case m = <-h.changed:
		case <-timer.C:
		}
		if m.HeartbeatURL == "" {
			timer.Stop()
			continue
		}
		h.beat(ctx, m)
		timer.Reset(m.HeartbeatInterval)
	}
}

// beat pings once, if all is well.
func (h *heartbeats) beat(ctx context.Context, m config.Monitor) {
	why := h.unwell(m, time.Now())
	switch {
	case why != "" && why != h.sick:
		h.log.LogAttrs(ctx, slog.LevelWarn, "not well: no heartbeat is sent", slog.String("reason", why))
	case why == "" && h.sick != "":
		h.log.LogAttrs(ctx, slog.LevelInfo, "well again: heartbeats are sent")
	}
	if h.sick = why; why != "" {
		return
	}
	failed := ""
	if err := h.ping(ctx, m); err != nil {
		failed = err.Error()
	}
	switch {
	case ctx.Err() != nil:
		return
	case failed != "" && h.failed == "":
		h.log.LogAttrs(ctx, slog.LevelWarn, "a heartbeat didn't arrive", slog.String("reason", failed))
	case failed == "" && h.failed != "":
		h.log.LogAttrs(ctx, slog.LevelInfo, "heartbeats arrive again")
	}
	h.failed = failed
}

// ping fetches the URL. The error doesn't name it.
func (h *heartbeats) ping(ctx context.Context, m config.Monitor) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, m.HeartbeatURL, http.NoBody)
	if err != nil {
		return errors.New("monitor.heartbeat_url can't be fetched")
	}
	req.Header.Set("User-Agent", fmt.Sprintf(h.userAgent, displayName(m)))
	res, err := h.client.Do(req)
	if e, ok := errors.AsType[*url.Error](err); ok {
		err = e.Err // without the URL
	}
	if err != nil {
		return err
	}
	defer func() { _ = res.Body.Close() }()
	_, _ = io.CopyN(io.Discard, res.Body, heartbeatAnswer)
	if res.StatusCode >= 300 {
		return fmt.Errorf("the answer was %d", res.StatusCode)
	}
	return nil
}

// displayName is this machine's name by the settings, fit for a header.
func displayName(m config.Monitor) string {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	name := []rune(m.DisplayName(host))
	for i, r := range name {
		if r < 0x20 || r > 0x7e || r == '(' || r == ')' {
			name[i] = '_'
		}
	}
	return string(name)
}
