package spool_test

import (
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tgspool/tgspool/internal/spool"
)

// openWith is a restart with other options.
func (f *fixture) openWith(o spool.Options) {
	f.t.Helper()
	_ = f.store.Close()
	o.Path = filepath.Join(f.dir, "spool.db")
	var err error
	if f.store, err = spool.Open(f.t.Context(), o); err != nil {
		f.t.Fatal(err)
	}
	if f.bot, err = f.store.Attach(f.t.Context(), f.cfg); err != nil {
		f.t.Fatal(err)
	}
}

func (f *fixture) flood(n int) {
	f.t.Helper()
	for range n {
		f.send("2", strings.Repeat("x", 300))
		f.done(f.mustClaim())
	}
}

func TestRetain_AKeyOutlivesARecordThatHadToGoEarly(t *testing.T) {
	bubble(t, limits(), func(t *testing.T, f *fixture) {
		f.openWith(spool.Options{KeepSize: 64 << 10})
		j := message("1", "pay 100")
		j.DedupeKey = "invoice-1"
		f.enqueue(j)
		f.done(f.mustClaim())
		f.flood(400)
		if _, err := f.store.Job(1); err == nil {
			t.Fatal("the record is still there: keep_size isn't kept")
		}
		if q := f.enqueue(j)[0]; !q.Duplicate {
			t.Errorf("job %d is a second one with the key", q.Job.ID)
		}
		time.Sleep(75 * time.Hour)
		synctest.Wait()
		if q := f.enqueue(j)[0]; q.Duplicate {
			t.Error("the key is remembered for longer than its record would have been")
		}
	})
}

func TestRetain_AnUpdateIDOutlivesARecordThatHadToGoEarly(t *testing.T) {
	bubble(t, limits(), func(t *testing.T, f *fixture) {
		f.openWith(spool.Options{KeepSize: 64 << 10})
		f.intake(text(500, 1))
		if _, err := f.bot.Handled(t.Context(), f.lease(time.Minute), spool.Handling{}); err != nil {
			t.Fatal(err)
		}
		f.flood(400)
		if taken := f.intake(text(500, 1)); taken.Duplicates != 1 {
			t.Errorf("the same id again: %+v", taken)
		}
		time.Sleep(50 * time.Hour)
		if taken := f.intake(text(500, 1)); taken.Stored != 1 {
			t.Errorf("the same id after two days: %+v", taken)
		}
	})
}

func TestRetain_UpdatesThatNoClientTakesExpire(t *testing.T) {
	bubble(t, limits(), func(t *testing.T, f *fixture) {
		for id := range int64(600) {
			u := text(id+1, 1+id%3)
			u.Route = spool.Route{Handler: spool.PullRoute}
			f.intake(u)
		}
		f.intake(text(1000, 9)) // a handler's: it waits on
		time.Sleep(23 * time.Hour)
		if n := f.store.Status().Bots[0].Updates[spool.UpdateOpen]; n != 601 {
			t.Errorf("%d open after 23 h", n)
		}
		time.Sleep(3 * time.Hour)
		synctest.Wait()
		if st := f.store.Status().Bots[0].Updates; st[spool.UpdateExpired] != 600 || st[spool.UpdateOpen] != 1 {
			t.Errorf("after 26 h: %v", st)
		}
	})
}

func TestRetain_QueuesOfAnsweredQueriesLeaveNothingBehind(t *testing.T) {
	bubble(t, limits(), func(t *testing.T, f *fixture) {
		for i := range 50 {
			j := message("", "")
			j.Method, j.Chat, j.Weight = "answerCallbackQuery", "once:answerCallbackQuery:"+strings.Repeat("q", i+1), 0
			f.enqueue(j)
			f.done(f.mustClaim())
		}
		if n := f.store.Chats(); n != 0 {
			t.Errorf("%d chats are kept", n)
		}
		dead := message("", "")
		dead.Method, dead.Chat, dead.Weight = "answerCallbackQuery", "once:answerCallbackQuery:x", 0
		id := f.enqueue(dead)[0].Job.ID
		f.settle(f.mustClaim(), spool.Verdict{State: spool.Dead})
		if _, err := f.store.Retry(t.Context(), id); err != nil {
			t.Fatal(err)
		}
		if c := f.mustClaim(); c.ID != id || c.Chat != "" {
			t.Errorf("brought back: %+v", c)
		} else {
			f.done(c)
		}
	})
}
