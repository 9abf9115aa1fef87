package intake_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/tgspool/tgspool/internal/botapi"
	"github.com/tgspool/tgspool/internal/intake"
	"github.com/tgspool/tgspool/internal/spool"
)

func TestNewUpdate(t *testing.T) {
	private := func(inner string) string {
		return `{"update_id":5,` + inner + `}`
	}
	const chat = `"chat":{"id":7,"type":"private","username":"Ann"}`
	const group = `"chat":{"id":-1005,"type":"supergroup","title":"G"}`
	member := func(where, status string) string {
		return private(`"my_chat_member":{` + where + `,"from":{"id":7},"date":1,"new_chat_member":{"status":"` + status + `","user":{"id":1}}}`)
	}
	tests := []struct {
		name, raw  string
		kind, key  string
		chat, user int64
		active     bool
		gone       string
		to, from   int64
		stale      time.Duration
	}{
		{name: "message", raw: private(`"message":{"message_id":1,"date":1,"from":{"id":7},` + chat + `,"text":"a"}`), kind: "message", key: "chat:7", chat: 7, user: 7, active: true},
		{name: "post", raw: private(`"channel_post":{"message_id":1,"date":1,` + group + `,"text":"a"}`), kind: "channel_post", key: "chat:-1005", chat: -1005, active: true},
		{
			name: "button", raw: private(`"callback_query":{"id":"1","from":{"id":7},"message":{"message_id":1,"date":0,` + group + `},"data":"d"}`),
			kind: "callback_query", key: "user:7", chat: -1005, user: 7, active: true, stale: 150 * time.Second,
		},
		{name: "inline query", raw: private(`"inline_query":{"id":"1","from":{"id":7},"query":"q","offset":""}`), kind: "inline_query", key: "user:7", user: 7, stale: 30 * time.Second},
		{name: "shipping query", raw: private(`"shipping_query":{"id":"1","from":{"id":7}}`), kind: "shipping_query", key: "user:7", user: 7, stale: 150 * time.Second},
		{name: "checkout query", raw: private(`"pre_checkout_query":{"id":"1","from":{"id":7}}`), kind: "pre_checkout_query", key: "user:7", user: 7, stale: 150 * time.Second},
		{name: "poll", raw: private(`"poll":{"id":"99"}`), kind: "poll", key: "poll:99"},
		{name: "blocked", raw: member(chat, "kicked"), kind: "my_chat_member", key: "chat:7", chat: 7, user: 7, gone: "bot was blocked by the user"},
		{name: "unblocked", raw: member(chat, "member"), kind: "my_chat_member", key: "chat:7", chat: 7, user: 7, active: true},
		{name: "kicked", raw: member(group, "kicked"), kind: "my_chat_member", key: "chat:-1005", chat: -1005, user: 7, gone: "bot was kicked from the chat"},
		{name: "left", raw: member(group, "left"), kind: "my_chat_member", key: "chat:-1005", chat: -1005, user: 7, gone: "bot is not a member of the chat"},
		{name: "made administrator", raw: member(group, "administrator"), kind: "my_chat_member", key: "chat:-1005", chat: -1005, user: 7, active: true},
		{name: "restricted shows nothing", raw: member(group, "restricted"), kind: "my_chat_member", key: "chat:-1005", chat: -1005, user: 7},
		{
			name: "migrated to", raw: private(`"message":{"message_id":1,"date":1,"from":{"id":7},"chat":{"id":-5,"type":"group"},"migrate_to_chat_id":-1005}`),
			kind: "message", key: "chat:-5", chat: -5, user: 7, to: -1005,
		},
		{
			name: "migrated from", raw: private(`"message":{"message_id":1,"date":1,"from":{"id":7},` + group + `,"migrate_from_chat_id":-5}`),
			kind: "message", key: "chat:-1005", chat: -1005, user: 7, from: -5, active: true,
		},
		{
			name: "a person doesn't migrate", raw: private(`"message":{"message_id":1,"date":1,"from":{"id":7},` + chat + `,"migrate_to_chat_id":-1005,"migrate_from_chat_id":8}`),
			kind: "message", key: "chat:7", chat: 7, user: 7, active: false,
		},
		{
			name: "a group doesn't migrate to itself", raw: private(`"message":{"message_id":1,"date":1,"from":{"id":7},` + group + `,"migrate_from_chat_id":-1005}`),
			kind: "message", key: "chat:-1005", chat: -1005, user: 7, active: true,
		},
		{
			name: "somebody left", raw: private(`"message":{"message_id":1,"date":1,"from":{"id":7},` + group + `,"left_chat_member":{"id":1,"is_bot":true}}`),
			kind: "message", key: "chat:-1005", chat: -1005, user: 7,
		},
		{
			name: "business message: not a chat of ours", raw: private(`"business_message":{"business_connection_id":"b","message_id":1,"date":1,"from":{"id":7},` + chat + `}`),
			kind: "business_message", key: "chat:7", user: 7,
		},
		{name: "a kind of the future", raw: private(`"telepathy":{` + chat + `}`), kind: "telepathy", key: "id:5"},
		{name: "nothing but an id", raw: `{"update_id":5}`, key: "id:5"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				u := intake.NewUpdate([]byte(tt.raw), func(botapi.Update) spool.Route { return spool.Route{Handler: "h"} })
				if !u.HasID || u.ID != 5 || string(u.Raw) != tt.raw || u.Error != "" || u.Route.Handler != "h" {
					t.Errorf("got %+v", u)
				}
				if u.Kind != tt.kind || u.OrderKey != tt.key || u.UserID != tt.user {
					t.Errorf("kind %q, key %q, user %d", u.Kind, u.OrderKey, u.UserID)
				}
				if u.Active != tt.active || u.Gone != tt.gone || u.MigrateTo != tt.to || u.MigrateFrom != tt.from {
					t.Errorf("active %t, gone %q, to %d, from %d", u.Active, u.Gone, u.MigrateTo, u.MigrateFrom)
				}
				if (u.Chat == nil) != (tt.chat == 0) || u.Chat != nil && u.Chat.ID != tt.chat {
					t.Errorf("chat %+v", u.Chat)
				}
				want := time.Time{}
				if tt.stale > 0 {
					want = time.Now().Add(tt.stale)
				}
				if !u.StaleAt.Equal(want) {
					t.Errorf("stale at %s", u.StaleAt)
				}
			})
		})
	}
}

func TestNewUpdate_Malformed(t *testing.T) {
	for _, raw := range []string{
		``, `null`, `5`, `"a"`, `[]`, `{}`, `{"message":{"text":"a"}}`, `{"update_id":null}`, `{"update_id":"5"}`, `{"update_id":5.5}`,
		`{"update_id":9223372036854775808}`, "\xff\xfe",
	} {
		u := intake.NewUpdate([]byte(raw), func(botapi.Update) spool.Route {
			t.Errorf("%q was routed", raw)
			return spool.Route{}
		})
		if u.HasID || u.ID != 0 || string(u.Raw) != raw || u.Error == "" {
			t.Errorf("%q became %+v", raw, u)
		}
	}
}

func TestNewUpdate_PanicKeepsTheUpdate(t *testing.T) {
	const raw = `{"update_id":5,"message":{}}`
	u := intake.NewUpdate([]byte(raw), func(botapi.Update) spool.Route { panic("a bug") })
	if u.HasID || u.ID != 5 || string(u.Raw) != raw || u.Error == "" {
		t.Errorf("got %+v", u)
	}
}

// One that can't be routed doesn't hold up those behind it, nor itself.
func TestPoller_PanicWhileRouting(t *testing.T) {
	inBubble(t, func(t *testing.T, p *post) {
		p.text("a")
		last := p.text("bad")
		p.poll(func(c *intake.Config) {
			c.Route = func(u botapi.Update) spool.Route {
				if u.Text == "bad" {
					panic("a bug")
				}
				return spool.Route{}
			}
		})
		after(time.Minute)
		updates := p.updates()
		if len(updates) != 2 || updates[0].State != spool.UpdateOpen || updates[1].State != spool.UpdateDead {
			t.Fatalf("got %+v", updates)
		}
		if got := p.bot.Offset(); got != last+1 {
			t.Errorf("offset is %d, want %d", got, last+1)
		}
		if n := len(p.sim.Polls()); n > 3 {
			t.Errorf("%d polls in a minute", n)
		}
	})
}
