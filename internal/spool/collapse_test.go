package spool_test

import (
	"testing"
	"time"

	"github.com/tgspool/tgspool/internal/spool"
)

// TestCollapse: the same thing counts once within its window, over a restart and
// whenever it comes in; other things and later ones count.
func TestCollapse(t *testing.T) {
	bubble(t, limits(), func(t *testing.T, f *fixture) {
		next := int64(500)
		press := func(name string, at time.Time) spool.NewUpdate {
			next++
			u := text(next, 1)
			u.Route.Also = &spool.Also{Collapse: name, Window: time.Minute, At: at, Tell: []spool.NewJob{message("1", "again")}}
			return u
		}
		want := func(id int64, state spool.UpdateState, reason string) {
			t.Helper()
			u, err := f.bot.UpdateByID(id)
			if err != nil || u.State != state || reason != "" && (u.Error == nil || *u.Error != reason || len(u.Jobs) != 1) {
				t.Errorf("update %d: %+v %v, want %s %q", id, u, err, state, reason)
			}
		}
		// Undated, as presses are: by their arrival.
		f.intake(press("a", time.Time{}), press("a", time.Time{}), press("b", time.Time{}))
		f.reopen()
		<-time.After(59 * time.Second)
		f.intake(press("a", time.Time{}))
		<-time.After(2 * time.Second)
		f.intake(press("a", time.Time{}))
		for id, state := range map[int64]spool.UpdateState{501: spool.UpdateOpen, 503: spool.UpdateOpen, 505: spool.UpdateOpen} {
			want(id, state, "")
		}
		want(502, spool.UpdateIgnored, spool.CollapsedReason)
		want(504, spool.UpdateIgnored, spool.CollapsedReason)
		// Dated ones that come together after an outage: by their dates.
		old := time.Now().Add(-time.Hour)
		f.intake(press("c", old), press("c", old.Add(5*time.Second)), press("c", old.Add(10*time.Minute)), press("c", old.Add(10*time.Minute)))
		want(506, spool.UpdateOpen, "")
		want(507, spool.UpdateIgnored, spool.CollapsedReason)
		want(508, spool.UpdateOpen, "")
		want(509, spool.UpdateIgnored, spool.CollapsedReason)
		// One that nobody gets anyhow opens no window.
		u := press("d", time.Time{})
		u.Route.Ignore = "not_allowed"
		f.intake(u, press("d", time.Time{}))
		want(510, spool.UpdateIgnored, "not_allowed")
		want(511, spool.UpdateOpen, "")
		// What is over is forgotten.
		<-time.After(3 * time.Hour)
		f.check()
		if l := f.lease(time.Minute); l == nil || l.Waited < 3*time.Hour || l.Waited > 4*time.Hour {
			t.Errorf("the first has waited %+v", l)
		}
	})
}
