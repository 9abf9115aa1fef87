package botapi

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// wire is a server on a real socket that does with each connection what a test says.
type wire struct {
	url      string
	host     string
	requests atomic.Int64 // requests read as a whole
	conns    atomic.Int64
	gone     chan struct{} // one value for each connection that was served to its end
}

// serveWire gives each connection to serve, one after the other in their own goroutines.
func serveWire(t *testing.T, serve func(w *wire, c *wireConn)) *wire {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	w := &wire{host: listener.Addr().String(), url: "http://" + listener.Addr().String(), gone: make(chan struct{}, 64)}
	var wait sync.WaitGroup
	var mu sync.Mutex
	var open []net.Conn
	wait.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			w.conns.Add(1)
			mu.Lock()
			open = append(open, conn)
			mu.Unlock()
			wait.Go(func() {
				serve(w, &wireConn{Conn: conn, in: bufio.NewReader(conn), wire: w})
				_ = conn.Close()
				w.gone <- struct{}{}
			})
		}
	})
	t.Cleanup(func() {
		_ = listener.Close()
		mu.Lock()
		for _, c := range open {
			_ = c.Close()
		}
		mu.Unlock()
		wait.Wait()
	})
	return w
}

type wireConn struct {
	net.Conn

	in   *bufio.Reader
	wire *wire
}

// request reads one request as a whole; nil when the connection ended before.
func (c *wireConn) request() *http.Request {
	r, err := http.ReadRequest(c.in)
	if err != nil {
		return nil
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil
	}
	r.Body = io.NopCloser(strings.NewReader(string(body)))
	c.wire.requests.Add(1)
	return r
}

func (c *wireConn) say(text string) { _, _ = io.WriteString(c.Conn, text) }

func (c *wireConn) answer(status, contentType, body string) {
	c.say(fmt.Sprintf("HTTP/1.1 %s\r\nContent-Type: %s\r\nContent-Length: %d\r\n\r\n%s", status, contentType, len(body), body))
}

// reset ends the connection with a RST.
func (c *wireConn) reset() {
	if tcp, ok := c.Conn.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
	_ = c.Close()
}

// untilGone waits until the client closes the connection.
func (c *wireConn) untilGone() { _, _ = io.Copy(io.Discard, c.in) }

func newTestClient(t *testing.T, config Config) *Client {
	t.Helper()
	config.Token = mustToken(t)
	if config.RequestTimeout == 0 {
		config.RequestTimeout = 20 * time.Second // a test that waits for it fails in time
	}
	client, err := NewClient(config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	return client
}

var hello = Request{Method: "sendMessage", Params: []byte(`{"chat_id":7,"text":"hello"}`)}

// call makes a call, classifies it, and searches all that was seen for secrets.
func call(t *testing.T, client *Client, r Request) (Seen, Outcome) {
	t.Helper()
	return callWith(t.Context(), t, client, r)
}

func callWith(ctx context.Context, t *testing.T, client *Client, r Request) (Seen, Outcome) {
	t.Helper()
	seen := client.Call(ctx, r)
	o := Classify(MethodFor(r.Method), r.Params, seen)
	bare := seen
	bare.Body = nil // long, and searched as it is
	shown := fmt.Sprintf("%v %+v %#v %v %+v ", bare, bare, bare, bare.Err, o) + string(seen.Body)
	for _, secret := range []string{testSecret, "hunter2"} {
		if strings.Contains(shown, secret) {
			t.Errorf("the secret %q stands in what was seen: %s", secret, shown)
		}
	}
	if (seen.Err == nil) != seen.BodyComplete {
		t.Errorf("error %v with a body that is complete: %v", seen.Err, seen.BodyComplete)
	}
	if seen.Phase.Reached(PhaseWritten) != (seen.BytesWritten > 0) {
		t.Errorf("%d bytes written in phase %q", seen.BytesWritten, seen.Phase)
	}
	return seen, o
}

func expect(t *testing.T, seen Seen, o Outcome, phase Phase, class Class) {
	t.Helper()
	if seen.Phase != phase || o.Class != class {
		t.Errorf("phase %q and class %s, want %q and %s (%v, %s)", seen.Phase, o.Class, phase, class, seen.Err, o.Description)
	}
}

const okBody = `{"ok":true,"result":{"message_id":5,"chat":{"id":7,"type":"private"}}}`

// echoOK answers every request of a connection.
func echoOK(_ *wire, c *wireConn) {
	for c.request() != nil {
		c.answer("200 OK", "application/json", okBody)
	}
}
