package wire

import (
	"io"
	"net/http"
	"time"
)

// Bounds of slow callers. A body has to go on within bodyStall; one that carries
// no file has to be there after bodyTime.
const (
	bodyStall = 30 * time.Second
	bodyTime  = 2 * time.Minute
	formTime  = time.Hour // with files
)

// paced is a body that has to keep coming.
type paced struct {
	body  io.Reader
	ctl   *http.ResponseController
	until time.Time // when all has to be there
}

// Paced is a request's body that has to keep coming: 30 s without a byte end it,
// and so does the whole taking more than 2 minutes, or an hour when it is a form.
// The error then is os.ErrDeadlineExceeded. Who has read it to its end takes the
// connection's read deadline away.
func Paced(w http.ResponseWriter, body io.Reader, isForm bool) io.Reader {
	most := bodyTime
	if isForm {
		most = formTime
	}
	return &paced{body: body, ctl: http.NewResponseController(w), until: time.Now().Add(most)}
}

// Read reads on within the time that is left.
func (p *paced) Read(b []byte) (int, error) {
	at := time.Now().Add(bodyStall)
	if at.After(p.until) {
		at = p.until
	}
	_ = p.ctl.SetReadDeadline(at) // not every transport of a test has one
	return p.body.Read(b)
}
