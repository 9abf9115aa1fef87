package sender_test

import (
	"strings"
	"testing"
	"time"

	"github.com/tgspool/tgspool/internal/outbox"
	"github.com/tgspool/tgspool/internal/sender"
	"github.com/tgspool/tgspool/internal/spool"
)

func TestSender_LateTextsSayWhenTheyWereWritten(t *testing.T) {
	note := func(o *outbox.Options) { o.LateNote = true }
	run(t, func(w *world) {
		w.sim.SetOffline(true)
		at := time.Now()
		written := "(written " + at.Local().Format("15:04") + ")"
		ids := []int64{
			w.send(1, "late", note),
			w.send(2, "not asked for"),
			w.send(3, "scheduled", note, func(o *outbox.Options) { o.NotBefore = at.Add(20 * time.Minute) }),
			w.call("sendMessage", `{"chat_id":4,"text":"*m*","parse_mode":"MarkdownV2"}`, note),
			w.send(5, strings.Repeat("x", 4090), note),
		}
		w.pass(25 * time.Minute)
		w.sim.SetOffline(false)
		for _, id := range ids {
			w.end(id, spool.Done)
		}
		w.sent(1, "late\n\n"+written)
		w.sent(2, "not asked for")
		w.sent(3, "scheduled")
		w.sent(4, "*m*\n\n\\"+strings.TrimSuffix(written, ")")+`\)`)
		w.sent(5, strings.Repeat("x", 4090))
		w.sim.SetOffline(true)
		old := w.send(1, "old", note)
		day := time.Now().Local().Format("2006-01-02 15:04")
		w.pass(30 * time.Hour)
		w.sim.SetOffline(false)
		w.end(old, spool.Done)
		if got := w.texts(1); got[1] != "old\n\n(written "+day+")" {
			w.t.Errorf("it says %q", got[1])
		}
	}, func(s *setup) { s.options = sender.Options{LateNote: 10 * time.Minute} })
}
