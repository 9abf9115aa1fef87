package handler

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tgspool/tgspool/internal/spool"
)

// calls are those that were made at once, with their seconds since the start.
type calls struct {
	mu    sync.Mutex
	start time.Time
	list  []string
}

func (c *calls) atOnce(_ context.Context, method string, params json.RawMessage) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.start.IsZero() {
		c.start = time.Now()
	}
	c.list = append(c.list, fmt.Sprintf("%d %s %s", int(time.Since(c.start).Seconds()), method, params))
}

func (c *calls) take() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	list := c.list
	c.list, c.start = nil, time.Time{}
	return list
}

// pressed is a button under message 9 of a private chat.
func pressed(query string, chat int64, data string) string {
	return fmt.Sprintf(`{"callback_query":{"id":%q,"from":{"id":%d,"is_bot":false,"first_name":"A"},"message":{"message_id":9,"date":1,"chat":{"id":%d,"type":"private"}},"chat_instance":"c","data":%q}}`, query, chat, chat, data)
}

func TestCourtesy_TypingAndButtons(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newApp(func(string, int) (*http.Response, error) {
			<-time.After(10 * time.Second)
			return say(200, "", "")
		})
		r := webhook("slow")
		r.Typing, r.AnswerCallbacks = true, true
		h := openHouse(t, r)
		defer h.close()
		var made calls
		h.run(h.pushTo(a), func(c *Config) { c.AtOnce = made.atOnce })
		defer h.stop()
		topic := strings.Replace(said(-1001, "a"), `"text"`, `"is_topic_message":true,"message_thread_id":5,"text"`, 1)
		seq := h.feed(topic)
		<-time.After(time.Minute)
		const shown = ` sendChatAction {"chat_id":-1001,"message_thread_id":5,"action":"typing"}`
		if got := made.take(); !slices.Equal(got, []string{"0" + shown, "4" + shown, "8" + shown}) {
			t.Errorf("made at once:\n%s", strings.Join(got, "\n"))
		}
		h.want(seq, spool.UpdateHandled, 1, "")
		seq = h.feed(pressed("77", 7, "x"))
		<-time.After(time.Minute)
		h.want(seq, spool.UpdateHandled, 1, "")
		if got := strings.Join(made.take(), "\n"); strings.Count(got, `0 answerCallbackQuery {"callback_query_id":"77"}`) != 1 || strings.Count(got, "typing") != 3 {
			t.Errorf("made at once:\n%s", got)
		}
		h.wantCalls()
	})
}

// TestCourtesy_ButtonIsAnsweredOnce: a run that is repeated doesn't answer again.
func TestCourtesy_ButtonIsAnsweredOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := RouteConfig{Name: "it", Exec: []string{"/bin/false"}, AllowFrom: everyone, AnswerCallbacks: true, Attempts: 3, OnError: "that went wrong"}
		h := openHouse(t, r)
		defer h.close()
		var made calls
		h.run(func(c *Config) { c.AtOnce = made.atOnce })
		defer h.stop()
		seq := h.feed(pressed("77", 7, "x"))
		<-time.After(time.Minute)
		synctest.Wait()
		h.want(seq, spool.UpdateDead, 3, "exit status 1")
		if got := made.take(); len(got) != 1 {
			t.Errorf("made at once: %v", got)
		}
		h.wantCalls(`sendMessage {"chat_id":7,"text":"that went wrong"}`)
	})
}

func TestCourtesy_WhoIsToldWhat(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		marks := filepath.Join(t.TempDir(), "marks")
		door := RouteConfig{
			Name: "door", Exec: []string{script(t, `echo $TGSPOOL_CHAT_ID >> `+marks)}, AllowFrom: Allow{IDs: []int64{7}},
			Once: true, Late: "too late", Denied: "not for you", OnError: "it is broken",
		}
		h := openHouse(t, door)
		defer h.close()
		h.run()
		defer h.stop()
		// "Open the door" from an hour ago is for nobody, and the user hears so.
		hourAgo := time.Now().Add(-time.Hour).Unix()
		old := strings.Replace(said(7, "open"), fmt.Sprintf(`"date":%d`, time.Now().Unix()), fmt.Sprintf(`"date":%d`, hourAgo), 1)
		seq := h.feed(old, said(8, "open"), pressed("5", 8, "open"), said(7, "open"), `{"poll":{"id":"p"}}`)
		synctest.Wait()
		h.want(seq, spool.UpdateExpired, 1, "older than 1m0s")
		h.want(seq+1, spool.UpdateIgnored, 0, IgnoredNotAllowed)
		h.want(seq+2, spool.UpdateIgnored, 0, IgnoredNotAllowed)
		h.want(seq+3, spool.UpdateHandled, 1, "")
		h.want(seq+4, spool.UpdateIgnored, 0, IgnoredNotAllowed) // nobody to tell
		jobs := h.wantCalls(`sendMessage {"chat_id":8,"text":"not for you"}`, `answerCallbackQuery {"callback_query_id":"5"}`,
			`sendMessage {"chat_id":8,"text":"not for you"}`, `sendMessage {"chat_id":7,"text":"too late"}`)
		if len(jobs) == 4 && (*jobs[0].DedupeKey != "reply:1002:1" || jobs[0].Origin != "handler:door") {
			t.Errorf("the first is %+v", jobs[0])
		}
		if got := lines(t, marks); !slices.Equal(got, []string{"7"}) {
			t.Errorf("the door was opened by %v", got)
		}
	})
}

// TestCourtesy_OnErrorOnceOfMany: the user hears of an update's end, not of each
// attempt, also when the end is that a start had none.
func TestCourtesy_OnErrorAfterAKill(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := does(t, "door", ReplyText, "print", "open")
		r.Once, r.OnError = true, "nobody knows whether that worked"
		h := openHouse(t, r)
		defer h.close()
		seq := h.feed(said(7, "open"))
		if _, err := h.bot.ClaimUpdate(t.Context(), "door"); err != nil { // a start that is killed
			t.Fatal(err)
		}
		h.close()
		h.open()
		h.run()
		defer h.stop()
		synctest.Wait()
		h.want(seq, spool.UpdateDead, 2, "may have run")
		h.wantCalls(`sendMessage {"chat_id":7,"text":"nobody knows whether that worked"}`)
	})
}

// TestCourtesy_Collapse: a button pressed five times counts once, and so does a
// command; other users, buttons and texts count for themselves.
func TestCourtesy_Collapse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		marks := filepath.Join(t.TempDir(), "marks")
		r := RouteConfig{Name: "it", Exec: []string{script(t, `echo "$TGSPOOL_FROM_ID:$TGSPOOL_TEXT" >> `+marks)}, AllowFrom: everyone, Collapse: 10 * time.Second}
		h := openHouse(t, r)
		defer h.close()
		h.run()
		seq := h.feed(pressed("1", 7, "go"), pressed("2", 7, "go"), pressed("3", 7, "go"))
		h.feed(pressed("4", 8, "go"), pressed("5", 7, "stop"), said(7, "/go now"), said(7, "/go now"), said(7, "/go"), said(7, "hi"), said(7, "hi"))
		synctest.Wait()
		h.stop()
		h.close()
		h.open()
		h.run()
		defer h.stop()
		h.feed(pressed("6", 7, "go"), pressed("7", 7, "go"))
		synctest.Wait()
		for _, i := range []int64{1, 2, 6, 10, 11} {
			h.want(seq+i, spool.UpdateIgnored, 0, spool.CollapsedReason)
		}
		got := lines(t, marks)
		slices.Sort(got)
		if want := []string{"7:/go", "7:/go", "7:go", "7:hi", "7:hi", "7:stop", "8:go", "now"}; !slices.Equal(got, want) {
			t.Errorf("handled were %v, want %v", got, want)
		}
		var answered []string
		for _, j := range h.jobs() {
			answered = append(answered, string(j.Params))
		}
		if len(answered) != 4 || answered[0] != `{"callback_query_id":"2"}` {
			t.Errorf("the buttons that don't count were answered by %v", answered)
		}
		<-time.After(11 * time.Second)
		h.want(h.feedAndWait(pressed("8", 7, "go")), spool.UpdateHandled, 1, "")
	})
}

func TestCalls_OnlyForAllowedChats(t *testing.T) {
	for name, tt := range map[string]struct {
		call string
		ok   bool
	}{
		"the chat itself": {`{"method":"sendMessage","chat_id":-100,"text":"a"}`, true},
		"as a string":     {`{"method":"sendMessage","chat_id":"-100","text":"a"}`, true},
		"another one":     {`{"method":"sendMessage","chat_id":-200,"text":"a"}`, true},
		"none":            {`{"method":"answerCallbackQuery","callback_query_id":"1"}`, true},
		"the sender's":    {`{"method":"sendMessage","chat_id":7,"text":"a"}`, false},
		"a channel":       {`{"method":"sendMessage","chat_id":"@news","text":"a"}`, false},
		"forwarded from":  {`{"method":"forwardMessage","chat_id":-100,"from_chat_id":55,"message_id":1}`, false},
		"quoted":          {`{"method":"sendMessage","chat_id":-100,"text":"a","reply_parameters":{"message_id":1,"chat_id":55}}`, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := does(t, "it", ReplyCalls, "print", tt.call+"\n")
				r.AllowChats = Allow{IDs: []int64{-100, -200}}
				h := openHouse(t, r)
				defer h.close()
				h.run()
				defer h.stop()
				update := strings.Replace(said(7, "hi"), `"chat":{"id":7`, `"chat":{"id":-100`, 1)
				seq := h.feedAndWait(update)
				if tt.ok {
					h.want(seq, spool.UpdateHandled, 1, "")
				} else {
					h.want(seq, spool.UpdateDead, 1, "names a chat outside of allow_chats")
				}
			})
		})
	}
}
