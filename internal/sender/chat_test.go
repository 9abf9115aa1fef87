package sender_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/tgspool/tgspool/internal/botapi"
	"github.com/tgspool/tgspool/internal/outbox"
	"github.com/tgspool/tgspool/internal/sender"
	"github.com/tgspool/tgspool/internal/spool"
	"github.com/tgspool/tgspool/internal/telegramsim"
)

func TestSender_MigratedGroupTakesAllThatWaitAlong(t *testing.T) {
	const before, after int64 = -4444, -1001557000000
	run(t, func(w *world) {
		w.end(w.send(before, "hello"), spool.Done)
		w.sim.Migrate(before, after)
		var ids []int64
		for _, text := range numbered("m", 6) {
			ids = append(ids, w.send(before, text))
		}
		for i, id := range ids {
			job := w.end(id, spool.Done)
			if job.Attempts != 1 || string(job.ChatID) != fmt.Sprint(before) || string(job.SentChatID) != fmt.Sprint(after) {
				t.Errorf("job %d: %d attempts, from %s to %s", i, job.Attempts, job.ChatID, job.SentChatID)
			}
		}
		w.sent(after, numbered("m", 6)...)
		if n := w.tries("sendMessage"); n != 8 {
			t.Errorf("%d calls, want one more than there are jobs", n)
		}
		w.stop()
		w.start() // the new id is stored
		w.end(w.send(before, "later"), spool.Done)
		w.sent(after, append(numbered("m", 6), "later")...)
		if n := w.tries("sendMessage"); n != 9 {
			t.Errorf("%d calls: the old id was tried again", n)
		}
	})
}

func TestSender_MigrationInCirclesEnds(t *testing.T) {
	migrate := func(from, to int64) telegramsim.Fault {
		return telegramsim.Fault{Kind: telegramsim.FaultCode, Code: 400, Chat: from, Body: fmt.Sprintf(
			`{"ok":false,"error_code":400,"description":"Bad Request: group chat was upgraded to a supergroup chat","parameters":{"migrate_to_chat_id":%d}}`, to)}
	}
	run(t, func(w *world) {
		w.fault(migrate(-11, -1001))
		w.fault(migrate(-1001, -11))
		w.fault(migrate(-22, -22))
		w.class(w.end(w.send(-11, "A"), spool.Dead), botapi.ClassMigrated)
		w.class(w.end(w.send(-22, "B"), spool.Dead), botapi.ClassMigrated)
		if n := w.tries("sendMessage"); n > 4 {
			t.Errorf("%d calls to find the circle", n)
		}
	})
}

func TestSender_BlockedChatEndsAllThatWaitForIt(t *testing.T) {
	run(t, func(w *world) {
		w.end(w.send(42, "hello"), spool.Done)
		w.sim.Block(42)
		var ids []int64
		for _, text := range numbered("m", 5) {
			ids = append(ids, w.send(42, text))
		}
		other := w.send(43, "other")
		for _, id := range ids {
			w.class(w.end(id, spool.Dead), botapi.ClassChatGone)
		}
		w.end(other, spool.Done)
		if n := w.tries("sendMessage"); n != 3 {
			t.Errorf("%d calls, want one to the blocked chat", n)
		}
		chat, err := w.bot.Chat("42")
		w.must(err)
		if chat.Active || chat.InactiveReason == nil || *chat.InactiveReason != "Forbidden: bot was blocked by the user" {
			t.Errorf("chat %+v", chat)
		}
		if w.events.count(sender.EventChatGone) != 1 {
			t.Error("nobody was told")
		}
		// A forced job that gets through brings the chat back.
		w.sim.Unblock(42)
		w.end(w.send(42, "forced", func(o *outbox.Options) { o.Force = true }), spool.Done)
		w.end(w.send(42, "again"), spool.Done)
	})
}

func TestSender_ChatNotFoundIsBelievedTheSecondTime(t *testing.T) {
	notFound := telegramsim.Fault{Kind: telegramsim.FaultCode, Code: 400, Body: "Bad Request: chat not found", Chat: 42}
	run(t, func(w *world) {
		start := time.Now()
		f := notFound
		f.Times = 1
		w.fault(f)
		job := w.end(w.send(42, "A"), spool.Done)
		if took := time.Since(start); took < time.Minute || took > 65*time.Second || job.Attempts != 1 {
			t.Errorf("a hiccup of the look-up: sent after %v with %d attempts", took, job.Attempts)
		}

		w.fault(notFound)
		start = time.Now()
		a, b := w.send(42, "B"), w.send(42, "C")
		w.class(w.end(a, spool.Dead), botapi.ClassChatGone)
		if took := time.Since(start); took < time.Minute {
			t.Errorf("believed after %v, want a minute", took)
		}
		w.class(w.end(b, spool.Dead), botapi.ClassChatGone)
	})
}
