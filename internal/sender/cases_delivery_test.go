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
	"github.com/tgspool/tgspool/internal/spool"
	"github.com/tgspool/tgspool/internal/telegramsim"
)

// A text one unit too long is refused once, by Telegram itself, and the next
// message of the chat goes out at once.
func TestSender_TooLongTextAtTheHeadBlocksNobody(t *testing.T) {
	run(t, func(w *world) {
		long := w.send(1, strings.Repeat("x", 4097))
		longest := strings.Repeat("x", 4096)
		fits := w.send(1, longest)
		job := w.end(long, spool.Dead)
		w.class(job, botapi.ClassRejected)
		if job.Attempts != 1 || !strings.Contains(job.LastError.Description, "too long") {
			t.Errorf("%d attempts, error %+v", job.Attempts, job.LastError)
		}
		w.end(fits, spool.Done)
		w.sent(1, longest)
	})
}

// An album of which a part may have gone out is nobody's to repeat; one that
// Telegram refused as a whole with a delay is.
func TestSender_AlbumsUnderAFlood(t *testing.T) {
	const album = `{"chat_id":1,"media":[{"type":"photo","media":"https://example.org/1.jpg"},{"type":"photo","media":"https://example.org/2.jpg"}]}`
	const partly = `Bad Request: failed to send message #1 with the error message "Too Many Requests: retry after 8"`
	tests := []struct {
		name  string
		fault telegramsim.Fault
		state spool.State
		tries int
		least time.Duration
	}{
		{"a part of it", telegramsim.Fault{Kind: telegramsim.FaultCode, Code: 400, Body: partly}, spool.Uncertain, 1, 0},
		{"the whole of it", telegramsim.Fault{Kind: telegramsim.FaultFlood, RetryAfter: 8}, spool.Done, 2, 8 * time.Second},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			run(t, func(w *world) {
				tt.fault.Method, tt.fault.Times = "sendMediaGroup", 1
				w.fault(tt.fault)
				start := time.Now()
				id := w.call("sendMediaGroup", album)
				w.end(id, tt.state)
				if took := time.Since(start); took < tt.least || took > tt.least+10*time.Second {
					t.Errorf("it took %v, want %v and a little", took, tt.least)
				}
				w.end(w.send(1, "B"), spool.Done)
				w.pass(time.Hour)
				w.now(id, tt.state)
				if n := w.tries("sendMediaGroup"); n != tt.tries {
					t.Errorf("%d calls, want %d", n, tt.tries)
				}
			})
		})
	}
}

// A gateway gives up on an upload that Telegram may have taken.
func TestSender_AlbumBehindAGatewayThatGivesUp(t *testing.T) {
	run(t, func(w *world) {
		name := filepath.Join("files", "1", "0")
		w.must(os.MkdirAll(filepath.Join(w.dir, "files", "1"), 0o700))
		w.must(os.WriteFile(filepath.Join(w.dir, name), []byte("a picture"), 0o600))
		w.fault(telegramsim.Fault{
			Kind: telegramsim.FaultCode, Code: 504, Body: "<html>504 Gateway Time-out</html>",
			Delay: 59 * time.Second, Effect: true, Method: "sendMediaGroup", Times: 1,
		})
		id := w.call("sendMediaGroup", `{"chat_id":1,"media":[{"type":"photo","media":"attach://a"},{"type":"photo","media":"https://example.org/2.jpg"}]}`,
			func(o *outbox.Options) {
				o.Files = []spool.File{{Field: "a", Name: "a.jpg", Path: filepath.ToSlash(name), Size: 9}}
			})
		job := w.end(id, spool.Uncertain)
		w.class(job, botapi.ClassUnknownOutcome)
		if job.LastError.Code != 504 {
			t.Errorf("error %+v", job.LastError)
		}
		w.pass(time.Hour)
		if n := w.tries("sendMediaGroup"); n != 1 {
			t.Errorf("%d calls, want 1", n)
		}
	})
}

// Topics of a group are one chat to Telegram's limits, and a topic that is gone
// is the caller's to know of: nothing goes to the main chat instead.
func TestSender_TopicsOfAGroup(t *testing.T) {
	const group = int64(-1001700300001)
	run(t, func(w *world) {
		w.sim.AddChat(telegramsim.ChatSpec{ID: group, Type: "supergroup"})
		w.sim.Feed(0, fmt.Appendf(nil, `{"message":{"message_id":9,"message_thread_id":31,"chat":{"id":%d,"type":"supergroup"},"date":1,"text":"x"}}`, group))
		var ids []int64
		for _, thread := range []string{"31", `"31"`, "31"} {
			ids = append(ids, w.call("sendMessage", fmt.Sprintf(`{"chat_id":%d,"message_thread_id":%s,"text":"x"}`, group, thread)))
		}
		for _, id := range ids {
			w.end(id, spool.Done)
		}
		w.gaps(w.arrivals("sendMessage", group), 1050*time.Millisecond)
		for _, thread := range []int{1, 44} {
			before := w.tries("sendMessage")
			job := w.end(w.call("sendMessage", fmt.Sprintf(`{"chat_id":%d,"message_thread_id":%d,"text":"lost"}`, group, thread)), spool.Dead)
			w.class(job, botapi.ClassRejected)
			if n := w.tries("sendMessage") - before; n != 1 || job.LastError.Description != "Bad Request: message thread not found" {
				t.Errorf("thread %d: %d calls, error %+v", thread, n, job.LastError)
			}
		}
		if n := w.sim.CountText(group, "lost"); n != 0 {
			t.Errorf("%d messages for a topic that is gone went to the main chat", n)
		}
	})
}

// The answer to a button's press isn't kept over a restart, whatever it waited for.
func TestSender_AnswerToAPressIsNotKeptOverARestart(t *testing.T) {
	run(t, func(w *world) {
		w.fault(telegramsim.Fault{Kind: telegramsim.FaultOffline})
		w.send(1, "A") // so that the bot is found offline
		w.pass(time.Second)
		id := w.call("answerCallbackQuery", `{"callback_query_id":"123"}`)
		w.stop()
		w.pass(time.Minute)
		w.start()
		w.end(id, spool.Expired)
		w.pass(time.Hour)
		if n := w.tries("answerCallbackQuery"); n != 0 {
			t.Errorf("it was called %d times", n)
		}
	})
}

// Callers who give up after 5 s and say the same again, with the same key, while
// Telegram is silent, make one job and one message.
func TestSender_CallersWhoRepeatThemselvesMakeOneMessage(t *testing.T) {
	run(t, func(w *world) {
		w.fault(telegramsim.Fault{Kind: telegramsim.FaultSlow, Delay: 40 * time.Second, Effect: true, Chat: 1, Times: 1})
		key := func(o *outbox.Options) { o.DedupeKey = "door" }
		id := w.send(1, "the door is open", key)
		for range 2 {
			w.pass(5 * time.Second)
			if again := w.send(1, "the door is open", key); again != id {
				t.Errorf("a repeat became job %d", again)
			}
		}
		w.end(id, spool.Done)
		w.sent(1, "the door is open")
	})
}
