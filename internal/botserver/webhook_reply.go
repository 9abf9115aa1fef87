package botserver

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"mime"
	"net/http"
	"strings"
	"time"

	"github.com/tgspool/tgspool/internal/botapi"
	"github.com/tgspool/tgspool/internal/outbox"
	"github.com/tgspool/tgspool/internal/spool"
)

// accepted ends a delivery that the webhook has accepted. The call that its
// answer may hold is queued in the same commit; one that can't be made is told
// in the log and kept with the update, but confirms it all the same, as at
// Telegram. An answer that is cut is none.
func (h *hook) accepted(work context.Context, lease *spool.Lease, who Identity, resp *http.Response) {
	body := &noted{ReadCloser: resp.Body}
	resp.Body = body
	up := &upload{store: h.s.store, max: h.s.settings.Load().MaxUpload, ctx: work}
	job, err := h.s.readReply(resp, who, up)
	if body.err != nil || errors.Is(err, errStore) {
		up.drop()
		h.unanswered(work, lease, errors.Join(body.err, err))
		return
	}
	h.reached("")
	done := spool.Handling{}
	switch {
	case err != nil:
		up.drop()
		done.Output = "the call in the answer was refused: " + err.Error()
		h.s.log.LogAttrs(work, slog.LevelWarn, "a call in a webhook's answer is refused", slog.String("bot", h.bot.Name()),
			slog.Int64("seq", lease.Seq), slog.String("client", h.note.Client), slog.String("err", err.Error()))
	case job != nil:
		done.Jobs = []spool.NewJob{*job}
	}
	h.commit(work, lease, func(ctx context.Context) error {
		made, err := h.bot.Handled(ctx, lease, done)
		if errors.Is(err, spool.ErrInvalid) && len(done.Jobs) > 0 {
			done = spool.Handling{Output: "the call in the answer was refused: " + err.Error()}
			made, err = h.bot.Handled(ctx, lease, done)
		}
		if err == nil && (len(made) == 0 || made[0].Duplicate) {
			up.drop() // nobody's
		}
		return err
	})
}

// noted remembers what has ended a body before its time.
type noted struct {
	io.ReadCloser

	err error
}

// Read reads on.
func (n *noted) Read(p []byte) (int, error) {
	k, err := n.ReadCloser.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		n.err = err
	}
	return k, err
}

// ignoredInReplies are calls that Telegram, too, makes nothing of in an answer.
var ignoredInReplies = map[string]bool{"setwebhook": true, "deletewebhook": true, "close": true, "logout": true}

// readReply makes the job of the call that an answer holds; nil when it holds
// none.
func (s *Server) readReply(resp *http.Response, who Identity, up *upload) (*spool.NewJob, error) {
	g := &gathering{}
	if err := readAnswer(resp, g, up); err != nil {
		return nil, err
	}
	name := ""
	for i, f := range g.list {
		if f.name == "method" {
			name = strings.TrimSpace(textOf(f.value))
			g.list, g.whole = append(g.list[:i:i], g.list[i+1:]...), nil
			break
		}
	}
	lower := strings.ToLower(name)
	if name == "" || ignoredInReplies[lower] || strings.HasPrefix(lower, "get") {
		up.drop()
		return nil, nil
	}
	params := g.params(up.has)
	m := botapi.MethodFor(name)
	if who.Check != nil {
		if err := who.Check(m, params); err != nil {
			return nil, err
		}
	}
	o := outbox.Options{Origin: "webhook", Lane: who.Lane, OnUncertain: who.OnUncertain, Files: up.files}
	if who.Client != "" {
		o.Origin += ":" + who.Client
	}
	if who.TTL > 0 {
		o.ExpiresAt = time.Now().Add(who.TTL)
	}
	job, err := outbox.New(name, params.Raw(), o)
	if err != nil {
		return nil, err
	}
	job.ID = up.id
	return &job, up.finish()
}

// readAnswer reads the body of an answer as Telegram reads one. What is in no
// form of a call is none.
func readAnswer(resp *http.Response, g *gathering, up *upload) error {
	kind, options, err := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	if err != nil {
		kind = ""
	}
	if kind == "multipart/form-data" {
		limit := up.max + formSlack
		return readMultipart(&limitedReader{r: resp.Body, left: limit, limit: limit}, options["boundary"], g, up)
	}
	all, err := io.ReadAll(&limitedReader{r: resp.Body, left: maxParams, limit: maxParams})
	if err != nil {
		if _, tooLong := errors.AsType[*apiError](err); tooLong && kind != "application/json" {
			return nil // a page, a picture: whatever it is, no call
		}
		return err
	}
	switch text := strings.TrimSpace(string(all)); {
	case kind == "application/x-www-form-urlencoded":
		return g.addForm(string(all))
	case strings.HasPrefix(text, "{"):
		return g.addObject(all)
	}
	return nil
}
