package botapi

import (
	"errors"
	"fmt"
	"time"
)

// Phase is how far a call got.
type Phase string

// The phases in their order. A call over a connection that stood already begins at
// PhaseConnected or PhaseTLS.
const (
	PhaseNone      Phase = ""          // nothing was reached
	PhaseResolved  Phase = "resolved"  // the host name has an address
	PhaseConnected Phase = "connected" // a TCP connection stands
	PhaseTLS       Phase = "tls"       // the TLS handshake is done
	PhaseWritten   Phase = "written"   // a byte of the request may have left
	PhaseResponse  Phase = "response"  // the header of the answer came
)

var phaseOrder = map[Phase]int{
	PhaseNone: 0, PhaseResolved: 1, PhaseConnected: 2, PhaseTLS: 3, PhaseWritten: 4, PhaseResponse: 5,
}

// Reached reports whether p is q or a later phase.
func (p Phase) Reached(q Phase) bool { return phaseOrder[p] >= phaseOrder[q] }

// Seen is everything that was seen of one call. It is data only, so that what a call
// meant can be decided, tested and written down apart from making it.
type Seen struct {
	Phase        Phase
	BytesWritten int64 // of the request, as handed to the network (below TLS); 0 before PhaseWritten

	Status           int       // HTTP status, 0 without an answer
	RetryAfterHeader string    // header Retry-After as it came
	ContentType      string    // header Content-Type as it came
	ServerDate       time.Time // header Date, zero when absent or unreadable
	Body             []byte    // as much of the answer as came
	BodyComplete     bool      // the whole answer is in Body

	Err         error         // why the call ended early, without token; nil with a whole answer
	TLSVerified bool          // the answer came over TLS with a verified certificate
	Reused      bool          // the connection had served an earlier call
	Duration    time.Duration // of the call as a whole
}

// ErrRequest marks a call that can't be made as it is: its parameters are no JSON object,
// a file of it is gone or has another size. Trying again changes nothing.
var ErrRequest = errors.New("request can't be made")

// Causes of calls that took too long. They are wrapped in Seen.Err.
var (
	ErrConnectTimeout  = errors.New("no connection in time")
	ErrStalled         = errors.New("no progress while writing the request")
	ErrResponseTimeout = errors.New("no whole answer in time")
)

// PhaseError is how an in-process transport says exactly how far a request got before it
// failed. [Client.Call] takes its word for it.
type PhaseError struct {
	At      Phase
	Written int64 // bytes of the request that were taken
	Err     error
}

// Error names the phase and the cause.
func (e *PhaseError) Error() string {
	at := string(e.At)
	if at == "" {
		at = "start"
	}
	return fmt.Sprintf("call ended after phase %q: %v", at, e.Err)
}

// Unwrap returns the cause.
func (e *PhaseError) Unwrap() error { return e.Err }

// Phase returns how far the request got.
func (e *PhaseError) Phase() Phase { return e.At }
