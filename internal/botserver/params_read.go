package botserver

import (
	"compress/gzip"
	"compress/zlib"
	"errors"
	"io"
	"mime"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/tgspool/tgspool/internal/wire"
)

// read reads the parameters of a request, whatever form they come in, and hands
// files to up. It returns at the end of the body, so that from then on the
// server notices a hang-up.
func read(w http.ResponseWriter, r *http.Request, up wire.Files) (*wire.Params, error) {
	g := &wire.Gathering{}
	if err := g.AddForm(r.URL.RawQuery); err != nil {
		return nil, bodyError(err)
	}
	if err := readBody(w, r, g, up); err != nil {
		return nil, bodyError(err)
	}
	// Behind a packed body there may be an end that nobody has seen.
	if n, err := r.Body.Read(make([]byte, 1)); n > 0 || err != nil && !errors.Is(err, io.EOF) {
		return nil, errorf(http.StatusBadRequest, "something follows the body")
	}
	// The deadline was for the body, and would be taken for a hang-up later. Of a
	// body that couldn't be read it stays: the server drops the rest before it
	// answers, and must not wait for it.
	_ = http.NewResponseController(w).SetReadDeadline(time.Time{})
	return g.Params(up.Has), nil
}

func readBody(w http.ResponseWriter, r *http.Request, g *wire.Gathering, up wire.Files) error {
	kind, options, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	isForm := err == nil && kind == "multipart/form-data"
	limit := int64(wire.MaxParams)
	if isForm {
		limit = up.Limit() + wire.FormSlack
	}
	if r.ContentLength > limit {
		w.Header().Set("Connection", "close") // the rest isn't read
		if isForm {
			return wire.TooLarge(up.Limit())
		}
		return wire.TooLarge(limit)
	}
	paced := wire.Paced(w, r.Body, isForm)
	body, err := unpacked(r.Header.Get("Content-Encoding"), paced)
	if err != nil {
		return err
	}
	limited := wire.Limit(body, limit)
	if isForm {
		return g.ReadMultipart(limited, options["boundary"], up)
	}
	all, err := io.ReadAll(limited)
	if err != nil {
		return err
	}
	switch kind {
	case "application/x-www-form-urlencoded":
		return g.AddForm(string(all))
	case "application/json":
		return g.AddObject(all)
	}
	// Others count for nothing, but for JSON that doesn't say so.
	if text := strings.TrimSpace(string(all)); strings.HasPrefix(text, "{") {
		return g.AddObject(all)
	}
	return nil
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

// bodyError words what went wrong while a body was read, without repeating any
// of it.
func bodyError(err error) error {
	if e, ok := errors.AsType[*wire.Error](err); ok {
		return errorf(e.Code, "%s", e.Text)
	}
	if e, ok := errors.AsType[*apiError](err); ok {
		return e
	}
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded):
		return errorf(http.StatusRequestTimeout, "the body came too slowly")
	case errors.Is(err, wire.ErrStore):
		return err
	}
	return errorf(http.StatusBadRequest, "the body can't be read")
}
