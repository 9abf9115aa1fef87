package handler

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tgspool/tgspool/internal/spool"
)

// crash leaves a lease without an end, as a power cut does.
func (h *house) crash(handler string) {
	h.t.Helper()
	if _, err := h.bot.ClaimUpdate(h.t.Context(), handler); err != nil {
		h.t.Fatal(err)
	}
	h.close()
	h.open()
}

func TestHandlers_AfterACrash(t *testing.T) {
	tests := []struct {
		name    string
		once    bool
		crashes int
		state   spool.UpdateState
		count   int
		why     string
		runs    int
	}{
		{"runs again", false, 1, spool.UpdateHandled, 2, "", 1},
		{"once: never again", true, 1, spool.UpdateDead, 2, "may have run", 0},
		{"an update that kills us each time", false, 5, spool.UpdateDead, 6, "given up after 5 attempts without an end", 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				marks := filepath.Join(t.TempDir(), "marks")
				route := does(t, "it", ReplyText, "append", marks, "run\n")
				route.Once = tt.once
				h := openHouse(t, route)
				defer func() { h.close() }()
				seq := h.feed(said(7, "a"))
				for range tt.crashes {
					h.crash("it")
				}
				h.run()
				defer h.stop()
				synctest.Wait()
				h.want(seq, tt.state, tt.count, tt.why)
				if got := len(lines(t, marks)); got != tt.runs {
					t.Errorf("the program ran %d times", got)
				}
			})
		})
	}
}

func TestHandlers_OnceIsNeverTriedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		marks := filepath.Join(t.TempDir(), "marks")
		route := does(t, "it", ReplyText, "append", marks, "run\n", "75")
		route.Once = true
		h := openHouse(t, route)
		defer h.close()
		h.run()
		defer h.stop()
		seq := h.feedAndWait(said(7, "a"))
		<-time.After(time.Hour)
		h.want(seq, spool.UpdateDead, 1, "may have run: exit status 75")
		if got := len(lines(t, marks)); got != 1 {
			t.Errorf("the program ran %d times", got)
		}
	})
}

func TestHandlers_RunTwiceIsOneSetOfCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := openHouse(t, does(t, "it", ReplyText, "print", "hello"))
		defer h.close()
		h.run()
		defer h.stop()
		seq := h.feedAndWait(said(7, "a"))
		job := h.jobs()[0]
		if _, err := h.bot.Replay(t.Context(), seq, false); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		u := h.want(seq, spool.UpdateHandled, 1, "")
		if jobs := h.jobs(); len(jobs) != 1 || jobs[0].ID != job.ID || !slices.Equal(u.Jobs, []int64{job.ID}) {
			t.Errorf("%d jobs after a second run", len(jobs))
		}
	})
}

func TestHandlers_StopWaitsThenGivesTheAttemptBack(t *testing.T) {
	file := filepath.Join(t.TempDir(), "pid")
	once := does(t, "once", ReplyText, "hang", file+".once")
	once.Match, once.Once, once.MaxAge = Match{Text: "once"}, true, time.Hour
	h := openHouse(t, once, does(t, "it", ReplyText, "hang", file))
	defer h.close()
	h.run()
	first := h.feed(said(7, "a"), said(8, "once"))
	child := awaitFile(t, file)
	awaitFile(t, file+".once")
	h.endTake()
	later := h.feed(said(9, "b"))
	select {
	case <-h.done:
		t.Fatal("Run returned while programs ran")
	case <-time.After(50 * time.Millisecond):
	}
	h.endWork()
	if err := <-h.done; err != nil {
		t.Error(err)
	}
	awaitGone(t, child)
	h.want(first, spool.UpdateOpen, 0, "the daemon stops")
	h.want(first+1, spool.UpdateDead, 1, "may have run")
	h.want(later, spool.UpdateOpen, 0, "")
}

func TestHandlers_DrainLetsARunEnd(t *testing.T) {
	dir := t.TempDir()
	h := openHouse(t, RouteConfig{
		Name: "it", AllowFrom: everyone,
		Exec: []string{script(t, `mkfifo "$1/gate"; : > "$1/here.new"; mv "$1/here.new" "$1/here"; read x < "$1/gate"; echo done`), dir},
	})
	defer h.close()
	h.run()
	seq := h.feed(said(7, "a"))
	awaitFile(t, filepath.Join(dir, "here"))
	h.endTake()
	if err := os.WriteFile(filepath.Join(dir, "gate"), []byte("x\n"), 0); err != nil {
		t.Fatal(err)
	}
	if err := <-h.done; err != nil {
		t.Error(err)
	}
	h.endWork()
	h.want(seq, spool.UpdateHandled, 1, "")
	h.wantCalls(`sendMessage {"chat_id":7,"text":"done"}`)
}
