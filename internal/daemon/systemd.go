package daemon

import (
	"context"
	"fmt"
	"strings"
	"time"

	sd "github.com/coreos/go-systemd/v22/daemon"
)

// notifier tells systemd how the daemon is. Without systemd it does nothing.
type notifier struct {
	interval time.Duration // of the heartbeat; 0: nobody waits for one
}

func newNotifier(getenv func(string) string) *notifier {
	n := &notifier{}
	if getenv("NOTIFY_SOCKET") == "" {
		return n
	}
	// WATCHDOG_USEC after which systemd gives up; a third of it leaves room for
	// a heartbeat that comes late. The library refuses a foreign WATCHDOG_PID.
	if every, err := sd.SdWatchdogEnabled(false); err == nil {
		n.interval = every / 3
	}
	return n
}

// extendEvery is how often a long start asks for more time.
const extendEvery = 10 * time.Second

// statusInterval is how often STATUS= is brought up to date under systemd when
// there is no watchdog to do it with.
const statusInterval = time.Minute

func (n *notifier) send(lines ...string) {
	// Without a socket, or with one that is gone, there is nobody to tell.
	_, _ = sd.SdNotify(false, strings.Join(lines, "\n"))
}

func (n *notifier) ready(status string) { n.send(sd.SdNotifyReady, "STATUS="+status) }
func (n *notifier) stopping()           { n.send(sd.SdNotifyStopping, "STATUS=stopping") }

// reloading announces a reload; both lines must be in one datagram, or newer
// systemd versions wait for the second one for ever.
func (n *notifier) reloading() {
	usec := sd.SdNotifyMonotonicUsec()
	n.send(sd.SdNotifyReloading, strings.TrimSuffix(usec, "\n"))
}

// maxOpening bounds how long the opening of a store may hold up a start. Past
// it something is wrong that waiting doesn't mend.
const maxOpening = time.Hour

// extend keeps the service manager waiting for a start that does long work, a
// recovery or a migration of the store. The function that it returns ends that.
func (n *notifier) extend(ctx context.Context, every time.Duration) (done func()) {
	ctx, cancel := context.WithTimeout(ctx, maxOpening)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		tick := time.NewTicker(every)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
				n.send(fmt.Sprintf("EXTEND_TIMEOUT_USEC=%d", (3 * every).Microseconds()))
			}
		}
	}()
	return func() {
		cancel()
		<-ended
	}
}

// heartbeat pings the watchdog as long as healthy says so, and keeps STATUS=
// fresh. It has a goroutine of its own, so that nothing that waits for a disk
// or a network is in its way. The channel closes when it has ended.
func (n *notifier) heartbeat(ctx context.Context, healthy func() bool, status func() string) <-chan struct{} {
	ended := make(chan struct{})
	// Before the goroutine: it must not come after the READY of the caller.
	if ok, _ := sd.SdNotify(false, "STATUS=starting"); !ok {
		close(ended)
		return ended // no systemd: no work per second
	}
	go func() {
		defer close(ended)
		every := n.interval
		if every == 0 {
			every = statusInterval
		}
		tick := time.NewTicker(every)
		defer tick.Stop()
		last := ""
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
			if !healthy() {
				continue // systemd restarts us when this lasts
			}
			lines := []string{}
			if n.interval > 0 {
				lines = append(lines, sd.SdNotifyWatchdog)
			}
			if now := status(); now != last {
				last = now
				lines = append(lines, "STATUS="+now)
			}
			if len(lines) > 0 {
				n.send(lines...)
			}
		}
	}()
	return ended
}
