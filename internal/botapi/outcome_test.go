package botapi

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"
)

// recorded is a line of testdata/responses.ndjson: shapes of real answers with made-up
// content, and what they are to be taken for.
type recorded struct {
	Name    string          `json:"name"`
	Method  string          `json:"method"`
	Params  json.RawMessage `json:"params"`
	Status  int             `json:"status"`
	Header  string          `json:"retry_after_header"`
	Body    json.RawMessage `json:"body"` // a string is the text itself
	Cut     bool            `json:"cut"`
	Class   Class           `json:"class"`
	Seconds int64           `json:"retry_after"`
	Chat    int64           `json:"chat"`
	IDs     []int64         `json:"ids"`
}

func readLines(t testing.TB, path string) [][]byte {
	t.Helper()
	all, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	lines := bytes.Split(bytes.TrimSpace(all), []byte("\n"))
	if len(lines) < 20 {
		t.Fatalf("%s has only %d lines", path, len(lines))
	}
	return lines
}

func (r recorded) seen() Seen {
	body := []byte(r.Body)
	if len(body) > 0 && body[0] == '"' {
		body = []byte(textOf(body))
	}
	return Seen{
		Phase: PhaseResponse, BytesWritten: 100, Status: r.Status,
		Body: body, BodyComplete: !r.Cut, RetryAfterHeader: r.Header,
	}
}

func TestRecordedShapes(t *testing.T) {
	classes := map[Class]bool{}
	for _, line := range readLines(t, "testdata/responses.ndjson") {
		var r recorded
		if err := json.Unmarshal(line, &r); err != nil {
			t.Fatalf("%v in %s", err, line)
		}
		t.Run(r.Name, func(t *testing.T) {
			o := Classify(MethodFor(r.Method), r.Params, r.seen())
			classes[r.Class] = true
			if o.Class != r.Class {
				t.Errorf("class %s, want %s (%s)", o.Class, r.Class, o.Description)
			}
			if o.RetryAfter != time.Duration(r.Seconds)*time.Second {
				t.Errorf("retry after %v", o.RetryAfter)
			}
			if !slices.Equal(o.MessageIDs, r.IDs) {
				t.Errorf("message ids %v", o.MessageIDs)
			}
			if got := o.Chat; r.Chat != 0 && (got == nil || got.ID != r.Chat) || r.Chat == 0 && got != nil {
				t.Errorf("chat %+v", got)
			}
			if (o.Result != nil) != (o.Class == ClassOK && r.Status == 200) {
				t.Errorf("class %s with result %q", o.Class, o.Result)
			}
		})
	}
	for _, class := range Classes() {
		if !classes[class] && class != ClassOffline {
			t.Errorf("no shape of class %s", class)
		}
	}
}

func TestFloodDelays(t *testing.T) {
	for _, c := range []struct {
		given, header string
		class         Class
		want          time.Duration
	}{
		{`0`, "", ClassFlood, time.Second},
		{`1`, "9", ClassFlood, time.Second},
		{`10072`, "", ClassFlood, 10072 * time.Second},
		{`2592000`, "", ClassFlood, 30 * 24 * time.Hour},
		{`2592001`, "", ClassFloodUndated, 0},
		{`99999999999999999999`, "", ClassFloodUndated, 0},
		{`-1`, "", ClassFloodUndated, 0},
		{`5.0`, "", ClassFloodUndated, 0},
		{`5e3`, "", ClassFloodUndated, 0},
		{`"5"`, "7", ClassFloodUndated, 7 * time.Second},
		{`null`, "7", ClassFloodUndated, 7 * time.Second},
		{`true`, "-7", ClassFloodUndated, 0},
		{`[]`, "Wed, 21 Oct 2015 07:28:00 GMT", ClassFloodUndated, 0},
		{`{}`, " 3 ", ClassFloodUndated, 3 * time.Second},
	} {
		seen := answer(429, fmt.Sprintf(`{"ok":false,"error_code":429,"description":"Too Many Requests: retry after 44","parameters":{"retry_after":%s}}`, c.given))
		seen.RetryAfterHeader = c.header
		o := Classify(MethodFor("sendMessage"), nil, seen)
		if o.Class != c.class || o.RetryAfter != c.want {
			t.Errorf("%s with header %q: %s after %v", c.given, c.header, o.Class, o.RetryAfter)
		}
	}
}

func TestChatGoneOnlyWhenThatChatIsMeant(t *testing.T) {
	const notFound = `{"ok":false,"error_code":400,"description":"Bad Request: chat not found"}`
	const kicked = `{"ok":false,"error_code":403,"description":"Forbidden: bot was kicked from the supergroup chat"}`
	for _, c := range []struct {
		method, params, body string
		class                Class
	}{
		{"sendMessage", `{"chat_id":1}`, notFound, ClassChatGone},
		{"sendMessage", ``, notFound, ClassChatGone},
		{"copyMessage", `{"chat_id":1,"from_chat_id":2,"message_id":3}`, notFound, ClassRejected},
		{"sendMessage", `{"chat_id":1,"reply_parameters":{"chat_id":2,"message_id":3}}`, notFound, ClassRejected},
		{"sendMessage", `{"chat_id":1,"reply_parameters":"{\"chat_id\":2}"}`, notFound, ClassRejected},
		{"sendMessage", `{"chat_id":1,"reply_parameters":{"message_id":3}}`, notFound, ClassChatGone},
		{"banChatMember", `{"chat_id":1,"user_id":2}`, notFound, ClassRejected},
		{"banChatMember", `{"chat_id":1,"user_id":2}`, kicked, ClassChatGone},
		{"sendGift", `{"user_id":2}`, kicked, ClassRejected},
	} {
		o := Classify(MethodFor(c.method), json.RawMessage(c.params), Seen{Phase: PhaseResponse, Status: 400, Body: []byte(c.body), BodyComplete: true})
		if o.Class != c.class || o.Confirm != (c.class == ClassChatGone && c.body == notFound) {
			t.Errorf("%s %s: %s, confirm %v", c.method, c.params, o.Class, o.Confirm)
		}
	}
}

func TestRequestsThatCannotBeMade(t *testing.T) {
	o := Classify(MethodFor("sendPhoto"), nil, Seen{Err: fmt.Errorf("%w: file is gone", ErrRequest)})
	if o.Class != ClassRejected || !strings.Contains(o.Description, "gone") {
		t.Errorf("%s: %s", o.Class, o.Description)
	}
	o = Classify(MethodFor("sendPhoto"), nil, Seen{Err: errors.New("too many open files")})
	if o.Class != ClassOffline {
		t.Errorf("local trouble: %s", o.Class)
	}
}

func TestClassifyKeepsWhatTelegramSaid(t *testing.T) {
	o := Classify(MethodFor("setWebhook"), nil, answer(200, `{"ok":true,"result":true,"description":"Webhook was set"}`))
	if o.Class != ClassOK || o.Description != "Webhook was set" || string(o.Result) != "true" {
		t.Errorf("%+v", o)
	}
	o = Classify(MethodFor("sendMessage"), nil, answer(400, `{"ok":false,"error_code":400,"description":"moved","parameters":{"migrate_to_chat_id":-1009007199254740}}`))
	if o.MigrateTo != -1009007199254740 {
		t.Errorf("migrated to %d", o.MigrateTo)
	}
}

func FuzzClassify(f *testing.F) {
	for _, line := range readLines(f, "testdata/responses.ndjson") {
		var r recorded
		if err := json.Unmarshal(line, &r); err != nil {
			f.Fatal(err)
		}
		f.Add(r.Method, []byte(r.Params), r.Status, r.seen().Body, !r.Cut, r.Header)
	}
	known := map[Class]bool{}
	for _, c := range Classes() {
		known[c] = true
	}
	f.Fuzz(func(t *testing.T, method string, params []byte, status int, body []byte, complete bool, header string) {
		seen := Seen{Phase: PhaseResponse, Status: status, Body: body, BodyComplete: complete, RetryAfterHeader: header}
		o := Classify(MethodFor(method), params, seen)
		if !known[o.Class] {
			t.Fatalf("class %q", o.Class)
		}
		if o.Class == ClassFlood && (o.RetryAfter < time.Second || o.RetryAfter > longestFlood) {
			t.Fatalf("flood of %v", o.RetryAfter)
		}
		if o.Class == ClassMigrated && o.MigrateTo == 0 {
			t.Fatal("migrated to nowhere")
		}
		if o.Result != nil && !json.Valid(o.Result) && method != "getUpdates" && !strings.EqualFold(method, "getupdates") {
			t.Fatalf("result isn't JSON: %q", o.Result)
		}
		if o.Class == ClassOK && o.Result == nil && !strings.Contains(strings.ToLower(o.Description), "immediately deleted") {
			t.Fatal("ok without a result")
		}
		// What json takes for a refusal may never become ok.
		var e struct {
			OK *bool `json:"ok"`
		}
		if json.Unmarshal(body, &e) == nil && e.OK == nil && o.Class == ClassOK {
			t.Fatalf("ok without ok in %q", body)
		}
	})
}
