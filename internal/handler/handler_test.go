package handler

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tgspool/tgspool/internal/spool"
)

func TestHandlers_ProgramSeesTheUpdateAndNothingOfUs(t *testing.T) {
	t.Setenv("TELEGRAM_BOT_TOKEN", "secret")
	synctest.Test(t, func(t *testing.T) {
		out := t.TempDir()
		route := RouteConfig{
			Name: "it", AllowFrom: everyone,
			Exec: []string{script(t, `env | sort > "$1/$TGSPOOL_CHAT_ID.env"; cat > "$1/$TGSPOOL_CHAT_ID.in"; pwd > "$1/$TGSPOOL_CHAT_ID.dir"`), out},
		}
		h := openHouse(t, route)
		defer h.close()
		h.run(func(c *Config) { c.Home = "/var/lib/bot" })
		defer h.stop()
		h.feed(said(7, "/start@HomeBot deep  link \x00!"), `{"poll":{"id":"p"}}`)
		synctest.Wait()
		read := func(name string) string {
			b, err := os.ReadFile(filepath.Join(out, name))
			if err != nil {
				t.Fatal(err)
			}
			return string(b)
		}
		const always = "HOME=/var/lib/bot\nLANG=C.UTF-8\nPATH=" + plainPath + "\nPWD=/\n"
		want := always + "TGSPOOL_ARGS=deep  link !\nTGSPOOL_ATTEMPT=1\nTGSPOOL_BOT=home\nTGSPOOL_CHAT_ID=7\nTGSPOOL_COMMAND=/start\n" +
			"TGSPOOL_FROM_ID=7\nTGSPOOL_KIND=message\nTGSPOOL_SESSION={}\nTGSPOOL_TEXT=/start@HomeBot deep  link !\nTGSPOOL_UPDATE_ID=1001\n"
		// Some shells add variables of their own.
		ours := func(env string) string {
			kept := slices.DeleteFunc(strings.SplitAfter(env, "\n"), func(l string) bool {
				return strings.HasPrefix(l, "_=") || strings.HasPrefix(l, "SHLVL=") || strings.HasPrefix(l, "OLDPWD=")
			})
			return strings.Join(kept, "")
		}
		if got := ours(read("7.env")); got != want {
			t.Errorf("environment is\n%s\nwant\n%s", got, want)
		}
		if got := read("7.in"); got != string(h.update(1).Raw)+"\n" {
			t.Errorf("standard input was %q", got)
		}
		if got := read("7.dir"); got != "/\n" {
			t.Errorf("working folder was %q", got)
		}
		if got := read(".env"); !strings.Contains(got, "TGSPOOL_CHAT_ID=\nTGSPOOL_COMMAND=\nTGSPOOL_FROM_ID=\nTGSPOOL_KIND=poll\n") {
			t.Errorf("environment of a poll is\n%s", got)
		}
	})
}

func TestVariable_FitsTheEnvironment(t *testing.T) {
	long := strings.Repeat("é", maxVariable)
	if got := variable(long); len(got) > maxVariable || !strings.HasPrefix(long, got) || strings.ContainsRune(got, '\uFFFD') {
		t.Errorf("got %d bytes", len(got))
	}
}

func TestHandlers_RetryThenDead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		marks := filepath.Join(t.TempDir(), "marks")
		h := openHouse(t,
			RouteConfig{Name: "bad", Match: Match{Text: "bad"}, Exec: []string{script(t, `date >/dev/null; echo run >> `+marks+`; echo oops >&2; exit 75`)}, AllowFrom: everyone},
			does(t, "good", ReplyText, "print", "fine"))
		defer h.close()
		h.run()
		defer h.stop()
		start := time.Now()
		bad := h.feed(said(7, "bad"), said(7, "good"), said(8, "good"))
		synctest.Wait()
		h.want(bad, spool.UpdateOpen, 1, "exit status 75")
		h.want(bad+1, spool.UpdateOpen, 0, "")    // behind it, in the same chat
		h.want(bad+2, spool.UpdateHandled, 1, "") // elsewhere
		due := *h.update(bad).NextAttemptAt
		if wait := due.Sub(start); wait < time.Second || wait > 1250*time.Millisecond {
			t.Errorf("the second attempt is due after %s", wait)
		}
		<-time.After(10 * time.Minute)
		synctest.Wait()
		u := h.want(bad, spool.UpdateDead, 5, "given up after 5 attempts: exit status 75")
		if u.Output == nil || *u.Output != "stderr: oops" {
			t.Errorf("output kept: %v", u.Output)
		}
		h.want(bad+1, spool.UpdateHandled, 1, "")
		if got := len(lines(t, marks)); got != 5 {
			t.Errorf("the program ran %d times", got)
		}
		if n := h.logged("handler wrote to standard error"); n != 5 {
			t.Errorf("standard error was logged %d times", n)
		}
		h.wantCalls(`sendMessage {"chat_id":8,"text":"fine"}`, `sendMessage {"chat_id":7,"text":"fine"}`)
	})
}

func TestRetryWait_DoublesToFiveMinutes(t *testing.T) {
	for attempts, least := range map[int]time.Duration{
		1: time.Second, 2: 2 * time.Second, 5: 16 * time.Second, 9: 256 * time.Second, 10: maxRetry, 11: maxRetry, 1000: maxRetry,
	} {
		for range 100 {
			if got := retryWait(attempts); got < least || got > min(least+least/4, maxRetry) {
				t.Fatalf("after %d attempts it waits %s", attempts, got)
			}
		}
	}
}

func TestHandlers_PermanentFailures(t *testing.T) {
	for name, tt := range map[string]struct {
		argv []string
		why  string
	}{
		"EX_DATAERR":      {self(t, "print", "half", "65"), "exit status 65"},
		"too much output": {self(t, "flood", strconv.Itoa(10<<20)), "standard output is over 1048576 bytes"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := openHouse(t, RouteConfig{Name: "it", Exec: tt.argv, AllowFrom: everyone})
				defer h.close()
				h.run()
				defer h.stop()
				u := h.want(h.feedAndWait(said(7, "a")), spool.UpdateDead, 1, tt.why)
				if u.Output == nil || len(*u.Output) > maxTail+100 {
					t.Errorf("output kept: %v", u.Output)
				}
				h.wantCalls()
			})
		})
	}
}

// feedAndWait feeds one update in a bubble and waits for its run.
func (h *house) feedAndWait(update string) int64 {
	h.t.Helper()
	seq := h.feed(update)
	synctest.Wait()
	return seq
}

func TestHandlers_TooOld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		old := does(t, "old", ReplyText, "print", "late")
		old.MaxAge = 10 * time.Minute
		old.Match.Text = "old"
		once := does(t, "once", ReplyText, "print", "late")
		once.Once = true
		once.Match.Text = "once"
		h := openHouse(t, old, once, does(t, "rest", ReplyText, "print", "late"))
		defer h.close()
		first := h.feed(said(1, "old"), said(2, "once"), said(3, "rest"))
		<-time.After(5 * time.Minute)
		h.run()
		defer h.stop()
		synctest.Wait()
		h.want(first, spool.UpdateHandled, 1, "")
		h.want(first+1, spool.UpdateExpired, 1, "older than 1m0s")
		h.want(first+2, spool.UpdateHandled, 1, "")
		// Whoever brings it back wants it run, however old.
		if _, err := h.bot.Replay(t.Context(), first+1, false); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		h.want(first+1, spool.UpdateHandled, 1, "")
	})
}

func TestHandlers_AgeIsMeasuredByTheClockHandedIn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		route := does(t, "it", ReplyText, "print", "a")
		route.MaxAge = time.Minute
		h := openHouse(t, route)
		defer h.close()
		var known atomic.Bool // looked at by a worker that wakes in the instant of a change
		known.Store(true)
		h.run(func(c *Config) { c.Now = func() (time.Time, bool) { return time.Now().Add(time.Hour), known.Load() } })
		defer h.stop()
		h.want(h.feedAndWait(said(7, "a")), spool.UpdateExpired, 1, "older than 1m0s")
		// A pressed button has no date: what counts is how long it has waited, by the
		// store's clock.
		const press = `{"callback_query":{"id":"1","from":{"id":7},"message":{"message_id":9,"chat":{"id":7,"type":"private"}},"chat_instance":"c","data":"d"}}`
		h.want(h.feedAndWait(press), spool.UpdateHandled, 1, "")
		h.stop()
		seq := h.feed(press)
		<-time.After(61 * time.Second)
		// While the time isn't known nothing tells how old a message is.
		known.Store(false)
		h.run(func(c *Config) { c.Now = func() (time.Time, bool) { return time.Now().Add(-time.Hour), known.Load() } })
		young := h.feedAndWait(said(8, "b"))
		h.want(seq, spool.UpdateExpired, 1, "older than 1m0s")
		h.want(young, spool.UpdateOpen, 0, "its age can't be told")
		<-time.After(30 * time.Second)
		synctest.Wait() // the worker may look again in this very instant
		h.want(young, spool.UpdateOpen, 0, "its age can't be told")
		known.Store(true)
		<-time.After(clockPause)
		synctest.Wait()
		h.want(young, spool.UpdateHandled, 1, "")
	})
}

func TestHandlers_PanicIsAFailedAttempt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := openHouse(t, does(t, "it", ReplyText, "print", "a"))
		defer h.close()
		n := 0
		h.run(func(c *Config) {
			c.Now = func() (time.Time, bool) {
				if n++; n == 1 {
					panic("first")
				}
				return time.Now(), true
			}
		})
		defer h.stop()
		seq := h.feedAndWait(said(7, "a"))
		h.want(seq, spool.UpdateOpen, 1, "panic: first")
		<-time.After(time.Minute)
		synctest.Wait()
		u := h.update(seq)
		if u.State != spool.UpdateHandled || u.Attempts != 2 {
			t.Errorf("update is %s after %d attempts", u.State, u.Attempts)
		}
	})
}

func TestHandlers_NotAllowedAnyMore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		marks := filepath.Join(t.TempDir(), "marks")
		h := openHouse(t, does(t, "it", ReplyText, "append", marks, "run\n"))
		defer h.close()
		seq := h.feed(said(7, "a"))
		// The settings are changed before its turn comes.
		strict := does(t, "it", ReplyText, "append", marks, "run\n")
		strict.AllowFrom = Allow{IDs: []int64{8}}
		h.run(func(c *Config) { c.Routes = []RouteConfig{strict} })
		defer h.stop()
		synctest.Wait()
		h.want(seq, spool.UpdateIgnored, 1, IgnoredNotAllowed)
		if got := len(lines(t, marks)); got != 0 {
			t.Errorf("the program ran %d times", got)
		}
	})
}

func TestHandlers_TimeoutIsTriedAgain(t *testing.T) {
	file := filepath.Join(t.TempDir(), "pid")
	route := does(t, "it", ReplyText, "hang", file)
	route.Timeout, route.Attempts = time.Second, 2
	h := openHouse(t, route)
	defer h.close()
	h.run()
	defer h.stop()
	seq := h.feed(said(7, "a"))
	h.told(1)
	h.want(seq, spool.UpdateOpen, 1, "killed after 1s: timeout")
	h.told(1)
	h.want(seq, spool.UpdateDead, 2, "given up after 2 attempts: killed after 1s: timeout")
	awaitGone(t, awaitFile(t, file))
}

// Each run waits until as many as there may be at once have begun.
func TestHandlers_ChatsInParallelOneChatInOrder(t *testing.T) {
	dir := t.TempDir()
	route := RouteConfig{
		Name: "it", AllowFrom: everyone, Parallel: 4,
		Exec: []string{script(t, `: > "$1/$TGSPOOL_CHAT_ID"; while [ $(ls "$1" | grep -c '^[0-9]') -lt 4 ]; do sleep 0.02; done; echo $TGSPOOL_TEXT`), dir},
	}
	h := openHouse(t, route)
	defer h.close()
	h.run()
	defer h.stop()
	h.feed(said(1, "1a"), said(1, "1b"), said(2, "2a"), said(3, "3a"), said(1, "1c"), said(4, "4a"), said(4, "4b"))
	h.told(7)
	var one, four []string
	for _, j := range h.jobs() {
		switch string(j.ChatID) {
		case "1":
			one = append(one, string(j.Params))
		case "4":
			four = append(four, string(j.Params))
		}
	}
	for chat, got := range map[string][]string{"1abc": one, "4ab": four} {
		for i, params := range got {
			if want := fmt.Sprintf(`"text":"%c%c"`, chat[0], chat[1+i]); !strings.Contains(params, want) {
				t.Errorf("call %d of chat %c is %s", i, chat[0], params)
			}
		}
	}
	if len(one) != 3 || len(four) != 2 {
		t.Errorf("calls: %v, %v", one, four)
	}
}

// Case 37: a button's press that waited three minutes is not handed over.
func TestHandlers_StalePressIsNotHandedOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		marks := filepath.Join(t.TempDir(), "marks")
		h := openHouse(t, does(t, "it", ReplyText, "append", marks, "run\n"))
		defer h.close()
		const press = `{"callback_query":{"id":"1","from":{"id":7},"chat_instance":"c","data":"d"}}`
		stale := h.feed(press)
		<-time.After(3 * time.Minute)
		fresh := h.feed(press)
		h.run()
		defer h.stop()
		synctest.Wait()
		h.want(stale, spool.UpdateExpired, 0, "too old")
		h.want(fresh, spool.UpdateHandled, 1, "")
		if got := len(lines(t, marks)); got != 1 {
			t.Errorf("the program ran %d times", got)
		}
	})
}
