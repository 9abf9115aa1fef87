package botapi

import (
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
	ctx, cancel := context.WithCancelCause(ctx)
	h := header.Clone()
	if h == nil {
		h = http.Header{}
	}
	h.Set("User-Agent", "tgspool")
	request := (&http.Request{
		Method: method, URL: &target, Host: target.Host,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Header: h,
	}).WithContext(ctx)
	slow := time.AfterFunc(c.timeout, func() { cancel(ErrResponseTimeout) })
	defer slow.Stop()
	response, err := c.pooled.RoundTrip(request)
	if err != nil {
		if cause := context.Cause(ctx); cause != nil {
			err = cause
		}
		cancel(nil)
		return nil, fmt.Errorf("fetching a file: %w", c.clean(err))
	}
	response.Body = &fetchedBody{ReadCloser: response.Body, cancel: cancel}
	return response, nil
}

// fetchedBody ends the context of its request when it is closed.
type fetchedBody struct {
	io.ReadCloser

	cancel context.CancelCauseFunc
}

// Close gives the connection back.
func (b *fetchedBody) Close() error {
	defer b.cancel(nil)
	return b.ReadCloser.Close()
}
