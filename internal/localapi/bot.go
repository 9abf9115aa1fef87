package localapi

import (
	"bytes"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
)

// maxBotHeader is what the header of a request to the bot endpoint may take, in
// bytes: some libraries put a whole message, percent-encoded, into the query.
const maxBotHeader = 512 << 10

// BotAccess says who may come in to the bot endpoint by one listener.
type BotAccess struct {
	// ClientsOnly: the way here can be listened in on, so that a bot's own token
	// must not be taken.
	ClientsOnly bool
}

// exposed reports whether others than this machine can listen in on what comes
// over a listener.
func (e Endpoint) exposed(l net.Listener) bool {
	addr, ok := l.Addr().(*net.TCPAddr)
	return ok && e.TLSCert == "" && !addr.IP.IsLoopback()
}

// withBot puts the bot endpoint in front of what else is served. Paths are told
// apart here and not by a ServeMux, which answers a double slash by a redirect
// that an upload can't follow.
func withBot(bot, others http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if managed(r.URL.Path) {
			others.ServeHTTP(w, r)
			return
		}
		bot.ServeHTTP(w, r)
	})
}

// managed reports whether a path belongs to the management API. All others are
// the bot endpoint's, which has the right shape for their errors.
func managed(path string) bool {
	first, _, _ := strings.Cut(strings.TrimPrefix(path, "/"), "/")
	switch first {
	case "v1", "healthz", "readyz", "metrics":
		return true
	}
	return path == "/"
}

// shapedListener hands out connections on which even the errors that net/http
// writes by itself, before any handler runs, are JSON in the Bot API's shape.
type shapedListener struct{ net.Listener }

// Accept waits for the next connection.
func (l shapedListener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if tcp, ok := conn.(*net.TCPConn); ok && err == nil {
		return shapedConn{tcp}, nil
	}
	return conn, err
}

// shapedConn is a TCPConn, for all that net/http does with one.
type shapedConn struct{ *net.TCPConn }

// plainError ends the header of every error that net/http writes by itself.
var plainError = []byte("\r\nContent-Type: text/plain; charset=utf-8\r\nConnection: close\r\n\r\n")

// Write writes p. Those errors come in one piece, whole, and no handler here
// writes such a header.
func (c shapedConn) Write(p []byte) (int, error) { return writeShaped(c.TCPConn, p) }

func writeShaped(to io.Writer, p []byte) (int, error) {
	if shaped := shapedError(p); shaped != nil {
		if _, err := to.Write(shaped); err != nil {
			return 0, err
		}
		return len(p), nil
	}
	return to.Write(p)
}

// shapedError is the error in p in the Bot API's shape, nil when there is none.
func shapedError(p []byte) []byte {
	rest, ok := bytes.CutPrefix(p, []byte("HTTP/1.1 "))
	if !ok || len(rest) < 4 || rest[3] != ' ' {
		return nil
	}
	code, err := strconv.Atoi(string(rest[:3]))
	end := bytes.Index(rest, plainError)
	if err != nil || code < 400 || end < 0 || bytes.IndexByte(rest, '\r') != end {
		return nil
	}
	status, _, _ := strings.Cut(string(rest[4:end]), ":")
	body := botError(code, status)
	return []byte("HTTP/1.1 " + string(rest[:4]) + status + "\r\nContent-Type: application/json\r\nContent-Length: " +
		strconv.Itoa(len(body)) + "\r\nConnection: close\r\n\r\n" + body)
}
