package spool_test

import (
	"encoding/json"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tgspool/tgspool/internal/spool"
)

// TestSight_OwnedForGood: a message that was found to be another job's isn't taken
// for the uncertain one's later, when the record of its owner is gone.
func TestSight_OwnedForGood(t *testing.T) {
	bubble(t, spool.Limits{}, func(t *testing.T, f *fixture) {
		f.cfg.Sight = modelSight
		f.openWith(spool.Options{Keep: spool.Keep{Done: time.Hour}})
		j := message("1", "Menu")
		lost := f.enqueue(j, j)[0].Job.ID
		began := time.Now()
		f.settle(f.mustClaim(), spool.Verdict{State: spool.Uncertain})
		owner := f.settle(f.mustClaim(), spool.Verdict{State: spool.Done, Result: json.RawMessage(`{"message_id":77}`)}).ID
		press := func() {
			raw, err := json.Marshal(map[string]any{"Shows": modelShown{1, 77, began, j.Method, string(j.Params)}})
			if err != nil {
				t.Fatal(err)
			}
			u := text(time.Now().Unix(), 1)
			u.Raw = raw
			f.intake(u)
			f.wantState(lost, spool.Uncertain)
		}
		press()
		time.Sleep(3 * time.Hour)
		synctest.Wait()
		if _, err := f.store.Job(owner); err == nil {
			t.Fatal("the owner's record is still there")
		}
		press()
	})
}
