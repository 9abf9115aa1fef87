package botserver

import (
	"context"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/tgspool/tgspool/internal/botapi"
	"github.com/tgspool/tgspool/internal/wire"
)

const (
	fileStall = 60 * time.Second // without a piece of the file
	maxError  = 64 << 10         // bytes of an error that is passed on
)

// Headers that go up with the request for a file, and down with the file.
var (
	fileUp   = []string{"Range", "If-Range", "If-Modified-Since", "If-None-Match"}
	fileDown = []string{"Content-Type", "Content-Length", "Content-Range", "Accept-Ranges", "Last-Modified", "Etag", "Content-Disposition"}
)

// serveFile fetches a file of Telegram's and hands it on as it comes. The path
// is decoded already, so that an escaped slash is a slash.
func (s *Server) serveFile(w http.ResponseWriter, r *http.Request, who Identity, path string) {
	if who.Check != nil {
		if err := who.Check(botapi.MethodFor("getFile"), &wire.Params{}); err != nil && !who.Full {
			fail(w, errorf(http.StatusForbidden, "%s", err))
			return
		}
	}
	if !safePath(path) {
		fail(w, &apiError{code: http.StatusNotFound, description: "Not Found"})
		return
	}
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	up := http.Header{}
	for _, name := range fileUp {
		if v := r.Header.Values(name); len(v) > 0 {
			up[name] = v
		}
	}
	method := http.MethodGet
	if r.Method == http.MethodHead {
		method = http.MethodHead
	}
	res, err := who.Bot.Client.Fetch(ctx, method, path, up)
	if err != nil {
		fail(w, errorf(http.StatusBadGateway, "tgspool: Telegram can't be reached"))
		return
	}
	defer func() { _ = res.Body.Close() }() // it was read as far as it was wanted
	if !slices.Contains([]int{http.StatusOK, http.StatusPartialContent, http.StatusNotModified}, res.StatusCode) {
		failFile(w, res)
		return
	}
	handOn(w, res, cancel, fileDown...)
}

// handOn hands an answer on as it comes, with some of its header. Without a piece
// of it for a while it is given up.
func handOn(w http.ResponseWriter, res *http.Response, cancel func(), header ...string) {
	for _, name := range header {
		if v := res.Header.Values(name); len(v) > 0 {
			w.Header()[name] = v
		}
	}
	w.WriteHeader(res.StatusCode)
	stall := time.AfterFunc(fileStall, cancel)
	defer stall.Stop()
	if _, err := io.Copy(&pacedWriter{w, stall}, res.Body); err != nil {
		// Half an answer must not look like a whole one.
		panic(http.ErrAbortHandler)
	}
}

// safePath refuses paths that would lead out of the bot's files.
func safePath(path string) bool {
	for segment := range strings.SplitSeq(strings.ReplaceAll(path, `\`, "/"), "/") {
		if segment == "" || segment == "." || segment == ".." {
			return false
		}
	}
	return !strings.ContainsRune(path, 0)
}

// failFile passes an error on, in Telegram's words where they are Telegram's.
func failFile(w http.ResponseWriter, res *http.Response) {
	body, err := io.ReadAll(io.LimitReader(res.Body, maxError))
	switch {
	case res.StatusCode < 400:
		fail(w, errorf(http.StatusBadGateway, "tgspool: somebody else than Telegram has answered"))
	case err == nil && envelope(body):
		write(w, res.StatusCode, body)
	case res.StatusCode == http.StatusRequestedRangeNotSatisfiable:
		w.Header()["Content-Range"] = res.Header.Values("Content-Range")
		fail(w, errorf(res.StatusCode, "there is no such range"))
	default:
		fail(w, &apiError{code: res.StatusCode, description: statusWord(res.StatusCode)})
	}
}

// pacedWriter puts off the end of a transfer as long as it moves.
type pacedWriter struct {
	w     http.ResponseWriter
	stall *time.Timer
}

// Write hands a piece on, at once.
func (p *pacedWriter) Write(b []byte) (int, error) {
	p.stall.Reset(fileStall)
	n, err := p.w.Write(b)
	if err == nil {
		err = http.NewResponseController(p.w).Flush()
	}
	if errors.Is(err, http.ErrNotSupported) {
		err = nil
	}
	return n, err
}
