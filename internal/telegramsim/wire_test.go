package telegramsim_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"io"
	"mime/multipart"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/tgspool/tgspool/internal/telegramsim"
)

// raw makes a request by hand.
func raw(t *testing.T, s *telegramsim.Sim, method, path, contentType, body string) reply {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, "https://bot.invalid"+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Content-Type", contentType)
	out, err := send(s.Transport(), request)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

const (
	asJSON = "application/json; charset=utf-8"
	asForm = "application/x-www-form-urlencoded"
)

func TestWireRules(t *testing.T) {
	path := "/bot" + token
	multi := "--b\r\nContent-Disposition: form-data; name=\"chat_id\"\r\n\r\n5\r\n" +
		"--b\r\nContent-Disposition: form-data; name=\"text\"\r\n\r\nhi\r\n--b--\r\n"
	for name, c := range map[string]struct {
		method, path, contentType, body string
		status                          int
		text                            string // of the message, or the description
	}{
		"json":              {"POST", path + "/sendMessage", asJSON, `{"chat_id":5,"text":"hi"}`, 200, "hi"},
		"form":              {"POST", path + "/sendMessage", asForm, "chat_id=5&text=h%C3%A9+y", 200, "hé y"},
		"multipart":         {"POST", path + "/sendMessage", "multipart/form-data; boundary=b", multi, 200, "hi"},
		"query":             {"GET", path + "/sendMessage?chat_id=5&text=hi", "", "", 200, "hi"},
		"get with body":     {"GET", path + "/sendMessage", asForm, "chat_id=5&text=hi", 200, "hi"},
		"query first":       {"POST", path + "/sendMessage?text=query", asJSON, `{"chat_id":5,"text":"body"}`, 200, "query"},
		"first wins":        {"POST", path + "/sendMessage", asForm, "text=one&chat_id=5&text=two", 200, "one"},
		"any case":          {"POST", path + "/SENDmessage", asForm, "chat_id=5&text=hi", 200, "hi"},
		"method parameter":  {"POST", path + "/", asForm, "method=sendMessage&chat_id=5&text=hi", 200, "hi"},
		"escaped path":      {"POST", strings.ReplaceAll(path, ":", "%3A") + "/sendMessage", asForm, "chat_id=5&text=hi", 200, "hi"},
		"number as text":    {"POST", path + "/sendMessage", asJSON, `{"chat_id":5,"text":12.50}`, 200, "12.50"},
		"null is a word":    {"POST", path + "/sendMessage", asJSON, `{"chat_id":5,"text":null}`, 200, "null"},
		"broken json":       {"POST", path + "/sendMessage", asJSON, `{"chat_id":5,"text":"hi`, 400, "Bad Request: message text is empty"},
		"read so far":       {"POST", path + "/sendMessage", asJSON, `{"chat_id":5,"text":"hi","x":`, 200, "hi"},
		"json list":         {"POST", path + "/sendMessage", asJSON, `[1]`, 400, "Bad Request: chat_id is empty"},
		"unknown type":      {"POST", path + "/sendMessage?chat_id=5", "text/plain", `text=hi`, 400, "Bad Request: message text is empty"},
		"unknown method":    {"POST", path + "/doMagic", asForm, "", 404, "Not Found: method not found"},
		"no method":         {"POST", path, asForm, "", 404, "Not Found"},
		"no bot":            {"POST", "/elsewhere", asForm, "", 404, "Not Found"},
		"bad token shape":   {"POST", "/botabc/getMe", asForm, "", 404, "Not Found"},
		"other secret":      {"POST", "/bot8001:wrong/getMe", asForm, "", 401, "Unauthorized"},
		"unknown bot":       {"POST", "/bot9999:x/getMe", asForm, "", 401, "Unauthorized"},
		"other verb":        {"PUT", path + "/getMe", asForm, "", 501, ""},
		"too much text":     {"POST", path + "/sendMessage", asForm, "text=" + strings.Repeat("x", 1<<20), 413, ""},
		"not utf-8":         {"POST", path + "/sendMessage", asForm, "chat_id=5&text=%ff", 400, "Bad Request: strings must be encoded in UTF-8"},
		"test environment":  {"POST", path + "/test/sendMessage", asForm, "chat_id=5&text=hi", 200, "hi"},
		"broken multipart":  {"POST", path + "/sendMessage", "multipart/form-data; boundary=b", "--b\r\nContent-Dis", 400, ""},
		"unescapable query": {"GET", path + "/sendMessage?chat_id=5&text=hi&x=%zz", "", "", 200, "hi"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSim(t, telegramsim.Options{})
			got := raw(t, s, c.method, c.path, c.contentType, c.body)
			text := got.Description
			if got.OK {
				chat := s.Chat(5)
				text = chat[len(chat)-1].Text
			}
			if got.Status != c.status || text != c.text {
				t.Errorf("got %d %q, want %d %q", got.Status, text, c.status, c.text)
			}
		})
	}
}

func TestGzipBody(t *testing.T) {
	s := newSim(t, telegramsim.Options{})
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	_, _ = io.WriteString(z, `{"chat_id":5,"text":"packed"}`)
	_ = z.Close()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "https://b.invalid/bot"+token+"/sendMessage", &packed)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Content-Encoding", "gzip")
	if got, err := send(s.Transport(), request); err != nil || !got.OK {
		t.Errorf("got %+v, %v", got, err)
	}
}

func TestAcceptAnyToken(t *testing.T) {
	s := newSim(t, telegramsim.Options{AcceptAnyToken: true})
	if got := raw(t, s, "GET", "/bot4242:anything/getMe", "", ""); !got.OK || !strings.Contains(string(got.Result), `"id":4242`) {
		t.Errorf("got %d %s", got.Status, got.Result)
	}
}

// form makes a multipart request with files by field.
func form(ctx context.Context, t *testing.T, url string, text, files map[string]string) *http.Request {
	t.Helper()
	var body bytes.Buffer
	w := multipart.NewWriter(&body)
	for name, value := range text {
		if err := w.WriteField(name, value); err != nil {
			t.Fatal(err)
		}
	}
	for name, content := range files {
		part, err := w.CreateFormFile(name, name+".txt")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(part, content); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, url, &body)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Content-Type", w.FormDataContentType())
	return request
}

func TestHandlerUnderAServerOfItsOwn(t *testing.T) {
	s := newSim(t, telegramsim.Options{})
	server := httptest.NewServer(s.Handler())
	defer server.Close()
	got, err := roundTrip(t.Context(), server.Client().Transport, server.URL, token, "getMe", nil)
	if err != nil || !got.OK {
		t.Fatalf("got %+v, %v", got, err)
	}
	for name, want := range map[string]string{"Content-Type": "application/json", "Connection": "keep-alive"} {
		if got.Header.Get(name) != want {
			t.Errorf("header %s is %q, want %q", name, got.Header.Get(name), want)
		}
	}
	if got.Header.Get("Date") == "" || got.Header.Get("Content-Length") == "" {
		t.Errorf("headers are missing in %v", got.Header)
	}
}
