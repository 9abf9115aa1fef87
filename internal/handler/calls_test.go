package handler

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/tgspool/tgspool/internal/spool"
)

func TestReadCalls_KeepsEverythingButTheMethod(t *testing.T) {
	tests := []struct{ name, in, method, params string }{
		{"first", `{"method":"sendMessage","chat_id":1,"text":"a"}`, "sendMessage", `{"chat_id":1,"text":"a"}`},
		{"middle", `{"chat_id":1,"method":"sendMessage","text":"a"}`, "sendMessage", `{"chat_id":1,"text":"a"}`},
		{"last", `{"chat_id":1,"text":"a","method":"sendMessage"}`, "sendMessage", `{"chat_id":1,"text":"a"}`},
		{"alone", `{"method":"getMe"}`, "getMe", `{}`},
		{"numbers stay exact", `{"method":"m","n":12345678901234567890.10,"e":1E+02}`, "m", `{"n":12345678901234567890.10,"e":1E+02}`},
		{"escapes stay", `{"method":"m","t":"\u00e9\/<&>\ud83d\ude00"}`, "m", `{"t":"\u00e9\/<&>\ud83d\ude00"}`},
		{
			"nested values stay", `{"method":"m","reply_markup":{"b" : [ 1 , {"method":"inner"} ],"a":null}}`,
			"m", `{"reply_markup":{"b" : [ 1 , {"method":"inner"} ],"a":null}}`,
		},
		{"blanks", "\t { \"method\" : \"m\" , \"a\" : 1 } \r", "m", `{"a" : 1}`},
		{"escaped name of a member", `{"\u006dethod":"m","a":1}`, "m", `{"a":1}`},
		{"a name that needs its escapes", `{"method":"m","a\"b":1}`, "m", `{"a\"b":1}`},
		{"twice the same member", `{"a":1,"method":"m","a":2}`, "m", `{"a":1,"a":2}`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			calls, _, err := readCalls([]byte(tt.in + "\n"))
			if err != nil {
				t.Fatal(err)
			}
			if len(calls) != 1 || calls[0].method != tt.method || string(calls[0].params) != tt.params {
				t.Errorf("got %+v", calls)
			}
		})
	}
}

func TestReadCalls_Lines(t *testing.T) {
	calls, _, err := readCalls([]byte("\n  \n{\"method\":\"a\"}\r\n\n{\"method\":\"b\"}"))
	if err != nil {
		t.Fatal(err)
	}
	if len(calls) != 2 || calls[0].line != 3 || calls[1].line != 5 || calls[1].method != "b" {
		t.Errorf("got %+v", calls)
	}
	if calls, _, err := readCalls([]byte(" \n\t\n")); err != nil || len(calls) != 0 {
		t.Errorf("blank lines: %v, %v", calls, err)
	}
}

func TestReadCalls_Session(t *testing.T) {
	for in, want := range map[string]string{
		`{"method":"a"}`: "",
		`{"session": {"n": 12345678901234567890 , "t":"\u00e9"}}`:                      `{"n":12345678901234567890,"t":"\u00e9"}`,
		`{"session":{"n":1}}` + "\n" + `{"method":"a"}` + "\n" + `{"session":{"n":2}}`: `{"n":2}`,
		`{"session":null}`: `{}`,
	} {
		calls, session, err := readCalls([]byte(in))
		if err != nil || string(session) != want || len(calls) != strings.Count(in, "method") {
			t.Errorf("%s: %d calls, session %s, %v", in, len(calls), session, err)
		}
	}
}

func TestReadCalls_NamesTheBadLine(t *testing.T) {
	good := `{"method":"sendMessage","chat_id":1,"text":"a"}` + "\n"
	tests := []struct {
		name, in string
		line     int
		want     string
	}{
		{"no JSON", good + "hello\n", 2, "is not a JSON object"},
		{"half a line", good + good + `{"method":"sendMess`, 3, "is not a JSON object"},
		{"half an object", good + `{"method":"sendMessage","chat_id":1`, 2, "is not a JSON object"},
		{"an array", "[1]\n", 1, "is not a JSON object"},
		{"a string", `"sendMessage"`, 1, "is not a JSON object"},
		{"null", "null\n", 1, "is not a JSON object"},
		{"two objects", `{"method":"a"} {"method":"b"}`, 1, "is not a JSON object"},
		{"no method", good + "\n" + `{"chat_id":1}`, 3, "no method"},
		{"empty method", `{"method":""}`, 1, "method is no name"},
		{"method is a number", `{"method":5}`, 1, "method is no name"},
		{"method is null", `{"method":null}`, 1, "method is no name"},
		{"two methods", `{"method":"a","method":"b"}`, 1, "method is given twice"},
		{"a session beside a method", `{"session":{"n":1}}` + "\n" + `{"method":"a","session":{}}`, 2, "a session stands in a line of its own"},
		{"a session beside something", `{"session":{},"version":1}`, 1, "a session stands in a line of its own"},
		{"a session that is a list", `{"session":[1]}`, 1, "a session must be a JSON object"},
		{"a session that is too large", `{"session":{"a":"` + strings.Repeat("x", spool.MaxSession) + `"}}`, 1, "too large"},
		{"invalid UTF-8", `{"method":"a","text":"` + "\xff" + `"}`, 1, "not valid UTF-8"},
		{"too many", strings.Repeat(good, maxCalls+1), maxCalls + 1, "more than 1000 calls"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			calls, session, err := readCalls([]byte(tt.in))
			var bad *lineError
			if !errors.As(err, &bad) || bad.line != tt.line || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v; want line %d, %q", err, tt.line, tt.want)
			}
			if strings.HasPrefix(tt.want, "is ") && err.Error() != fmt.Sprintf("line %d of the calls %s", tt.line, tt.want) {
				t.Errorf("got %q", err)
			}
			if calls != nil || session != nil {
				t.Error("calls are returned beside the error")
			}
		})
	}
}

// TestReadCalls_AsManyAsAllowed: a session isn't counted among the calls.
func TestReadCalls_AsManyAsAllowed(t *testing.T) {
	calls, session, err := readCalls([]byte(strings.Repeat(`{"method":"a"}`+"\n", maxCalls) + `{"session":{"n":1}}`))
	if err != nil || len(calls) != maxCalls || string(session) != `{"n":1}` {
		t.Errorf("%d calls, session %s, %v", len(calls), session, err)
	}
}

// What is read is the line without its method: nothing is added, lost or changed.
func FuzzReadCall(f *testing.F) {
	for _, seed := range []string{
		`{"method":"sendMessage","chat_id":1,"text":"a"}`, `{"a":[{}],"method":"m"}`, `{"method":"m"`, `[]`, `{}`, ``,
		`{"a":"\u006d","\u006dethod":"m","":{"method":"x"}}`, `{"method":"a","method":"b"}`, `{"session":{}}`, `{"a":1,}`,
		"{\"method\":\"\xff\"}", `{ , "method":"m"}`, `{"method":"m"}x`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, line []byte) {
		line = bytes.TrimSpace(line)
		c, err := readCall(line)
		if err != nil {
			return
		}
		if !json.Valid(line) || !utf8.Valid(line) {
			t.Fatalf("accepted %q", line)
		}
		var before, after map[string]json.RawMessage
		if err := json.Unmarshal(line, &before); err != nil {
			t.Fatalf("accepted %q: %v", line, err)
		}
		if value, ok := before["session"]; ok {
			if again, err := spool.CompactSession(c.session); err != nil || !bytes.Equal(again, c.session) || len(before) != 1 || c.method != "" {
				t.Fatalf("session %s of %q (%s): %v", c.session, line, value, err)
			}
			return
		}
		if err := json.Unmarshal(c.params, &after); err != nil {
			t.Fatalf("made %q of %q: %v", c.params, line, err)
		}
		var method string
		if err := json.Unmarshal(before["method"], &method); err != nil || method != c.method || method == "" {
			t.Fatalf("method of %q read as %q", line, c.method)
		}
		delete(before, "method")
		if c.session != nil {
			t.Fatalf("%q is both a call and a session", line)
		}
		if len(before) != len(after) {
			t.Fatalf("made %q of %q", c.params, line)
		}
		for name, value := range before {
			if !bytes.Equal(value, after[name]) {
				t.Fatalf("member %q of %q became %q", name, line, after[name])
			}
		}
	})
}
