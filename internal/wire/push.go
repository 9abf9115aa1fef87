package wire

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"syscall"
	"time"
)

// maxRetryAfter is the longest wait that an answer may ask for.
const maxRetryAfter = time.Hour

// Target is where updates are pushed to.
type Target struct {
	URL     string
	Secret  string        // as secret_token of setWebhook; empty: none is sent
	Timeout time.Duration // of a push, from the dial to the end of the answer
}

// Verdict is what a push has come to.
type Verdict int

// The verdicts.
const (
	Accepted  Verdict = iota // the answer was 2xx, and whole
	Refused                  // another answer, or one that was cut or too late
	Unreached                // nobody was there, or only a proxy that found nobody
	Stopped                  // ctx has ended; it may or may not have been handled
)

// Answer is what came of one push.
type Answer struct {
	Verdict    Verdict
	Status     int           // of HTTP; 0 without an answer
	Text       string        // what is wrong, in Telegram's words; empty with Accepted
	RetryAfter time.Duration // as the answer asks for; 0: it doesn't
	Header     http.Header   // of the answer; nil without one
	// Call is what the answer of an accepted push asks for; nil for nothing.
	Call *Call
	// Bad is why the call can't be read; nil while it can.
	Bad error
}

// Push hands an update over as Telegram would and reads the answer. Files of the
// call that it holds go to up, which is the caller's to keep or to drop. The
// headers of more are added; their names are canonical.
func (p *Pusher) Push(ctx context.Context, t Target, update []byte, more http.Header, up Keeper) Answer {
	within, cancel := context.WithTimeout(ctx, t.Timeout)
	defer cancel()
	resp, err := p.post(within, t, update, more)
	if err != nil {
		return unanswered(ctx, err)
	}
	defer func() { _ = resp.Body.Close() }()
	a := Answer{Status: resp.StatusCode, Header: resp.Header, RetryAfter: retryAfter(resp)}
	switch code := resp.StatusCode; {
	case code >= 200 && code <= 299:
		body := &noted{ReadCloser: resp.Body}
		resp.Body = body
		a.Call, a.Bad = readReply(resp, up)
		switch {
		case body.err != nil:
			return unanswered(ctx, body.err)
		case errors.Is(a.Bad, ErrStore): // our own trouble
			return Answer{Verdict: Unreached, Status: a.Status, Text: a.Bad.Error()}
		}
		return a
	case code == http.StatusBadGateway, code == http.StatusServiceUnavailable, code == http.StatusGatewayTimeout:
		a.Verdict = Unreached
	default:
		a.Verdict = Refused
	}
	a.Text = fmt.Sprintf("Wrong response from the webhook: %d %s", resp.StatusCode, http.StatusText(resp.StatusCode))
	return a
}

// post makes the request as Telegram would make it.
func (p *Pusher) post(ctx context.Context, t Target, update []byte, more http.Header) (*http.Response, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, t.URL, bytes.NewReader(update))
	if err != nil {
		return nil, err
	}
	maps.Copy(r.Header, more)
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("User-Agent", "tgspool")
	if t.Secret != "" {
		r.Header.Set("X-Telegram-Bot-Api-Secret-Token", t.Secret)
	}
	return p.client.Do(r)
}

// unanswered sorts what kept an answer from coming.
func unanswered(ctx context.Context, err error) Answer {
	if e, ok := errors.AsType[*url.Error](err); ok {
		err = e.Err // the URL may hold the token
	}
	op, isOp := errors.AsType[*net.OpError](err)
	netErr, isNet := errors.AsType[net.Error](err)
	switch {
	case ctx.Err() != nil:
		return Answer{Verdict: Stopped, Text: "tgspool stopped meanwhile"}
	case errors.Is(err, errHost):
		return Answer{Verdict: Unreached, Text: errHost.Error()}
	case errors.Is(err, syscall.ECONNREFUSED):
		return Answer{Verdict: Unreached, Text: "Connection refused"}
	case isOp && op.Op == "dial":
		return Answer{Verdict: Unreached, Text: "Failed to connect"}
	case isNet && netErr.Timeout():
		return Answer{Verdict: Refused, Text: "Read timeout expired"}
	default:
		return Answer{Verdict: Refused, Text: "Webhook connection closed"}
	}
}

// retryAfter is the wait that an answer asks for in whole seconds, 0 for none.
func retryAfter(resp *http.Response) time.Duration {
	seconds, err := strconv.ParseInt(resp.Header.Get("Retry-After"), 10, 32)
	if err != nil || seconds < 0 {
		return 0
	}
	return min(time.Duration(seconds)*time.Second, maxRetryAfter)
}
