package localapi

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"net"
	"net/http"
	"strings"
	"syscall"
	"time"

	"github.com/tgspool/tgspool/internal/manage"
)

// ErrNoDaemon is the error when nobody answers on the socket.
var ErrNoDaemon = errors.New("no daemon answers")

// NoDaemonError is an ErrNoDaemon with the socket that was tried.
type NoDaemonError struct {
	Socket string
	Err    error
}

// Error says what was tried and what came of it.
func (e *NoDaemonError) Error() string {
	switch {
	case errors.Is(e.Err, fs.ErrNotExist):
		return fmt.Sprintf("no daemon answers: there is no socket %s", e.Socket)
	case errors.Is(e.Err, syscall.ECONNREFUSED):
		return fmt.Sprintf("no daemon answers: nobody listens on %s", e.Socket)
	case errors.Is(e.Err, fs.ErrPermission):
		return fmt.Sprintf("no permission to use the socket %s", e.Socket)
	}
	return fmt.Sprintf("no daemon answers on %s: %v", e.Socket, e.Err)
}

// Is makes every NoDaemonError an ErrNoDaemon.
func (e *NoDaemonError) Is(target error) bool { return target == ErrNoDaemon }

// Unwrap returns what the connection ended with.
func (e *NoDaemonError) Unwrap() error { return e.Err }

// Denied reports whether there is a daemon, but not for this user.
func (e *NoDaemonError) Denied() bool { return errors.Is(e.Err, fs.ErrPermission) }

// Client calls the management API over its unix socket.
type Client struct {
	socket string
	http   *http.Client
}

// Dial returns a client of the daemon on the socket. It connects with the first
// call.
func Dial(socket string) *Client {
	dialer := net.Dialer{Timeout: 5 * time.Second}
	return &Client{socket: socket, http: &http.Client{Transport: &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			conn, err := dialer.DialContext(ctx, "unix", socket)
			if err != nil && ctx.Err() == nil {
				return nil, &NoDaemonError{Socket: socket, Err: err}
			}
			return conn, err
		},
		DisableCompression: true,
		// A connection of its own for each request waits at the socket while the
		// daemon is restarted; one that rests would be cut off, and a request on
		// it lost in between can't be repeated by itself.
		DisableKeepAlives: true,
		// A daemon that refuses a file says so before it is handed over.
		ExpectContinueTimeout: 10 * time.Second,
	}}}
}

// Request is one call of the management API.
type Request struct {
	Method string      // GET, POST, PUT or DELETE
	Path   string      // with the query
	Body   []byte      // empty: none
	Stream io.Reader   // a body that is too big to be held, instead of Body; nil: none
	Size   int64       // of Stream in bytes; 0 when it isn't known
	Type   string      // of the body; empty: application/json
	Origin string      // see manage.OriginHeader
	Header http.Header // further ones; nil: none
}

// Do makes a call and decodes the answer into out, unless that is nil. An
// answer that is an error comes back as *manage.Problem, an absent daemon as
// *NoDaemonError.
func (c *Client) Do(ctx context.Context, q Request, out any) error {
	body := io.Reader(bytes.NewReader(q.Body))
	if q.Stream != nil {
		body = q.Stream
	}
	req, err := http.NewRequestWithContext(ctx, q.Method, "http://tgspool"+q.Path, body)
	if err != nil {
		return fmt.Errorf("making the request: %w", err)
	}
	maps.Copy(req.Header, q.Header)
	if q.Stream != nil {
		req.ContentLength = q.Size
		req.Header.Set("Expect", "100-continue")
	}
	if len(q.Body) > 0 || q.Stream != nil {
		if q.Type == "" {
			q.Type = "application/json"
		}
		req.Header.Set("Content-Type", q.Type)
	}
	if q.Origin != "" {
		req.Header.Set(manage.OriginHeader, q.Origin)
	}
	res, err := c.http.Do(req)
	if err != nil {
		if absent, ok := errors.AsType[*NoDaemonError](err); ok {
			return absent
		}
		return fmt.Errorf("asking the daemon: %w", err)
	}
	defer func() { _ = res.Body.Close() }()
	answer, err := io.ReadAll(res.Body)
	if err != nil {
		return fmt.Errorf("reading the daemon's answer: %w", err)
	}
	if res.StatusCode >= 300 {
		return problem(res, answer)
	}
	if out == nil {
		return nil
	}
	if err := json.Unmarshal(answer, out); err != nil {
		return fmt.Errorf("reading the daemon's answer: %w", err)
	}
	return nil
}

// problem reads an answer that is an error. What isn't the daemon's form is
// shown by its status alone.
func problem(res *http.Response, body []byte) error {
	p := &manage.Problem{}
	if !strings.HasPrefix(res.Header.Get("Content-Type"), "application/problem+json") || json.Unmarshal(body, p) != nil {
		p = &manage.Problem{Title: http.StatusText(res.StatusCode), Detail: "the daemon answered " + res.Status}
	}
	p.Status = res.StatusCode
	return p
}

// Close gives the connections back.
func (c *Client) Close() { c.http.CloseIdleConnections() }
