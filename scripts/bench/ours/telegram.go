package main

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"sync/atomic"

	"github.com/tgspool/tgspool/scripts/bench/kit"
)

// telegram is Telegram at no distance: every call is answered at once, with a
// message as Telegram would send it back.
type telegram struct {
	calls atomic.Int64
	// step, when set, holds each call back until it is received from.
	step chan struct{}
	// at is told the number of each call before it is answered; may be nil.
	at func(n int64)
}

// RoundTrip answers one request.
func (w *telegram) RoundTrip(r *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(r.Body)
	_ = r.Body.Close()
	if err != nil {
		return nil, err
	}
	n := w.calls.Add(1)
	if w.at != nil {
		w.at(n)
	}
	if w.step != nil {
		select {
		case w.step <- struct{}{}:
		case <-r.Context().Done():
			return nil, r.Context().Err()
		}
	}
	answer := fmt.Appendf(nil, `{"ok":true,"result":{"message_id":%d,"from":{"id":%d,"is_bot":true,"first_name":"Bench"},`+
		`"chat":{"id":%s,"first_name":"Ada","type":"private"},"date":1893456000,"text":"%d"}}`, n, botID, chatOf(body), n)
	return &http.Response{
		StatusCode: http.StatusOK, Status: "200 OK", Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(bytes.NewReader(answer)),
		ContentLength: int64(len(answer)), Request: r,
	}, nil
}

// chatOf finds the chat in the parameters as kit.Payload writes them.
func chatOf(body []byte) []byte {
	_, rest, _ := bytes.Cut(body, []byte(`"chat_id":`))
	id, _, found := bytes.Cut(rest, []byte(","))
	if !found {
		return strconv.AppendInt(nil, kit.Chat(0), 10)
	}
	return id
}
