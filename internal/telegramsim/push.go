package telegramsim

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"time"
)

const (
	maxHookBody = 1 << 20
	slowAfter   = 10 * time.Second // without a success only one connection is used
	goneAfter   = 23 * time.Hour   // of nothing but 410 removes the webhook
)

// pushUpdates delivers a bot's updates until its webhook is removed. Updates of
// one order key go one after the other and a failing one blocks its own key
// only; keys go in parallel.
func (s *Sim) pushUpdates(h *webhook) {
	defer s.pushers.Done()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	for {
		batch, next := s.takeDue(h)
		for _, e := range batch {
			s.pushers.Go(func() { s.deliver(ctx, h, e) })
		}
		var timer <-chan time.Time
		if next > 0 {
			timer = time.After(next)
		}
		select {
		case <-h.kick:
		case <-timer:
		case <-h.stop:
			return
		}
	}
}

// takeDue marks the updates that can be delivered now, and says how long it is
// until another becomes due (0: not before something happens).
func (s *Sim) takeDue(h *webhook) ([]*event, time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	h.bot.queue.expire(now)
	limit := h.maxConns
	if len(h.failed) > 0 && now.Sub(h.good) > slowAfter {
		limit = 1
	}
	var batch []*event
	var next time.Duration
	passed := make(map[string]bool) // keys whose head is not due
	h.bot.queue.each(func(e *event) bool {
		if h.busy[e.key] || passed[e.key] {
			return true
		}
		if d := h.failed[e]; d != nil && d.due.After(now) {
			passed[e.key] = true
			if wait := d.due.Sub(now); next == 0 || wait < next {
				next = wait
			}
			return true
		}
		if len(h.busy) >= limit {
			return false
		}
		h.busy[e.key] = true
		batch = append(batch, e)
		return true
	})
	return batch, next
}

// deliver pushes one update and notes what came of it.
func (s *Sim) deliver(ctx context.Context, h *webhook, e *event) {
	ctx, cancel := context.WithTimeout(ctx, hookTimeout)
	defer cancel()
	response, body, err := s.pushOnce(ctx, h, e) //nolint:bodyclose // read and closed there
	good := err == nil && response.StatusCode/100 == 2
	s.mu.Lock()
	delete(h.busy, e.key)
	if good {
		h.good, h.gone = time.Now(), time.Time{}
		delete(h.failed, e)
		h.bot.queue.remove(e)
	} else {
		s.pushFailedLocked(h, e, response, err)
	}
	h.kickLocked()
	s.mu.Unlock()
	if good {
		// The update is confirmed already, whatever becomes of this call.
		s.methodInReply(ctx, h.bot, response.Header.Get("Content-Type"), body)
	}
}

// pushOnce makes the request. The body of the answer is read to its end.
func (s *Sim) pushOnce(ctx context.Context, h *webhook, e *event) (*http.Response, []byte, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, h.url, bytes.NewReader(e.raw)) //nolint:gosec // the address that setWebhook was told is the point
	if err != nil {
		return nil, nil, err
	}
	request.Header.Set("Content-Type", "application/json")
	if h.secret != "" {
		request.Header.Set("X-Telegram-Bot-Api-Secret-Token", h.secret)
	}
	if user := request.URL.User; user != nil {
		password, _ := user.Password()
		request.SetBasicAuth(user.Username(), password)
	}
	response, err := s.push.RoundTrip(request)
	if err != nil {
		return nil, nil, err
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(io.LimitReader(response.Body, maxHookBody))
	return response, body, err
}

// pushFailedLocked sets the next try: at once, then after 2, 4, 8 … s, up to a
// random one to two minutes; Retry-After is honoured. An update that would be
// too old by then is dropped.
func (s *Sim) pushFailedLocked(h *webhook, e *event, response *http.Response, err error) {
	now := time.Now()
	d := h.failed[e]
	if d == nil {
		d = &delivery{}
		h.failed[e] = d
	}
	d.failures++
	wait := s.backoffLocked(d.failures)
	h.errorAt = now
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		h.errorText = "Read timeout expired"
	case err != nil:
		h.errorText = "Webhook connection closed"
	default:
		h.errorText = statusText(response.StatusCode)
		if seconds, ok := looseInt(response.Header.Get("Retry-After")); ok && seconds >= 0 && seconds <= 3600 {
			wait = time.Duration(seconds) * time.Second
		}
	}
	if err == nil && response.StatusCode == http.StatusGone {
		if h.gone.IsZero() {
			h.gone = now
		}
		if now.Sub(h.gone) > goneAfter && h.bot.hook == h {
			h.bot.stopHookLocked()
		}
	} else {
		h.gone = time.Time{}
	}
	d.due = now.Add(wait)
	if d.due.After(e.expires) {
		delete(h.failed, e)
		h.bot.queue.remove(e)
	}
}

// backoffLocked is the wait after a number of failures in a row.
func (s *Sim) backoffLocked(failures int) time.Duration {
	switch {
	case failures <= 1:
		return 0
	case failures <= 7:
		return time.Second << (failures - 1)
	}
	return time.Minute + time.Duration(s.rng.Int64N(int64(time.Minute)))
}

// methodInReply carries out the call that a webhook's answer may hold. Calls
// that would change the webhook, or whose result nobody sees, are ignored.
func (s *Sim) methodInReply(ctx context.Context, b *bot, contentType string, body []byte) {
	p := &params{text: make(map[string]string), uploads: make(map[string]*upload)}
	if err := p.addBody(bytes.NewReader(body), contentType); err != nil {
		return
	}
	name := strings.ToLower(p.get("method"))
	switch {
	case name == "", name == "setwebhook", name == "deletewebhook", name == "close", name == "logout",
		strings.HasPrefix(name, "get"):
		return
	}
	delete(p.text, "method")
	c := &call{token: b.token, test: b.test, name: name, params: p, via: "webhook"}
	if m, ok := s.methods[name]; ok {
		c.name = m.name
	}
	s.perform(ctx, c)
}
