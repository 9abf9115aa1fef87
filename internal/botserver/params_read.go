package botserver

import (
	"compress/gzip"
	"compress/zlib"
	"errors"
	"io"
	"mime"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"
)

const (
	maxParams = 1 << 20 // bytes of all parameters, as at Telegram
	maxFiles  = 64      // of one call
	// formSlack is what a form may take beside its files.
	formSlack = maxParams + 256<<10
)

// Bounds of slow callers. A body has to go on within bodyStall; one that carries
// no file has to be there after bodyTime.
const (
	bodyStall = 30 * time.Second
	bodyTime  = 2 * time.Minute
	formTime  = time.Hour // with files
)

// files takes the files of a form.
type files interface {
	// limit is how many bytes all of them may have.
	limit() int64
	// has reports whether one came under that name.
	has(field string) bool
	// take takes one in while it comes.
	take(field, name string, content io.Reader) error
}

// read reads the parameters of a request, whatever form they come in, and hands
// files to up. It returns at the end of the body, so that from then on the
// server notices a hang-up.
func read(w http.ResponseWriter, r *http.Request, up files) (*Params, error) {
	g := &gathering{}
	if err := g.addForm(r.URL.RawQuery); err != nil {
		return nil, err
	}
	if err := readBody(w, r, g, up); err != nil {
		return nil, bodyError(err)
	}
	// Behind a packed body there may be an end that nobody has seen.
	if n, err := r.Body.Read(make([]byte, 1)); n > 0 || err != nil && !errors.Is(err, io.EOF) {
		return nil, errorf(http.StatusBadRequest, "something follows the body")
	}
	return g.params(up.has), nil
}

func readBody(w http.ResponseWriter, r *http.Request, g *gathering, up files) error {
	kind, options, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	isForm := err == nil && kind == "multipart/form-data"
	limit := int64(maxParams)
	if isForm {
		limit = up.limit() + formSlack
	}
	if r.ContentLength > limit {
		w.Header().Set("Connection", "close") // the rest isn't read
		if isForm {
			return tooLarge(up.limit())
		}
		return tooLarge(limit)
	}
	paced := newPaced(w, r.Body, isForm)
	defer paced.stop()
	body, err := unpacked(r.Header.Get("Content-Encoding"), paced)
	if err != nil {
		return err
	}
	limited := &limitedReader{r: body, left: limit, limit: limit}
	if isForm {
		return readMultipart(limited, options["boundary"], g, up)
	}
	all, err := io.ReadAll(limited)
	if err != nil {
		return err
	}
	switch kind {
	case "application/x-www-form-urlencoded":
		return g.addForm(string(all))
	case "application/json":
		return g.addObject(all)
	}
	// Others count for nothing, but for JSON that doesn't say so.
	if text := strings.TrimSpace(string(all)); strings.HasPrefix(text, "{") {
		return g.addObject(all)
	}
	return nil
}

// addForm takes the parameters of a query or of an urlencoded body. What isn't
// escaped as it should be is taken as it stands.
func (g *gathering) addForm(text string) error {
	for pair := range strings.SplitSeq(text, "&") {
		if pair == "" {
			continue
		}
		name, value, _ := strings.Cut(pair, "=")
		if err := g.addText(unescaped(name), unescaped(value)); err != nil {
			return err
		}
	}
	return nil
}

func unescaped(s string) string {
	if plain, err := url.QueryUnescape(s); err == nil {
		return plain
	}
	return s
}

// unpacked undoes the Content-Encoding of a body. What comes out is bounded by
// the reader around it, so that a small body can't become a big one.
func unpacked(encoding string, body io.Reader) (io.Reader, error) {
	switch strings.ToLower(strings.TrimSpace(encoding)) {
	case "", "identity":
		return body, nil
	case "gzip", "x-gzip":
		r, err := gzip.NewReader(body)
		if errors.Is(err, io.EOF) {
			return body, nil // empty
		}
		return r, err
	case "deflate":
		r, err := zlib.NewReader(body)
		if errors.Is(err, io.EOF) {
			return body, nil
		}
		return r, err
	}
	return nil, errorf(http.StatusUnsupportedMediaType, "unknown Content-Encoding")
}

func tooLarge(limit int64) *apiError {
	return errorf(http.StatusRequestEntityTooLarge, "more than %d bytes", limit)
}

// bodyError words what went wrong while a body was read, without repeating any
// of it.
func bodyError(err error) error {
	if e, ok := errors.AsType[*apiError](err); ok {
		return e
	}
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded):
		return errorf(http.StatusRequestTimeout, "the body came too slowly")
	case errors.Is(err, errStore):
		return err
	}
	return errorf(http.StatusBadRequest, "the body can't be read")
}

// limitedReader fails, unlike io.LimitReader, when there is more.
type limitedReader struct {
	r           io.Reader
	left, limit int64
}

// Read reads on, as long as the limit isn't passed.
func (l *limitedReader) Read(p []byte) (int, error) {
	if int64(len(p)) > l.left+1 {
		p = p[:l.left+1]
	}
	n, err := l.r.Read(p)
	if l.left -= int64(n); l.left < 0 {
		return 0, tooLarge(l.limit)
	}
	return n, err
}

// paced is a body that has to keep coming.
type paced struct {
	body  io.Reader
	ctl   *http.ResponseController
	until time.Time // when all has to be there
}

func newPaced(w http.ResponseWriter, body io.Reader, isForm bool) *paced {
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

// stop lifts the deadline, which would else be taken for a hang-up later.
func (p *paced) stop() { _ = p.ctl.SetReadDeadline(time.Time{}) }
