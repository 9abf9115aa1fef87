package daemon

import (
	"encoding/hex"
	"strings"
	"time"

	"github.com/tgspool/tgspool/internal/botserver"
	"github.com/tgspool/tgspool/internal/config"
	"github.com/tgspool/tgspool/internal/intake"
	"github.com/tgspool/tgspool/internal/spool"
)

// useClients makes the clients of the settings known to the bot endpoint, at a
// start, a reload, and when a bot gets its first token. Those of a bot that
// can't work are left out: its id isn't known.
func (d *daemon) useClients(cfg *config.Config) {
	var list []botserver.Client
	for _, c := range cfg.Bots {
		b := d.bots.bot(c.Name)
		if b == nil || b.broken != "" {
			continue
		}
		for _, client := range c.Clients {
			list = append(list, clientOf(b.client.BotID(), client))
		}
	}
	d.clients.Set(list)
}

func clientOf(bot int64, c config.Client) botserver.Client {
	out := botserver.Client{
		Bot: bot, Name: c.Name, Methods: c.Methods, Chats: c.Chats, Full: c.Full, Rate: c.Rate,
		Lane: spool.Lane(c.Lane), MaxWait: c.MaxWait, OnUncertain: spool.Policy(c.OnUncertain), TTL: c.TTL,
	}
	// The settings have been checked: it is a hash. Were it none, it would be zero,
	// which is no token's.
	_, _ = hex.Decode(out.SHA256[:], []byte(strings.ToLower(c.TokenSHA256)))
	return out
}

// allowedChanged has Telegram asked anew: a local client wants other kinds of
// updates. It counts only where the settings say nothing of them.
func (b *bot) allowedChanged() {
	if k, ok := b.intake.(interface{ Kick() }); ok {
		k.Kick()
	}
}

// upstream says what keeps updates from coming in, for getWebhookInfo.
func (b *bot) upstream() (trouble string, since time.Time) {
	if b.intake == nil {
		return "", time.Time{} // nobody wants any
	}
	s := b.intake.State()
	if s.State == intake.OK {
		return "", time.Time{}
	}
	trouble = "updates don't come in, intake is " + string(s.State)
	if s.Detail != "" {
		trouble += ": " + s.Detail
	}
	return trouble, s.Since
}

// pulling is how long after its last call a client counts as one that polls.
const pulling = 60 * time.Second

// pullHint says that a client polls for updates that never come.
func (b *bot) pullHint(d *daemon) string {
	if b.broken != "" || d.botapi == nil {
		return ""
	}
	b.mu.Lock()
	pulls := b.cfg.Pulls()
	b.mu.Unlock()
	last := d.botapi.Polled(b.spool)
	if pulls || last.IsZero() || time.Since(last) > pulling {
		return ""
	}
	return "a client polls for updates, and the handlers leave none: pull = true in a handler, or unmatched = \"pull\" and none that takes all"
}
