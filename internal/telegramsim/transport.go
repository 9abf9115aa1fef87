package telegramsim

import (
	"bytes"
	"context"
	"errors"
	"io"
	"maps"
	"net/http"
	"strings"
	"syscall"
	"time"

	"github.com/tgspool/tgspool/internal/botapi"
)

// Transport carries requests to the simulator without sockets, whatever host
// they name. It keeps no goroutine, so it lives under fake time, and it ends
// with the request's context. A connection that a fault breaks is a
// *botapi.PhaseError that says exactly how far the request got.
func (s *Sim) Transport() http.RoundTripper { return inProcess{s} }

// inProcess is the transport.
type inProcess struct{ sim *Sim }

// RoundTrip carries one request.
func (t inProcess) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Body != nil {
		defer func() { _ = r.Body.Close() }()
	}
	if err := r.Context().Err(); err != nil {
		return nil, &botapi.PhaseError{At: botapi.PhaseNone, Err: err}
	}
	if strings.HasPrefix(r.URL.Path, "/sim/") || strings.HasPrefix(r.URL.Path, "/file/") || r.URL.Path == captivePath {
		return t.plain(r)
	}
	if t.sim.isOffline() {
		return nil, &botapi.PhaseError{At: botapi.PhaseNone, Err: syscall.ECONNREFUSED}
	}
	inner, body := counted(r)
	v := t.sim.exchange(inner)
	return t.result(r, v, body)
}

// counted is the request as the server sees it, with a body that counts what is
// taken from it.
func counted(r *http.Request) (*http.Request, *countingBody) {
	inner := r.Clone(r.Context())
	body := &countingBody{from: r.Body}
	if body.from == nil {
		body.from = http.NoBody
	}
	inner.Body = body
	return inner, body
}

// result turns a verdict into what a caller of RoundTrip sees.
func (t inProcess) result(r *http.Request, v verdict, body *countingBody) (*http.Response, error) {
	written := headSize(r) + body.n
	broken := func(at botapi.Phase, n int64, err error) (*http.Response, error) {
		return nil, &botapi.PhaseError{At: at, Written: n, Err: err}
	}
	switch v.broken {
	case breakRefused:
		return broken(botapi.PhaseNone, 0, syscall.ECONNREFUSED)
	case breakUnread:
		return broken(botapi.PhaseConnected, 0, io.EOF)
	case breakReset:
		return broken(botapi.PhaseWritten, written, syscall.ECONNRESET)
	case breakGone:
		return broken(botapi.PhaseWritten, written, gone(r.Context()))
	case breakHalf:
		response := respond(r, v.ans)
		response.Body = io.NopCloser(io.MultiReader(
			bytes.NewReader(v.ans.body[:len(v.ans.body)/2]),
			failingReader{&botapi.PhaseError{At: botapi.PhaseResponse, Written: written, Err: io.ErrUnexpectedEOF}},
		))
		return response, nil
	case breakNot:
	}
	if body.err != nil && !errors.Is(body.err, io.EOF) {
		// The caller's own body failed: the server saw half a request.
		return broken(botapi.PhaseWritten, written, body.err)
	}
	if v.genuine {
		t.sim.answered(v.call)
	}
	return respond(r, v.ans), nil
}

// plain serves a path that faults don't touch.
func (t inProcess) plain(r *http.Request) (*http.Response, error) {
	if t.sim.isOffline() && !strings.HasPrefix(r.URL.Path, "/sim/") {
		return nil, &botapi.PhaseError{At: botapi.PhaseNone, Err: syscall.ECONNREFUSED}
	}
	w := &recorder{a: answer{status: http.StatusOK, header: http.Header{}}}
	inner, _ := counted(r)
	t.sim.Handler().ServeHTTP(w, inner)
	return respond(r, w.a), nil
}

// gone is why a caller saw no answer: its own context, or a server that went.
func gone(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	return syscall.ECONNRESET
}

// respond makes an HTTP response of an answer.
func respond(r *http.Request, a answer) *http.Response {
	header := maps.Clone(a.header)
	header.Set("Date", time.Now().UTC().Format(http.TimeFormat))
	return &http.Response{
		Status:        http.StatusText(a.status),
		StatusCode:    a.status,
		Proto:         "HTTP/1.1",
		ProtoMajor:    1,
		ProtoMinor:    1,
		Header:        header,
		Body:          io.NopCloser(bytes.NewReader(a.body)),
		ContentLength: int64(len(a.body)),
		Request:       r,
		Close:         a.close,
	}
}

// headSize is how long the head of a request is on the wire, near enough: what
// matters is that it is not zero.
func headSize(r *http.Request) int64 {
	var buf bytes.Buffer
	buf.WriteString(r.Method + " " + r.URL.RequestURI() + " HTTP/1.1\r\nHost: " + r.URL.Host + "\r\n")
	_ = r.Header.Write(&buf)
	return int64(buf.Len() + len("\r\n"))
}

// countingBody counts the bytes that the server took of a request's body.
type countingBody struct {
	from io.ReadCloser
	n    int64
	err  error
}

// Read reads on and counts.
func (b *countingBody) Read(p []byte) (int, error) {
	n, err := b.from.Read(p)
	b.n += int64(n)
	b.err = err
	return n, err
}

// Close closes the caller's body.
func (b *countingBody) Close() error { return b.from.Close() }

// failingReader is where a broken answer ends.
type failingReader struct{ err error }

// Read always fails.
func (f failingReader) Read([]byte) (int, error) { return 0, f.err }

// recorder takes an answer that a handler writes.
type recorder struct{ a answer }

// Header is the header to be sent.
func (w *recorder) Header() http.Header { return w.a.header }

// WriteHeader sets the status.
func (w *recorder) WriteHeader(status int) { w.a.status = status }

// Write takes a piece of the body.
func (w *recorder) Write(p []byte) (int, error) {
	w.a.body = append(w.a.body, p...)
	return len(p), nil
}
