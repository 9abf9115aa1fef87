package botserver

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"io"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/tgspool/tgspool/internal/spool"
	"github.com/tgspool/tgspool/internal/wire"
)

// memory takes files and forgets them.
type memory struct{ fields []string }

func (*memory) Limit() int64            { return 1 << 20 }
func (m *memory) Has(field string) bool { return slices.Contains(m.fields, field) }

func (m *memory) Take(field, _ string, content io.Reader) error {
	m.fields = append(m.fields, field)
	_, err := io.Copy(io.Discard, content)
	return err
}

// FuzzRead reads any request. What comes out must be an object of JSON that
// holds what was read, or an error that a caller may see.
func FuzzRead(f *testing.F) {
	for _, s := range []struct{ query, kind, body string }{
		{"chat_id=1&text=a%20b", "", ""},
		{"", "application/json", `{"chat_id":1,"text":"x","chat_id":2}`},
		{"chat_id=7", "application/json", `{"a":{"b":[1e400,null]}}`},
		{"", "application/x-www-form-urlencoded", "a=b&c=%zz&=d&e"},
		{"photo=", "multipart/form-data; boundary=b", "--b\r\nContent-Disposition:form-data;name=photo;filename=a b;c\r\n\r\nx\r\n--b--"},
		{"", "multipart/form-data; boundary=b", "--b\r\nContent-Disposition: form-data; name=\"text\"\r\n\r\nx\r\n--b--\r\n"},
		{"%ff=1", "text/plain", "{"},
	} {
		f.Add(s.query, s.kind, s.body)
	}
	f.Fuzz(func(t *testing.T, query, kind, body string) {
		r := httptest.NewRequest("POST", "/", strings.NewReader(body))
		r.URL.RawQuery = query
		r.Header.Set("Content-Type", kind)
		p, err := read(httptest.NewRecorder(), r, &memory{})
		if err != nil {
			if _, ok := errors.AsType[*apiError](err); !ok {
				t.Fatalf("an error of another kind: %v", err)
			}
			return
		}
		if len(p.Raw()) == 0 {
			p.Each(func(name string, _ json.RawMessage) { t.Fatalf("%q is lost", name) })
			return
		}
		read := map[string]json.RawMessage{}
		p.Each(func(name string, value json.RawMessage) { read[name] = value })
		if !json.Valid(p.Raw()) {
			t.Fatalf("what goes on is no JSON: %q", p.Raw())
		}
		members, err := wire.ReadObject(p.Raw())
		if err != nil {
			t.Fatalf("what goes on can't be read again: %v", err)
		}
		seen := map[string]bool{}
		for _, m := range members {
			if !seen[m.Name] && !bytes.Equal(m.Value, read[m.Name]) {
				t.Fatalf("%q goes on as %q and was read as %q", m.Name, m.Value, read[m.Name])
			}
			seen[m.Name] = true
		}
	})
}

func TestFingerprint(t *testing.T) {
	call := func(method, params string, files ...spool.File) [spool.PrintSize]byte {
		g := &wire.Gathering{}
		if err := g.AddObject([]byte(params)); err != nil {
			t.Fatal(err)
		}
		sums := make([][sha256.Size]byte, 0, len(files))
		for _, f := range files {
			sums = append(sums, sha256.Sum256([]byte(f.Path)))
		}
		none := func(string) bool { return false }
		return fingerprint(1, "", method, g.Params(none), files, sums)
	}
	file := func(field, content string) spool.File { return spool.File{Field: field, Name: "a", Path: content} }
	base := call("sendMessage", `{"chat_id":7,"text":"x","reply_markup":{"a":1,"b":[12345678901234567890]}}`)
	same := []string{
		`{"text":"x","reply_markup":{"b":[12345678901234567890],"a":1},"chat_id":7}`,
		`{"chat_id":"7","text":"x","reply_markup":"{\"a\":1, \"b\":[12345678901234567890]}"}`,
		`{"chat_id":7,"text":"x","text":"y","reply_markup":{"a":1,"b":[12345678901234567890]}}`,
	}
	for _, params := range same {
		if call("sendMessage", params) != base {
			t.Errorf("%s is another call", params)
		}
	}
	other := []string{
		`{"chat_id":7,"text":"x","reply_markup":{"a":1,"b":[12345678901234567891]}}`,
		`{"chat_id":8,"text":"x","reply_markup":{"a":1,"b":[12345678901234567890]}}`,
		`{"chat_id":7,"text":"x "}`,
		`{"chat_id":7,"text":"x","reply_markup":{"a":1,"b":[12345678901234567890]},"more":null}`,
	}
	for _, params := range other {
		if call("sendMessage", params) == base {
			t.Errorf("%s is the same call", params)
		}
	}
	if call("copyMessage", same[0]) == base {
		t.Error("another method is the same call")
	}
	album := func(a, b, first, second string) [spool.PrintSize]byte {
		return call("sendMediaGroup", `{"media":[{"media":"attach://`+a+`"},{"media":"attach://`+b+`"}]}`, file(a, first), file(b, second))
	}
	if album("x1", "x10", "1", "2") != album("q", "z", "1", "2") {
		t.Error("names of attachments count")
	}
	if album("x1", "x10", "1", "2") == album("x1", "x10", "2", "1") {
		t.Error("the order of attachments doesn't count")
	}
	if album("a", "b", "1", "2") == album("a", "b", "1", "3") {
		t.Error("the contents of attachments don't count")
	}
	if call("sendPhoto", `{"chat_id":1}`, file("photo", "1")) == call("sendPhoto", `{"chat_id":1}`, file("photo", "2")) {
		t.Error("the content of a file doesn't count")
	}
}
