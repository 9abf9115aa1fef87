package botapi

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"
)

// HasToken compares a token with the client's own, in a time that doesn't depend on
// where they differ.
func (c *Client) HasToken(s string) bool { return c.token.Equal(s) }

// Fetch begins to fetch a file by the file_path that getFile has returned, with the
// given header (Range and its kin). The answer is streamed: the caller closes its body,
// and ends ctx when it has waited long enough for a piece. The beginning of the answer
// is waited for as long as for any other.
func (c *Client) Fetch(ctx context.Context, method, path string, header http.Header) (*http.Response, error) {
	target := *c.base
	target.Path = strings.TrimSuffix(target.Path, "/") + "/file/bot" + c.token.Reveal() + "/" + path
	h := header.Clone()
	if h == nil {
		h = http.Header{}
	}
	h.Set("User-Agent", "tgspool")
	response, err := c.open(ctx, &http.Request{
		Method: method, URL: &target, Host: target.Host,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Header: h,
	})
	if err != nil {
		return nil, fmt.Errorf("fetching a file: %w", err)
	}
	return response, nil
}

// longestRefusal is how much of an answer that is no result is read, in bytes.
const longestRefusal = 1 << 20

// Stream makes a call that changes nothing. A result is handed over while it comes: the
// caller closes its body, and ends ctx when it has waited long enough for a piece.
// Anything else comes as what was seen, as from Call, and without an answer.
func (c *Client) Stream(ctx context.Context, r Request) (answer *http.Response, seen Seen) {
	if len(r.Files) > 0 {
		return nil, c.Call(ctx, r)
	}
	body, err := newBody(r)
	if err != nil {
		return nil, Seen{Err: err}
	}
	request, err := c.newHTTPRequest(ctx, r.Method, body)
	if err != nil {
		return nil, Seen{Err: err}
	}
	response, err := c.open(ctx, request)
	if err != nil {
		return nil, Seen{Err: err}
	}
	begun := bufio.NewReader(response.Body)
	head, _ := begun.Peek(len(resultHead)) // an error is met again by whoever reads on
	if response.StatusCode == http.StatusOK && string(head) == resultHead {
		response.Body = &openBody{Reader: begun, body: response.Body}
		return response, Seen{}
	}
	defer func() { _ = response.Body.Close() }() // what matters has been read
	seen = Seen{
		Phase: PhaseResponse, Status: response.StatusCode,
		RetryAfterHeader: response.Header.Get("Retry-After"),
		ContentType:      c.token.Redact(response.Header.Get("Content-Type")),
	}
	text, err := io.ReadAll(io.LimitReader(begun, longestRefusal))
	seen.Body, seen.BodyComplete, seen.Err = []byte(c.token.Redact(string(text))), err == nil, c.clean(err)
	return nil, seen
}

// resultHead begins every answer that is a result.
const resultHead = `{"ok":true`

// open sends a request and returns when the answer begins. Its errors are clean.
func (c *Client) open(ctx context.Context, request *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	slow := time.AfterFunc(c.timeout, func() { cancel(ErrResponseTimeout) })
	defer slow.Stop()
	response, err := c.pooled.RoundTrip(request.WithContext(ctx))
	if err != nil {
		if cause := context.Cause(ctx); cause != nil {
			err = cause
		}
		cancel(nil)
		return nil, c.clean(err)
	}
	response.Body = &openBody{Reader: response.Body, body: response.Body, cancel: cancel}
	return response, nil
}

// openBody is the body of an answer under way.
type openBody struct {
	io.Reader

	body   io.Closer
	cancel context.CancelCauseFunc // of the request; may be nil
}

// Close gives the connection back and ends the request.
func (b *openBody) Close() error {
	if b.cancel != nil {
		defer b.cancel(nil)
	}
	return b.body.Close()
}
