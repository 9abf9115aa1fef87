package localapi

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"
)

// maxEvent is the longest line of an event, in bytes.
const maxEvent = 1 << 20

// silence is how long the daemon may say nothing; it speaks every 15 s.
const silence = time.Minute

// Follow listens to the daemon's events until ctx ends or the daemon goes, which
// is io.ErrUnexpectedEOF, and hands each to hear. The data is only valid during
// the call. A daemon that isn't there is a *NoDaemonError, a refusal a
// *manage.Problem.
func (c *Client) Follow(ctx context.Context, query string, hear func(event string, data []byte) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://tgspool/v1/events"+query, http.NoBody)
	if err != nil {
		return fmt.Errorf("making the request: %w", err)
	}
	res, err := c.http.Do(req)
	if err != nil {
		if absent, ok := errors.AsType[*NoDaemonError](err); ok {
			return absent
		}
		return fmt.Errorf("asking the daemon: %w", err)
	}
	defer func() { _ = res.Body.Close() }()
	if res.StatusCode != http.StatusOK {
		body, err := io.ReadAll(io.LimitReader(res.Body, maxEvent))
		if err != nil {
			return fmt.Errorf("reading the daemon's answer: %w", err)
		}
		return problem(res, body)
	}
	quiet := time.AfterFunc(silence, cancel)
	defer quiet.Stop()
	lines := bufio.NewScanner(res.Body)
	lines.Buffer(nil, maxEvent)
	event := ""
	for lines.Scan() {
		quiet.Reset(silence)
		if name, ok := bytes.CutPrefix(lines.Bytes(), []byte("event: ")); ok {
			event = string(name)
		} else if data, ok := bytes.CutPrefix(lines.Bytes(), []byte("data: ")); ok {
			if err := hear(event, data); err != nil {
				return err
			}
		}
	}
	return io.ErrUnexpectedEOF
}
