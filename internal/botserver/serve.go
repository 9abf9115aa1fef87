package botserver

import (
	"errors"
	"log/slog"
	"net/http"
	"runtime/debug"
	"strconv"
	"strings"

	"github.com/tgspool/tgspool/internal/botapi"
	"github.com/tgspool/tgspool/internal/outbox"
	"github.com/tgspool/tgspool/internal/wire"
)

// Access says who may come in by one listener.
type Access struct {
	// ClientsOnly refuses the bots' own tokens: whoever listens in on the way
	// must not get them.
	ClientsOnly bool
}

// Handler is the endpoint for one listener.
func (s *Server) Handler(a Access) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer s.recover(w, r)
		s.serve(w, r, a)
	})
}

// call is one call of a method, read and authorized.
type call struct {
	Identity

	method botapi.Method
	params *wire.Params
	upload *wire.Upload
	w      http.ResponseWriter
	r      *http.Request
}

// limited reports whether a client calls that may not do everything.
func (c *call) limited() bool { return c.Client != "" && !c.Full }

// recover answers when the program is at fault. What was committed stays; the
// caller hears a 500 and not a closed connection.
func (s *Server) recover(w http.ResponseWriter, r *http.Request) {
	fault := recover()
	if fault == nil {
		return
	}
	if err, ok := fault.(error); ok && errors.Is(err, http.ErrAbortHandler) {
		panic(fault)
	}
	s.log.LogAttrs(r.Context(), slog.LevelError, "a request has failed by a fault of the program",
		slog.Any("err", fault), slog.String("reason", string(debug.Stack())))
	fail(w, errorf(http.StatusInternalServerError, "tgspool: a fault of the program; its log says more"))
}

func (s *Server) serve(w http.ResponseWriter, r *http.Request, a Access) {
	t, ok := parsePath(r.URL.Path)
	switch {
	case !ok:
		fail(w, &apiError{code: http.StatusNotFound, description: "Not Found"})
		return
	case r.Method != http.MethodGet && r.Method != http.MethodPost && (!t.isFile || r.Method != http.MethodHead):
		fail(w, errorf(http.StatusNotImplemented, "only GET and POST are"))
		return
	}
	who, e := s.identify(t.token, a)
	switch {
	case e != nil:
		fail(w, e)
	case t.isFile:
		s.serveFile(w, r, who, t.file)
	default:
		s.serveCall(w, r, who, t.method)
	}
}

const maxTokenLen = 80

// identify finds out who calls. Of a wrong token it says no more than Telegram
// does.
func (s *Server) identify(token string, a Access) (Identity, *apiError) {
	number, _, found := strings.Cut(token, ":")
	id, err := strconv.ParseInt(number, 10, 64)
	if !found || err != nil || id <= 0 || number[0] < '1' || number[0] > '9' || len(token) > maxTokenLen {
		return Identity{}, errorf(http.StatusUnauthorized, "invalid token specified")
	}
	if b, ok := s.bots.ByID(id); ok && !a.ClientsOnly && b.TokenIs(token) {
		return Identity{Bot: b, Full: true}, nil
	}
	if s.clients != nil {
		if who, ok := s.clients.Authorize(token); ok {
			return who, nil
		}
		if c, ok := s.clients.(wrongCounter); ok {
			if wait := c.Wrong(); wait > 0 {
				return Identity{}, later(wait, "too many wrong tokens")
			}
		}
	}
	return Identity{}, &apiError{code: http.StatusUnauthorized, description: "Unauthorized"}
}

// serveCall reads a call and hands it to whoever answers its method.
func (s *Server) serveCall(w http.ResponseWriter, r *http.Request, who Identity, name string) {
	c := &call{Identity: who, w: w, r: r, upload: wire.NewUpload(r.Context(), s.store, s.MaxUpload())}
	defer func() { c.upload.Drop() }()
	var err error
	if c.params, err = read(w, r, c.upload); err != nil {
		s.refuse(c, err)
		return
	}
	if name == "" {
		name, _ = c.params.Text("method")
	}
	c.method = botapi.MethodFor(name)
	if err := s.allowed(c, name); err != nil {
		s.refuse(c, err)
		return
	}
	if local, ok := locals[c.method.Name]; ok {
		local(s, c)
		return
	}
	switch c.method.Kind {
	case botapi.KindRead:
		s.readThrough(c)
	case botapi.KindEphemeral:
		s.atOnce(c)
	case botapi.KindSend, botapi.KindWrite:
		s.hold(c)
	}
}

// locals are the methods that are answered here, by their canonical names.
var locals = map[string]func(*Server, *call){
	"getMe":          (*Server).getMe,
	"getUpdates":     (*Server).getUpdates,
	"setWebhook":     (*Server).setWebhook,
	"deleteWebhook":  (*Server).deleteWebhook,
	"getWebhookInfo": (*Server).getWebhookInfo,
}

// fullOnly are the methods that hand out the bot as a whole.
var fullOnly = map[string]bool{"getUpdates": true, "setWebhook": true, "deleteWebhook": true, "getWebhookInfo": true}

// allowed refuses what can't be a method, what nobody may call here, and what
// this client may not.
func (s *Server) allowed(c *call, name string) error {
	if name == "" {
		return &apiError{code: http.StatusNotFound, description: "Not Found"}
	}
	if _, local := locals[c.method.Name]; !local {
		if _, err := outbox.Method(name); err != nil {
			return err
		}
	}
	if fullOnly[c.method.Name] && !c.Full {
		return errorf(http.StatusForbidden, "tgspool: client %q isn't full and may not call %s", c.Client, c.method.Name)
	}
	if c.Check != nil {
		if err := c.Check(c.method, c.params); err != nil {
			return errorf(http.StatusForbidden, "%s", err)
		}
	}
	if c.Take != nil {
		if wait := c.Take(); wait > 0 {
			return later(wait, "tgspool: client %q calls more often than its rate allows", c.Client)
		}
	}
	return nil
}
