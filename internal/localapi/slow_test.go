package localapi_test

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tgspool/tgspool/internal/localapi"
)

// piped is a listener with one connection, which is a pipe.
type piped struct {
	conn   chan net.Conn
	closed chan struct{}
	once   sync.Once
}

func (p *piped) Accept() (net.Conn, error) {
	select {
	case c := <-p.conn:
		return c, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}
func (p *piped) Close() error   { p.once.Do(func() { close(p.closed) }); return nil }
func (p *piped) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)} }

// TestServer_BodyThatNeverComes: whoever is refused before his body is read, and
// never sends it, is answered in the end, and his connection with him.
func TestServer_BodyThatNeverComes(t *testing.T) {
	for path, status := range map[string]int{"/v1/bots/x/jobs": http.StatusUnauthorized, "/bot1:a/sendMessage": http.StatusNotFound} {
		synctest.Test(t, func(t *testing.T) {
			here, there := net.Pipe()
			l := &piped{conn: make(chan net.Conn, 1), closed: make(chan struct{})}
			l.conn <- there
			server(t, localapi.Config{
				Endpoints: []localapi.Endpoint{{Addr: "tcp:x"}}, Passed: map[string]net.Listener{"tcp:x": l}, Manage: api(nil),
				Bot: func(localapi.BotAccess) http.Handler { return http.NotFoundHandler() },
			})
			start := time.Now()
			_, _ = io.WriteString(here, "POST "+path+" HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\nhalf")
			res, err := http.ReadResponse(bufio.NewReader(here), nil)
			if err != nil {
				t.Fatal(err)
			}
			_ = res.Body.Close()
			if res.StatusCode != status || time.Since(start) > time.Minute {
				t.Errorf("%s: answered %d after %s", path, res.StatusCode, time.Since(start))
			}
			_ = here.Close()
		})
	}
}
