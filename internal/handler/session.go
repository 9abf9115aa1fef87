package handler

import (
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"sync"
	"time"
	"unicode/utf16"

	"github.com/tgspool/tgspool/internal/botapi"
	"github.com/tgspool/tgspool/internal/spool"
)

// The headers in which a webhook gets its session, and may answer with another.
const (
	headerSession = "Tgspool-Session"
	headerVersion = "Tgspool-Session-Version"
)

// sessionData is the session of a lease as programs get it: never empty.
func sessionData(lease *spool.Lease) []byte {
	if len(lease.Session.Data) == 0 {
		return []byte("{}")
	}
	return lease.Session.Data
}

// sessionHeaders are what is sent along with an update; none where there can be
// no session.
func sessionHeaders(lease *spool.Lease) http.Header {
	if lease.ChatID == 0 {
		return nil
	}
	return http.Header{
		headerSession: {asciiJSON(sessionData(lease))},
		headerVersion: {strconv.FormatInt(lease.Session.Version, 10)},
	}
}

// asciiJSON escapes what may not stand in a header.
func asciiJSON(data []byte) string {
	out := make([]byte, 0, len(data))
	for _, r := range string(data) {
		if r < 0x7f {
			out = append(out, byte(r))
			continue
		}
		for _, unit := range utf16.AppendRune(nil, r) {
			out = fmt.Appendf(out, `\u%04x`, unit)
		}
	}
	return string(out)
}

// answeredSession reads the session in a webhook's answer; nil: it stays as it
// is. Without a version it was made from the one that was sent.
func answeredSession(lease *spool.Lease, h http.Header) (*spool.SessionChange, error) {
	if len(h.Values(headerSession)) == 0 {
		return nil, nil
	}
	c := &spool.SessionChange{Version: lease.Session.Version}
	var err error
	if text := h.Get(headerVersion); text != "" {
		if c.Version, err = strconv.ParseInt(text, 10, 64); err != nil || c.Version < 0 {
			return nil, errors.New(headerVersion + " is no version")
		}
	}
	c.Data, err = spool.CompactSession([]byte(h.Get(headerSession)))
	return c, err
}

// maxOutruns is how often in a row an update runs again at once because its
// session was changed meanwhile. A handler that changes it itself by another way
// would do nothing else any more; from here on it waits between its runs.
const maxOutruns = 20

// outruns counts the runs in a row of updates that were outrun.
type outruns struct {
	mu sync.Mutex
	n  map[int64]int // by seq
}

func (o *outruns) again(seq int64) int {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.n == nil {
		o.n = map[int64]int{}
	}
	o.n[seq]++
	return o.n[seq]
}

func (o *outruns) forget(seq int64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.n, seq)
}

// outrun is what becomes of an update whose session was changed while its handler
// was at work: it runs again with the session of now, as if it hadn't run.
func (r *route) outrun(lease *spool.Lease, err error) decision {
	if r.Once {
		u, _ := botapi.ParseUpdate(lease.Raw) // it could be read when it was handed over
		return r.apologize(u, failed(spool.UpdateDead, "may have run: "+err.Error()+", and once = true"))
	}
	d := giveBack(err.Error() + "; it runs again")
	if n := r.outruns.again(lease.Seq); n > maxOutruns {
		wait := retryWait(min(n-maxOutruns, 16))
		d = giveBack(fmt.Sprintf("%s, the %d. time in a row; it runs again after a wait: does the handler change its session itself?", err, n))
		d.failure.RetryAt = time.Now().Add(wait)
	}
	return d
}
