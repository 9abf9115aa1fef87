package manage

import (
	"bytes"
	"net/http/httptest"
	"strings"
	"testing"
	"unicode/utf8"
)

// FuzzNote: whatever somebody posts as a notification, it is refused by a status
// of the caller's, or becomes a text.
func FuzzNote(f *testing.F) {
	for _, seed := range []struct{ kind, body string }{
		{"", "Backup done"},
		{"text/plain", strings.Repeat("wörd 😀\n", 2000)},
		{"application/json", `{"text":"x","chat":5}`},
		{"application/json", `{"alerts":[{"status":"firing","labels":{"a":{"b":[1]}},"annotations":null}],"truncatedAlerts":-1}`},
		{"application/x-www-form-urlencoded", "title=a&message=b&type=%ff"},
		{"multipart/form-data; boundary=b", "--b\r\nContent-Disposition: form-data; name=\"title\"\r\n\r\nx\r\n--b--"},
		{"application/json", `{"chat":{"a":1},"text":"\ud83d"}`},
	} {
		f.Add(seed.kind, []byte(seed.body))
	}
	f.Fuzz(func(t *testing.T, kind string, body []byte) {
		r := httptest.NewRequest("POST", "/v1/bots/home/notify", bytes.NewReader(body))
		r.Header["Content-Type"] = []string{kind}
		n, err := readNote(r)
		if err != nil {
			if status := toProblem(err).Status; status < 400 || status > 422 {
				t.Fatalf("status %d: %v", status, err)
			}
			return
		}
		if !utf8.ValidString(n.text) || strings.TrimSpace(n.text) == "" {
			t.Fatalf("text %q", n.text)
		}
	})
}
