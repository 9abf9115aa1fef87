package config

import (
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Check returns what is allowed in the settings but hardly meant: it is shown by
// tgspool config check and logged at start, and stops nothing.
func Check(cfg *Config) []Problem {
	c := &checker{cfg: cfg}
	if len(cfg.Bots) == 0 {
		c.add("bots", "no bot is configured", "run tgspool setup, or add [bots.NAME] in conf.d")
	}
	if cfg.Daemon.Drain > maxDrain {
		c.add("daemon.drain", "systemd ends the process 30s after it asks for a stop", "at most "+maxDrain.String())
	}
	if cfg.Store.KeepSize > cfg.Store.MaxSize {
		c.add("store.keep_size", "larger than max_size: ended records alone may fill the store", "")
	}
	if cfg.API.Socket() == "" {
		c.add("api.listen", "no unix socket serves manage: the commands can't reach the daemon", "add \"unix:/run/tgspool/tgspool.sock\"")
	}
	for _, bot := range cfg.Bots {
		c.bot(bot)
	}
	return append(c.problems, cfg.unbuilt...)
}

// maxDrain leaves the daemon time to close the store before systemd's limit.
const maxDrain = 25 * time.Second

// checker collects problems.
type checker struct {
	cfg      *Config
	problems []Problem
}

// add notes a problem at the place of its key, as Where knows it, else at that of
// the nearest table around it.
func (c *checker) add(key, why, hint string) {
	at, ok := c.cfg.Where(key)
	for around := key; !ok; {
		i := strings.LastIndexByte(around, '.')
		if i < 0 {
			break
		}
		around = around[:i]
		at, ok = c.cfg.Where(around)
	}
	c.problems = append(c.problems, Problem{Position: at, Key: key, Why: why, Hint: hint})
}

// bot checks what belongs to one bot.
func (c *checker) bot(bot Bot) {
	id := "bots." + bot.Name
	c.routes(bot, id+".handlers")
	for i, kind := range bot.Intake.AllowedUpdates {
		c.kind(kind, id+".intake.allowed_updates", i)
	}
	if bot.DefaultChat == "" {
		c.add(id+".default_chat", "texts without a chat can't be sent", "name your own chat me in ["+id+".chats]")
	}
	if told := !slices.Contains(notBuilt(), unbuilt{key: "bots.NAME.admin"}); told && bot.Admin.Chat == "" {
		c.add(id+".admin.chat", "nobody is told of trouble in Telegram", "name your own chat me in ["+id+".chats]")
	}
	for i, client := range bot.Clients {
		key := id + ".clients." + strconv.Itoa(i)
		if client.Full && !bot.Pulls() {
			c.add(key+".full", "no update ever waits for client "+client.Name+": no handler has pull = true", `unmatched = "pull", or a pull handler`)
		}
		if !client.Full && (len(client.Methods) == 0 || len(client.Chats) == 0) {
			c.add(key, "client "+client.Name+" may do nothing", `methods and chats; ["*"] is all`)
		}
	}
}

// Pulls reports whether any update of the bot may wait for a client: by a pull
// handler, or because no handler takes it.
func (b Bot) Pulls() bool {
	for _, h := range b.Handlers {
		if h.Pull {
			return true
		}
		if h.Match.CatchAll() {
			return false // nothing gets past it
		}
	}
	return b.Unmatched == "pull"
}

// routes checks the handlers of a bot for those that can't be reached.
func (c *checker) routes(bot Bot, path string) {
	taker := ""
	for i, h := range bot.Handlers {
		key := path + "." + strconv.Itoa(i)
		if taker != "" {
			c.add(key, fmt.Sprintf("handler %s gets nothing: %s before it takes every update", h.Name, taker), "the first match wins; move it up")
		}
		for j, kind := range h.Match.Kind {
			c.kind(kind, key+".match.kind", j)
		}
		if taker == "" && h.Match.CatchAll() {
			taker = h.Name
		}
		c.webhook(h, key)
		c.idle(h, key)
	}
}

// idle notes keys of a handler that nothing acts on, since the bot's code fetches
// the updates by itself.
func (c *checker) idle(h Handler, key string) {
	if !h.Pull {
		return
	}
	for _, k := range []struct {
		name string
		set  bool
	}{
		{"once", h.Once},
		{"late", h.Late != ""},
		{"typing", h.Typing},
		{"ack", h.Ack != ""},
		{"on_error", h.OnError != ""},
		{"answer_callbacks", h.AnswerCallbacks},
	} {
		if k.set {
			c.add(key+"."+k.name, "has no effect with pull = true: the bot's code does that by itself", "")
		}
	}
}

// webhook notes a URL that no update is going to be posted to.
func (c *checker) webhook(h Handler, key string) {
	u, err := url.Parse(h.Webhook)
	if h.Webhook == "" || err != nil {
		return
	}
	host := strings.ToLower(strings.TrimSuffix(u.Hostname(), "."))
	ip, err := netip.ParseAddr(host)
	local := host == "localhost" || err == nil && ip.Unmap().IsLoopback()
	if !local && !slices.ContainsFunc(c.cfg.API.WebhookHosts, func(h string) bool { return strings.EqualFold(strings.Trim(h, "[]"), host) }) {
		c.add(key+".webhook", "updates are posted to this machine only: those of "+h.Name+" wait", "add "+show(host)+" to api.webhook_hosts")
	}
}

// kind notes a kind of update that looks misspelled. Kinds that aren't known at
// all may be newer than this program.
func (c *checker) kind(kind, key string, i int) {
	if slices.Contains(updateKinds, kind) {
		return
	}
	hint := "fine if Telegram has a new one of that name"
	if near := nearest(kind, updateKinds); near != "" {
		hint = "did you mean " + show(near) + "?"
	}
	if _, ok := c.cfg.Where(key + "." + strconv.Itoa(i)); ok {
		key += "." + strconv.Itoa(i)
	}
	c.add(key, show(kind)+" is no kind of update known here", hint)
}

// updateKinds are the kinds of updates that Telegram has, for telling a slip from
// a kind that is newer than this program. Nothing is refused by this list.
var updateKinds = []string{
	"message", "edited_message", "channel_post", "edited_channel_post", "business_connection",
	"business_message", "edited_business_message", "deleted_business_messages", "guest_message",
	"message_reaction", "message_reaction_count", "inline_query", "chosen_inline_result",
	"callback_query", "shipping_query", "pre_checkout_query", "purchased_paid_media", "poll",
	"poll_answer", "my_chat_member", "chat_member", "chat_join_request", "chat_boost",
	"removed_chat_boost", "managed_bot", "subscription", "custom_event", "custom_query",
}

// CheckTokens returns what keeps the bots from their tokens, or keeps those from
// being secret: files that can't be used, and files that others may read. It
// looks at the files as the user who runs it; read says what is wrong with the
// token of a bot, which ReadToken may do.
func CheckTokens(cfg *Config, read func(Bot) error) []Problem {
	c := &checker{cfg: cfg}
	for _, bot := range cfg.Bots {
		key := "bots." + bot.Name
		if bot.TokenFile != "" {
			key += ".token_file"
		}
		if err := read(bot); err != nil {
			why, hint := err.Error(), ""
			if te, ok := errors.AsType[*TokenError](err); ok {
				why, hint = "no usable token: "+te.Source+": "+te.Why, te.Hint
			}
			c.add(key, why, hint)
		}
		c.private(key, bot.TokenFile)
		if bot.Intake.Mode == "webhook" {
			c.private("bots."+bot.Name+".intake.secret_file", bot.Intake.SecretFile)
		}
		for i, h := range bot.Handlers {
			c.secret("bots."+bot.Name+".handlers."+strconv.Itoa(i)+".secret_file", h.SecretFile)
		}
	}
	return c.problems
}

// secret notes a file of a secret that can't be used, or that others may use.
func (c *checker) secret(key, path string) {
	if path == "" {
		return
	}
	if _, err := readFile(path); err != nil {
		c.add(key, path+": "+err.Error(), "the file must hold the secret alone")
	}
	c.private(key, path)
}

// private notes a file of a secret that others than its owner may use.
func (c *checker) private(key, path string) {
	info, err := os.Stat(path)
	if path == "" || err != nil || info.Mode().Perm()&0o077 == 0 {
		return
	}
	c.add(key, fmt.Sprintf("others than its owner may use %s, mode %04o", path, info.Mode().Perm()), "chmod 600 "+path)
}
