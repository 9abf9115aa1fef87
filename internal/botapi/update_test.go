package botapi

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"time"
)

// shaped is a line of testdata/updates.ndjson: a shape that updates have, with made-up
// content, and what is to be read from it.
type shaped struct {
	Name   string          `json:"name"`
	Update json.RawMessage `json:"update"`
	Want   struct {
		Kind        string `json:"kind"`
		Chat        int64  `json:"chat"`
		User        int64  `json:"user"`
		Type        string `json:"type"`
		Title       string `json:"title"`
		Key         string `json:"key"`
		Text        string `json:"text"`
		Command     string `json:"command"`
		Bot         string `json:"bot"`
		Args        string `json:"args"`
		Date        int64  `json:"date"`
		New         bool   `json:"new"`
		MigrateTo   int64  `json:"migrate_to"`
		MigrateFrom int64  `json:"migrate_from"`
		Status      string `json:"status"`
	} `json:"want"`
}

func readShapes(t testing.TB) []shaped {
	t.Helper()
	var list []shaped
	for _, line := range readLines(t, "testdata/updates.ndjson") {
		var s shaped
		if err := json.Unmarshal(line, &s); err != nil {
			t.Fatalf("%v in %s", err, line)
		}
		list = append(list, s)
	}
	return list
}

func TestParseUpdateShapes(t *testing.T) {
	seen := map[string]bool{}
	for _, s := range readShapes(t) {
		t.Run(s.Name, func(t *testing.T) {
			u, err := ParseUpdate(s.Update)
			if err != nil || !u.HasID {
				t.Fatalf("%v", err)
			}
			var id struct {
				ID int64 `json:"update_id"`
			}
			if err := json.Unmarshal(s.Update, &id); err != nil {
				t.Fatal(err)
			}
			w := s.Want
			want := Update{
				ID: id.ID, HasID: true, Kind: w.Kind, ChatID: w.Chat, ChatType: w.Type, ChatTitle: w.Title,
				ChatUsername: u.ChatUsername, UserID: w.User, OrderKey: w.Key, Text: w.Text, Command: w.Command,
				CommandBot: w.Bot, Args: w.Args, New: w.New, MigrateTo: w.MigrateTo, MigrateFrom: w.MigrateFrom,
				MemberStatus: w.Status,
				QueryID:      u.QueryID, Message: u.Message, Thread: u.Thread, Business: u.Business,
			}
			if w.Date != 0 {
				want.Date = time.Unix(w.Date, 0).UTC()
			}
			if u != want {
				t.Errorf("\n got %+v\nwant %+v", u, want)
			}
			seen[u.Kind] = true
		})
	}
	for kind := range updateKinds {
		if !seen[kind] {
			t.Errorf("no shape of kind %s", kind)
		}
	}
	if len(updateKinds) != 28 {
		t.Errorf("%d kinds", len(updateKinds))
	}
}

func TestParseUpdateNeedsAnID(t *testing.T) {
	for _, raw := range []string{
		``, `null`, `17`, `"x"`, `[]`, `{}`, `{"message":{}}`, `{"update_id":null}`, `{"update_id":"5"}`,
		`{"update_id":5.0}`, `{"update_id":5e3}`, `{"update_id":1.5}`, `{"update_id":true}`, `{"update_id":{}}`,
		`{"update_id":9223372036854775808}`, `{"update_id":-9223372036854775809}`, `{"update_id":}`, `{"update_id`,
		`{"message":{"update_id":5}}`, "{\"update_id\":5",
	} {
		if u, err := ParseUpdate([]byte(raw)); err == nil || u.HasID {
			t.Errorf("%s gave %+v", raw, u)
		}
	}
	u, err := ParseUpdate([]byte(`{"update_id":"x","message":{"chat":{"id":7},"text":"hi"}}`))
	if err == nil || u.ChatID != 7 || u.Text != "hi" {
		t.Errorf("the rest wasn't read: %+v", u)
	}
}

func TestParseUpdateBearsDamage(t *testing.T) {
	for _, c := range []struct{ name, raw, text string }{
		{"invalid UTF-8", "{\"update_id\":5,\"message\":{\"chat\":{\"id\":7},\"text\":\"a\xff\xfeb\"}}", "a\ufffd\ufffdb"},
		{"lone surrogate", `{"update_id":5,"message":{"chat":{"id":7},"text":"a\ud83db"}}`, "a\ufffdb"},
		{"control character", "{\"update_id\":5,\"message\":{\"chat\":{\"id\":7},\"text\":\"a\x01b\"}}", "a\x01b"},
		{"unknown escape", `{"update_id":5,"message":{"chat":{"id":7},"text":"a\xb"}}`, `a\xb`},
		{"stray word", `{"update_id":5,"message":{"chat":{"id":7},"date":NaN,"text":"ab"}}`, "ab"},
		{"cut behind the text", `{"update_id":5,"message":{"chat":{"id":7},"text":"ab"},"z":`, "ab"},
		{"fields twice", `{"update_id":5,"message":{"chat":{"id":7},"chat":{"id":8},"text":"ab","text":"cd"}}`, "ab"},
		{"escaped names", `{"update\u005fid":5,"message":{"chat":{"id":7},"text":"ab"}}`, "ab"},
	} {
		u, err := ParseUpdate([]byte(c.raw))
		if err != nil || u.ID != 5 || u.ChatID != 7 || u.Text != c.text || u.OrderKey != "chat:7" {
			t.Errorf("%s: %+v, %v", c.name, u, err)
		}
	}
}

func TestParseHugeUpdate(t *testing.T) {
	var raw bytes.Buffer
	raw.WriteString(`{"update_id":5,"message":{"reply_markup":"`)
	raw.WriteString(strings.Repeat("x{[,\\\"", 900_000))
	raw.WriteString(`","deep":` + strings.Repeat("[", 200_000) + strings.Repeat("]", 200_000))
	raw.WriteString(`,"chat":{"id":7},"text":"/big one"}}`)
	if raw.Len() < 5_000_000 {
		t.Fatalf("only %d bytes", raw.Len())
	}
	u, err := ParseUpdate(raw.Bytes())
	if err != nil || u.ChatID != 7 || u.Command != "/big" || u.Args != "one" {
		t.Errorf("%v, chat %d, command %q", err, u.ChatID, u.Command)
	}
}

func TestCommands(t *testing.T) {
	for _, c := range []struct{ text, command, bot, args string }{
		{"/a", "/a", "", ""},
		{"/a b  c ", "/a", "", "b  c"},
		{"/a\nb", "/a", "", "b"},
		{"/a\tb", "/a", "", "b"},
		{"/a_1@Some_Bot", "/a_1", "Some_Bot", ""},
		{"/a@bot\u00a0b", "/a", "bot", "b"},
		{"/a!", "/a", "", "!"},
		{"/a @bot", "/a", "", "@bot"},
		{"/" + strings.Repeat("a", 64), "/" + strings.Repeat("a", 64), "", ""},
		{"/" + strings.Repeat("a", 65), "", "", ""},
		{"/", "", "", ""},
		{"/ a", "", "", ""},
		{"//a", "", "", ""},
		{"/etc/passwd", "", "", ""},
		{"/a@", "", "", ""},
		{"/a@b@c", "", "", ""},
		{"/aж", "", "", ""},
		{"/жа", "", "", ""},
		{" /a", "", "", ""},
		{"a /b", "", "", ""},
		{"", "", "", ""},
	} {
		command, bot, args := splitCommand(c.text)
		if command != c.command || bot != c.bot || args != c.args {
			t.Errorf("%q: %q %q %q", c.text, command, bot, args)
		}
	}
}

func TestSplitUpdates(t *testing.T) {
	for _, c := range []struct {
		body string
		want []string
	}{
		{`[]`, nil},
		{` [ ] `, nil},
		{`{"ok":true,"result":[]}`, nil},
		{`{"ok":true,"result":[{"update_id":1} , {"update_id":2}],"more":1}`, []string{`{"update_id":1}`, `{"update_id":2}`}},
		{`[1,null,"a,]b",{"update_id":3},[[]],{},true]`, []string{`1`, `null`, `"a,]b"`, `{"update_id":3}`, `[[]]`, `{}`, `true`}},
		{"[{\"a\":\"\x01\xff\\x\"},{\"update_id\":4}]", []string{"{\"a\":\"\x01\xff\\x\"}", `{"update_id":4}`}},
		{`[{"a":NaN,b},{"update_id":4}]`, []string{`{"a":NaN,b}`, `{"update_id":4}`}},
		{`[ {"update_id": 1.50e3 } ]`, []string{`{"update_id": 1.50e3 }`}},
	} {
		got, err := SplitUpdates([]byte(c.body))
		if err != nil || len(got) != len(c.want) {
			t.Errorf("%q: %q, %v", c.body, got, err)
			continue
		}
		for i := range got {
			if string(got[i]) != c.want[i] {
				t.Errorf("%q: element %d is %q", c.body, i, got[i])
			}
		}
	}
	for _, body := range []string{
		``, `{}`, `{"ok":true}`, `{"ok":true,"result":null}`, `{"ok":true,"result":{}}`, `{"ok":true,"result":"[]"}`,
		`[`, `[{"update_id":1}`, `[{"update_id":1},`, `{"ok":true,"result":[{"update_id":1}`, `[] []`, `17`, `<html>`,
		`{"ok":true,"result":[{"update_id":1}]`,
	} {
		if got, err := SplitUpdates([]byte(body)); err == nil {
			t.Errorf("%q gave %q", body, got)
		}
	}
}

func FuzzParseUpdate(f *testing.F) {
	for _, s := range readShapes(f) {
		f.Add([]byte(s.Update))
	}
	f.Add([]byte("{\"update_id\":5,\"message\":{\"text\":\"\x01\\x\"}}"))
	f.Fuzz(func(t *testing.T, raw []byte) {
		u, err := ParseUpdate(raw)
		if (err == nil) != u.HasID {
			t.Fatalf("%+v with %v", u, err)
		}
		if u.OrderKey == "" || len(u.OrderKey) > longestPollID+10 {
			t.Fatalf("order key %q", u.OrderKey)
		}
		if u.Command != "" && (!u.New || !strings.HasPrefix(u.Text, u.Command)) {
			t.Fatalf("command %q of %q", u.Command, u.Text)
		}
		// Where the standard decoder sees an id, we see the same.
		var plain map[string]json.RawMessage
		var id int64
		if json.Unmarshal(raw, &plain) == nil && plain["update_id"] != nil &&
			json.Unmarshal(plain["update_id"], &id) == nil && string(plain["update_id"]) != "null" {
			if !u.HasID || u.ID != id {
				t.Fatalf("id %d, want %d", u.ID, id)
			}
		}
	})
}

// FuzzSplitUpdates holds that an array that is JSON is split as the standard decoder does.
func FuzzSplitUpdates(f *testing.F) {
	for _, s := range readShapes(f) {
		f.Add([]byte("[" + string(s.Update) + ", 17 ,\"a\\\"]\"]"))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		got, err := SplitUpdates(raw)
		var want []json.RawMessage
		if len(bytes.TrimSpace(raw)) == 0 || bytes.TrimSpace(raw)[0] != '[' || json.Unmarshal(raw, &want) != nil {
			return
		}
		if err != nil || len(got) != len(want) {
			t.Fatalf("%d elements, want %d (%v)", len(got), len(want), err)
		}
		for i := range want {
			if !bytes.Equal(got[i], want[i]) {
				t.Fatalf("element %d is %q, want %q", i, got[i], want[i])
			}
		}
	})
}

func TestChatUsername(t *testing.T) {
	u, err := ParseUpdate([]byte(`{"update_id":5,"callback_query":{"message":{"chat":{"id":7,"username":"bell_example"}}}}`))
	if err != nil || u.ChatUsername != "bell_example" {
		t.Errorf("%q, %v", u.ChatUsername, err)
	}
}

// TestParseUpdatePlace: an answer must arrive where the question was asked.
func TestParseUpdatePlace(t *testing.T) {
	for raw, want := range map[string]Update{
		`{"update_id":1,"message":{"message_thread_id":5,"is_topic_message":true,"chat":{"id":-1}}}`:                                 {Thread: 5},
		`{"update_id":1,"message":{"message_thread_id":5,"chat":{"id":-1}}}`:                                                         {},
		`{"update_id":1,"business_message":{"business_connection_id":"bc","chat":{"id":1}}}`:                                         {Business: "bc"},
		`{"update_id":1,"callback_query":{"id":"77","message":{"message_id":9,"message_thread_id":5,"is_topic_message":true}}}`:      {QueryID: "77", Message: "9", Thread: 5},
		`{"update_id":1,"callback_query":{"id":77,"inline_message_id":"x","message_thread_id":5,"is_topic_message":true}}`:           {QueryID: "77", Message: "x"},
		`{"update_id":1,"message":{"message_thread_id":"five","is_topic_message":true,"business_connection_id":7,"chat":{"id":-1}}}`: {},
	} {
		u, err := ParseUpdate([]byte(raw))
		got := Update{QueryID: u.QueryID, Message: u.Message, Thread: u.Thread, Business: u.Business}
		if err != nil || got != want {
			t.Errorf("%s: got %+v, %v", raw, got, err)
		}
	}
}
