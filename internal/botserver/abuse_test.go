package botserver_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tgspool/tgspool/internal/spool"
)

// pipes is a listener whose connections are pipes, so that a server lives in a
// bubble.
type pipes struct {
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
}

func newPipes() *pipes { return &pipes{conns: make(chan net.Conn), closed: make(chan struct{})} }

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}
func (p *pipes) Close() error   { p.once.Do(func() { close(p.closed) }); return nil }
func (p *pipes) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)} }

func (p *pipes) dial() net.Conn {
	here, there := net.Pipe()
	p.conns <- there
	return here
}

// answerOn reads an answer that must be an error in the Bot API's shape.
func answerOn(t *testing.T, conn io.Reader, status int) {
	t.Helper()
	res, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Errorf("no answer: %v", err)
		return
	}
	defer func() { _ = res.Body.Close() }()
	var body struct {
		OK          *bool  `json:"ok"`
		Code        int    `json:"error_code"`
		Description string `json:"description"`
	}
	if err := json.NewDecoder(res.Body).Decode(&body); err != nil || res.StatusCode != status || body.Code != status || body.OK == nil || body.Description == "" {
		t.Errorf("answer %d %+v, %v; want %d", res.StatusCode, body, err, status)
	}
}

// TestAbuse_SlowBodies: a body that stalls, and one that trickles for ever, are
// given up in time, and nothing of them is kept.
func TestAbuse_SlowBodies(t *testing.T) {
	tests := []struct {
		name  string
		pause time.Duration // between two bytes
		most  time.Duration
	}{
		{"stalls", time.Hour, 31 * time.Second},
		{"trickles", 10 * time.Second, 2*time.Minute + time.Second},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			bubble(t, func(k *kit) {
				l := newPipes()
				server := &http.Server{Handler: k.handler, ReadHeaderTimeout: time.Minute}
				ended := make(chan error, 1)
				go func() { ended <- server.Serve(l) }()
				conn := l.dial()
				start := time.Now()
				go func() {
					_, _ = fmt.Fprintf(conn, "POST /bot%s/sendMessage HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 1000\r\n\r\n{", token)
					for {
						if _, err := io.WriteString(conn, " "); err != nil {
							return
						}
						time.Sleep(tt.pause)
					}
				}()
				answerOn(t, conn, http.StatusRequestTimeout)
				if took := time.Since(start); took > tt.most {
					t.Errorf("given up after %s", took)
				}
				_ = conn.Close()
				_ = server.Close()
				<-ended
				time.Sleep(2 * time.Hour) // the writer notices
				synctest.Wait()
				if n := len(k.jobs()); n != 0 {
					t.Errorf("half a call made %d jobs", n)
				}
			})
		})
	}
}

// TestAbuse_HugeLengths are refused before any of the body is read.
func TestAbuse_HugeLengths(t *testing.T) {
	k := newKit(t, t.TempDir())
	server := httptest.NewServer(k.handler)
	defer server.Close()
	for _, kind := range []string{"multipart/form-data; boundary=b", "application/json", "application/x-www-form-urlencoded", ""} {
		conn, err := net.Dial("tcp", server.Listener.Addr().String())
		k.must(err)
		_, err = fmt.Fprintf(conn, "POST /bot%s/sendDocument?chat_id=7 HTTP/1.1\r\nHost: localhost\r\nContent-Type: %s\r\nContent-Length: 5000000000\r\n\r\n--b\r\n", token, kind)
		k.must(err)
		_ = conn.SetReadDeadline(time.Now().Add(20 * time.Second))
		answerOn(t, conn, http.StatusRequestEntityTooLarge)
		_ = conn.Close()
	}
	if left, _ := os.ReadDir(filepath.Join(k.dir, "files")); len(left) != 0 || len(k.jobs()) != 0 {
		t.Errorf("%d folders, %d jobs are left", len(left), len(k.jobs()))
	}
}

// TestAbuse_HalfClosed: whoever closes his half in the middle of a body has made
// no call; whoever does so behind it has, once, and nobody waits for him.
func TestAbuse_HalfClosed(t *testing.T) {
	k := newKit(t, t.TempDir())
	done := make(chan struct{}, 8)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		k.handler.ServeHTTP(w, r)
		done <- struct{}{}
	}))
	defer server.Close()
	k.sim.SetOffline(true)
	half := func(body string, length int) *net.TCPConn {
		conn, err := net.Dial("tcp", server.Listener.Addr().String())
		k.must(err)
		t.Cleanup(func() { _ = conn.Close() })
		_, err = fmt.Fprintf(conn, "POST /bot%s/sendMessage HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", token, length, body)
		k.must(err)
		tcp := conn.(*net.TCPConn)
		k.must(tcp.CloseWrite())
		return tcp
	}
	answerOn(t, half(hello[:10], len(hello)), http.StatusBadRequest)
	<-done
	if n := len(k.jobs()); n != 0 {
		t.Errorf("half a body made %d jobs", n)
	}
	half(hello, len(hello))
	select {
	case <-done:
	case <-time.After(20 * time.Second):
		t.Fatal("somebody waits for a caller who has gone")
	}
	jobs := k.jobs()
	if len(jobs) != 1 || jobs[0].State == spool.Dead {
		t.Errorf("jobs %+v", jobs)
	}
	if !strings.Contains(string(jobs[0].Params), "hello") {
		t.Errorf("params %s", jobs[0].Params)
	}
}
