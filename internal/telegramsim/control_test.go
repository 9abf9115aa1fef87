package telegramsim_test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tgspool/tgspool/internal/telegramsim"
)

// remote serves a simulator on two sockets and returns the client of the
// control socket, and the base URL of the other.
func remote(t *testing.T) (*telegramsim.Sim, *telegramsim.Remote, string) {
	t.Helper()
	s := newSim(t, telegramsim.Options{})
	base := serve(t, s)
	r := telegramsim.NewRemote(serveBy(t, s.ServeControl) + "/")
	t.Cleanup(r.Close)
	return s, r, base
}

// ok fails the test when a verb of the remote failed.
func ok(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestRemoteFeedsAndReads(t *testing.T) {
	s, r, base := remote(t)
	ctx := t.Context()
	ok(t, r.JumpUpdateID(ctx, 0, 500))
	ids, err := r.Feed(ctx, 8001,
		json.RawMessage("{\n\"message\":{\"message_id\":1,\"chat\":{\"id\":5,\"type\":\"private\"},\"date\":1,\"text\":\"a\"}}"),
		json.RawMessage(`{"chat_member":{}}`))
	if err != nil || !slices.Equal(ids, []int64{500, 0}) {
		t.Fatalf("fed %v, %v; want [500 0]", ids, err)
	}
	if id, err := r.FeedText(ctx, 5, 5, "b"); err != nil || id != 501 {
		t.Errorf("fed text %d, %v", id, err)
	}
	if n, err := r.Pending(ctx, 0); err != nil || n != 2 {
		t.Errorf("pending %d, %v", n, err)
	}
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	if got, err := roundTrip(ctx, transport, base, token, "sendMessage", args{"chat_id": 5, "text": "c"}); err != nil || !got.OK {
		t.Fatalf("got %+v, %v", got, err)
	}
	chat, err := r.Chat(ctx, 5)
	if err != nil || len(chat) != 3 || chat[2].Text != "c" || !chat[2].Out {
		t.Errorf("chat %+v, %v", chat, err)
	}
	if id, err := r.PressButton(ctx, 5, 5, chat[2].ID, "x"); err != nil || id != 502 {
		t.Errorf("pressed %d, %v", id, err)
	}
	if n, err := r.CountText(ctx, 5, "c"); err != nil || n != 1 || s.CountText(5, "c") != 1 {
		t.Errorf("counted %d, %v", n, err)
	}
	if ids, err := r.Chats(ctx); err != nil || !slices.Equal(ids, []int64{5}) {
		t.Errorf("chats %v, %v", ids, err)
	}
}

// curl --data-binary says that what it sends is a form.
func TestFeedOfCurl(t *testing.T) {
	s := newSim(t, telegramsim.Options{})
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/sim/feed?bot=8001",
		strings.NewReader(`{"update_id":7,"poll":{"id":"1"}}`+"\n"+`{"update_id":8,"poll":{"id":"2"}}`))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	w := httptest.NewRecorder()
	s.ControlHandler().ServeHTTP(w, r)
	if got := strings.TrimSpace(w.Body.String()); got != `{"update_ids":[7,8]}` {
		t.Errorf("answered %s", got)
	}
}

func TestRemoteChangesChats(t *testing.T) {
	s, r, _ := remote(t)
	ctx := t.Context()
	ok(t, r.AddChat(ctx, telegramsim.ChatSpec{ID: -1001700400001, Type: "channel", Username: "tides"}))
	must[message](t, s, "sendMessage", args{"chat_id": "@tides", "text": "x"})
	ok(t, r.Block(ctx, 5))
	refused(t, s, "sendMessage", args{"chat_id": 5, "text": "x"}, 403, "Forbidden: bot was blocked by the user")
	ok(t, r.Unblock(ctx, 5))
	must[message](t, s, "sendMessage", args{"chat_id": 5, "text": "x"})
	ok(t, r.Deactivate(ctx, 5))
	refused(t, s, "sendMessage", args{"chat_id": 5, "text": "x"}, 403, "Forbidden: user is deactivated")
	ok(t, r.Kick(ctx, superID))
	ok(t, r.RemoveChat(ctx, 6))
	ok(t, r.Migrate(ctx, groupID, superID-1))
	refused(t, s, "sendMessage", args{"chat_id": groupID, "text": "x"}, 400, "Bad Request: group chat was upgraded to a supergroup chat")
	ok(t, r.RevokeToken(ctx, token))
	refused(t, s, "getMe", nil, 401, "Unauthorized")
	ok(t, r.RestoreToken(ctx, token))
	must[json.RawMessage](t, s, "getMe", nil)
}

func TestRemoteFaultsAndOutage(t *testing.T) {
	s, r, base := remote(t)
	ctx := t.Context()
	id, err := r.AddFault(ctx, telegramsim.Fault{Kind: telegramsim.FaultFlood, RetryAfter: 9, Delay: time.Millisecond})
	ok(t, err)
	if got := call(t, s, "getMe", nil); got.Parameters.RetryAfter != 9 {
		t.Errorf("got %+v", got)
	}
	ok(t, r.RemoveFault(ctx, id))
	must[json.RawMessage](t, s, "getMe", nil)
	ok(t, r.SetOffline(ctx, true))
	transport := &http.Transport{DisableKeepAlives: true}
	if _, err := roundTrip(ctx, transport, base, token, "getMe", nil); err == nil {
		t.Error("a call was answered in an outage")
	}
	ok(t, r.SetOffline(ctx, false))
	if got, err := roundTrip(ctx, transport, base, token, "getMe", nil); err != nil || !got.OK {
		t.Errorf("after the outage: %+v, %v", got, err)
	}
	if _, err := r.AddFault(ctx, telegramsim.Fault{}); err == nil || !strings.Contains(err.Error(), "fault without kind") {
		t.Errorf("a fault without kind: %v", err)
	}
}

func TestRemoteWaitsForArrivals(t *testing.T) {
	s, r, _ := remote(t)
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	seen := make(chan error, 1)
	go func() {
		seen <- r.WaitFor(ctx, func(j []telegramsim.Arrival) bool { return len(j) == 3 })
	}()
	for range 3 {
		must[message](t, s, "sendMessage", args{"chat_id": 5, "text": "x"})
	}
	ok(t, <-seen)
	ok(t, s.WaitFor(ctx, func(j []telegramsim.Arrival) bool {
		return len(j) == 3 && j[2].N == 3 && j[2].Answered && j[2].MessageID != 0 && j[2].Params["text"] == "x" && j[2].Bot == 8001
	}))
	short, cancelShort := context.WithTimeout(ctx, time.Millisecond)
	defer cancelShort()
	if err := s.WaitFor(short, func([]telegramsim.Arrival) bool { return false }); err == nil {
		t.Error("waiting for what never comes ended without an error")
	}
}
