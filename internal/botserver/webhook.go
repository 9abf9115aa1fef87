package botserver

import (
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/tgspool/tgspool/internal/spool"
)

// noteWebhook is the note of a bot's spool that holds its webhook.
const noteWebhook = "local_webhook"

// Limits of setWebhook, as Telegram has them.
const (
	maxHookURL       = 2048
	maxSecret        = 256
	defaultHookConns = 40
	maxHookConns     = 100
)

// hookNote is a webhook as it is kept over restarts.
type hookNote struct {
	URL            string `json:"url"`
	Secret         string `json:"secret,omitempty"`
	MaxConnections int    `json:"max_connections"`
	// Client is who has set it; empty: the bot's own token. Its limits count for
	// the calls in answers, too, and with the client the webhook goes.
	Client string `json:"client,omitempty"`
}

// loadHookLocked reads what the spool holds of a webhook, once.
func (s *Server) loadHookLocked(b *spool.Bot, t *taker) {
	if t.loaded {
		return
	}
	raw, err := b.Note(noteWebhook)
	var n hookNote
	if err == nil && raw != nil {
		err = json.Unmarshal(raw, &n)
	}
	switch {
	case errors.Is(err, spool.ErrClosed):
		return
	case err != nil:
		s.log.LogAttrs(s.stopping, slog.LevelError, "the webhook that was set can't be read; it must be set again",
			slog.String("bot", b.Name()), slog.Any("err", err))
	case n.URL != "":
		t.hook = newHook(s, b, n)
	}
	t.loaded = true
}

// setWebhook has updates pushed to a program on this machine.
func (s *Server) setWebhook(c *call) {
	address, _ := c.params.Text("url")
	if address = strings.TrimSpace(address); address == "" {
		s.deleteWebhook(c)
		return
	}
	n, refused := s.readHook(c, address)
	if refused != nil {
		fail(c.w, refused)
		return
	}
	t := s.updates.taker(c.Bot.Spool)
	s.noteAllowed(c, t)
	if !s.dropPending(c) {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	s.loadHookLocked(c.Bot.Spool, t)
	if t.hook != nil && t.hook.note == n {
		described(c.w, "Webhook is already set")
		return
	}
	if !s.keepHook(c, marshal(n)) {
		return
	}
	t.replaceHookLocked(newHook(s, c.Bot.Spool, n))
	t.abortLocked(textSetHook)
	s.startHookLocked(t)
	s.log.LogAttrs(c.r.Context(), slog.LevelInfo, "updates are pushed to a local webhook",
		slog.String("bot", c.Bot.Name), slog.String("client", c.Client), slog.String("addr", hostOf(address)))
	described(c.w, "Webhook was set")
}

// deleteWebhook ends the pushing; what is in flight ends by itself.
func (s *Server) deleteWebhook(c *call) {
	if !s.dropPending(c) {
		return
	}
	t := s.updates.taker(c.Bot.Spool)
	t.mu.Lock()
	defer t.mu.Unlock()
	s.loadHookLocked(c.Bot.Spool, t)
	if t.hook == nil {
		described(c.w, "Webhook is already deleted")
		return
	}
	if !s.keepHook(c, nil) {
		return
	}
	t.replaceHookLocked(nil)
	s.log.LogAttrs(c.r.Context(), slog.LevelInfo, "the local webhook is deleted", slog.String("bot", c.Bot.Name), slog.String("client", c.Client))
	described(c.w, "Webhook was deleted")
}

// keepHook puts a webhook on disk, or takes it away, before the caller hears of
// it.
func (s *Server) keepHook(c *call, note []byte) bool {
	if err := c.Bot.Spool.SetNote(c.r.Context(), noteWebhook, note); err != nil {
		s.log.LogAttrs(c.r.Context(), slog.LevelWarn, "the webhook can't be stored", slog.String("bot", c.Bot.Name), slog.Any("err", err))
		fail(c.w, later(storeRetry, "tgspool: the spool can't be used at the moment"))
		return false
	}
	return true
}

// dropPending drops what waits for the client, where it asks for that. Nothing
// of it is Telegram's business; it stays to be replayed.
func (s *Server) dropPending(c *call) bool {
	if !c.params.Bool("drop_pending_updates") {
		return true
	}
	n, err := c.Bot.Spool.DropPulls(c.r.Context(), "dropped by the client: "+c.method.Name+" with drop_pending_updates")
	if err != nil {
		s.log.LogAttrs(c.r.Context(), slog.LevelWarn, "updates can't be dropped", slog.String("bot", c.Bot.Name), slog.Any("err", err))
		fail(c.w, later(storeRetry, "tgspool: the spool can't be used at the moment"))
		return false
	}
	if n > 0 {
		s.log.LogAttrs(c.r.Context(), slog.LevelWarn, "a client has dropped all updates that waited for it; tgspool inbox replay brings them back",
			slog.String("bot", c.Bot.Name), slog.String("client", c.Client), slog.String("method", c.method.Name), slog.Int("count", n))
	}
	return true
}

// readHook reads and checks the parameters of setWebhook.
func (s *Server) readHook(c *call, address string) (hookNote, *apiError) {
	n := hookNote{URL: address, MaxConnections: defaultHookConns, Client: c.Client}
	u, err := url.Parse(address)
	if err != nil || u.Hostname() == "" || u.Scheme != "http" && u.Scheme != "https" || len(address) > maxHookURL {
		return n, errorf(http.StatusBadRequest, "invalid webhook URL specified")
	}
	if !s.pushing.MayReach(u.Hostname()) {
		return n, errorf(http.StatusBadRequest, "bad webhook: tgspool pushes to this machine and to the hosts of api.webhook_hosts only")
	}
	n.Secret, _ = c.params.Text("secret_token")
	switch {
	case len(n.Secret) > maxSecret:
		return n, errorf(http.StatusBadRequest, "secret token is too long")
	case strings.Trim(n.Secret, secretChars) != "":
		return n, errorf(http.StatusBadRequest, "secret token contains unallowed characters")
	}
	if most, ok := c.params.Int("max_connections"); ok && most != 0 {
		n.MaxConnections = int(min(max(most, 1), maxHookConns))
	}
	return n, nil
}

const secretChars = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-"

// hostOf is what of a webhook's URL may stand in a log: its path may hold the
// token.
func hostOf(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return ""
	}
	return u.Host
}

// described answers true with a description, as Telegram does here.
func described(w http.ResponseWriter, text string) {
	write(w, http.StatusOK, marshal(struct {
		OK          bool   `json:"ok"`
		Result      bool   `json:"result"`
		Description string `json:"description"`
	}{true, true, text}))
}

// webhookInfo is the result of getWebhookInfo.
type webhookInfo struct {
	URL           string   `json:"url"`
	Custom        bool     `json:"has_custom_certificate"`
	Pending       int64    `json:"pending_update_count"`
	LastErrorDate int64    `json:"last_error_date,omitempty"`
	LastError     string   `json:"last_error_message,omitempty"`
	LastSyncError int64    `json:"last_synchronization_error_date,omitempty"`
	MaxConns      int      `json:"max_connections,omitempty"`
	Allowed       []string `json:"allowed_updates,omitempty"`
}

// getWebhookInfo tells of the local webhook, and of what keeps updates from
// coming in: nowhere else does a client hear of it.
func (s *Server) getWebhookInfo(c *call) {
	pending, err := c.Bot.Spool.PullCount()
	if err != nil && !errors.Is(err, spool.ErrClosed) {
		s.log.LogAttrs(c.r.Context(), slog.LevelWarn, "the updates can't be counted", slog.String("bot", c.Bot.Name), slog.Any("err", err))
	}
	info := webhookInfo{Pending: pending}
	if raw, err := c.Bot.Spool.Note(noteAllowedUpdates); err == nil && raw != nil {
		_ = json.Unmarshal(raw, &info.Allowed) // it is ours
	}
	t := s.updates.taker(c.Bot.Spool)
	t.mu.Lock()
	s.loadHookLocked(c.Bot.Spool, t)
	hook := t.hook
	t.mu.Unlock()
	if hook != nil {
		info.URL, info.MaxConns = hook.note.URL, hook.note.MaxConnections
		info.LastErrorDate, info.LastError = hook.lastError()
	}
	if c.Bot.Upstream != nil {
		if trouble, since := c.Bot.Upstream(); trouble != "" {
			info.LastSyncError = since.Unix()
			if info.LastError == "" {
				info.LastErrorDate, info.LastError = since.Unix(), "tgspool: "+trouble
			}
		}
	}
	succeed(c.w, marshal(info))
}

// unixOrZero is a time in seconds, 0 for none.
func unixOrZero(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.Unix()
}
