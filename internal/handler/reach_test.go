package handler

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tgspool/tgspool/internal/spool"
)

func TestHandlers_MissingProgramHoldsItsRouteAndBurnsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		path, marks := filepath.Join(dir, "program"), filepath.Join(dir, "marks")
		h := openHouse(t,
			RouteConfig{Name: "missing", Match: Match{Kinds: []string{"message"}}, Exec: []string{path}, AllowFrom: everyone, Parallel: 1},
			does(t, "other", ReplyText, "print", ""))
		defer h.close()
		handlers := h.run()
		defer h.stop()
		first := h.feed(said(1, "a"), said(2, "b"), said(1, "c"), `{"poll":{"id":"p"}}`)
		synctest.Wait()
		h.want(first+3, spool.UpdateHandled, 1, "") // another route goes on
		<-time.After(24 * time.Hour)
		for seq := first; seq < first+3; seq++ {
			if u := h.update(seq); u.State != spool.UpdateOpen && u.State != spool.UpdateLeased || seq > first && u.Attempts != 0 {
				t.Errorf("update %d is %s after %d attempts", seq, u.State, u.Attempts)
			}
		}
		if r := handlers.Routes()[0].Reason; !strings.Contains(r, "missing") {
			t.Errorf("the route's reason is %q", r)
		}
		if n := h.logged("handler can't be reached, its updates wait"); n != 1 {
			t.Errorf("that was logged %d times", n)
		}
		// One that may not be run is another reason, said once.
		if err := os.WriteFile(path, []byte("#!/bin/sh\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		<-time.After(time.Hour)
		if n := h.logged("handler can't be reached, its updates wait"); n != 2 {
			t.Errorf("two reasons were logged %d times", n)
		}
		writeScript(t, path, `echo $TGSPOOL_TEXT-$TGSPOOL_ATTEMPT >> `+marks)
		<-time.After(maxReach)
		synctest.Wait()
		for seq := first; seq < first+3; seq++ {
			h.want(seq, spool.UpdateHandled, 1, "")
		}
		if got := lines(t, marks); !slices.Equal(got, []string{"a-1", "b-1", "c-1"}) {
			t.Errorf("runs were %v, want the oldest first", got)
		}
		if n := h.logged("handler can be reached again"); n != 1 || handlers.Routes()[0].Reason != "" {
			t.Errorf("the return was logged %d times", n)
		}
	})
}

func TestReach_OneOutageIsOneMessage(t *testing.T) {
	r := newReach()
	for i, step := range []struct {
		probe  bool
		reason string
		news   bool
	}{
		{false, "connection refused", true},
		{false, "connection refused", false},
		{false, "broken pipe", false}, // under way since before the first
		{true, "connection refused", false},
		{true, "missing", true},
	} {
		if news := r.lost(step.probe, step.reason, 0); news != step.news {
			t.Errorf("step %d, %q: news is %v", i, step.reason, news)
		}
	}
	if why := r.why(); why != "missing" {
		t.Errorf("the reason is %q", why)
	}
}

func TestHandlers_MissingProgramWithManyWorkers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "program")
		h := openHouse(t, RouteConfig{Name: "missing", Exec: []string{path}, AllowFrom: everyone})
		defer h.close()
		h.run()
		defer h.stop()
		var updates []string
		for chat := range int64(50) {
			updates = append(updates, said(chat+1, "a"))
		}
		first := h.feed(updates...)
		<-time.After(time.Hour)
		synctest.Wait()
		tries := len(h.tell)
		for len(h.tell) > 0 {
			<-h.tell
		}
		// One try, and one return for each worker that had an update meanwhile:
		// while the file isn't there, waiting writes nothing.
		if tries > 2*DefaultParallel {
			t.Errorf("%d leases in an hour", tries)
		}
		if n := h.logged("handler can't be reached, its updates wait"); n != 1 {
			t.Errorf("that was logged %d times", n)
		}
		writeScript(t, path, "exit 0\n")
		<-time.After(maxReach)
		synctest.Wait()
		for i := range int64(50) {
			h.want(first+i, spool.UpdateHandled, 1, "")
		}
	})
}

func TestHandlers_ProgramWritableByOthersIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path := script(t, "exit 0\n")
		if err := os.Chmod(path, 0o777); err != nil { //nolint:gosec // what is to be refused
			t.Fatal(err)
		}
		h := openHouse(t, RouteConfig{Name: "it", Exec: []string{path}, AllowFrom: everyone})
		defer h.close()
		handlers := h.run()
		defer h.stop()
		seq := h.feedAndWait(said(7, "a"))
		h.want(seq, spool.UpdateOpen, 0, "everybody may write")
		if r := handlers.Routes()[0].Reason; !strings.Contains(r, "everybody may write") {
			t.Errorf("the route's reason is %q", r)
		}
		if err := os.Chmod(path, 0o755); err != nil { //nolint:gosec // a program
			t.Fatal(err)
		}
		<-time.After(maxReach)
		synctest.Wait()
		h.want(seq, spool.UpdateHandled, 1, "")
	})
}
