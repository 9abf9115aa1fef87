package handler

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tgspool/tgspool/internal/botapi"
	"github.com/tgspool/tgspool/internal/spool"
)

var everyone = Allow{All: true}

// echo is a route with a program that everyone may run.
func echo(name string, m Match) RouteConfig {
	return RouteConfig{Name: name, Match: m, Exec: []string{"/bin/cat"}, AllowFrom: everyone}
}

func mustRouter(t *testing.T, routes []RouteConfig, o RouterOptions) *Router {
	t.Helper()
	r, err := NewRouter(routes, o)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func parse(t *testing.T, raw string) botapi.Update {
	t.Helper()
	u, err := botapi.ParseUpdate([]byte(raw))
	if err != nil {
		t.Fatal(err)
	}
	return u
}

// text is a message of user 7 in chat 7.
func text(s string) string {
	return fmt.Sprintf(`{"update_id":1,"message":{"message_id":1,"date":1700000000,"from":{"id":7,"is_bot":false,"first_name":"A"},`+
		`"chat":{"id":7,"type":"private","first_name":"A"},"text":%q}}`, s)
}

func TestRouter_Matches(t *testing.T) {
	const (
		edited  = `{"update_id":2,"edited_message":{"message_id":1,"date":1,"edit_date":2,"from":{"id":7},"chat":{"id":7,"type":"private"},"text":"/uptime"}}`
		caption = `{"update_id":3,"message":{"message_id":1,"date":1,"from":{"id":7},"chat":{"id":-100200,"type":"supergroup"},"photo":[],"caption":"/uptime now"}}`
		post    = `{"update_id":4,"channel_post":{"message_id":1,"date":1,"chat":{"id":-100300,"type":"channel"},"text":"/uptime"}}`
		press   = `{"update_id":5,"callback_query":{"id":"q","from":{"id":7},"message":{"message_id":1,"date":1,"chat":{"id":-100200,"type":"supergroup"},"text":"/uptime"},"data":"buy:1"}}`
		inline  = `{"update_id":6,"inline_query":{"id":"i","from":{"id":7},"query":"cats","offset":""}}`
		poll    = `{"update_id":7,"poll":{"id":"p","question":"/uptime"}}`
		future  = `{"update_id":8,"telepathy":{"chat":{"id":7}}}`
		bare    = `{"update_id":9}`
	)
	uptime := Match{Commands: []string{"/uptime"}}
	tests := []struct {
		name   string
		match  Match
		update string
		want   bool
	}{
		{"command", uptime, text("/uptime"), true},
		{"command with arguments", uptime, text("/uptime -p\nx"), true},
		{"command in another case", uptime, text("/UpTime"), true},
		{"command for us", uptime, text("/uptime@HomeBot now"), true},
		{"command for us in another case", uptime, text("/uptime@homebot"), true},
		{"command for another bot", uptime, text("/uptime@otherbot"), false},
		{"longer command", uptime, text("/uptimes"), false},
		{"command inside a text", uptime, text("see /uptime"), false},
		{"command in a caption", uptime, caption, true},
		{"command in a channel", uptime, post, true},
		{"edited into a command", uptime, edited, false},
		{"button below a command", uptime, press, false},
		{"command in a poll", uptime, poll, false},
		{"one of two commands", Match{Commands: []string{"/a", "/b"}}, text("/b"), true},
		{"kind", Match{Kinds: []string{"callback_query"}}, press, true},
		{"other kind", Match{Kinds: []string{"callback_query"}}, text("a"), false},
		{"kind of the future", Match{Kinds: []string{"telepathy"}}, future, true},
		{"chat", Match{Chats: []int64{-100200}}, caption, true},
		{"chat of a button", Match{Chats: []int64{-100200}}, press, true},
		{"other chat", Match{Chats: []int64{-100200}}, text("a"), false},
		{"no chat", Match{Chats: []int64{0}}, inline, false},
		{"sender", Match{From: []int64{5, 7}}, text("a"), true},
		{"other sender", Match{From: []int64{5}}, text("a"), false},
		{"no sender", Match{From: []int64{0}}, poll, false},
		{"text", Match{Text: `^h(i|ello)\b`}, text("hello world"), true},
		{"other text", Match{Text: `^h(i|ello)\b`}, text("oh hello"), false},
		{"data of a button", Match{Text: `^buy:`}, press, true},
		{"text of an inline query", Match{Text: `cat`}, inline, true},
		{"all hold", Match{Commands: []string{"/uptime"}, Chats: []int64{-100200}, From: []int64{7}, Kinds: []string{"message"}, Text: "now$"}, caption, true},
		{"one doesn't", Match{Commands: []string{"/uptime"}, Chats: []int64{-100201}, From: []int64{7}, Kinds: []string{"message"}}, caption, false},
		{"nothing asked", Match{}, bare, true},
		{"nothing asked of a poll", Match{}, poll, true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := mustRouter(t, []RouteConfig{echo("it", tt.match)}, RouterOptions{Username: func() string { return "HomeBot" }})
			want := spool.Route{}
			if tt.want {
				want.Handler = "it"
			}
			if got := r.Route(parse(t, tt.update)); got != want {
				t.Errorf("got %+v, want %+v", got, want)
			}
		})
	}
}

func TestRouter_FirstMatchWins(t *testing.T) {
	routes := []RouteConfig{
		echo("start", Match{Commands: []string{"/start"}}),
		{Name: "hook", Match: Match{Text: "^hook"}, Webhook: "http://127.0.0.1:1/"},
		{Name: "mine", Match: Match{Text: "^mine"}, Pull: true},
		echo("rest", Match{Kinds: []string{"message"}}),
		echo("never", Match{Commands: []string{"/start"}}),
	}
	r := mustRouter(t, routes, RouterOptions{Unmatched: UnmatchedIgnore})
	for in, want := range map[string]spool.Route{
		text("/start"):     {Handler: "start"},
		text("hook me"):    {Handler: "hook"},
		text("mine, mine"): {Handler: spool.PullRoute},
		text("hello"):      {Handler: "rest"},
		`{"update_id":1}`:  {Ignore: IgnoredUnmatched},
	} {
		if got := r.Route(parse(t, in)); got != want {
			t.Errorf("%s: got %+v, want %+v", in, got, want)
		}
	}
	if !r.Pulls() {
		t.Error("a route is for clients, and Pulls says no")
	}
	if mustRouter(t, routes[:1], RouterOptions{Unmatched: UnmatchedIgnore}).Pulls() {
		t.Error("nothing is for clients, and Pulls says yes")
	}
}

func TestRouter_AnUnknownNameOfOursCountsAsOurs(t *testing.T) {
	for _, username := range []func() string{nil, func() string { return "" }} {
		r := mustRouter(t, []RouteConfig{echo("a", Match{Commands: []string{"/a"}})}, RouterOptions{Username: username})
		if got := r.Route(parse(t, text("/a@whoever"))); got.Handler != "a" {
			t.Errorf("got %+v", got)
		}
	}
}

func TestRouter_WhoMay(t *testing.T) {
	const (
		private = `{"update_id":1,"message":{"message_id":1,"date":1,"from":{"id":7},"chat":{"id":7,"type":"private"},"text":"a"}}`
		group   = `{"update_id":2,"message":{"message_id":1,"date":1,"from":{"id":8},"chat":{"id":-5,"type":"group"},"text":"a"}}`
		channel = `{"update_id":3,"channel_post":{"message_id":1,"date":1,"chat":{"id":-6,"type":"channel"},"text":"a"}}`
		poll    = `{"update_id":4,"poll":{"id":"p"}}`
	)
	ids := func(ids ...int64) Allow { return Allow{IDs: append([]int64{}, ids...)} }
	tests := []struct {
		name        string
		from, chats Allow
		allowed     string // of private, group, channel, poll
	}{
		{"everyone", everyone, Allow{}, "yyyy"},
		{"every chat", Allow{}, everyone, "yyyy"},
		{"one sender", ids(7), Allow{}, "ynnn"},
		{"one chat", Allow{}, ids(-5), "nynn"},
		{"chats", Allow{}, ids(-5, -6), "nyyn"},
		{"sender in a chat", ids(7), ids(-5), "nnnn"},
		{"sender in its chat", ids(8), ids(-5), "nynn"},
		{"nobody", ids(), everyone, "nnnn"},
		{"zero is nobody", ids(0), Allow{}, "nnnn"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			guarded := RouteConfig{Name: "guarded", Exec: []string{"/bin/cat"}, AllowFrom: tt.from, AllowChats: tt.chats}
			r := mustRouter(t, []RouteConfig{guarded, echo("later", Match{})}, RouterOptions{})
			var got strings.Builder
			for _, in := range []string{private, group, channel, poll} {
				switch r.Route(parse(t, in)) {
				case spool.Route{Handler: "guarded"}:
					got.WriteByte('y')
				case spool.Route{Handler: "guarded", Ignore: IgnoredNotAllowed}:
					got.WriteByte('n')
				default:
					got.WriteByte('?') // fell through
				}
			}
			if got.String() != tt.allowed {
				t.Errorf("got %s, want %s", got.String(), tt.allowed)
			}
		})
	}
}

func TestRouter_RefusesNonsense(t *testing.T) {
	good := echo("a", Match{})
	tests := []struct {
		name   string
		routes []RouteConfig
		o      RouterOptions
		want   string
	}{
		{"no name", []RouteConfig{echo("", Match{})}, RouterOptions{}, "no name"},
		{"one name twice", []RouteConfig{good, good}, RouterOptions{}, "two routes"},
		{"nothing to do", []RouteConfig{{Name: "a"}}, RouterOptions{}, "exactly one"},
		{"two things to do", []RouteConfig{{Name: "a", Exec: good.Exec, Pull: true, AllowFrom: everyone}}, RouterOptions{}, "exactly one"},
		{"nobody named", []RouteConfig{{Name: "a", Exec: good.Exec}}, RouterOptions{}, "allow_from or allow_chats"},
		{"relative program", []RouteConfig{{Name: "a", Exec: []string{"cat"}, AllowFrom: everyone}}, RouterOptions{}, "absolute"},
		{"odd reply", []RouteConfig{{Name: "a", Exec: good.Exec, AllowFrom: everyone, Reply: "xml"}}, RouterOptions{}, "reply"},
		{"bad pattern", []RouteConfig{echo("a", Match{Text: "("})}, RouterOptions{}, "pattern"},
		{"odd unmatched", nil, RouterOptions{Unmatched: "drop"}, "unmatched"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if _, err := NewRouter(tt.routes, tt.o); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want %q", err, tt.want)
			}
		})
	}
}

func TestRouter_Fingerprint(t *testing.T) {
	a, b := echo("a", Match{Commands: []string{"/a"}}), echo("b", Match{})
	base := mustRouter(t, []RouteConfig{a, b}, RouterOptions{}).Fingerprint()
	same := a
	same.Exec, same.Timeout, same.Attempts = []string{"/bin/true"}, 5, 9
	if got := mustRouter(t, []RouteConfig{same, b}, RouterOptions{Unmatched: UnmatchedPull}).Fingerprint(); got != base {
		t.Error("how a program is run changes the fingerprint")
	}
	denied, other := a, a
	denied.AllowFrom = Allow{IDs: []int64{1}}
	other.Match.Chats = []int64{5}
	pull := RouteConfig{Name: "a", Match: a.Match, Pull: true}
	user := a
	user.PerUser = true
	for i, routes := range [][]RouteConfig{{b, a}, {a}, {denied, b}, {other, b}, {pull, b}, {user, b}} {
		if mustRouter(t, routes, RouterOptions{}).Fingerprint() == base {
			t.Errorf("routes %d have the fingerprint of others", i)
		}
	}
	if mustRouter(t, []RouteConfig{a, b}, RouterOptions{Unmatched: UnmatchedIgnore}).Fingerprint() == base {
		t.Error("unmatched doesn't change the fingerprint")
	}
}

// TestRouter_Leases: what who leases updates over the API has to know stands with
// the update, and a change of it is news.
func TestRouter_Leases(t *testing.T) {
	pull := RouteConfig{Name: "w", Pull: true, Attempts: 3, PerUser: true}
	r := mustRouter(t, []RouteConfig{pull}, RouterOptions{})
	if got, want := r.Route(botapi.Update{Kind: "message"}), (spool.Route{Attempts: 3, PerUser: true}); got != want {
		t.Errorf("route %+v, want %+v", got, want)
	}
	pull.Attempts = 4
	if mustRouter(t, []RouteConfig{pull}, RouterOptions{}).Fingerprint() == r.Fingerprint() {
		t.Error("the attempts of leases don't change the fingerprint")
	}
}

// TestRouter_PulledUpdatesGrowOld: what a client fetches expires by its route's
// max_age, too, from its date on or else from its arrival.
func TestRouter_PulledUpdatesGrowOld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := openHouse(t, RouteConfig{Name: "bot", Pull: true, MaxAge: time.Minute})
		defer h.close()
		old := strings.Replace(said(7, "a"), fmt.Sprint(time.Now().Unix()), fmt.Sprint(time.Now().Add(-50*time.Second).Unix()), 1)
		older := strings.Replace(said(8, "a"), fmt.Sprint(time.Now().Unix()), fmt.Sprint(time.Now().Add(-time.Hour).Unix()), 1)
		seq := h.feed(old, older, pressed("1", 9, "x"))
		<-time.After(time.Second)
		synctest.Wait()
		h.want(seq, spool.UpdateOpen, 0, "")
		h.want(seq+1, spool.UpdateExpired, 0, "too old")
		<-time.After(10 * time.Second)
		synctest.Wait()
		h.want(seq, spool.UpdateExpired, 0, "too old")
		h.want(seq+2, spool.UpdateOpen, 0, "")
		<-time.After(time.Minute)
		synctest.Wait()
		h.want(seq+2, spool.UpdateExpired, 0, "too old")
	})
}
