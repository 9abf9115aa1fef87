package spool_test

import (
	"testing"
	"time"

	"github.com/tgspool/tgspool/internal/spool"
)

// A spool belongs to a bot's id. The name of the settings given to another bot
// begins afresh: no old offset, no old updates, no old jobs. They are there
// again with the bot.
func TestStore_AnotherBotUnderTheSameName(t *testing.T) {
	bubble(t, limits(), func(t *testing.T, f *fixture) {
		const offset = 700_000_001
		if _, err := f.bot.Intake(t.Context(), spool.Batch{Updates: []spool.NewUpdate{text(offset-1, 5)}, Offset: offset, SetOffset: true}); err != nil {
			t.Fatal(err)
		}
		job := f.send("1", "a")

		first := f.cfg.ID
		f.cfg.ID = 8
		f.reopen()
		if got := f.bot.Offset(); got != 0 {
			t.Errorf("the new bot asks for offset %d of another one", got)
		}
		if taken := f.intake(text(offset-1, 5)); taken.Stored != 1 {
			t.Errorf("taken %+v: the same id of another bot is another update", taken)
		}
		if l := f.lease(time.Minute); l == nil || l.UpdateID == nil || *l.UpdateID != offset-1 {
			t.Errorf("leased %+v", l)
		}

		f.cfg.ID = first
		f.reopen()
		if got := f.bot.Offset(); got != offset {
			t.Errorf("back with the first bot the offset is %d", got)
		}
		f.wantState(job, spool.Pending)
		if taken := f.intake(text(offset-1, 5)); taken.Stored != 0 {
			t.Errorf("taken %+v: it was taken in before", taken)
		}
	})
}
