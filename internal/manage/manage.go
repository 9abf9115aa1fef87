package manage

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"strconv"
	"time"

	"github.com/tgspool/tgspool/internal/gate"
	"github.com/tgspool/tgspool/internal/spool"
)

const (
	// maxBody is the most that a request may carry.
	maxBody = 8 << 20
	// bodyTimeout bounds how long a request's body may take to arrive.
	bodyTimeout = time.Minute
	// changeTimeout bounds a transition whose caller may have gone already.
	changeTimeout = time.Minute
	// maxWait is the longest ?wait=; longer ones are cut to it.
	maxWait = 10 * time.Minute
)

// Bots is what the daemon knows of its bots beyond what the spool holds.
type Bots interface {
	// Names lists every bot of the settings, the unconfigured ones too.
	Names() []string
	// View returns the bot as it is now; false when there is no such bot.
	View(bot string) (View, bool)
	// ResolveChat returns the id in decimal or the @name that a name of the
	// bot's chats stands for, and for "" the bot's default chat. It is false
	// when there is no such name.
	ResolveChat(bot, name string) (string, bool)
}

// View is the live part of one bot's status.
type View struct {
	ID       int64  // 0 when unknown
	Username string // without @; empty when unknown
	// Unconfigured says why the bot can't work at all; empty when it can.
	Unconfigured string
	Intake       Intake
	Sender       gate.Snapshot
	// RateOpensAt is when the bot's rate has the next call to give; zero: now.
	RateOpensAt time.Time
	// Handlers are those that have a program, in the order of the settings.
	Handlers []Handler
	// Hint is what of the settings hardly is meant, seen at work; mostly empty.
	Hint string
}

// Handler is one handler that has a program.
type Handler struct {
	Name    string
	Trouble string // why its program or webhook can't be reached; empty while it can
}

// Intake is how updates come in at the moment.
type Intake struct {
	State  string    // ok | offline | conflict | paused | unauthorized | full
	Since  time.Time // since when it is in that state
	Detail string    // more in words, may be empty
}

// Config is what the API needs.
type Config struct {
	Store     *spool.Store
	Bots      Bots
	Version   string
	StartedAt time.Time
	// Clock returns "ok" or "unknown"; nil means always ok.
	Clock func() string
	// Reload reads the settings again; nil: that can't be asked for.
	Reload func(context.Context) (Reload, error)
	// BackupError says why the last daily snapshot failed, "" when it didn't; nil:
	// none are made.
	BackupError func() string
	// Resumed is told that a person wants a part of a bot to go on; may be nil.
	Resumed func(bot, part string)
	// Stuck says which of the daemon's loops doesn't turn any more, "" while all do;
	// nil: nobody knows.
	Stuck func() string
	// MaxUpload is how many bytes the files of one job may have, as it is now; nil:
	// 50 MB.
	MaxUpload func() int64
	// Metrics are served at /metrics; nil: there are none.
	Metrics *Metrics
	// Logger gets decisions of people and errors that are our fault; nil: none.
	Logger *slog.Logger
}

// api serves the endpoints. It is not written to after New.
type api struct {
	store     *spool.Store
	bots      Bots
	version   string
	startedAt time.Time
	clock     func() string
	reloader  func(context.Context) (Reload, error)
	log       *slog.Logger

	backupError func() string
	stuck       func() string
	resumed     func(bot, part string)
	maxUpload   func() int64
	metrics     *Metrics
	hub         *hub
}

// New returns the handler of the management API.
func New(c Config) http.Handler {
	a := &api{
		store: c.Store, bots: c.Bots, version: c.Version,
		startedAt: c.StartedAt, clock: c.Clock, reloader: c.Reload, log: c.Logger,
		backupError: c.BackupError, stuck: c.Stuck, resumed: c.Resumed, maxUpload: c.MaxUpload, metrics: c.Metrics,
	}
	if a.maxUpload == nil {
		a.maxUpload = func() int64 { return 50_000_000 }
	}
	if a.clock == nil {
		a.clock = func() string { return "ok" }
	}
	if a.stuck == nil {
		a.stuck = func() string { return "" }
	}
	if a.log == nil {
		a.log = slog.New(slog.DiscardHandler)
	}
	a.hub = &hub{a: a, all: map[*listener]struct{}{}}
	return a.routes()
}

// routes is the table of the endpoints.
func (a *api) routes() http.Handler {
	mux := http.NewServeMux()
	for pattern, do := range map[string]endpoint{
		"GET /v1/status":  a.status,
		"POST /v1/reload": a.reload,

		"POST /v1/bots/{bot}/pause":  a.pauseBot,
		"POST /v1/bots/{bot}/resume": a.resumeBot,

		"POST /v1/db/backup": a.backup,

		"POST /v1/bots/{bot}/jobs":         a.postJobs,
		"POST /v1/bots/{bot}/notify":       a.notify,
		"GET /v1/bots/{bot}/jobs":          a.listJobs,
		"GET /v1/bots/{bot}/jobs/shape":    a.shapeJobs,
		"GET /v1/jobs/{id}":                a.showJob,
		"GET /v1/jobs/{id}/why":            a.whyJob,
		"POST /v1/jobs/{id}/resolve":       a.resolveJob,
		"POST /v1/jobs/{id}/{verb}":        a.decideJob,
		"POST /v1/bots/{bot}/jobs/{verb}":  a.decideJobs,
		"GET /v1/bots/{bot}/updates":       a.listUpdates,
		"GET /v1/bots/{bot}/updates/{seq}": a.showUpdate,

		"POST /v1/bots/{bot}/updates/{seq}/replay": a.replayUpdate,
		"POST /v1/bots/{bot}/updates/{seq}/drop":   a.dropUpdate,

		"POST /v1/bots/{bot}/updates/claim":          a.claimUpdates,
		"POST /v1/bots/{bot}/updates/{seq}/complete": a.completeUpdate,
		"POST /v1/bots/{bot}/updates/{seq}/fail":     a.failUpdate,
		"POST /v1/bots/{bot}/updates/{seq}/extend":   a.extendUpdate,

		"GET /v1/bots/{bot}/sessions":          a.listSessions,
		"GET /v1/bots/{bot}/sessions/{key}":    a.showSession,
		"PUT /v1/bots/{bot}/sessions/{key}":    a.putSession,
		"DELETE /v1/bots/{bot}/sessions/{key}": a.deleteSession,

		"GET /v1/bots/{bot}/chats":                    a.listChats,
		"POST /v1/bots/{bot}/chats/{chat}/activate":   a.activateChat,
		"POST /v1/bots/{bot}/chats/{chat}/deactivate": a.deactivateChat,
	} {
		mux.Handle(pattern, a.serve(do))
	}
	mux.HandleFunc("GET /v1/events", a.events)
	mux.HandleFunc("GET /healthz", a.healthz)
	mux.HandleFunc("GET /readyz", a.readyz)
	if a.metrics != nil {
		mux.Handle("GET /metrics", a.metrics.serve(a))
	}
	return a.orProblem(mux)
}

// endpoint answers one request: a status and a body for JSON, or an error for
// the table.
type endpoint func(r *http.Request) (int, any, error)

// serve makes an endpoint a handler, with the limits that hold for all.
func (a *api) serve(do endpoint) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		a.store.Settled(r.Context()) // what a client has heard of a job is found here, too
		control := http.NewResponseController(w)
		if r.ContentLength != 0 {
			// Not every writer can (a test's recorder); then nothing is slow either.
			_ = control.SetReadDeadline(time.Now().Add(bodyTimeout))
		}
		r = r.WithContext(context.WithValue(r.Context(), carrierKey{}, &carrier{w, r.Body}))
		r.Body = http.MaxBytesReader(w, r.Body, maxBody)
		status, body, err := do(r)
		if err != nil {
			a.fail(w, r, err)
			return
		}
		if tagged, ok := body.(tagged); ok {
			w.Header().Set("ETag", tagged.etag)
			body = tagged.body
		}
		if status == http.StatusNoContent || status == http.StatusNotModified {
			w.Header().Set("Cache-Control", "no-store")
			w.WriteHeader(status)
			return
		}
		a.writeJSON(w, r, status, "application/json", body)
	})
}

// tagged is an answer whose version stands in its head, too.
type tagged struct {
	etag string
	body any
}

// carrierKey finds the carrier of a request in its context.
type carrierKey struct{}

// carrier is what a request came by: for the few who read its body otherwise.
type carrier struct {
	w    http.ResponseWriter
	body io.Reader // without the bound of its size
}

// arrived is called once the body has been read. The deadline was for that; left
// standing, it would end a long wait.
func arrived(r *http.Request) {
	if c, ok := r.Context().Value(carrierKey{}).(*carrier); ok {
		_ = http.NewResponseController(c.w).SetReadDeadline(time.Time{})
	}
}

// writeJSON writes a whole answer. It is encoded first, so that a value that
// can't be encoded is an error and not half an answer.
func (a *api) writeJSON(w http.ResponseWriter, r *http.Request, status int, kind string, body any) {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(body); err != nil {
		a.log.LogAttrs(r.Context(), slog.LevelError, "answer can't be encoded",
			slog.String("path", r.URL.Path), slog.Any("err", err))
		status, kind = http.StatusInternalServerError, problemType
		buf.Reset()
		buf.WriteString(`{"type":"about:blank","title":"Internal Server Error","status":500,"detail":"the answer could not be encoded"}` + "\n")
	}
	w.Header().Set("Content-Type", kind)
	w.Header().Set("Content-Length", strconv.Itoa(buf.Len()))
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(status)
	// The caller may have gone; there is nobody left to tell.
	_, _ = w.Write(buf.Bytes())
}

// orProblem answers what the mux has no endpoint for in the API's own form.
func (a *api) orProblem(mux *http.ServeMux) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h, pattern := mux.Handler(r)
		if c := callerOf(r); c != nil && !forCallers[pattern] {
			a.fail(w, r, a.refusal(c))
			return
		}
		if pattern != "" {
			mux.ServeHTTP(w, r)
			return
		}
		seen := refusal{header: http.Header{}, status: http.StatusNotFound}
		h.ServeHTTP(&seen, r)
		if allow := seen.header.Get("Allow"); allow != "" {
			w.Header().Set("Allow", allow)
			a.fail(w, r, problemf(http.StatusMethodNotAllowed, "%s is not possible here; %s is", r.Method, allow))
			return
		}
		a.fail(w, r, problemf(http.StatusNotFound, "there is no endpoint %s", r.URL.Path))
	})
}

// refusal keeps the head of the mux's own answer and drops its body.
type refusal struct {
	header http.Header
	status int
}

func (f *refusal) Header() http.Header         { return f.header }
func (f *refusal) WriteHeader(status int)      { f.status = status }
func (f *refusal) Write(p []byte) (int, error) { return len(p), nil }

// change is the context for a transition: it outlives a caller that hangs up
// and a server that is being stopped, so that nobody is told "not done" about
// something that then is committed. It is bounded all the same.
func change(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), changeTimeout)
}

// bot finds the bot of the path.
func (a *api) bot(r *http.Request) (*spool.Bot, error) {
	name := r.PathValue("bot")
	if err := callerOf(r).mayName(name); err != nil {
		return nil, err
	}
	view, known := a.bots.View(name)
	if !known {
		return nil, problemf(http.StatusNotFound, "there is no bot %q in the settings", name)
	}
	bot, open := a.store.Bot(name)
	if !open {
		why := view.Unconfigured
		if why == "" {
			why = "it is still starting"
		}
		return nil, problemf(http.StatusConflict, "bot %q can't be used: %s", name, why)
	}
	return bot, nil
}
