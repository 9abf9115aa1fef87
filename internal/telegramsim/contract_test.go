package telegramsim_test

import (
	"encoding/json"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tgspool/tgspool/internal/botapi"
	"github.com/tgspool/tgspool/internal/telegramsim"
)

// newClient makes the real client of the Bot API, over a transport or, with a
// base URL, over sockets.
func newClient(t *testing.T, base string, transport http.RoundTripper) *botapi.Client {
	t.Helper()
	tok, err := botapi.ParseToken("8001:AAsimulatedSecretOfThirtyFiveCharsX")
	if err != nil {
		t.Fatal(err)
	}
	client, err := botapi.NewClient(botapi.Config{
		Token: tok, BaseURL: base, Transport: transport, RequestTimeout: 5 * time.Second,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	return client
}

func TestClientSeesPhasesInProcess(t *testing.T) {
	for name, c := range faultCases() {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newSim(t, telegramsim.Options{AcceptAnyToken: true})
				client := newClient(t, "", s.Transport())
				c.fault.Delay = min(c.fault.Delay, time.Second)
				s.AddFault(c.fault)
				seen := client.Call(t.Context(), botapi.Request{
					Method: "sendMessage", Params: json.RawMessage(`{"chat_id":5,"text":"x"}`),
				})
				if !c.broken {
					c.at, c.written = botapi.PhaseResponse, true
				}
				if seen.Phase != c.at || (seen.BytesWritten > 0) != c.written || seen.BodyComplete == c.broken || seen.Status != 0 != (c.at == botapi.PhaseResponse) {
					t.Errorf("seen %+v; want phase %q, written %v", seen, c.at, c.written)
				}
			})
		})
	}
}

func TestClientOverASocket(t *testing.T) {
	s := newSim(t, telegramsim.Options{AcceptAnyToken: true})
	client := newClient(t, serve(t, s), nil)
	request := botapi.Request{Method: "sendMessage", Params: json.RawMessage(`{"chat_id":5,"text":"x"}`)}
	if seen := client.Call(t.Context(), request); seen.Status != 200 || !seen.BodyComplete {
		t.Fatalf("seen %+v", seen)
	}
	s.AddFault(telegramsim.Fault{Kind: telegramsim.FaultResetAfterRead, Times: 1, Effect: true})
	if seen := client.Call(t.Context(), request); seen.Phase != botapi.PhaseWritten || seen.BytesWritten == 0 {
		t.Errorf("a lost answer: seen %+v", seen)
	}
	if seen := client.Call(t.Context(), request); seen.Status != 200 {
		t.Errorf("after a reset: seen %+v", seen)
	}
	// The caller who repeats after a lost answer is found out.
	if n := s.CountText(5, "x"); n != 3 {
		t.Errorf("%d arrived, want 3", n)
	}
	s.SetOffline(true)
	request.Fresh = true
	if seen := client.Call(t.Context(), request); seen.Phase.Reached(botapi.PhaseConnected) || seen.BytesWritten != 0 {
		t.Errorf("in an outage: seen %+v", seen)
	}
	if n := s.CountText(5, "x"); n != 3 {
		t.Errorf("%d arrived, want 3 still", n)
	}
}
