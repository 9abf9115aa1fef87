package daemon

import "time"

// built is a moment that no right clock is before: the sources are from then.
var built = time.Date(2026, time.November, 1, 0, 0, 0, 0, time.UTC)

// clockState is the clock as status shows it.
func (d *daemon) clockState() string {
	if d.store.ClockKnown() {
		return "ok"
	}
	return "unknown"
}
