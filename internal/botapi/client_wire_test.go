package botapi

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestCallOverTheWire(t *testing.T) {
	got := make(chan *http.Request, 1)
	server := serveWire(t, func(_ *wire, c *wireConn) {
		for r := c.request(); r != nil; r = c.request() {
			got <- r
			c.say("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nDate: Tue, 15 Nov 1994 08:12:31 GMT\r\nContent-Length: 70\r\n\r\n" + okBody)
		}
	})
	client := newTestClient(t, Config{BaseURL: server.url + "/behind/"})
	params := "{ \"chat_id\":7, \"text\":\"a\xff\\ud83d\" ,\"text\":null}"
	seen, o := call(t, client, Request{Method: "sendMessage", Params: []byte(params)})
	expect(t, seen, o, PhaseResponse, ClassOK)
	r := <-got
	body, err := io.ReadAll(r.Body)
	if err != nil || string(body) != params {
		t.Errorf("body %q, %v", body, err)
	}
	if r.URL.Path != "/behind/bot"+testToken+"/sendMessage" || r.Method != http.MethodPost || r.ProtoMinor != 1 {
		t.Errorf("%s %s %s", r.Method, strings.ReplaceAll(r.URL.Path, testSecret, "…"), r.Proto)
	}
	if r.ContentLength != int64(len(params)) || r.Header.Get("Content-Type") != "application/json" {
		t.Errorf("length %d, type %q", r.ContentLength, r.Header.Get("Content-Type"))
	}
	for _, name := range []string{"Idempotency-Key", "X-Idempotency-Key", "Expect", "Accept-Encoding"} {
		if r.Header.Get(name) != "" {
			t.Errorf("header %s was sent", name)
		}
	}
	if want := time.Date(1994, 11, 15, 8, 12, 31, 0, time.UTC); !seen.ServerDate.Equal(want) || seen.TLSVerified || seen.Reused {
		t.Errorf("%+v", seen)
	}
	if o.Chat == nil || o.Chat.ID != 7 || len(o.MessageIDs) != 1 || o.MessageIDs[0] != 5 || client.BotID() != 7123456789 {
		t.Errorf("%+v", o)
	}
	if seen.BytesWritten < int64(len(params)) || seen.BytesWritten > int64(len(params))+1000 {
		t.Errorf("%d bytes written", seen.BytesWritten)
	}
	seen, o = call(t, client, Request{Method: "getMe"})
	expect(t, seen, o, PhaseResponse, ClassOK)
	if body, _ := io.ReadAll((<-got).Body); string(body) != "{}" || !seen.Reused || seen.BytesWritten > 1000 {
		t.Errorf("body %q, reused %v, %d bytes", body, seen.Reused, seen.BytesWritten)
	}
}

func TestNothingListens(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	url := "http://" + listener.Addr().String()
	if err := listener.Close(); err != nil {
		t.Fatal(err)
	}
	seen, o := call(t, newTestClient(t, Config{BaseURL: url}), hello)
	expect(t, seen, o, PhaseNone, ClassOffline)
	if !strings.Contains(seen.Err.Error(), "refused") {
		t.Errorf("%v", seen.Err)
	}
}

func TestNoSuchHost(t *testing.T) {
	seen, o := call(t, newTestClient(t, Config{BaseURL: "http://tgspool.invalid"}), hello)
	expect(t, seen, o, PhaseNone, ClassOffline)
	if !strings.Contains(seen.Err.Error(), "tgspool.invalid") {
		t.Errorf("%v", seen.Err)
	}
}

// TestBadAnswers is what the path to Telegram and its front are known to do once the
// request is out.
func TestBadAnswers(t *testing.T) {
	for _, c := range []struct {
		name  string
		serve func(c *wireConn)
		phase Phase
		class Class
	}{
		{"reset after the request", func(c *wireConn) { c.reset() }, PhaseWritten, ClassUnknownOutcome},
		{"close after the request", func(c *wireConn) {}, PhaseWritten, ClassUnknownOutcome},
		{"close within the header", func(c *wireConn) { c.say("HTTP/1.1 200 OK\r\nContent-") }, PhaseWritten, ClassUnknownOutcome},
		{"reset after the header", func(c *wireConn) {
			c.say("HTTP/1.1 200 OK\r\nContent-Length: 70\r\n\r\n")
			c.reset()
		}, PhaseResponse, ClassUnknownOutcome},
		{"half a body", func(c *wireConn) {
			c.say("HTTP/1.1 200 OK\r\nContent-Length: 70\r\n\r\n" + okBody[:35])
		}, PhaseResponse, ClassUnknownOutcome},
		{"half a chunked body", func(c *wireConn) {
			c.say("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n10\r\n" + okBody[:16] + "\r\n")
		}, PhaseResponse, ClassUnknownOutcome},
		{"truncated JSON", func(c *wireConn) { c.answer("200 OK", "application/json", okBody[:35]) }, PhaseResponse, ClassUnknownOutcome},
		{"empty 200", func(c *wireConn) { c.answer("200 OK", "application/json", "") }, PhaseResponse, ClassUnknownOutcome},
		{"HTML with 200", func(c *wireConn) { c.answer("200 OK", "text/html", "<html>login to wifi</html>") }, PhaseResponse, ClassNotTelegram},
		{"HTML with 502", func(c *wireConn) { c.answer("502 Bad Gateway", "text/html", "<html>502</html>") }, PhaseResponse, ClassUnknownOutcome},
		{"not HTTP", func(c *wireConn) { c.say("SSH-2.0-OpenSSH_9.2\r\n") }, PhaseWritten, ClassUnknownOutcome},
		{"whole answer until the end", func(c *wireConn) { c.say("HTTP/1.0 200 OK\r\n\r\n" + okBody) }, PhaseResponse, ClassOK},
		{"empty 413", func(c *wireConn) { c.answer("413 Request Entity Too Large", "", "") }, PhaseResponse, ClassRejected},
	} {
		t.Run(c.name, func(t *testing.T) {
			server := serveWire(t, func(_ *wire, conn *wireConn) {
				if conn.request() != nil {
					c.serve(conn)
				}
			})
			seen, o := call(t, newTestClient(t, Config{BaseURL: server.url}), hello)
			expect(t, seen, o, c.phase, c.class)
			if n := server.requests.Load(); n != 1 {
				t.Errorf("the request came %d times", n)
			}
		})
	}
}

func TestRedirectsAreNotFollowed(t *testing.T) {
	portal := serveWire(t, echoOK)
	server := serveWire(t, func(_ *wire, c *wireConn) {
		for c.request() != nil {
			c.say("HTTP/1.1 302 Found\r\nLocation: " + portal.url + "/login\r\nContent-Length: 0\r\n\r\n")
		}
	})
	seen, o := call(t, newTestClient(t, Config{BaseURL: server.url}), hello)
	expect(t, seen, o, PhaseResponse, ClassNotTelegram)
	if seen.Status != 302 || portal.conns.Load() != 0 {
		t.Errorf("status %d, %d connections to the goal", seen.Status, portal.conns.Load())
	}
}

func TestSilentServer(t *testing.T) {
	server := serveWire(t, func(_ *wire, c *wireConn) {
		c.request()
		c.untilGone()
	})
	client := newTestClient(t, Config{BaseURL: server.url, RequestTimeout: 30 * time.Millisecond})
	seen, o := call(t, client, hello)
	expect(t, seen, o, PhaseWritten, ClassUnknownOutcome)
	if !errors.Is(seen.Err, ErrResponseTimeout) || seen.Duration < 30*time.Millisecond {
		t.Errorf("%v after %v", seen.Err, seen.Duration)
	}
	<-server.gone // the connection was given up
}

func TestDrippingAnswer(t *testing.T) {
	server := serveWire(t, func(_ *wire, c *wireConn) {
		c.request()
		c.say("HTTP/1.1 200 OK\r\nContent-Length: 70\r\n\r\n{\"ok\"")
		c.untilGone()
	})
	client := newTestClient(t, Config{BaseURL: server.url, RequestTimeout: 30 * time.Millisecond})
	seen, o := call(t, client, hello)
	expect(t, seen, o, PhaseResponse, ClassUnknownOutcome)
	if !errors.Is(seen.Err, ErrResponseTimeout) || string(seen.Body) != `{"ok"` {
		t.Errorf("%v with %q", seen.Err, seen.Body)
	}
}

func TestCancelledCalls(t *testing.T) {
	read := make(chan struct{}, 1)
	server := serveWire(t, func(_ *wire, c *wireConn) {
		c.request()
		read <- struct{}{}
		c.untilGone()
	})
	client := newTestClient(t, Config{BaseURL: server.url})
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-read
		cancel()
	}()
	seen, o := callWith(ctx, t, client, hello)
	expect(t, seen, o, PhaseWritten, ClassUnknownOutcome)
	if !errors.Is(seen.Err, context.Canceled) {
		t.Errorf("%v", seen.Err)
	}
	seen, o = callWith(ctx, t, client, hello)
	expect(t, seen, o, PhaseNone, ClassOffline)
	if n := server.requests.Load(); n != 1 {
		t.Errorf("the request came %d times", n)
	}
}

// TestNoReplayOnReusedConnection is the one that net/http would get wrong for requests
// that it may send again: a connection that served before and is closed over the next.
func TestNoReplayOnReusedConnection(t *testing.T) {
	server := serveWire(t, func(_ *wire, c *wireConn) {
		if c.request() == nil {
			return
		}
		c.answer("200 OK", "application/json", okBody)
		c.request() // and no word
	})
	client := newTestClient(t, Config{BaseURL: server.url})
	for _, r := range []Request{hello, {Method: "getMe"}} {
		before := server.requests.Load()
		if seen, o := call(t, client, r); o.Class != ClassOK || seen.Reused {
			t.Fatalf("first call: %s, reused %v", o.Class, seen.Reused)
		}
		seen, o := call(t, client, r)
		expect(t, seen, o, PhaseWritten, ClassUnknownOutcome)
		if !seen.Reused {
			t.Error("the connection wasn't used again")
		}
		if n := server.requests.Load() - before; n != 2 {
			t.Errorf("two calls came as %d requests", n)
		}
	}
}

// TestConnectionClosedWhileIdle allows each end of the race: the client has noticed and
// dials anew, notices with the connection in its hands and nothing written, or doesn't and
// the call's outcome is unknown. It is never sent twice.
func TestConnectionClosedWhileIdle(t *testing.T) {
	server := serveWire(t, func(_ *wire, c *wireConn) {
		if c.request() != nil {
			c.answer("200 OK", "application/json", okBody)
		}
	})
	client := newTestClient(t, Config{BaseURL: server.url})
	for i := range 50 {
		before := server.requests.Load()
		seen, o := call(t, client, hello)
		came := server.requests.Load() - before
		switch {
		case o.Class == ClassOK && came == 1:
			<-server.gone
		case o.Class == ClassOffline && came == 0 && seen.BytesWritten == 0:
		case o.Class == ClassUnknownOutcome && came == 0 && seen.Reused:
		default:
			t.Fatalf("call %d: %s with %d requests (%v)", i, o.Class, came, seen.Err)
		}
	}
}

func TestFreshConnections(t *testing.T) {
	server := serveWire(t, echoOK)
	client := newTestClient(t, Config{BaseURL: server.url})
	fresh := hello
	fresh.Fresh = true
	for i, r := range []Request{hello, hello, fresh, fresh, hello} {
		seen, o := call(t, client, r)
		expect(t, seen, o, PhaseResponse, ClassOK)
		if want := !r.Fresh && i > 0; seen.Reused != want {
			t.Errorf("call %d: reused %v", i, seen.Reused)
		}
	}
	if n := server.conns.Load(); n != 3 {
		t.Errorf("%d connections", n)
	}
}

func TestAnswerLongerThanAllowed(t *testing.T) {
	server := serveWire(t, echoOK)
	client := newTestClient(t, Config{BaseURL: server.url})
	r := hello
	r.MaxBody = int64(len(okBody))
	seen, o := call(t, client, r)
	expect(t, seen, o, PhaseResponse, ClassOK)
	r.MaxBody--
	seen, o = call(t, client, r)
	expect(t, seen, o, PhaseResponse, ClassUnknownOutcome)
	if len(seen.Body) != len(okBody)-1 {
		t.Errorf("%d bytes kept", len(seen.Body))
	}
}

func writeFile(t *testing.T, size int) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "upload")
	if err := os.WriteFile(path, []byte(strings.Repeat("0123456789abcdef", size/16)), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestUpload(t *testing.T) {
	type part struct{ name, file, content string }
	got := make(chan []part, 1)
	lengths := make(chan int64, 1)
	server := serveWire(t, func(_ *wire, c *wireConn) {
		r := c.request()
		lengths <- r.ContentLength
		form, err := r.MultipartReader()
		if err != nil {
			t.Error(err)
			return
		}
		var parts []part
		for p, err := form.NextPart(); err == nil; p, err = form.NextPart() {
			content, _ := io.ReadAll(p)
			parts = append(parts, part{p.FormName(), p.FileName(), string(content)})
		}
		got <- parts
		c.answer("200 OK", "application/json", okBody)
	})
	client := newTestClient(t, Config{BaseURL: server.url})
	path := writeFile(t, 64)
	seen, o := call(t, client, Request{
		Method: "sendMediaGroup",
		Params: []byte(`{"chat_id":-100123, "media":[{"type":"photo","media":"attach://a"}],"caption":"q\"\n☃","silent":true,"none":null}`),
		Files:  []File{{Field: "a", Name: "мой \"day\".jpg", Path: path}, {Field: "b", Path: path}},
	})
	expect(t, seen, o, PhaseResponse, ClassOK)
	if n := <-lengths; n <= 128 || n >= seen.BytesWritten {
		t.Errorf("length %d announced, %d bytes written", n, seen.BytesWritten)
	}
	content := strings.Repeat("0123456789abcdef", 4)
	want := []part{
		{"chat_id", "", "-100123"},
		{"media", "", `[{"type":"photo","media":"attach://a"}]`},
		{"caption", "", "q\"\n☃"},
		{"silent", "", "true"},
		{"none", "", "null"},
		{"a", "мой \"day\".jpg", content},
		{"b", "b", content},
	}
	parts := <-got
	if len(parts) != len(want) {
		t.Fatalf("%d parts: %v", len(parts), parts)
	}
	for i := range want {
		if parts[i] != want[i] {
			t.Errorf("part %d is %q, want %q", i, parts[i], want[i])
		}
	}
}

func TestUploadCutInTheMiddle(t *testing.T) {
	server := serveWire(t, func(_ *wire, c *wireConn) {
		_, _ = io.CopyN(io.Discard, c.in, 64<<10)
		c.reset()
	})
	const size = 64 << 20
	client := newTestClient(t, Config{BaseURL: server.url})
	seen, o := call(t, client, Request{Method: "sendDocument", Params: []byte(`{"chat_id":7}`), Files: []File{{Field: "document", Path: writeFile(t, size)}}})
	expect(t, seen, o, PhaseWritten, ClassUnknownOutcome)
	if seen.BytesWritten < 64<<10 || seen.BytesWritten >= size || server.requests.Load() != 0 {
		t.Errorf("%d bytes written", seen.BytesWritten)
	}
}

func TestStalledUpload(t *testing.T) {
	server := serveWire(t, func(_ *wire, c *wireConn) {
		_, _ = io.CopyN(io.Discard, c.in, 1<<10)
		<-t.Context().Done() // reads no more
	})
	client := newTestClient(t, Config{BaseURL: server.url, StallTimeout: 50 * time.Millisecond})
	seen, o := call(t, client, Request{Method: "sendDocument", Params: []byte(`{"chat_id":7}`), Files: []File{{Field: "document", Path: writeFile(t, 64<<20)}}})
	expect(t, seen, o, PhaseWritten, ClassUnknownOutcome)
	if !errors.Is(seen.Err, ErrStalled) {
		t.Errorf("%v", seen.Err)
	}
}

func TestEarlyRefusalOfAnUpload(t *testing.T) {
	server := serveWire(t, func(_ *wire, c *wireConn) {
		if _, err := http.ReadRequest(c.in); err == nil {
			c.answer("413 Request Entity Too Large", "text/html", "<html>413</html>")
			c.untilGone()
		}
	})
	client := newTestClient(t, Config{BaseURL: server.url})
	seen, o := call(t, client, Request{Method: "sendDocument", Params: []byte(`{"chat_id":7}`), Files: []File{{Field: "document", Path: writeFile(t, 1<<20)}}})
	expect(t, seen, o, PhaseResponse, ClassRejected)
}

func TestCallsThatCannotBeMade(t *testing.T) {
	server := serveWire(t, echoOK)
	client := newTestClient(t, Config{BaseURL: server.url})
	missing := []File{{Field: "photo", Path: filepath.Join(t.TempDir(), "gone")}}
	for _, r := range []Request{
		{Method: "sendPhoto", Params: []byte(`{"chat_id":7}`), Files: missing},
		{Method: "sendPhoto", Params: []byte(`{"chat_id":7}`), Files: []File{{Field: "photo", Path: t.TempDir()}}},
		{Method: "sendPhoto", Params: []byte(`[1]`), Files: []File{{Field: "photo", Path: writeFile(t, 16)}}},
		{Method: "sendPhoto", Params: []byte(`{"chat_id":7`), Files: []File{{Field: "photo", Path: writeFile(t, 16)}}},
		{Method: ""},
		{Method: "../getMe"},
		{Method: "getMe?x"},
		{Method: "send Message"},
	} {
		seen, o := call(t, client, r)
		expect(t, seen, o, PhaseNone, ClassRejected)
		if !errors.Is(seen.Err, ErrRequest) {
			t.Errorf("%q: %v", r.Method, seen.Err)
		}
	}
	if n := server.conns.Load(); n != 0 {
		t.Errorf("%d connections", n)
	}
}

func TestFileThatShrinksWhileItIsSent(t *testing.T) {
	path := writeFile(t, 1<<20)
	body, err := newBody(Request{Files: []File{{Field: "document", Path: path}}})
	if err != nil {
		t.Fatal(err)
	}
	defer body.close()
	if err := os.Truncate(path, 1000); err != nil {
		t.Fatal(err)
	}
	if n, err := io.Copy(io.Discard, body); !errors.Is(err, io.ErrUnexpectedEOF) || n >= body.size {
		t.Errorf("%d of %d bytes, %v", n, body.size, err)
	}
}
