package botserver_test

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tgspool/tgspool/internal/botserver"
)

// testClient is a client with its token, which may do everything.
type testClient struct {
	botserver.Client

	token string
}

func newClient(name string, change ...func(*botserver.Client)) testClient {
	tok := fmt.Sprintf("%d:%s%s", botID, name, strings.Repeat("x", 35-len(name)))
	c := testClient{
		Client: botserver.Client{
			Bot: botID, Name: name, SHA256: sha256.Sum256([]byte(tok)),
			Methods: []string{"*"}, Chats: []string{"*"}, Full: true,
		},
		token: tok,
	}
	for _, f := range change {
		f(&c.Client)
	}
	return c
}

// limitedTo makes a client that may call some methods in some chats.
func limitedTo(methods, chats string) func(*botserver.Client) {
	return func(c *botserver.Client) {
		c.Methods, c.Chats, c.Full = strings.Fields(methods), strings.Fields(chats), false
	}
}

func withClients(list ...testClient) func(*botserver.Config) {
	return func(c *botserver.Config) {
		clients := botserver.NewClients(c.Bots)
		all := make([]botserver.Client, 0, len(list))
		for _, l := range list {
			all = append(all, l.Client)
		}
		clients.Set(all)
		c.Clients = clients
	}
}

// callAs makes a call with another token than the bot's.
func (k *kit) callAs(tok, method, body string) *answer {
	k.t.Helper()
	r := httptest.NewRequest(http.MethodPost, "http://127.0.0.1/bot"+tok+"/"+method, strings.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	return k.serve(r)
}

// TestClients_Limits goes through what a client may name, and how.
func TestClients_Limits(t *testing.T) {
	const ok = ""
	c := newClient("doorbell", limitedTo("sendMessage sendPhoto forwardMessage copyMessages editMessageText setMyCommands sendGift giftPremiumSubscription banChatMember deleteBusinessMessages answerCallbackQuery", "5 -100123 @News"))
	for _, tt := range []struct{ method, body, refused string }{
		{"sendMessage", `{"chat_id":5,"text":"x"}`, ok},
		{"SENDMESSAGE", `{"chat_id":"5","text":"x"}`, ok},
		{"sendMessage", `{"chat_id":"-100123","text":"x"}`, ok},
		{"sendMessage", `{"chat_id":"@news","text":"x"}`, ok},
		{"sendMessage", `{"chat_id":"@NEWS","text":"{\"chat_id\":6} file:///etc/passwd"}`, ok},
		{"sendMessage", `{"chat_id":5,"text":"x","reply_parameters":{"message_id":1,"chat_id":5}}`, ok},
		{"answerCallbackQuery", `{"callback_query_id":"1"}`, ok},
		{"sendMessage", `{"chat_id":5,"text":"x","reply_markup":{"inline_keyboard":[[{"text":"b","callback_data":"{\"chat_id\":6}"}]]}}`, ok},
		{"sendGift", `{"user_id":5,"gift_id":"1"}`, ok},
		{"deleteMessage", `{"chat_id":5,"message_id":1}`, "deleteMessage: its methods are sendMessage"},
		{"getMe", `{}`, "getMe: its methods"},
		{"sendMessage", `{"chat_id":6,"text":"x"}`, "chat_id: its chats are 5, -100123, @News"},
		{"sendMessage", `{"chat_id":"5x","text":"x"}`, "chat_id: its chats"},
		{"sendMessage", `{"chat_id":5.0,"text":"x"}`, "chat_id: its chats"},
		{"sendMessage", `{"chat_id":"","text":"x"}`, "chat_id: its chats"},
		{"sendMessage", `{"chat_id":"@other","text":"x"}`, "chat_id: its chats"},
		{"sendMessage", `{"chat_id":5,"chat_id":6,"text":"x"}`, "chat_id: its chats"},
		{"sendMessage", `{"chat_id":5,"text":"x","reply_parameters":{"message_id":1,"chat_id":6}}`, "chat_id: its chats"},
		{"sendMessage", `{"chat_id":5,"text":"x","reply_parameters":"{\"message_id\":1,\"chat_id\":6}"}`, "chat_id: its chats"},
		{"sendMessage", `{"chat_id":5,"text":"x","reply_parameters":"{\"message_id\":1,\"chat_id\":6"}`, "can't be read"},
		{"sendMessage", `{"chat_id":5,"text":"x","of_tomorrow":[{"a":[{"some_chat_id":6}]}]}`, "some_chat_id: its chats"},
		{"forwardMessage", `{"chat_id":5,"from_chat_id":6,"message_id":1}`, "from_chat_id: its chats"},
		{"copyMessages", `{"chat_id":5,"from_chat_id":"@other","message_ids":[1]}`, "from_chat_id: its chats"},
		{"editMessageText", `{"inline_message_id":"abc","text":"x"}`, "inline_message_id: its chats"},
		{"setMyCommands", `{"commands":[],"scope":{"type":"chat","chat_id":6}}`, "chat_id: its chats"},
		{"sendGift", `{"user_id":6,"gift_id":"1"}`, "user_id: its chats"},
		{"sendGift", `{"chat_id":5,"user_id":6,"gift_id":"1"}`, "user_id: its chats"},
		{"giftPremiumSubscription", `{"chat_id":5,"user_id":6,"month_count":3,"star_count":1000}`, "user_id: its chats"},
		{"giftPremiumSubscription", `{"user_id":5,"month_count":3,"star_count":1000}`, ok},
		{"banChatMember", `{"chat_id":5,"user_id":6}`, ok},
		{"sendMessage", `{"business_connection_id":"b","chat_id":5,"text":"x"}`, ok},
		{"deleteBusinessMessages", `{"business_connection_id":"b","message_ids":[1]}`, "business_connection_id: its chats"},
		{"deleteBusinessMessages", `{"business_connection_id":"b","chat_id":5,"message_ids":[1]}`, "business_connection_id: its chats"},
		{"sendPhoto", `{"chat_id":5,"photo":"file:///etc/passwd"}`, "photo of the server's own files"},
		{"getUpdates", `{}`, "isn't full"},
		{"setWebhook", `{"url":"http://127.0.0.1/"}`, "isn't full"},
	} {
		t.Run(tt.method+tt.body, func(t *testing.T) {
			bubble(t, func(k *kit) {
				for _, name := range []string{"5", "6"} {
					k.feedText(name)
				}
				a := k.callAs(c.token, tt.method, tt.body)
				switch {
				case tt.refused == ok && a.status == http.StatusForbidden:
					k.t.Errorf("refused: %s", a.body)
				case tt.refused != ok && (a.status != http.StatusForbidden || !strings.Contains(a.json.Description, tt.refused) || len(k.jobs()) != 0):
					k.t.Errorf("status %d, want 403 about %q: %s", a.status, tt.refused, a.body)
				}
			}, withClients(c))
		})
	}
}

// TestClients_FilesInBrokenJSON: Telegram's parser takes what ours doesn't. A
// client that isn't full can't hide a file of the server's in it.
func TestClients_FilesInBrokenJSON(t *testing.T) {
	some, full := newClient("some", limitedTo("*", "*")), newClient("full")
	bubble(t, func(k *kit) {
		k.feedText("5")
		for _, name := range []string{`file:///etc/passwd`, `FILE:/etc/passwd`, `\u0066ile:/etc/passwd`} {
			body, err := json.Marshal(map[string]any{"chat_id": 5, "media": `[{"type":"photo","x":00,"media":"` + name + `"}]`})
			k.must(err)
			if a := k.callAs(some.token, "sendMediaGroup", string(body)); a.status != http.StatusForbidden || len(k.jobs()) != 0 {
				k.t.Errorf("%s: %d %s", name, a.status, a.body)
			}
		}
		broken := `{"chat_id":5,"text":"x","reply_markup":"{\"x\":00}"}`
		for _, c := range []testClient{some, full} {
			if a := k.callAs(c.token, "sendMessage", broken); a.status == http.StatusForbidden {
				k.t.Errorf("client %s: %s", c.Name, a.body)
			}
		}
	}, withClients(some, full))
}

// feedText has somebody write, so that the simulated Telegram knows the chat.
func (k *kit) feedText(chat string) {
	var id int64
	_, err := fmt.Sscan(chat, &id)
	k.must(err)
	k.sim.FeedText(id, id, "hello")
}

// TestClients_EmptyMeansNone and nothing is let through.
func TestClients_EmptyMeansNone(t *testing.T) {
	noMethod, noChat := newClient("a", limitedTo("", "*")), newClient("b", limitedTo("*", ""))
	bubble(t, func(k *kit) {
		for _, c := range []testClient{noMethod, noChat} {
			if a := k.callAs(c.token, "sendMessage", `{"chat_id":5,"text":"x"}`); a.status != http.StatusForbidden || !strings.HasSuffix(a.json.Description, "are none") {
				k.t.Errorf("client %s: %d %s", c.Name, a.status, a.body)
			}
		}
	}, withClients(noMethod, noChat))
}

// TestClients_WrongTokens are slowed down; a right one never is.
func TestClients_WrongTokens(t *testing.T) {
	c := newClient("a")
	bubble(t, func(k *kit) {
		wrong := strings.Replace(c.token, "x", "y", 1)
		got := map[int]int{}
		for range 40 {
			got[k.callAs(wrong, "getUpdates", `{}`).status]++
		}
		if got[http.StatusUnauthorized] != 20 || got[http.StatusTooManyRequests] != 20 {
			k.t.Errorf("answers %v", got)
		}
		if a := k.callAs(c.token, "getUpdates", `{}`); a.status != http.StatusOK {
			k.t.Errorf("the right one: %d %s", a.status, a.body)
		}
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if a := k.callAs(wrong, "getUpdates", `{}`); a.status != http.StatusUnauthorized {
			k.t.Errorf("later: %d %s", a.status, a.body)
		}
	}, withClients(c))
}

// TestClients_Rate is a client's own, and survives a reload that doesn't
// change it.
func TestClients_Rate(t *testing.T) {
	c := newClient("a", func(c *botserver.Client) { c.Rate = 2 })
	var clients *botserver.Clients
	bubble(t, func(k *kit) {
		var got []int
		for i := range 4 {
			if i == 2 {
				clients.Set([]botserver.Client{c.Client})
			}
			got = append(got, k.callAs(c.token, "getWebhookInfo", `{}`).status)
		}
		if !slices.Equal(got, []int{200, 200, 429, 429}) {
			k.t.Errorf("answers %v", got)
		}
		time.Sleep(500 * time.Millisecond)
		synctest.Wait()
		if a := k.callAs(c.token, "getWebhookInfo", `{}`); a.status != http.StatusOK {
			k.t.Errorf("later: %d %s", a.status, a.body)
		}
	}, withClients(c), func(cfg *botserver.Config) { clients, _ = cfg.Clients.(*botserver.Clients) })
}

// TestClients_Removed is out at once.
func TestClients_Removed(t *testing.T) {
	c := newClient("a")
	var clients *botserver.Clients
	bubble(t, func(k *kit) {
		clients.Set(nil)
		if a := k.callAs(c.token, "getUpdates", `{}`); a.status != http.StatusUnauthorized {
			k.t.Errorf("%d %s", a.status, a.body)
		}
	}, withClients(c), func(cfg *botserver.Config) { clients, _ = cfg.Clients.(*botserver.Clients) })
}
