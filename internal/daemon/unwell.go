package daemon

import (
	"fmt"
	"time"

	"github.com/tgspool/tgspool/internal/config"
	"github.com/tgspool/tgspool/internal/gate"
	"github.com/tgspool/tgspool/internal/intake"
	"github.com/tgspool/tgspool/internal/manage"
)

// unwell says why the daemon as a whole isn't well, "" when it is: the store can
// be written, the loops turn, no bot is refused, none is offline for longer than
// offline_after, and nothing is overdue for longer than oldest_pending.
func (d *daemon) unwell(m config.Monitor, now time.Time) string {
	if why := d.pulse.stuck(now); why != "" {
		return why
	}
	switch {
	case !d.store.Healthy():
		return "the spool's writer makes no progress"
	case !d.store.Writable():
		return "the spool can't be written"
	}
	for _, b := range d.store.Status().Bots {
		if age := time.Duration(b.OldestPendingAgeS * float64(time.Second)); b.Attached && age > m.OldestPending {
			return fmt.Sprintf("bot %s: a job is overdue for longer than %s", b.Name, m.OldestPending)
		}
	}
	for _, b := range d.bots.list() {
		if why := unwellBot(b.view(), m.OfflineAfter, now); why != "" {
			return "bot " + b.name + ": " + why
		}
	}
	return ""
}

// unwellBot is the same for what one bot shows.
func unwellBot(v manage.View, offlineAfter time.Duration, now time.Time) string {
	offline := func(state string, since time.Time) bool {
		return state == string(intake.Offline) && now.Sub(since) > offlineAfter
	}
	switch {
	case v.Unconfigured != "":
		return "no usable token"
	case v.Sender.State == gate.StateUnauthorized || v.Intake.State == string(intake.Unauthorized):
		return "Telegram refuses the token"
	case offline(string(v.Sender.State), v.Sender.Since) || offline(v.Intake.State, v.Intake.Since):
		return fmt.Sprintf("Telegram can't be reached for longer than %s", offlineAfter)
	}
	return ""
}
