package daemon

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"time"

	"github.com/tgspool/tgspool/internal/botapi"
	"github.com/tgspool/tgspool/internal/gate"
	"github.com/tgspool/tgspool/internal/localapi"
	"github.com/tgspool/tgspool/internal/manage"
)

// maxTokenBody bounds the body that carries a token, in bytes.
const maxTokenBody = 4 << 10

// tokenRequest hands a bot a token.
type tokenRequest struct {
	bot    string
	token  botapi.Token
	answer chan error // buffered: the daemon never waits for who asked
}

// refusal is an answer to a token that isn't taken.
type refusal struct {
	status int
	why    string
}

// Error says why.
func (e *refusal) Error() string { return e.why }

// withTokens adds the endpoint that takes tokens to the management API. It is
// apart from the others because it is root's alone: whoever may hand over a
// token decides which account all that is queued goes out by.
func (d *daemon) withTokens(api http.Handler) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("/", api)
	mux.HandleFunc("POST /v1/bots/{bot}/token", func(w http.ResponseWriter, r *http.Request) {
		err := d.receiveToken(w, r)
		no, refused := errors.AsType[*refusal](err)
		switch {
		case err == nil:
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, "{\"in_use\":true}\n") // whoever asked may have gone
		case refused:
			manage.WriteProblem(w, r, no.status, no.why)
		default:
			manage.WriteProblem(w, r, http.StatusServiceUnavailable, err.Error())
		}
	})
	return mux
}

// receiveToken reads a token from a request and has it taken into use.
func (d *daemon) receiveToken(w http.ResponseWriter, r *http.Request) error {
	uid, known := localapi.PeerUID(r.Context())
	if !known || uid != 0 && uid != uint32(os.Geteuid()) {
		return &refusal{http.StatusForbidden, "only root and the daemon's own user may hand over a token"}
	}
	// Where it can't be set (a test's recorder), nothing is slow either.
	_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(time.Minute))
	var body struct {
		Token string `json:"token"`
	}
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxTokenBody)).Decode(&body); err != nil {
		return &refusal{http.StatusBadRequest, `the body is no {"token": …}`} // the error may repeat what it was given
	}
	token, err := botapi.ParseToken(body.Token)
	if err != nil {
		return &refusal{http.StatusUnprocessableEntity, err.Error()}
	}
	return d.requestToken(r.Context(), r.PathValue("bot"), token)
}

// requestToken has a token taken into use where settings are, so that the two
// never meet.
func (d *daemon) requestToken(ctx context.Context, name string, token botapi.Token) error {
	q := tokenRequest{name, token, make(chan error, 1)}
	select {
	case d.tokens <- q:
	case <-d.take.Done():
		return errStopping
	case <-ctx.Done():
		return ctx.Err()
	}
	return <-q.answer
}

// useToken gives a bot a token. What it was doing goes on; a bot that couldn't
// work for want of a token begins to.
func (d *daemon) useToken(ctx context.Context, name string, token botapi.Token) error {
	b := d.bots.bot(name)
	switch {
	case b == nil:
		return &refusal{http.StatusNotFound, fmt.Sprintf("there is no bot %q in the settings", name)}
	case b.broken != "":
		return d.bots.revive(ctx, b, token)
	case b.client.BotID() != token.BotID():
		return &refusal{http.StatusConflict, fmt.Sprintf(
			"this token is of bot %d and %s is bot %d: what is queued would go out by another account; "+
				"to change the account, give it another name in the settings", token.BotID(), name, b.client.BotID())}
	}
	client, err := d.client(b.cfg, token)
	if err != nil {
		return &refusal{http.StatusUnprocessableEntity, err.Error()}
	}
	b.client.replace(client)
	b.gate.OpenLanes(gate.Unauthorized, gate.Probing)
	b.log.LogAttrs(ctx, slog.LevelInfo, "a new token is in use")
	b.loops.Go(func() { b.identify(d.take) })
	return nil
}

// revive makes a bot anew that couldn't work, and starts it.
func (r *directory) revive(ctx context.Context, old *bot, token botapi.Token) error {
	if old.cfg.Intake.Mode == "webhook" {
		return &refusal{http.StatusConflict, "a bot with a webhook takes its first token at a start: tgspool's service has to be restarted"}
	}
	b, err := r.makeWith(ctx, old.cfg, token, nil)
	switch {
	case err != nil:
		return &refusal{http.StatusConflict, err.Error()}
	case b.broken != "":
		return &refusal{http.StatusConflict, b.broken}
	}
	r.mu.Lock()
	r.bots[b.name] = b
	r.mu.Unlock()
	b.start(r.d)
	r.d.useClients(r.d.cfg)
	r.d.botapi.ResumeWebhook(b.spool)
	b.log.LogAttrs(ctx, slog.LevelInfo, "the bot has a token and works")
	return nil
}

// bot finds a bot by its name; nil when the settings don't have it.
func (r *directory) bot(name string) *bot {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return r.bots[name]
}
