package botserver_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/tgspool/tgspool/internal/botapi"
)

// fetched is the header of an answer.
type fetched struct {
	StatusCode    int
	ContentLength int64
	Header        http.Header
}

// fetch gets a file by a raw path behind the token.
func fetch(k *kit, method, path string, headers ...string) (got fetched, body string) {
	k.t.Helper()
	r := httptest.NewRequest(method, "http://127.0.0.1/file/bot"+token+"/"+path, nil)
	for i := 0; i+1 < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	k.handler.ServeHTTP(w, r)
	res := w.Result()
	content, err := io.ReadAll(res.Body)
	k.must(err)
	k.must(res.Body.Close())
	return fetched{res.StatusCode, res.ContentLength, res.Header}, string(content)
}

// uploaded sends a document and returns its file_path.
func uploaded(t *testing.T, k *kit, content string) string {
	t.Helper()
	a := k.serve(formRequest("sendDocument", part{"chat_id", "", "7"}, part{"document", "a.txt", content}))
	var m struct {
		Document struct {
			FileID string `json:"file_id"`
		} `json:"document"`
	}
	k.must(json.Unmarshal(a.json.Result, &m))
	b := k.call("getFile", `{"file_id":"`+m.Document.FileID+`"}`)
	var f struct {
		Path string `json:"file_path"`
	}
	k.must(json.Unmarshal(b.json.Result, &f))
	if f.Path == "" {
		t.Fatalf("getFile: %s", b.body)
	}
	return f.Path
}

func TestFile(t *testing.T) {
	bubble(t, func(k *kit) {
		path := uploaded(t, k, "0123456789")
		for _, p := range []string{path, strings.ReplaceAll(path, "/", "%2F")} {
			if res, body := fetch(k, http.MethodGet, p); res.StatusCode != 200 || body != "0123456789" || res.ContentLength != 10 {
				t.Errorf("%s: %d %q of %d", p, res.StatusCode, body, res.ContentLength)
			}
		}
	})
}

// TestFile_Range fetches from a server that knows ranges, as Telegram's does.
func TestFile_Range(t *testing.T) {
	files := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/file/bot"+token+"/documents/a b?.txt" {
			http.NotFound(w, r)
			return
		}
		w.Header().Set("Set-Cookie", "no")
		http.ServeContent(w, r, "a.txt", time.Unix(1e9, 0), strings.NewReader("0123456789"))
	}))
	defer files.Close()
	k := newKit(t, t.TempDir())
	tok, err := botapi.ParseToken(token)
	k.must(err)
	k.client, err = botapi.NewClient(botapi.Config{Token: tok, BaseURL: files.URL})
	k.must(err)
	defer k.client.Close()
	const path = "documents/a%20b%3F.txt"
	if res, body := fetch(k, http.MethodGet, path); res.StatusCode != 200 || body != "0123456789" || res.Header.Get("Set-Cookie") != "" {
		t.Errorf("all: %d %q, header %v", res.StatusCode, body, res.Header)
	}
	if res, body := fetch(k, http.MethodGet, path, "Range", "bytes=2-4"); res.StatusCode != 206 || body != "234" || res.Header.Get("Content-Range") != "bytes 2-4/10" {
		t.Errorf("a range: %d %q", res.StatusCode, body)
	}
	if res, body := fetch(k, http.MethodGet, path, "Range", "bytes=20-"); res.StatusCode != 416 || !strings.Contains(body, `"error_code":416`) {
		t.Errorf("a range behind the end: %d %q", res.StatusCode, body)
	}
	if res, body := fetch(k, http.MethodHead, path); res.StatusCode != 200 || body != "" || res.ContentLength != 10 {
		t.Errorf("the header alone: %d %q", res.StatusCode, body)
	}
	if res, body := fetch(k, http.MethodGet, "documents/b.txt"); res.StatusCode != 404 || !strings.Contains(body, `"error_code":404`) {
		t.Errorf("a page that is no JSON: %d %q", res.StatusCode, body)
	}
}

func TestFile_Refused(t *testing.T) {
	bubble(t, func(k *kit) {
		for _, path := range []string{
			"../bot" + token + "/getMe", "documents/..%2F..%2Fx", "documents/%2e%2e/x", "a//b", "", "a/./b", `a\..\b`, "x%00y", "documents/none.txt",
		} {
			res, body := fetch(k, http.MethodGet, path)
			if res.StatusCode != 404 || !strings.Contains(body, `"ok":false`) {
				t.Errorf("%q: %d %q", path, res.StatusCode, body)
			}
		}
		k.sim.SetOffline(true)
		if res, body := fetch(k, http.MethodGet, "documents/a.txt"); res.StatusCode != 502 || !strings.Contains(body, `"error_code":502`) {
			t.Errorf("offline: %d %q", res.StatusCode, body)
		}
	})
}
