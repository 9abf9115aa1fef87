package telegramsim_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tgspool/tgspool/internal/botapi"
	"github.com/tgspool/tgspool/internal/telegramsim"
)

// faultCase is one kind of fault and how it shows.
type faultCase struct {
	fault telegramsim.Fault
	// broken faults end with a PhaseError at this phase.
	broken  bool
	at      botapi.Phase
	written bool
	cause   error
	// others end with an answer.
	status int
	body   string // a part of it
}

func faultCases() map[string]faultCase {
	return map[string]faultCase{
		"offline":      {fault: telegramsim.Fault{Kind: telegramsim.FaultOffline}, broken: true, at: botapi.PhaseNone, cause: syscall.ECONNREFUSED},
		"accept close": {fault: telegramsim.Fault{Kind: telegramsim.FaultAcceptClose}, broken: true, at: botapi.PhaseConnected, cause: io.EOF},
		"reset":        {fault: telegramsim.Fault{Kind: telegramsim.FaultResetAfterRead}, broken: true, at: botapi.PhaseWritten, written: true, cause: syscall.ECONNRESET},
		"hang":         {fault: telegramsim.Fault{Kind: telegramsim.FaultHang}, broken: true, at: botapi.PhaseWritten, written: true, cause: context.DeadlineExceeded},
		"half body":    {fault: telegramsim.Fault{Kind: telegramsim.FaultHalfBody}, broken: true, at: botapi.PhaseResponse, written: true, cause: io.ErrUnexpectedEOF},
		"code":         {fault: telegramsim.Fault{Kind: telegramsim.FaultCode, Code: 500}, status: 500, body: "Internal Server Error: restart"},
		"code text":    {fault: telegramsim.Fault{Kind: telegramsim.FaultCode, Code: 403, Body: "Forbidden: no"}, status: 403, body: `"error_code":403,"description":"Forbidden: no"`},
		"code html":    {fault: telegramsim.Fault{Kind: telegramsim.FaultCode, Code: 502, Body: "<html>bad gateway</html>"}, status: 502, body: "<html>bad"},
		"code json":    {fault: telegramsim.Fault{Kind: telegramsim.FaultCode, Code: 200, Body: `{"ok":true}`}, status: 200, body: `{"ok":true}`},
		"flood":        {fault: telegramsim.Fault{Kind: telegramsim.FaultFlood, RetryAfter: 35}, status: 429, body: `"parameters":{"retry_after":35}`},
		"undated":      {fault: telegramsim.Fault{Kind: telegramsim.FaultFloodUndated}, status: 429, body: "Too Many Requests"},
		"empty":        {fault: telegramsim.Fault{Kind: telegramsim.FaultEmpty}, status: 200},
		"html":         {fault: telegramsim.Fault{Kind: telegramsim.FaultHTML200}, status: 200, body: "<html>"},
		"redirect":     {fault: telegramsim.Fault{Kind: telegramsim.FaultRedirect}, status: 302, body: "<html>"},
		"truncated":    {fault: telegramsim.Fault{Kind: telegramsim.FaultTruncatedJSON}, status: 200, body: `{"ok":true`},
		"slow":         {fault: telegramsim.Fault{Kind: telegramsim.FaultSlow, Delay: 7 * time.Second}, status: 200, body: `"text":"x"`},
	}
}

func TestFaultsInProcess(t *testing.T) {
	for name, c := range faultCases() {
		for _, effect := range []bool{false, true} {
			t.Run(name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					s := newSim(t, telegramsim.Options{})
					c.fault.Effect = effect
					s.AddFault(c.fault)
					ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
					defer cancel()
					got, err := roundTrip(ctx, s.Transport(), "https://b.invalid", token, "sendMessage", args{"chat_id": 5, "text": "x"})
					c.check(t, got, err)
					c.checkRecord(t, s, effect)
				})
			})
		}
	}
}

// check compares what the caller saw.
func (c *faultCase) check(t *testing.T, got reply, err error) {
	t.Helper()
	if !c.broken {
		if err != nil || got.Status != c.status || !strings.Contains(got.Raw, c.body) {
			t.Errorf("got %d %s, %v; want %d with %s", got.Status, got.Raw, err, c.status, c.body)
		}
		return
	}
	var phase *botapi.PhaseError
	if !errors.As(err, &phase) || phase.At != c.at || (phase.Written > 0) != c.written {
		t.Fatalf("got %+v, %v; want phase %q, written %v", phase, err, c.at, c.written)
	}
	if !errors.Is(err, c.cause) {
		t.Errorf("got %v, want %v inside", err, c.cause)
	}
}

// checkRecord compares what arrived with what should have.
func (c *faultCase) checkRecord(t *testing.T, s *telegramsim.Sim, effect bool) {
	t.Helper()
	unread := c.fault.Kind == telegramsim.FaultOffline || c.fault.Kind == telegramsim.FaultAcceptClose
	slow := c.fault.Kind == telegramsim.FaultSlow
	happened := slow || effect && !unread
	j := s.Journal()
	if unread {
		if len(j) != 0 {
			t.Errorf("nothing was read, yet on record is %+v", j)
		}
		return
	}
	if len(j) != 1 || j[0].Effect != happened || j[0].Answered != slow || j[0].ChatID != 5 {
		t.Errorf("on record %+v, want effect %v", j, happened)
	}
	if n := s.CountText(5, "x"); n != len(s.Chat(5)) || (n == 1) != happened {
		t.Errorf("%d arrived, %d in the chat, want effect %v", n, len(s.Chat(5)), happened)
	}
}

func TestSlowCallerThatLeaves(t *testing.T) {
	for _, effect := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			s := newSim(t, telegramsim.Options{})
			s.AddFault(telegramsim.Fault{Kind: telegramsim.FaultSlow, Delay: time.Minute, Effect: effect})
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
			defer cancel()
			_, err := roundTrip(ctx, s.Transport(), "https://b.invalid", token, "sendMessage", args{"chat_id": 5, "text": "x"})
			if !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("got %v", err)
			}
			if n := s.CountText(5, "x"); (n == 1) != effect {
				t.Errorf("effect %v: arrived %d times", effect, n)
			}
		})
	}
}

func TestWhichCallsAFaultMeets(t *testing.T) {
	s := newSim(t, telegramsim.Options{})
	hit := func(method string, chat int64) bool {
		got := call(t, s, method, args{"chat_id": chat, "text": "x", "action": "typing", "latitude": 1, "longitude": 1})
		return got.Status == 555
	}
	s.AddFault(telegramsim.Fault{Method: "send*", Chat: 5, After: 1, Times: 2, Kind: telegramsim.FaultCode, Code: 555})
	var met []bool
	for range 5 {
		met = append(met, hit("sendMessage", 5))
	}
	if want := []bool{false, true, true, false, false}; !slices.Equal(met, want) {
		t.Errorf("met %v, want %v", met, want)
	}
	if len(s.Faults()) != 0 {
		t.Errorf("a fault that is used up stays: %v", s.Faults())
	}
	id := s.AddFault(telegramsim.Fault{Method: "SEND*", Chat: 5, Kind: telegramsim.FaultCode, Code: 555})
	if hit("sendMessage", 6) || hit("getChat", 5) || !hit("sendlocation", 5) {
		t.Error("the pattern or the chat is not kept to")
	}
	s.RemoveFault(id)
	if hit("sendMessage", 5) {
		t.Error("a removed fault still strikes")
	}
}

func TestOfflineInProcess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSim(t, telegramsim.Options{})
		parked := poll(t.Context(), s, args{"timeout": 50})
		synctest.Wait()
		s.SetOffline(true)
		var phase *botapi.PhaseError
		if got := <-parked; !errors.As(got.err, &phase) || phase.At != botapi.PhaseWritten {
			t.Errorf("the parked poll got %v", got.err)
		}
		_, err := roundTrip(t.Context(), s.Transport(), "https://b.invalid", token, "getMe", nil)
		if !errors.As(err, &phase) || phase.At != botapi.PhaseNone || phase.Written != 0 || !errors.Is(err, syscall.ECONNREFUSED) {
			t.Errorf("offline: got %v", err)
		}
		s.SetOffline(false)
		must[json.RawMessage](t, s, "getMe", nil)
	})
}

func TestFaultJSON(t *testing.T) {
	want := telegramsim.Fault{Method: "send*", Chat: -1001700300001, Kind: telegramsim.FaultSlow, Delay: 1500 * time.Millisecond, Effect: true}
	text, err := json.Marshal(want)
	if err != nil || !strings.Contains(string(text), `"delay":"1.5s"`) {
		t.Fatalf("got %s, %v", text, err)
	}
	var got telegramsim.Fault
	if err := json.Unmarshal(text, &got); err != nil || got != want {
		t.Errorf("got %+v, %v; want %+v", got, err, want)
	}
	if err := json.Unmarshal([]byte(`{"kind":"slow","delay":"soon"}`), &got); err == nil {
		t.Error("a delay that is no duration was taken")
	}
}

// serve runs a simulator on a socket until the test ends.
func serve(t *testing.T, s *telegramsim.Sim) string {
	t.Helper()
	return serveBy(t, s.Serve)
}

// serveBy runs one of the simulator's servers until the test ends.
func serveBy(t *testing.T, run func(context.Context, net.Listener) error) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- run(ctx, listener) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("serving ended with %v", err)
		}
	})
	return "http://" + listener.Addr().String()
}

func TestFaultsOnSockets(t *testing.T) {
	for name, c := range faultCases() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSim(t, telegramsim.Options{})
			base := serve(t, s)
			transport := &http.Transport{DisableKeepAlives: true}
			c.fault.Delay = min(c.fault.Delay, 20*time.Millisecond)
			c.fault.Effect = true
			s.AddFault(c.fault)
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
			defer cancel()
			if c.fault.Kind == telegramsim.FaultHang {
				ctx, cancel = context.WithTimeout(t.Context(), 50*time.Millisecond)
				defer cancel()
			}
			got, err := roundTrip(ctx, transport, base, token, "sendMessage", args{"chat_id": 5, "text": "x"})
			if !c.broken {
				c.check(t, got, err)
			} else if err == nil {
				t.Errorf("the call was answered: %+v", got)
			}
			if c.fault.Kind == telegramsim.FaultResetAfterRead && !errors.Is(err, syscall.ECONNRESET) {
				t.Errorf("got %v, want a reset", err)
			}
			if c.at == botapi.PhaseResponse && got.Status != 200 {
				t.Errorf("the header of half an answer did not arrive: %+v, %v", got, err)
			}
			if n := s.CountText(5, "x"); (n == 1) != (c.at != botapi.PhaseNone && c.at != botapi.PhaseConnected || !c.broken) {
				t.Errorf("arrived %d times", n)
			}
		})
	}
}

func TestOutageOnASocket(t *testing.T) {
	s := newSim(t, telegramsim.Options{})
	base := serve(t, s)
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	parked := make(chan error, 1)
	go func() {
		_, err := roundTrip(t.Context(), &http.Transport{}, base, token, "getUpdates", args{"timeout": 50})
		parked <- err
	}()
	waitForPoll(t, s)
	s.SetOffline(true)
	if err := <-parked; err == nil {
		t.Error("the parked poll was answered in an outage")
	}
	if _, err := roundTrip(t.Context(), transport, base, token, "getMe", nil); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("got %v, want a refused connection", err)
	}
	s.SetOffline(false)
	if got, err := roundTrip(t.Context(), transport, base, token, "getMe", nil); err != nil || !got.OK {
		t.Errorf("after the outage: %+v, %v", got, err)
	}
	// A connection that is in use serves one more call and closes then.
	s.SetOffline(true)
	got, err := roundTrip(t.Context(), transport, base, token, "getMe", nil)
	if err == nil && got.Header.Get("Connection") == "keep-alive" {
		t.Errorf("the old connection is kept in an outage")
	}
	if _, err := roundTrip(t.Context(), transport, base, token, "getMe", nil); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("got %v, want a refused connection", err)
	}
}

// waitForPoll waits until a poll is parked.
func waitForPoll(t *testing.T, s *telegramsim.Sim) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	if err := s.WaitParked(ctx, 0); err != nil {
		t.Fatalf("no poll was parked: %v", err)
	}
}

func TestServerThatStopsAnswersItsPolls(t *testing.T) {
	s := newSim(t, telegramsim.Options{})
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(ctx, listener) }()
	answered := make(chan reply, 1)
	go func() {
		got, err := roundTrip(t.Context(), &http.Transport{}, "http://"+listener.Addr().String(), token, "getUpdates", args{"timeout": 50})
		if err != nil {
			t.Errorf("the parked poll: %v", err)
		}
		answered <- got
	}()
	waitForPoll(t, s)
	cancel()
	if got := <-answered; got.Status != 200 || string(got.Result) != "[]" {
		t.Errorf("got %d %s, want a normal empty answer", got.Status, got.Result)
	}
	if err := <-ended; err != nil {
		t.Errorf("serving ended with %v", err)
	}
}
