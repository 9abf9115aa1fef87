package sender_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tgspool/tgspool/internal/botapi"
	"github.com/tgspool/tgspool/internal/outbox"
	"github.com/tgspool/tgspool/internal/sender"
	"github.com/tgspool/tgspool/internal/spool"
	"github.com/tgspool/tgspool/internal/telegramsim"
)

func TestSender_LostAnswerIsUncertainAndNotSentAgain(t *testing.T) {
	faults := []telegramsim.Fault{
		{Kind: telegramsim.FaultResetAfterRead, Effect: true},
		{Kind: telegramsim.FaultResetAfterRead},
		{Kind: telegramsim.FaultHang, Effect: true},
		{Kind: telegramsim.FaultHalfBody, Effect: true},
		{Kind: telegramsim.FaultEmpty, Effect: true},
		{Kind: telegramsim.FaultTruncatedJSON, Effect: true},
		{Kind: telegramsim.FaultCode, Code: 200, Body: `{"ok":true}`, Effect: true},
		{Kind: telegramsim.FaultCode, Code: 502, Body: "<html>Bad Gateway</html>"},
		{Kind: telegramsim.FaultCode, Code: 504, Body: "<html>Gateway Time-out</html>", Delay: 50 * time.Second},
		{Kind: telegramsim.FaultCode, Code: 500, Body: "Internal Server Error: restart"},
		{Kind: telegramsim.FaultCode, Code: 400, Body: `Bad Request: failed to send message #1 with the error message "Too Many Requests: retry after 8"`},
	}
	for _, f := range faults {
		t.Run(fmt.Sprint(f.Kind, f.Code, f.Effect), func(t *testing.T) {
			run(t, func(w *world) {
				f.Chat, f.Times = 1, 1
				w.fault(f)
				a, b := w.send(1, "A"), w.send(1, "B")
				job := w.end(a, spool.Uncertain)
				w.class(job, botapi.ClassUnknownOutcome)
				if job.Evidence == nil || job.Evidence.BytesWritten == 0 {
					t.Errorf("evidence %+v", job.Evidence)
				}
				w.end(b, spool.Done) // it doesn't hold up those behind it
				w.pass(time.Hour)
				w.now(a, spool.Uncertain)
				if n := w.tries("sendMessage"); n != 2 {
					t.Errorf("%d calls, want one of each job", n)
				}
				if w.events.count(sender.EventUncertain) != 1 {
					t.Error("nobody was told")
				}
				if w.sim.CountText(1, "A") > 1 {
					t.Error("it arrived twice")
				}
			})
		})
	}
}

func TestSender_SlowAnswerIsNoLostOne(t *testing.T) {
	run(t, func(w *world) {
		w.fault(telegramsim.Fault{Kind: telegramsim.FaultSlow, Delay: 40 * time.Second, Effect: true, Times: 1})
		w.end(w.send(1, "A"), spool.Done)
		w.sent(1, "A")
	})
}

func TestSender_PoliciesForALostAnswer(t *testing.T) {
	tests := []struct {
		policy spool.Policy
		state  spool.State
		texts  []string
	}{
		{spool.PolicyHold, spool.Uncertain, []string{"A"}},
		{spool.PolicyDrop, spool.Cancelled, []string{"A"}},
		{spool.PolicyResend, spool.Done, []string{"A", "A"}},
		{spool.PolicyResendMarked, spool.Done, []string{"A", "A\n\n(may be a repeat)"}},
	}
	for _, tt := range tests {
		t.Run(string(tt.policy), func(t *testing.T) {
			run(t, func(w *world) {
				w.fault(telegramsim.Fault{Kind: telegramsim.FaultResetAfterRead, Effect: true, Chat: 1, Times: 1})
				id := w.send(1, "A", onUncertain(tt.policy), func(o *outbox.Options) { o.DedupeKey = "k" })
				job := w.end(id, tt.state)
				w.sent(1, tt.texts...)
				if tt.state == spool.Cancelled {
					w.class(job, botapi.ClassUnknownOutcome)
				}
				// Whatever became of it, it may have arrived: the key stays taken.
				if again := w.send(1, "A", func(o *outbox.Options) { o.DedupeKey = "k" }); again != id {
					t.Errorf("the key was free for job %d", again)
				}
			})
		})
	}
}

func TestSender_ResendGivesUpAfterMaxAttempts(t *testing.T) {
	run(t, func(w *world) {
		w.fault(telegramsim.Fault{Kind: telegramsim.FaultResetAfterRead, Chat: 1})
		id := w.send(1, "A", onUncertain(spool.PolicyResend), func(o *outbox.Options) { o.MaxAttempts = 3 })
		w.class(w.end(id, spool.Dead), botapi.ClassUnknownOutcome)
		if n := w.tries("sendMessage"); n != 3 {
			t.Errorf("%d calls, want 3", n)
		}
	})
}

func TestSender_LaterPartsGoOnInOrderAfterALostOne(t *testing.T) {
	run(t, func(w *world) {
		w.fault(telegramsim.Fault{Kind: telegramsim.FaultHang, Effect: true, Chat: 1, After: 1, Times: 1})
		parts := []int64{w.send(1, "part 1"), w.send(1, "part 2"), w.send(1, "part 3")}
		w.end(parts[2], spool.Done)
		w.now(parts[1], spool.Uncertain)
		w.sent(1, "part 1", "part 2", "part 3")
	})
}

func TestSender_SafeCallIsRepeatedAndItsNoOpIsASuccess(t *testing.T) {
	run(t, func(w *world) {
		w.end(w.send(1, "before"), spool.Done)
		w.fault(telegramsim.Fault{Kind: telegramsim.FaultResetAfterRead, Effect: true, Method: "editMessageText", Times: 1})
		w.fault(telegramsim.Fault{Kind: telegramsim.FaultResetAfterRead, Effect: true, Method: "deleteMessage", Times: 1})
		id := w.sim.Chat(1)[0].ID
		edit := w.call("editMessageText", fmt.Sprintf(`{"chat_id":1,"message_id":%d,"text":"after"}`, id))
		job := w.end(edit, spool.Done)
		if job.LastError != nil || string(job.Result) != "true" || job.Attempts != 2 {
			t.Errorf("error %+v, result %s after %d attempts, want a success", job.LastError, job.Result, job.Attempts)
		}
		same := w.end(w.call("editMessageText", fmt.Sprintf(`{"chat_id":1,"message_id":%d,"text":"after"}`, id)), spool.Done)
		w.class(same, botapi.ClassNoOp) // nothing was lost here: the caller hears Telegram's words
		if !strings.Contains(same.LastError.Description, "message is not modified") || same.Result != nil {
			t.Errorf("error %+v, result %s", same.LastError, same.Result)
		}
		gone := w.end(w.call("deleteMessage", fmt.Sprintf(`{"chat_id":1,"message_id":%d}`, id)), spool.Done)
		if gone.LastError != nil || string(gone.Result) != "true" {
			t.Errorf("error %+v, result %s, want a success", gone.LastError, gone.Result)
		}
	})
}

func TestSender_UploadThatMayHaveGoneThrough(t *testing.T) {
	run(t, func(w *world) {
		name := filepath.Join("files", "1", "0")
		w.must(os.MkdirAll(filepath.Join(w.dir, "files", "1"), 0o700))
		w.must(os.WriteFile(filepath.Join(w.dir, name), []byte("a picture"), 0o600))
		upload := func(o *outbox.Options) {
			o.Files = []spool.File{{Field: "photo", Name: "a b.jpg", Path: filepath.ToSlash(name), Size: 9}}
		}
		w.fault(telegramsim.Fault{Kind: telegramsim.FaultCode, Code: 504, Body: "<html>Gateway Time-out</html>", Effect: true, Times: 1})
		job := w.end(w.call("sendPhoto", `{"chat_id":1,"caption":"c"}`, upload), spool.Uncertain)
		w.class(job, botapi.ClassUnknownOutcome)
		list := w.arrivals("sendPhoto", 1)
		if len(list) != 1 || len(list[0].Files) != 1 || list[0].Files[0].Name != "a b.jpg" || list[0].Files[0].Size != 9 {
			t.Errorf("arrived %+v", list)
		}
	})
}

func TestSender_FileThatIsGoneEndsItsJobOnly(t *testing.T) {
	run(t, func(w *world) {
		lost := func(o *outbox.Options) { o.Files = []spool.File{{Field: "photo", Path: "files/9/0", Size: 9}} }
		w.class(w.end(w.call("sendPhoto", `{"chat_id":1}`, lost), spool.Dead), botapi.ClassRejected)
		w.end(w.send(1, "B"), spool.Done)
	})
}
