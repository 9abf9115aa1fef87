package telegramsim

import (
	"context"
	"net/http"
	"strconv"
	"strings"
)

// breakage is how a connection ends without a whole answer.
type breakage string

const (
	breakNot     breakage = ""
	breakRefused breakage = "refused"  // there was no connection
	breakUnread  breakage = "unread"   // closed before the request was read
	breakReset   breakage = "reset"    // reset after the request was read
	breakHalf    breakage = "half"     // closed in the middle of the answer
	breakGone    breakage = "gone"     // the caller went away first
	captivePath           = "/captive" // where FaultRedirect leads to
	captivePage           = "<html><head><title>Welcome</title></head><body>Please log in to use this network.</body></html>"
)

// verdict is what becomes of one request.
type verdict struct {
	ans     answer
	broken  breakage
	call    *call // nil when the request could not be read
	genuine bool  // ans is what the call earned, not what a fault put in its place
}

// exchange carries one request to its end: it is read, a fault may meet it, it
// is carried out, and an answer or the lack of one comes out. How that looks on
// a wire is the transport's matter.
func (s *Sim) exchange(r *http.Request) verdict {
	c, unreadable := s.readCall(r)
	if unreadable != nil {
		return verdict{ans: *unreadable}
	}
	ctx := r.Context()
	f, met := s.takeFault(c)
	switch {
	case !met:
		a, there := s.perform(ctx, c)
		return finished(c, a, there)
	case f.Kind == FaultOffline:
		return verdict{broken: breakRefused, call: c}
	case f.Kind == FaultAcceptClose:
		return verdict{broken: breakUnread, call: c}
	}
	var real answer
	if f.Effect {
		a, there := s.perform(ctx, c)
		if !there {
			return verdict{broken: breakGone, call: c}
		}
		real = a
	}
	if !s.pause(ctx, f.Delay) {
		s.noEffect(c, 0)
		return verdict{broken: breakGone, call: c}
	}
	if f.Kind == FaultSlow && !f.Effect {
		a, there := s.perform(ctx, c)
		return finished(c, a, there)
	}
	return s.strike(ctx, c, f, real)
}

// finished is the verdict of a call that was carried out.
func finished(c *call, a answer, there bool) verdict {
	if !there {
		return verdict{broken: breakGone, call: c}
	}
	return verdict{ans: a, call: c, genuine: true}
}

// noEffect notes a call that a fault kept from being carried out.
func (s *Sim) noEffect(c *call, status int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c.entry != 0 || strings.EqualFold(c.name, "getUpdates") {
		return
	}
	c.bot, _ = s.authLocked(c)
	c.chatID, _ = looseInt(c.params.get("chat_id"))
	s.recordLocked(c, status, false)
}

// strike shows a fault. real is the true answer when the call took effect, and
// empty otherwise.
func (s *Sim) strike(ctx context.Context, c *call, f Fault, real answer) verdict {
	v := verdict{call: c}
	switch f.Kind { //nolint:exhaustive // the others answer, see below
	case FaultHang:
		s.noEffect(c, 0)
		s.hang(ctx)
		v.broken = breakGone
	case FaultResetAfterRead:
		s.noEffect(c, 0)
		v.broken = breakReset
	case FaultHalfBody:
		s.noEffect(c, 0)
		v.broken, v.ans = breakHalf, real
		if real.status == 0 {
			v.ans = refusal(failure(500, "Internal Server Error: request aborted"))
		}
	case FaultTruncatedJSON:
		v.ans = real
		if real.status == 0 {
			v.ans = success(object{{"message_id", 1}, {"date", 0}, {"text", "cut"}}, "")
		}
		v.ans.body = v.ans.body[:len(v.ans.body)/2]
		s.noEffect(c, v.ans.status)
	default:
		v.ans = f.answer(real)
		v.genuine = f.Kind == FaultSlow
		s.noEffect(c, v.ans.status)
	}
	return v
}

// hang waits until the caller goes, the network breaks or the simulator closes.
func (s *Sim) hang(ctx context.Context) {
	select {
	case <-ctx.Done():
	case <-s.closed:
	case <-s.cutOff():
	}
}

// answer is the answer of the faults that answer at all.
func (f *Fault) answer(real answer) answer {
	switch f.Kind { //nolint:exhaustive // the others have no answer of their own
	case FaultFlood:
		return refusal(tooMany(max(f.RetryAfter, 1)))
	case FaultFloodUndated:
		return refusal(failure(429, "Too Many Requests"))
	case FaultEmpty:
		return answer{status: orElse(f.Code, 200), header: http.Header{}}
	case FaultHTML200:
		return page(orElse(f.Code, 200), captivePage)
	case FaultRedirect:
		a := page(http.StatusFound, captivePage)
		a.header.Set("Location", captivePath)
		if f.Body != "" {
			a.header.Set("Location", f.Body)
		}
		return a
	case FaultSlow:
		return real
	}
	return f.codeAnswer()
}

// codeAnswer is the answer of FaultCode.
func (f *Fault) codeAnswer() answer {
	code := orElse(f.Code, 500)
	switch {
	case strings.HasPrefix(f.Body, "{"):
		a := answer{status: code, body: []byte(f.Body), header: http.Header{"Content-Type": {"application/json"}}}
		if f.RetryAfter > 0 {
			a.header.Set("Retry-After", strconv.Itoa(f.RetryAfter))
		}
		return a
	case strings.HasPrefix(f.Body, "<"):
		return page(code, f.Body)
	}
	text := f.Body
	if text == "" {
		text = http.StatusText(code)
		if code == 500 {
			text = "Internal Server Error: restart"
		}
	}
	e := failure(code, text)
	e.retryAfter = f.RetryAfter
	return refusal(e)
}

// page is a web page.
func page(status int, text string) answer {
	return answer{status: status, body: []byte(text), header: http.Header{"Content-Type": {"text/html"}}}
}

// orElse is a number, or another when it is zero.
func orElse(n, other int) int {
	if n == 0 {
		return other
	}
	return n
}
