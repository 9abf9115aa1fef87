package botapi

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"sync"
	"time"
)

// slowestAnswer is the rate, in bytes a second, that the body of an answer must keep once
// its time is over: a big batch over a thin line may take long, a drip may not.
const slowestAnswer = 4 << 10

// watch follows one call: how far it got, and when it has taken too long. Whatever it
// waits for, one timer is running that ends the call.
type watch struct {
	ctx     context.Context
	cancel  context.CancelCauseFunc
	timeout time.Duration // from the last byte written to the answer
	stall   time.Duration // without progress while writing

	mu       sync.Mutex
	timer    *time.Timer
	onExpiry error // why the timer ends the call
	expires  time.Time
	done     bool // hooks that come later are those of a connection nobody waits for
	writing  bool // the connection is there and the request isn't out yet
	phase    Phase
	conn     *countingConn // nil before GotConn, or when the connection isn't ours
	netConn  net.Conn      // as the transport gave it, maybe with TLS around conn
	progress *func()       // what conn calls for this call
	before   int64         // bytes written to conn when this call got it
	reused   bool
	given    bool  // the transport was given to us: it may have no hooks
	taken    int64 // bytes of the body that the transport has taken
}

// newWatch returns a watch and the context that the call must be made with.
func newWatch(parent context.Context, c *Client, timeout time.Duration) (context.Context, *watch) {
	w := &watch{timeout: timeout, stall: c.stall, given: c.dialDeadline == 0}
	ctx, cancel := context.WithCancelCause(parent)
	w.cancel = cancel
	w.ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		DNSDone: func(i httptrace.DNSDoneInfo) { w.reach(PhaseResolved, i.Err) },
		ConnectDone: func(_, _ string, err error) {
			w.reach(PhaseConnected, err)
		},
		GotConn:      w.gotConn,
		WroteRequest: w.wroteRequest,
	})
	limit, reason := c.dialDeadline, ErrConnectTimeout
	if w.given {
		limit, reason = timeout, ErrResponseTimeout
	}
	w.onExpiry, w.expires = reason, time.Now().Add(limit)
	w.mu.Lock()
	w.timer = time.AfterFunc(limit, w.expire)
	w.mu.Unlock()
	return w.ctx, w
}

// expire runs on the timer.
func (w *watch) expire() {
	w.mu.Lock()
	reason, done := w.onExpiry, w.done
	if !done && time.Now().Before(w.expires) {
		// The timer had fired already when it was set anew.
		w.timer.Reset(time.Until(w.expires))
		w.mu.Unlock()
		return
	}
	w.mu.Unlock()
	if !done {
		w.cancel(reason)
	}
}

// allow sets the timer anew. w.mu is held.
func (w *watch) allow(d time.Duration, reason error) {
	if w.done {
		return
	}
	w.onExpiry, w.expires = reason, time.Now().Add(d)
	// A new one, since one that is set back leaves its old moment behind in the
	// runtime, which wakes up for it.
	w.timer.Stop()
	w.timer = time.AfterFunc(d, w.expire)
}

// stop ends the watch and whatever the transport still does for the call.
func (w *watch) stop() {
	w.mu.Lock()
	w.done = true
	w.timer.Stop()
	if w.conn != nil {
		// The connection may serve the next call by now, which has set its own.
		w.conn.progress.CompareAndSwap(w.progress, nil)
	}
	w.mu.Unlock()
	w.cancel(context.Canceled)
}

func (w *watch) reach(p Phase, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err == nil && !w.done && !w.phase.Reached(p) {
		w.phase = p
	}
}

// gotConn is called when the connection stands, TLS and proxy included, and before the
// first byte of the request.
func (w *watch) gotConn(info httptrace.GotConnInfo) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.done {
		return
	}
	w.netConn, w.conn, w.reused = info.Conn, countingConnOf(info.Conn), info.Reused
	w.phase = PhaseConnected
	if _, ok := info.Conn.(interface{ HandshakeContext(context.Context) error }); ok {
		w.phase = PhaseTLS
	}
	if w.conn != nil {
		w.before = w.conn.written.Load()
		progress := w.moved
		w.progress = &progress
		w.conn.progress.Store(w.progress)
	}
	w.writing = true
	w.allow(w.stall, ErrStalled)
}

// moved is called for every piece of the request that the network takes.
func (w *watch) moved() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.writing {
		w.allow(w.stall, ErrStalled)
	}
}

// wroteRequest starts the time for the answer.
func (w *watch) wroteRequest(info httptrace.WroteRequestInfo) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if info.Err == nil && w.writing {
		w.writing = false
		w.allow(w.timeout, ErrResponseTimeout)
	}
}

// bodyTaken counts what a transport takes of the body. For one that was given to us it is
// the only sign of progress.
func (w *watch) bodyTaken(n int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.taken += n
	if w.given && !w.writing {
		w.allow(w.timeout, ErrResponseTimeout)
	}
}

// failed turns the error of a transport into what was seen.
func (w *watch) failed(err error) Seen {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.done = true
	if w.conn != nil {
		// From here on nothing more can be written, so what the counters say is final.
		// Below TLS, since a goodbye of TLS would count as a byte of the request; an
		// error says only that the transport has closed it before.
		_ = w.conn.Close()
	}
	seen := Seen{Phase: w.phase, Reused: w.reused, Err: w.because(err)}
	var stated *PhaseError
	var tells interface{ Phase() Phase }
	switch {
	case errors.As(err, &stated):
		seen.Phase, seen.BytesWritten = stated.At, stated.Written
	case errors.As(err, &tells):
		seen.Phase = tells.Phase()
		if seen.Phase.Reached(PhaseWritten) {
			seen.BytesWritten = w.taken
		}
	default:
		seen.Phase, seen.BytesWritten = w.written(err)
	}
	return seen
}

// written says how far the request got by what the connection counted. Where that isn't
// known, a byte of it may have left. w.mu is held.
func (w *watch) written(err error) (Phase, int64) {
	if w.conn != nil {
		if n := w.conn.written.Load() - w.before; n > 0 {
			return PhaseWritten, n
		}
		return w.phase, 0
	}
	if w.netConn == nil && (!w.given || neverSent(err)) {
		return w.phase, 0
	}
	return PhaseWritten, w.taken
}

// neverSent reports errors that a transport without hooks can only give before it has
// written anything.
func neverSent(err error) bool {
	var dns *net.DNSError
	var op *net.OpError
	return errors.As(err, &dns) || errors.As(err, &op) && op.Op == "dial"
}

// because puts our own reason in place of the "canceled" that it causes below.
func (w *watch) because(err error) error {
	if err == nil || w.ctx.Err() == nil {
		return err
	}
	if cause := context.Cause(w.ctx); cause != nil && !errors.Is(err, cause) {
		return fmt.Errorf("%w (%s)", cause, err.Error())
	}
	return err
}

// answered reads the answer.
func (w *watch) answered(response *http.Response, limit int64) Seen {
	w.mu.Lock()
	w.writing = false
	seen := Seen{Phase: PhaseResponse, Reused: w.reused, BytesWritten: w.taken}
	if w.conn != nil {
		seen.BytesWritten = w.conn.written.Load() - w.before
	}
	w.allow(w.timeout, ErrResponseTimeout)
	w.mu.Unlock()

	seen.Status = response.StatusCode
	seen.RetryAfterHeader = response.Header.Get("Retry-After")
	seen.ContentType = response.Header.Get("Content-Type")
	seen.TLSVerified = response.TLS != nil && len(response.TLS.VerifiedChains) > 0
	if date, err := http.ParseTime(response.Header.Get("Date")); err == nil {
		seen.ServerDate = date
	}
	body, err := io.ReadAll(&answerReader{watch: w, from: io.LimitReader(response.Body, limit+1)})
	switch {
	case err != nil:
		seen.Err = fmt.Errorf("reading answer: %w", w.because(err))
	case int64(len(body)) > limit:
		body = body[:limit]
		seen.Err = fmt.Errorf("reading answer: it is longer than %d bytes", limit)
	default:
		seen.BodyComplete = true
	}
	seen.Body = body
	return seen
}

// answerReader gives the call more time for what it reads.
type answerReader struct {
	watch *watch
	from  io.Reader
	spare int64 // bytes read that no time was given for yet
}

// Read reads on, and moves the end of the call by a second for every slowestAnswer bytes.
func (r *answerReader) Read(p []byte) (int, error) {
	n, err := r.from.Read(p)
	r.spare += int64(n)
	if seconds := r.spare / slowestAnswer; seconds > 0 {
		r.spare -= seconds * slowestAnswer
		r.watch.mu.Lock()
		r.watch.allow(time.Until(r.watch.expires)+time.Duration(seconds)*time.Second, ErrResponseTimeout)
		r.watch.mu.Unlock()
	}
	return n, err
}
