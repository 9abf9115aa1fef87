package botapi

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// transportFunc is a transport inside the process.
type transportFunc func(*http.Request) (*http.Response, error)

func (f transportFunc) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func respond(status int, body io.Reader) *http.Response {
	return &http.Response{StatusCode: status, Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(body)}
}

// phaser is an error that tells its phase and nothing else.
type phaser struct{ at Phase }

func (p phaser) Error() string { return "failed at " + string(p.at) }
func (p phaser) Phase() Phase  { return p.at }

func TestInProcessErrors(t *testing.T) {
	boom := errors.New("boom at " + testToken)
	for _, c := range []struct {
		name    string
		err     error
		read    bool
		phase   Phase
		class   Class
		written int64
	}{
		{"stated, before", &PhaseError{At: PhaseConnected, Err: boom}, false, PhaseConnected, ClassOffline, 0},
		{"stated, from the start", &PhaseError{Err: boom}, false, PhaseNone, ClassOffline, 0},
		{"stated, after", &PhaseError{At: PhaseWritten, Written: 12, Err: boom}, false, PhaseWritten, ClassUnknownOutcome, 12},
		{"stated deep inside", fmt.Errorf("calling: %w", &PhaseError{At: PhaseTLS, Err: boom}), true, PhaseTLS, ClassOffline, 0},
		{"told", phaser{PhaseResolved}, false, PhaseResolved, ClassOffline, 0},
		{"told, after", phaser{PhaseWritten}, true, PhaseWritten, ClassUnknownOutcome, int64(len(hello.Params))},
		{"no such host", &net.DNSError{Err: "no such host", Name: "x"}, false, PhaseNone, ClassOffline, 0},
		{"refused", &net.OpError{Op: "dial", Err: boom}, false, PhaseNone, ClassOffline, 0},
		{"reset", &net.OpError{Op: "read", Err: boom}, true, PhaseWritten, ClassUnknownOutcome, int64(len(hello.Params))},
	} {
		t.Run(c.name, func(t *testing.T) {
			client := newTestClient(t, Config{Transport: transportFunc(func(r *http.Request) (*http.Response, error) {
				if c.read {
					_, _ = io.Copy(io.Discard, r.Body)
				}
				return nil, c.err
			})})
			seen, o := call(t, client, hello)
			expect(t, seen, o, c.phase, c.class)
			if seen.BytesWritten != c.written {
				t.Errorf("%d bytes written", seen.BytesWritten)
			}
			if !errors.Is(seen.Err, c.err) {
				t.Errorf("%v isn't the cause", seen.Err)
			}
		})
	}
}

// TestInProcessErrorOfUnknownPhase: what isn't known counts as sent.
func TestInProcessErrorOfUnknownPhase(t *testing.T) {
	client := newTestClient(t, Config{Transport: transportFunc(func(*http.Request) (*http.Response, error) {
		return nil, io.ErrUnexpectedEOF
	})})
	seen := client.Call(t.Context(), hello)
	if o := Classify(MethodFor(hello.Method), hello.Params, seen); seen.Phase != PhaseWritten || o.Class != ClassUnknownOutcome {
		t.Errorf("phase %q, class %s", seen.Phase, o.Class)
	}
}

func TestInProcessSuccess(t *testing.T) {
	client := newTestClient(t, Config{Transport: transportFunc(func(r *http.Request) (*http.Response, error) {
		if r.GetBody != nil || r.URL.Path != "/bot"+testToken+"/sendMessage" || r.Host != "api.telegram.org" {
			t.Error("the request isn't what it should be")
		}
		_, _ = io.Copy(io.Discard, r.Body)
		return respond(200, strings.NewReader(okBody)), nil
	})})
	seen, o := call(t, client, hello)
	expect(t, seen, o, PhaseResponse, ClassOK)
}

// hang reads the request and waits for the end of the call.
func hang(r *http.Request) (*http.Response, error) {
	_, _ = io.Copy(io.Discard, r.Body)
	<-r.Context().Done()
	return nil, r.Context().Err()
}

func TestTimeoutsInFakeTime(t *testing.T) {
	poll := hello
	poll.Timeout = 55 * time.Second
	for _, c := range []struct {
		name      string
		config    Config
		request   Request
		transport transportFunc
		want      time.Duration
		cause     error
		phase     Phase
	}{
		{"no answer", Config{RequestTimeout: 60 * time.Second}, hello, hang, 60 * time.Second, ErrResponseTimeout, PhaseWritten},
		{"no answer to a poll", Config{RequestTimeout: 10 * time.Second}, poll, hang, 55 * time.Second, ErrResponseTimeout, PhaseWritten},
		{"no answer, with hooks", Config{RequestTimeout: 60 * time.Second}, hello, func(r *http.Request) (*http.Response, error) {
			trace := httptrace.ContextClientTrace(r.Context())
			<-time.After(20 * time.Second)
			trace.GotConn(httptrace.GotConnInfo{Conn: &net.TCPConn{}})
			<-time.After(20 * time.Second)
			trace.WroteRequest(httptrace.WroteRequestInfo{})
			return hang(r)
		}, 100 * time.Second, ErrResponseTimeout, PhaseWritten},
		{"stall, with hooks", Config{StallTimeout: 15 * time.Second}, hello, func(r *http.Request) (*http.Response, error) {
			httptrace.ContextClientTrace(r.Context()).GotConn(httptrace.GotConnInfo{Conn: &net.TCPConn{}})
			return hang(r)
		}, 15 * time.Second, ErrStalled, PhaseWritten},
		{"drip", Config{RequestTimeout: 60 * time.Second}, hello, func(r *http.Request) (*http.Response, error) {
			_, _ = io.Copy(io.Discard, r.Body)
			return respond(200, &slowReader{ctx: r.Context(), size: 100_000, piece: 1, every: time.Second}), nil
		}, 60 * time.Second, ErrResponseTimeout, PhaseResponse},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c.config.Transport = c.transport
				seen, o := call(t, newTestClient(t, c.config), c.request)
				expect(t, seen, o, c.phase, ClassUnknownOutcome)
				if seen.Duration != c.want || !errors.Is(seen.Err, c.cause) {
					t.Errorf("after %v: %v", seen.Duration, seen.Err)
				}
			})
		})
	}
}

const emptyBatch = `{"ok":true,"result":[]}`

// slowReader hands out emptyBatch and blanks behind it, at a pace.
type slowReader struct {
	ctx         context.Context
	size, piece int
	every       time.Duration
	at          int
}

func (r *slowReader) Read(p []byte) (int, error) {
	if r.at == r.size {
		return 0, io.EOF
	}
	select {
	case <-r.ctx.Done():
		return 0, r.ctx.Err()
	case <-time.After(r.every):
	}
	n := min(r.piece, r.size-r.at, len(p))
	for i := range n {
		p[i] = ' '
	}
	if r.at < len(emptyBatch) {
		copy(p[:n], emptyBatch[r.at:])
	}
	r.at += n
	return n, nil
}

// TestBigAnswerOverAThinLine takes far longer than the timeout and still comes.
func TestBigAnswerOverAThinLine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := newTestClient(t, Config{RequestTimeout: 60 * time.Second, Transport: transportFunc(func(r *http.Request) (*http.Response, error) {
			_, _ = io.Copy(io.Discard, r.Body)
			return respond(200, &slowReader{ctx: r.Context(), size: 4 << 20, piece: 8 << 10, every: time.Second}), nil
		})})
		seen, o := call(t, client, Request{Method: "getUpdates"})
		expect(t, seen, o, PhaseResponse, ClassOK)
		if len(seen.Body) != 4<<20 || seen.Duration < 8*time.Minute {
			t.Errorf("%d bytes after %v", len(seen.Body), seen.Duration)
		}
	})
}

// TestLateHooksAreIgnored: net/http goes on dialing for a call that has ended, for the
// next one to use.
func TestLateHooksAreIgnored(t *testing.T) {
	var late *httptrace.ClientTrace
	client := newTestClient(t, Config{Transport: transportFunc(func(r *http.Request) (*http.Response, error) {
		late = httptrace.ContextClientTrace(r.Context())
		return nil, &PhaseError{At: PhaseResolved, Err: io.EOF}
	})})
	seen, o := call(t, client, hello)
	late.ConnectDone("tcp", "127.0.0.1:1", nil)
	late.GotConn(httptrace.GotConnInfo{Conn: &net.TCPConn{}})
	late.WroteRequest(httptrace.WroteRequestInfo{})
	expect(t, seen, o, PhaseResolved, ClassOffline)
}

// TestOwnTimeoutIsNotACancellation: who stops calls by their context must be able to
// tell that from a call that took too long.
func TestOwnTimeoutIsNotACancellation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		seen, _ := call(t, newTestClient(t, Config{Transport: transportFunc(hang)}), hello)
		if !errors.Is(seen.Err, ErrResponseTimeout) || errors.Is(seen.Err, context.Canceled) {
			t.Errorf("%v", seen.Err)
		}
		var timeout interface{ Timeout() bool }
		if !errors.As(seen.Err, &timeout) || !timeout.Timeout() {
			t.Error("it doesn't say that it is a timeout")
		}
	})
}
