package telegramsim

import (
	"maps"
	"net"
	"net/http"
	"strconv"
	"strings"
)

// Handler is the Bot API on the wire, with downloads under /file/ and the
// control paths under /sim/. Under a server whose connections can be taken over
// (every HTTP/1.1 server of net/http) faults act on the connection itself.
func (s *Sim) Handler() http.Handler {
	control := s.ControlHandler()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, "/sim/") {
			control.ServeHTTP(w, r)
			return
		}
		s.serve(w, r)
	})
}

// serve answers everything but the control paths.
func (s *Sim) serve(w http.ResponseWriter, r *http.Request) {
	switch {
	case strings.HasPrefix(r.URL.Path, "/file/"):
		s.serveFile(w, r)
	case r.URL.Path == captivePath:
		_ = writeAnswer(w, page(http.StatusOK, captivePage))
	default:
		v := s.exchange(r)
		if s.isOffline() {
			// The connection is older than the outage and has served its last.
			w.Header().Set("Connection", "close")
		}
		s.show(w, v)
	}
}

// show lets the caller see a verdict over a real connection.
func (s *Sim) show(w http.ResponseWriter, v verdict) {
	switch v.broken { //nolint:exhaustive // the others all end the connection
	case breakNot:
		if writeAnswer(w, v.ans) == nil && v.genuine {
			s.answered(v.call)
		}
	case breakHalf:
		writeHalf(w, v.ans)
	default:
		abort(w)
	}
}

// writeAnswer sends a whole answer and pushes it out.
func writeAnswer(w http.ResponseWriter, a answer) error {
	head := w.Header()
	maps.Copy(head, a.header)
	head.Set("Content-Length", strconv.Itoa(len(a.body)))
	if a.close {
		head.Set("Connection", "close")
	} else if head.Get("Connection") == "" {
		head.Set("Connection", "keep-alive")
	}
	w.WriteHeader(a.status)
	if _, err := w.Write(a.body); err != nil {
		return err
	}
	// A writer that can't flush hands the answer on when the handler returns.
	_ = http.NewResponseController(w).Flush()
	return nil
}

// writeHalf sends the header of an answer and the first half of its body, and
// closes the connection.
func writeHalf(w http.ResponseWriter, a answer) {
	conn, buffer, err := http.NewResponseController(w).Hijack()
	if err != nil {
		panic(http.ErrAbortHandler) // the server ends the connection for us
	}
	defer func() { _ = conn.Close() }()
	a.header.Set("Content-Length", strconv.Itoa(len(a.body)))
	_, _ = buffer.WriteString("HTTP/1.1 " + strconv.Itoa(a.status) + " " + http.StatusText(a.status) + "\r\n")
	_ = a.header.Write(buffer)
	_, _ = buffer.WriteString("\r\n")
	_, _ = buffer.Write(a.body[:len(a.body)/2])
	_ = buffer.Flush()
}

// abort resets the connection of a request.
func abort(w http.ResponseWriter) {
	conn, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		panic(http.ErrAbortHandler) // the server ends the connection for us
	}
	reset(conn)
}

// reset ends a connection so that the other side sees it at once, as a reset
// where the transport has such a thing.
func reset(conn net.Conn) {
	if tcp, ok := conn.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
	_ = conn.Close()
}
