package handler

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tgspool/tgspool/internal/spool"
)

func (h *house) session(key string) string {
	h.t.Helper()
	k, err := spool.ParseSessionKey(key)
	if err != nil {
		h.t.Fatal(err)
	}
	s, err := h.bot.Session(k)
	if err != nil {
		return ""
	}
	return fmt.Sprint(s.Version, " ", string(s.Data))
}

func (h *house) wantSession(key, want string) {
	h.t.Helper()
	if got := h.session(key); got != want {
		h.t.Errorf("session %s is %q, want %q", key, got, want)
	}
}

// counter is a program that counts its runs in the session.
const counter = `n=$(printf %s "$TGSPOOL_SESSION" | sed -n 's/.*"n":\([0-9]*\).*/\1/p')
echo "{\"session\": {\"n\": $((n + 1)), \"of\": \"$TGSPOOL_FROM_ID\"}}"
`

func TestExec_Session(t *testing.T) {
	route := RouteConfig{Name: "count", Exec: []string{script(t, counter)}, Reply: ReplyCalls, AllowFrom: everyone}
	h := openHouse(t, route)
	defer h.close()
	h.run()
	defer h.stop()
	h.feed(said(7, "a"), said(7, "b"), said(8, "c"), said(7, "d"))
	h.told(4)
	h.wantSession("7", `3 {"n":3,"of":"7"}`)
	h.wantSession("8", `1 {"n":1,"of":"8"}`)
	h.wantCalls()
}

// TestExec_SessionOfAUser: in a group each has one.
func TestExec_SessionOfAUser(t *testing.T) {
	route := RouteConfig{Name: "count", Exec: []string{script(t, counter)}, Reply: ReplyCalls, AllowFrom: everyone, PerUser: true}
	h := openHouse(t, route)
	defer h.close()
	h.run()
	defer h.stop()
	group := func(from int64) string {
		return strings.Replace(said(from, "x"), fmt.Sprintf(`"chat":{"id":%d,"type":"private"`, from), `"chat":{"id":-500,"type":"group"`, 1)
	}
	h.feed(group(7), group(8), group(7))
	h.told(3)
	h.wantSession("-500:7", `2 {"n":2,"of":"7"}`)
	h.wantSession("-500:8", `1 {"n":1,"of":"8"}`)
	h.wantSession("-500", "")
}

// TestExec_SessionOutrun: a handler that comes with an old version runs again with
// the new one; neither change is lost, no attempt spent, no call made twice.
func TestExec_SessionOutrun(t *testing.T) {
	gate := t.TempDir()
	route := RouteConfig{Name: "count", Exec: []string{script(t, `
echo run >>`+gate+`/runs
while [ ! -e `+gate+`/go ]; do sleep 0.02; done
`+counter+`echo '{"method":"sendMessage","chat_id":7,"text":"counted"}'
`)}, Reply: ReplyCalls, AllowFrom: everyone, Attempts: 1}
	h := openHouse(t, route)
	defer h.close()
	h.run()
	defer h.stop()
	seq := h.feed(said(7, "a"))
	awaitRun(t, gate+"/runs")
	if _, _, err := h.bot.SetSession(t.Context(), spool.SessionKey{Chat: 7}, []byte(`{"n":40}`), 0); err != nil {
		t.Fatal(err)
	}
	writeScript(t, gate+"/go", "")
	h.told(3) // refused, given back, handled
	h.wantSession("7", `2 {"n":41,"of":"7"}`)
	h.want(seq, spool.UpdateHandled, 1, "")
	h.wantCalls(`sendMessage {"chat_id":7,"text":"counted"}`)
	if runs := lines(t, gate+"/runs"); len(runs) != 2 {
		t.Errorf("%d runs", len(runs))
	}
}

// TestExec_SessionOutrunOnce: what must not run twice is dead instead.
func TestExec_SessionOutrunOnce(t *testing.T) {
	gate := t.TempDir()
	route := RouteConfig{Name: "count", Exec: []string{script(t, `
echo run >>`+gate+`/runs
while [ ! -e `+gate+`/go ]; do sleep 0.02; done
`+counter)}, Reply: ReplyCalls, AllowFrom: everyone, Once: true, OnError: "sorry"}
	h := openHouse(t, route)
	defer h.close()
	h.run()
	defer h.stop()
	seq := h.feed(said(7, "a"))
	awaitRun(t, gate+"/runs")
	if _, _, err := h.bot.SetSession(t.Context(), spool.SessionKey{Chat: 7}, []byte(`{}`), 0); err != nil {
		t.Fatal(err)
	}
	writeScript(t, gate+"/go", "")
	h.told(2)
	h.want(seq, spool.UpdateDead, 1, "may have run: session 7 is there already, with version 1")
	h.wantSession("7", "1 {}")
	h.wantCalls(`sendMessage {"chat_id":7,"text":"sorry"}`)
}

// TestExec_SessionWithoutAChat: a session that can belong to nobody is a mistake
// of the program's.
func TestExec_SessionWithoutAChat(t *testing.T) {
	route := RouteConfig{Name: "count", Exec: []string{script(t, counter)}, Reply: ReplyCalls, AllowFrom: everyone}
	h := openHouse(t, route)
	defer h.close()
	h.run()
	defer h.stop()
	seq := h.feed(`{"poll":{"id":"5","question":"x","options":[]}}`)
	h.told(2)
	h.want(seq, spool.UpdateDead, 1, "has no chat that a session could belong to")
}

func awaitRun(t *testing.T, path string) {
	t.Helper()
	limit := time.NewTimer(20 * time.Second)
	defer limit.Stop()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for len(lines(t, path)) == 0 {
		select {
		case <-tick.C:
		case <-limit.C:
			t.Fatal("the program didn't start")
		}
	}
}

// TestPush_Session: in headers, both ways; escaped where headers can't hold it.
func TestPush_Session(t *testing.T) {
	var h *house
	a := newApp(func(text string, nth int) (*http.Response, error) {
		switch {
		case text == "outrun" && nth == 1:
			if _, _, err := h.bot.SetSession(h.t.Context(), spool.SessionKey{Chat: 7}, []byte(`{"é":"😀"}`), spool.AnyVersion); err != nil {
				return nil, err
			}
			return say(200, "", "", "Tgspool-Session", `{"lost":1}`)
		case text == "outrun":
			return say(200, "application/json", `{"method":"sendMessage","chat_id":7,"text":"x"}`, "Tgspool-Session", `{"won": 1}`, "Tgspool-Session-Version", "2")
		case text == "bad":
			return say(200, "", "", "Tgspool-Session", `{`)
		case text == "version":
			return say(200, "", "", "Tgspool-Session", `{}`, "Tgspool-Session-Version", "x")
		case text == "end":
			return say(200, "", "", "Tgspool-Session", `{}`)
		case text == "begin":
			return say(204, "", "", "Tgspool-Session", `{"step":1}`)
		}
		return say(200, "", "")
	})
	pushing(t, webhook("bot"), a, func(house *house, _ *Handlers) {
		h = house
		seq := h.feed(said(7, "begin"), said(7, "outrun"), said(7, "nothing"), said(7, "bad"), said(7, "version"), said(7, "end"), said(7, "nothing"))
		time.Sleep(time.Hour)
		synctest.Wait()
		var got []string
		for i, head := range a.heads {
			got = append(got, strings.Fields(a.seen())[i]+" "+head.Get("Tgspool-Session-Version")+" "+head.Get("Tgspool-Session"))
		}
		want := []string{
			`begin 0 {}`, `outrun 1 {"step":1}`, `outrun 2 {"\u00e9":"\ud83d\ude00"}`, `nothing 3 {"won":1}`,
			`bad 3 {"won":1}`, `version 3 {"won":1}`, `end 3 {"won":1}`, `nothing 0 {}`,
		}
		if strings.Join(got, "\n") != strings.Join(want, "\n") {
			h.t.Errorf("posted\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
		h.want(seq+1, spool.UpdateHandled, 1, "")
		h.want(seq+3, spool.UpdateDead, 1, "the session in the webhook's answer: a session must be a JSON object")
		h.want(seq+4, spool.UpdateDead, 1, "Tgspool-Session-Version is no version")
		h.wantCalls(`sendMessage {"chat_id":7,"text":"x"}`)
		h.wantSession("7", "")
	})
}

// TestPush_OutrunsItself: a handler that changes its session by another way while
// it answers with it runs at once a few times only; then it waits, longer each
// time, with its attempts, and its neighbours go on.
func TestPush_OutrunsItself(t *testing.T) {
	var h *house
	a := newApp(func(text string, _ int) (*http.Response, error) {
		if text != "itself" {
			return say(200, "", "")
		}
		if _, _, err := h.bot.SetSession(h.t.Context(), spool.SessionKey{Chat: 7}, []byte(`{"a":1}`), spool.AnyVersion); err != nil {
			return nil, err
		}
		return say(200, "", "", "Tgspool-Session", `{"b":1}`)
	})
	pushing(t, webhook("bot"), a, func(house *house, _ *Handlers) {
		h = house
		seq := h.feed(said(7, "itself"), said(8, "neighbour"))
		time.Sleep(time.Hour)
		synctest.Wait()
		if n := strings.Count(a.seen(), "itself"); n < maxOutruns || n > maxOutruns+8+12+2 {
			t.Errorf("posted %d times in an hour", n)
		}
		h.want(seq, spool.UpdateOpen, 0, "in a row; it runs again after a wait")
		h.want(seq+1, spool.UpdateHandled, 1, "")
	})
}
