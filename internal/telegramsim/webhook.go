package telegramsim

import (
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
)

const hookTimeout = 60 * time.Second // for one delivery

// webhook is where a bot's updates are pushed to. Sim.mu guards it.
type webhook struct {
	bot      *bot
	url      string
	secret   string
	ip       string
	custom   bool // certificate
	maxConns int

	stop   chan struct{}        // closed when the webhook is removed
	kick   chan struct{}        // holds one: something may have become due
	busy   map[string]bool      // order keys that are being delivered
	failed map[*event]*delivery // updates that have been tried
	good   time.Time            // of the last success, or of the setting
	gone   time.Time            // since when it answers 410 and nothing else

	errorAt   time.Time
	errorText string
}

// delivery is the history of an update that could not be delivered yet.
type delivery struct {
	failures int
	due      time.Time
}

// kickLocked wakes the pusher.
func (h *webhook) kickLocked() {
	select {
	case h.kick <- struct{}{}:
	default:
	}
}

// stopHookLocked ends pushing and forgets the webhook.
func (b *bot) stopHookLocked() {
	if b.hook != nil {
		close(b.hook.stop)
		b.hook = nil
	}
}

// methodSetWebhook answers setWebhook. An empty URL removes the webhook.
func methodSetWebhook(s *Sim, c *call) (any, *apiError) {
	address := strings.TrimSpace(c.params.get("url"))
	if address == "" {
		return methodDeleteWebhook(s, c)
	}
	next, err := s.readWebhook(c, address)
	if err != nil {
		return nil, err
	}
	b := c.bot
	before := b.allowed
	b.allowLocked(c.params)
	if c.params.truth("drop_pending_updates") {
		b.queue.clear()
	}
	if old := b.hook; old != nil && old.url == next.url && old.secret == next.secret &&
		old.maxConns == next.maxConns && old.ip == next.ip && sameSet(before, b.allowed) {
		c.description = "Webhook is already set"
		return true, nil
	}
	b.stopHookLocked()
	b.hook = next
	b.abortPollLocked(conflict(textSetHook), b.conflictDelayLocked(time.Now()))
	if !s.shutDown {
		s.pushers.Add(1)
		go s.pushUpdates(next)
	}
	c.description = "Webhook was set"
	return true, nil
}

// readWebhook checks the parameters of setWebhook.
func (s *Sim) readWebhook(c *call, address string) (*webhook, *apiError) {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" || (u.Scheme != "http" && u.Scheme != "https") {
		return nil, badRequest("invalid webhook URL specified")
	}
	secret := c.params.get("secret_token")
	if len(secret) > 256 {
		return nil, badRequest("secret token is too long")
	}
	for _, r := range secret {
		if !strings.ContainsRune("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-", r) {
			return nil, badRequest("secret token contains unallowed characters")
		}
	}
	conns := 40
	if c.params.has("max_connections") {
		conns = int(min(max(c.params.integer("max_connections"), 1), 100))
	}
	return &webhook{
		bot: c.bot, url: address, secret: secret, ip: c.params.get("ip_address"), maxConns: conns,
		custom: c.params.uploads["certificate"] != nil,
		stop:   make(chan struct{}), kick: make(chan struct{}, 1),
		busy: make(map[string]bool), failed: make(map[*event]*delivery), good: time.Now(),
	}, nil
}

// sameSet compares two sets of kinds.
func sameSet(a, b map[string]bool) bool {
	return slices.Equal(sortedKinds(a), sortedKinds(b))
}

// methodDeleteWebhook answers deleteWebhook.
func methodDeleteWebhook(_ *Sim, c *call) (any, *apiError) {
	if c.params.truth("drop_pending_updates") {
		c.bot.queue.clear()
	}
	c.description = "Webhook is already deleted"
	if c.bot.hook != nil {
		c.description = "Webhook was deleted"
		c.bot.stopHookLocked()
	}
	return true, nil
}

// methodGetWebhookInfo answers getWebhookInfo.
func methodGetWebhookInfo(_ *Sim, c *call) (any, *apiError) {
	b, h := c.bot, c.bot.hook
	b.queue.expire(time.Now())
	o := object{{"url", ""}, {"has_custom_certificate", false}, {"pending_update_count", b.queue.count}}
	if h != nil {
		o[0].value, o[1].value = h.url, h.custom
		o = append(o, field{"max_connections", h.maxConns})
		if h.ip != "" {
			o = append(o, field{"ip_address", h.ip})
		}
		if !h.errorAt.IsZero() {
			o = append(o, field{"last_error_date", h.errorAt.Unix()}, field{"last_error_message", h.errorText})
		}
	}
	if b.allowed != nil {
		o = append(o, field{"allowed_updates", sortedKinds(b.allowed)})
	}
	return o, nil
}

// sortedKinds is a set of kinds as a list.
func sortedKinds(set map[string]bool) []string {
	list := make([]string, 0, len(set))
	for kind := range set {
		list = append(list, kind)
	}
	slices.Sort(list)
	return list
}

// statusText is how getWebhookInfo words an answer that is no success.
func statusText(code int) string {
	return "Wrong response from the webhook: " + strconv.Itoa(code) + " " + http.StatusText(code)
}
