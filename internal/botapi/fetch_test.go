package botapi

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

const fetchToken = "42:AAHdqTcvCH1vGWJxfSeofSAs0K5PALDsaw0" //nolint:gosec // nobody's

// fetcher is a client of a server that runs the handler.
func fetcher(t *testing.T, h http.HandlerFunc) *Client {
	t.Helper()
	server := httptest.NewServer(h)
	t.Cleanup(server.Close)
	token, err := ParseToken(fetchToken)
	if err != nil {
		t.Fatal(err)
	}
	c, err := NewClient(Config{Token: token, BaseURL: server.URL + "/base/"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

func TestFetch_AsksForTheFileAlone(t *testing.T) {
	c := fetcher(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Asked", r.Method+" "+r.URL.Path+" "+r.Header.Get("Range"))
	})
	res, err := c.Fetch(t.Context(), http.MethodGet, "documents/a b?.txt", http.Header{"Range": {"bytes=1-"}})
	if err != nil {
		t.Fatal(err)
	}
	if got, want := res.Header.Get("X-Asked"), "GET /base/file/bot"+fetchToken+"/documents/a b?.txt bytes=1-"; got != want {
		t.Errorf("asked for %q, want %q", got, want)
	}
	if err := res.Body.Close(); err != nil {
		t.Error(err)
	}
}

func TestFetch_ErrorsHoldNoToken(t *testing.T) {
	c := fetcher(t, func(http.ResponseWriter, *http.Request) {})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	res, err := c.Fetch(ctx, http.MethodGet, "x", nil)
	if err == nil {
		_ = res.Body.Close()
		t.Fatal("no error")
	}
	if strings.Contains(err.Error(), "AAHdq") {
		t.Errorf("error %q", err)
	}
}

func TestStream(t *testing.T) {
	long := `{"ok":true,"result":"` + strings.Repeat("x", 1<<20) + `"}`
	tests := []struct {
		name   string
		status int
		body   string
		stream bool
		class  Class
	}{
		{"a result", 200, long, true, ""},
		{"a refusal", 400, `{"ok":false,"error_code":400,"description":"Bad Request: chat not found"}`, false, ClassChatGone},
		{"a flood", 429, `{"ok":false,"error_code":429,"description":"Too Many Requests: retry after 3","parameters":{"retry_after":3}}`, false, ClassFlood},
		{"a page", 200, `<html>bot` + fetchToken + `</html>`, false, ClassNotTelegram},
		{"nothing", 200, ``, false, ClassUnknownOutcome},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := fetcher(t, func(w http.ResponseWriter, r *http.Request) {
				if asked, err := io.ReadAll(r.Body); err != nil || string(asked) != `{"chat_id":7}` {
					t.Errorf("asked with %q, %v", asked, err)
				}
				w.WriteHeader(tt.status)
				_, _ = io.WriteString(w, tt.body)
			})
			q := Request{Method: "getChat", Params: []byte(`{"chat_id":7}`)}
			answer, seen := c.Stream(t.Context(), q)
			if answer != nil {
				body, err := io.ReadAll(answer.Body)
				if err != nil || string(body) != tt.body || !tt.stream {
					t.Errorf("streamed %d bytes, %v", len(body), err)
				}
				if err := answer.Body.Close(); err != nil {
					t.Error(err)
				}
				return
			}
			if out := Classify(MethodFor("getChat"), q.Params, seen); tt.stream || out.Class != tt.class {
				t.Errorf("class %s, want %s", out.Class, tt.class)
			}
			if strings.Contains(string(seen.Body), "AAHdq") {
				t.Error("the token is in what was seen")
			}
		})
	}
}
