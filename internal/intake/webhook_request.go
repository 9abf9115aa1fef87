package intake

import (
	"bytes"
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/tgspool/tgspool/internal/spool"
)

const (
	// proofHeader is the header that Telegram puts the secret into.
	proofHeader = "X-Telegram-Bot-Api-Secret-Token"
	// maxUpdate is the longest body that is read, in bytes. Telegram's own limit
	// for one update is half of it.
	maxUpdate = 1 << 20
	// acceptWait bounds the wait until the spool takes an update to be committed;
	// Telegram gives up on us after a minute.
	acceptWait = 50 * time.Second
	// retryFull and retryTrouble are when Telegram is asked to post again, in
	// seconds: while the spool is full, and after any other trouble of it.
	retryFull    = "30"
	retryTrouble = "5"
	// refusedEvery is how often refused requests are logged at most.
	refusedEvery = 10 * time.Minute
)

// ServeHTTP takes one update: 200 says that it is committed. Nobody learns
// anything without the secret. A body that is no update is kept, once, as dead,
// and acknowledged: refused, it would come again for ever and hold up what is
// behind it.
func (w *Webhook) ServeHTTP(rw http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPost {
		rw.Header().Set("Allow", http.MethodPost)
		hangUp(rw, http.StatusMethodNotAllowed)
		return
	}
	if !w.knows(r.Header.Get(proofHeader)) {
		w.tellRefused(r)
		hangUp(rw, http.StatusUnauthorized)
		return
	}
	if w.paused.Load() {
		rw.Header().Set("Retry-After", retryFull)
		hangUp(rw, http.StatusServiceUnavailable)
		return
	}
	began := time.Now()
	defer func() { w.served(time.Since(began)) }()
	body, status := readUpdate(rw, r)
	if status != http.StatusOK {
		w.logger.LogAttrs(r.Context(), slog.LevelWarn, "an update couldn't be read from the request", slog.Int("code", status))
		hangUp(rw, status)
		return
	}
	// Whoever hangs up now gets the update counted all the same: it is here.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), acceptWait)
	defer cancel()
	if err := w.store(ctx, body); err != nil {
		retry := retryTrouble
		if errors.Is(err, spool.ErrFull) {
			retry = retryFull
		}
		rw.Header().Set("Retry-After", retry)
		rw.WriteHeader(http.StatusServiceUnavailable)
		return
	}
	rw.WriteHeader(http.StatusOK)
}

// hangUp answers and ends the connection: what else comes on it isn't wanted.
func hangUp(rw http.ResponseWriter, status int) {
	rw.Header().Set("Connection", "close")
	rw.WriteHeader(status)
}

// knows compares a secret with ours in a time that depends on neither: hashes
// are of one length.
func (w *Webhook) knows(secret string) bool {
	given := sha256.Sum256([]byte(secret))
	return subtle.ConstantTimeCompare(given[:], w.secret.Load()[:]) == 1
}

// readUpdate reads the whole body; the server bounds the time. The status is
// 200, or what to answer.
func readUpdate(rw http.ResponseWriter, r *http.Request) (body []byte, status int) {
	if r.ContentLength > maxUpdate {
		return nil, http.StatusRequestEntityTooLarge
	}
	body, err := io.ReadAll(http.MaxBytesReader(rw, r.Body, maxUpdate))
	var tooLong *http.MaxBytesError
	var network net.Error
	switch {
	case err == nil:
		return body, http.StatusOK
	case errors.As(err, &tooLong):
		return nil, http.StatusRequestEntityTooLarge
	case errors.As(err, &network) && network.Timeout():
		return nil, http.StatusRequestTimeout
	}
	return nil, http.StatusBadRequest // cut; nothing of it may be stored
}

// store commits one update.
func (w *Webhook) store(ctx context.Context, body []byte) error {
	update := NewUpdate(body, w.route)
	if !oneObject(body) {
		// Its id may not be taken: the whole update may yet come under it.
		update = spool.NewUpdate{Raw: body, Error: "the body is not one whole JSON object"}
	}
	taken, err := w.bot.Intake(ctx, spool.Batch{Updates: []spool.NewUpdate{update}})
	if err != nil {
		w.storeFailed(ctx, err)
		return err
	}
	if taken.Malformed > 0 {
		w.logger.LogAttrs(ctx, slog.LevelWarn, "malformed updates are kept as dead", slog.Int("count", taken.Malformed))
	}
	w.received.Store(time.Now().UnixNano())
	w.enter(ctx, &w.storing, OK, "")
	return nil
}

// storeFailed shows and tells that the spool takes nothing.
func (w *Webhook) storeFailed(ctx context.Context, err error) {
	if errors.Is(err, spool.ErrClosed) {
		return // we are stopping
	}
	before := w.storing.get().State
	w.enter(ctx, &w.storing, Full, err.Error())
	if before == OK && w.notify != nil {
		w.notify(Alert{State: Full, Text: fmt.Sprintf(
			"Bot %s takes in no updates: %v. Telegram keeps them for a day; intake goes on by itself.", w.bot.Name(), err)})
	}
}

// oneObject reports whether a body is one JSON object by its brackets, whole and
// with nothing behind it. What is inside isn't judged.
func oneObject(body []byte) bool {
	text := bytes.Trim(body, " \t\r\n")
	if len(text) == 0 || text[0] != '{' {
		return false
	}
	depth, inString := 0, false
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case inString && c == '\\':
			i++
		case c == '"':
			inString = !inString
		case inString:
		case c == '{' || c == '[':
			depth++
		case c == '}' || c == ']':
			if depth--; depth == 0 {
				return c == '}' && i == len(text)-1
			}
		}
	}
	return false
}

// throttle lets one event through at a time and counts the others.
type throttle struct {
	mu      sync.Mutex // guards the fields below
	last    time.Time
	skipped int
}

// pass reports whether this event is to be told, and how many there have been
// since the last one that was.
func (t *throttle) pass(every time.Duration) (count int, ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.skipped++
	if now := time.Now(); t.last.IsZero() || now.Sub(t.last) >= every {
		count, t.skipped, t.last = t.skipped, 0, now
		return count, true
	}
	return 0, false
}

// tellRefused logs requests without the secret: strangers, or a secret that is
// another one at Telegram.
func (w *Webhook) tellRefused(r *http.Request) {
	count, ok := w.refused.pass(refusedEvery)
	if !ok {
		return
	}
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		host = r.RemoteAddr
	}
	w.logger.LogAttrs(r.Context(), slog.LevelWarn, "webhook requests without the right secret were refused",
		slog.String("addr", host), slog.Int("count", count))
}
