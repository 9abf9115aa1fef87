package botserver_test

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"
)

// raw makes a call of its exact bytes: path and query behind the token, and body.
func raw(method, target, contentType, body string, chunked bool) *http.Request {
	var r io.Reader = strings.NewReader(body)
	q := httptest.NewRequest(method, "http://127.0.0.1/bot"+token+target, r)
	if contentType != "" {
		q.Header.Set("Content-Type", contentType)
	}
	if chunked {
		q.ContentLength = -1
	}
	return q
}

// TestWire_Params: what each library puts on the wire, and what goes on.
func TestWire_Params(t *testing.T) {
	const form = "multipart/form-data; boundary=b0"
	tests := []struct {
		name string
		r    *http.Request
		want string // parameters of the job
	}{
		{
			"JSON goes on byte for byte", raw("POST", "/sendMessage", "application/json", `{ "text" : "a\u00e9<&>", "chat_id":-1001222207990.0e0 ,"x":12345678901234567890}`, false),
			`{ "text" : "a\u00e9<&>", "chat_id":-1001222207990.0e0 ,"x":12345678901234567890}`,
		},
		{
			"JSON of strings (telebot)", raw("POST", "/sendMessage", "application/json", `{"chat_id":"-100","message_thread_id":"3","reply_markup":"{\"inline_keyboard\":[]}"}`+"\n", false),
			`{"chat_id":"-100","message_thread_id":"3","reply_markup":"{\"inline_keyboard\":[]}"}` + "\n",
		},
		{
			"a charset", raw("POST", "/sendMessage", "application/json; charset=utf-8", hello, false), hello,
		},
		{
			"no type at all", raw("POST", "/sendMessage", "", hello, true), hello,
		},
		{
			"null goes on", raw("POST", "/sendMessage", "application/json", `{"chat_id":7,"text":"x","parse_mode":null}`, false),
			`{"chat_id":7,"text":"x","parse_mode":null}`,
		},
		{
			"urlencoded (node-telegram-bot-api)", raw("POST", "/sendMessage", "application/x-www-form-urlencoded", "chat_id=7&text=a+b%26%3Cc&entities=null", false),
			`{"chat_id":"7","text":"a b&<c","entities":"null"}`,
		},
		{
			"all in the query (pyTelegramBotAPI)", raw("POST", "/sendMessage?chat_id=7&text="+url.QueryEscape("hé 😀"), "", "", false),
			`{"chat_id":"7","text":"hé 😀"}`,
		},
		{
			"the query before the body, the first counts", raw("POST", "/sendMessage?chat_id=7", "application/json", `{"chat_id":8,"text":"x", "n":1.50}`, false),
			`{"chat_id":"7","text":"x","n":1.50}`,
		},
		{
			"the first of equal names", raw("POST", "/sendMessage?chat_id=7&chat_id=8&text=x", "", "", false),
			`{"chat_id":"7","text":"x"}`,
		},
		{
			"a form in chunks (go-telegram)", raw("POST", "/sendMessage", form, "--b0\r\nContent-Disposition: form-data; name=\"chat_id\"\r\n\r\n7\r\n--b0\r\nContent-Disposition: form-data; name=\"text\"\r\n\r\nx\r\ny\r\n--b0--\r\n", true),
			`{"chat_id":"7","text":"x\r\ny"}`,
		},
		{
			"a method in the body is a parameter (telegraf)", raw("POST", "/sendMessage", form, "--b0\r\nContent-Disposition: form-data; name=\"method\"\r\n\r\nsendPhoto\r\n--b0\r\nContent-Disposition: form-data; name=\"chat_id\"\r\n\r\n7\r\n--b0--\r\n", true),
			`{"method":"sendPhoto","chat_id":"7"}`,
		},
		{
			"GET", raw("GET", "/sendMessage?chat_id=7&text=x", "", "", false), `{"chat_id":"7","text":"x"}`,
		},
		{
			"any case, more slashes", raw("POST", "//SENDMESSAGE/", "application/json", hello, false), hello,
		},
		{
			"the test environment", raw("POST", "/test/sendMessage", "application/json", hello, false), hello,
		},
		{
			"escapes in the path", raw("POST", "/send%4Dessage", "application/json", hello, false), hello,
		},
		{
			"the method as a parameter", raw("POST", "/", "application/json", `{"method":"sendMessage","chat_id":7}`, false),
			`{"method":"sendMessage","chat_id":7}`,
		},
		{
			"no parameters", raw("POST", "/sendMessage", "application/json", "null\n", false), ``,
		},
		{
			"a form of no bytes", raw("POST", "/sendMessage", form, "", true), ``,
		},
		{
			"escapes that are none", raw("POST", "/sendMessage?chat_id=7&text=100%", "", "", false), `{"chat_id":"7","text":"100%"}`,
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			bubble(t, func(k *kit) {
				tt.r.Header.Set("Prefer", "respond-async")
				if a := k.serve(tt.r); a.status != 202 {
					t.Fatalf("answer %d %s", a.status, a.body)
				}
				job := k.jobs()[0]
				if string(job.Params) != tt.want || job.Method != "sendMessage" {
					t.Errorf("%s with %q, want %q", job.Method, job.Params, tt.want)
				}
			})
		})
	}
}

// TestWire_Files: how libraries write the header of a file.
func TestWire_Files(t *testing.T) {
	tests := []struct {
		name, header string
		field, file  string
	}{
		{"quoted", `Content-Disposition: form-data; name="photo"; filename="p.jpg"`, "photo", "p.jpg"},
		{"unquoted, no blanks, lower case (grammY)", `content-disposition:form-data;name="k3x";filename=p.jpg`, "k3x", "p.jpg"},
		{"unquoted with blanks (grammY)", `content-disposition:form-data;name="k3x";filename=my photo (1).jpg`, "k3x", "my photo (1).jpg"},
		{"unquoted, other letters", "content-disposition:form-data;name=\"k3x\";filename=фото;1.jpg", "k3x", "фото;1.jpg"},
		{"other letters", `Content-Disposition: form-data; name="photo"; filename="фото.jpg"`, "photo", "фото.jpg"},
		{"a whole path (telego)", `Content-Disposition: form-data; name="photo"; filename="/home/me/p.jpg"`, "photo", "p.jpg"},
		{"an empty name (telebot)", `Content-Disposition: form-data; name="photo"; filename=""`, "photo", ""},
		{"escaped", `Content-Disposition: form-data; name="photo"; filename="a\"b\\c.jpg"`, "photo", `a"b\c.jpg`},
		{"extended", `Content-Disposition: form-data; name="photo"; filename="x.jpg"; filename*=UTF-8''%D1%84%20.jpg`, "photo", "ф .jpg"},
		{"extended first", `Content-Disposition: form-data; filename*=utf-8''a.jpg; filename="b.jpg"; name="photo"`, "photo", "a.jpg"},
		{"the quote doesn't end", `Content-Disposition: form-data; name="photo"; filename="p.jpg`, "photo", "p.jpg"},
		{"the name behind", `Content-Disposition: form-data; filename=p.jpg; name=photo`, "photo", "p.jpg"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			bubble(t, func(k *kit) {
				k.sim.SetOffline(true)
				body := "--b0\r\n" + tt.header + "\r\nContent-Type: image/jpeg\r\n\r\nJPEG\r\n--b0--\r\n"
				// The query names the file, too, and has nothing to say of it (node-telegram-bot-api).
				r := raw("POST", "/sendPhoto?chat_id=7&photo=", "multipart/form-data;boundary=\"b0\"", body, true)
				r.Header.Set("Prefer", "respond-async")
				if a := k.serve(r); a.status != 202 {
					t.Fatalf("answer %d %s", a.status, a.body)
				}
				job := k.jobs()[0]
				if len(job.Files) != 1 || job.Files[0].Field != tt.field || job.Files[0].Name != tt.file || job.Files[0].Size != 4 {
					t.Errorf("files %+v", job.Files)
				}
			})
		})
	}
}

func TestWire_PackedBodies(t *testing.T) {
	pack := func(text string) string {
		var b bytes.Buffer
		z := gzip.NewWriter(&b)
		_, _ = io.WriteString(z, text)
		_ = z.Close()
		return b.String()
	}
	bubble(t, func(k *kit) {
		if a := k.serve(request("sendMessage", "application/json", pack(hello), "Content-Encoding", "gzip")); a.status != 200 {
			t.Errorf("answer %d %s", a.status, a.body)
		}
		bomb := pack(`{"text":"` + strings.Repeat("x", 8<<20) + `"}`)
		if a := k.serve(request("sendMessage", "application/json", bomb, "Content-Encoding", "gzip")); a.status != 413 {
			t.Errorf("a bomb: answer %d %s", a.status, a.body)
		}
		if a := k.serve(request("sendMessage", "application/json", "no gzip", "Content-Encoding", "gzip")); a.status != 400 {
			t.Errorf("no gzip: answer %d %s", a.status, a.body)
		}
		if a := k.serve(request("sendMessage", "application/json", "x", "Content-Encoding", "br")); a.status != 415 {
			t.Errorf("unknown: answer %d %s", a.status, a.body)
		}
	})
}

func TestWire_BadRequests(t *testing.T) {
	secret := strings.Repeat("A", 35)
	tests := []struct {
		name   string
		method string
		url    string
		body   string
		status int
	}{
		{"no path", "GET", "/", "", 404},
		{"another path", "GET", "/index.html", "", 404},
		{"no method", "GET", "/bot" + token, "", 404},
		{"an empty method", "GET", "/bot" + token + "/", "", 404},
		{"no token", "GET", "/bot/getMe", "", 401},
		{"no colon", "GET", "/botlocal/getMe", "", 401},
		{"a token that begins with 0", "GET", "/bot0123:" + secret + "/getMe", "", 401},
		{"a long token", "GET", "/bot1:" + strings.Repeat("A", 100) + "/getMe", "", 401},
		{"a wrong secret", "GET", "/bot4200:" + secret + "/getMe", "", 401},
		{"an unknown bot", "GET", "/bot4300:" + secret + "/getMe", "", 401},
		{"another verb", "DELETE", "/bot" + token + "/getMe", "", 501},
		{"a broken body", "POST", "/bot" + token + "/sendMessage", `{"chat_id":7,"text":"hel`, 400},
		{"an array", "POST", "/bot" + token + "/sendMessage", `[1]`, 400},
		{"two objects", "POST", "/bot" + token + "/sendMessage", `{} {}`, 400},
		{"no UTF-8", "POST", "/bot" + token + "/sendMessage?text=%ff", "", 400},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			bubble(t, func(k *kit) {
				r := httptest.NewRequest(tt.method, "http://127.0.0.1"+tt.url, strings.NewReader(tt.body))
				r.Header.Set("Content-Type", "application/json")
				a := k.serve(r)
				if a.status != tt.status {
					t.Errorf("answer %d %s, want %d", a.status, a.body, tt.status)
				}
				if strings.Contains(a.body, secret) || strings.Contains(a.body, "hel") && tt.status == 400 {
					t.Errorf("the answer repeats what it was given: %s", a.body)
				}
			})
		})
	}
}

func TestWire_APanicIsA500(t *testing.T) {
	bubble(t, func(k *kit) {
		r := raw("POST", "/sendMessage", "application/json", "x", false)
		r.Body = panicking{}
		if a := k.serve(r); a.status != 500 {
			t.Errorf("answer %d %s", a.status, a.body)
		}
		if a := k.call("sendMessage", hello); a.status != 200 {
			t.Errorf("after it: %d %s", a.status, a.body)
		}
	})
}

type panicking struct{}

func (panicking) Read([]byte) (int, error) { panic("a fault") }
func (panicking) Close() error             { return nil }

func TestWire_SlowBodyIsGivenUp(t *testing.T) {
	k := newKit(t, t.TempDir())
	server := httptest.NewServer(k.handler)
	defer server.Close()
	pr, pw := io.Pipe()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, server.URL+"/bot"+token+"/sendMessage", pr)
	k.must(err)
	r.Header.Set("Content-Type", "application/json")
	go func() {
		_, _ = fmt.Fprint(pw, `{"chat_id":7,"text":"half`) // the rest never comes
		_ = pw.CloseWithError(io.ErrUnexpectedEOF)
	}()
	client := &http.Client{Timeout: 10 * time.Second}
	if res, err := client.Do(r); err == nil {
		_ = res.Body.Close()
		if res.StatusCode != 400 {
			t.Errorf("status %d", res.StatusCode)
		}
	}
	if n := len(k.jobs()); n != 0 {
		t.Errorf("half a call made %d jobs", n)
	}
}

// TestWire_HangUpIsNoticed over a real socket, for bodies of each kind: only
// when a body was read to its end does the server notice.
func TestWire_HangUpIsNoticed(t *testing.T) {
	k := newKit(t, t.TempDir())
	server := httptest.NewServer(k.handler)
	defer server.Close()
	k.sim.SetOffline(true)
	for i, r := range []*http.Request{
		request("sendMessage", "application/json", hello),
		formRequest("sendPhoto", part{"chat_id", "", "7"}, part{"photo", "p.jpg", "x"}),
		raw("POST", "/sendMessage?chat_id=7&text=query", "", "", false),
	} {
		body, err := io.ReadAll(r.Body)
		k.must(err)
		for range 2 {
			q, err := http.NewRequestWithContext(t.Context(), http.MethodPost, server.URL+r.URL.RequestURI(), bytes.NewReader(body))
			k.must(err)
			q.Header = r.Header.Clone()
			client := &http.Client{Timeout: 300 * time.Millisecond}
			if res, err := client.Do(q); err == nil {
				_ = res.Body.Close()
				t.Errorf("answered with %d", res.StatusCode)
			}
			client.CloseIdleConnections()
		}
		if n := len(k.jobs()); n != i+1 {
			t.Errorf("%d jobs after %d different calls", n, i+1)
		}
	}
}
