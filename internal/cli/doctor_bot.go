package cli

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/url"
	"time"

	"github.com/tgspool/tgspool/internal/botapi"
	"github.com/tgspool/tgspool/internal/config"
)

const (
	// dnsTimeout and askTimeout bound what somebody waits for.
	dnsTimeout = 10 * time.Second
	askTimeout = 20 * time.Second
	// clockSlack is how far this machine's time may be from Telegram's before
	// certificates and expiries suffer.
	clockSlack = 5 * time.Minute
)

// bot looks at one bot's way to Telegram, and at its token.
func (d *doctor) bot(ctx context.Context, bot config.Bot) {
	proxied := d.proxy(ctx, bot)
	if !proxied && !d.dns(ctx, bot) {
		return
	}
	text, source, err := d.a.botToken(d.cfg, bot)
	if err != nil {
		d.say("token", gradeFail, "tgspool setup, or tgspool token set "+bot.Name+"; with sudo if only root may read it", "%s: %s", bot.Name, err)
		return
	}
	token, err := botapi.ParseToken(text)
	if err != nil {
		d.say("token", gradeFail, "a token looks like 123456789:AAE… and comes from @BotFather", "%s: the token in %s: %s", bot.Name, source, err)
		return
	}
	client, err := botapi.NewClient(botapi.Config{Token: token, BaseURL: bot.APIBase, Proxy: bot.Proxy, IPFamily: bot.IPFamily})
	if err != nil {
		d.say("token", gradeFail, "look at api_base and proxy of this bot", "%s: %s", bot.Name, err)
		return
	}
	defer client.Close()
	m := botapi.MethodFor("getMe")
	seen := client.Call(ctx, botapi.Request{Method: m.Name, Timeout: askTimeout})
	out := botapi.Classify(m, nil, seen)
	d.way(bot, seen, out)
	d.clock(bot, seen)
	switch out.Class { //nolint:exhaustive // the others are no word about the token
	case botapi.ClassOK:
		d.say("token", gradeOK, "", "%s: Telegram accepts it (bot %d)", bot.Name, token.BotID())
	case botapi.ClassUnauthorized:
		d.say("token", gradeFail, "ask @BotFather for a new one (/token), then tgspool token set "+bot.Name, "%s: Telegram refuses it", bot.Name)
	}
}

// proxy says whether there is one; names are then looked up by it.
func (d *doctor) proxy(ctx context.Context, bot config.Bot) bool {
	from, proxy := "settings", bot.Proxy
	if proxy == "" {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, bot.APIBase, http.NoBody)
		if err != nil {
			return false
		}
		u, err := http.ProxyFromEnvironment(req)
		if err != nil {
			d.say("proxy", gradeFail, "mend HTTPS_PROXY in the environment", "%s: the environment names a proxy that can't be read", bot.Name)
			return true
		}
		if u == nil {
			d.say("proxy", gradeOK, "", "%s: none", bot.Name)
			return false
		}
		from, proxy = "environment", u.String()
	}
	host := "one that can't be read"
	if u, err := url.Parse(proxy); err == nil {
		host = u.Host // without its password
	}
	d.say("proxy", gradeOK, "", "%s: %s, from the %s", bot.Name, host, from)
	return true
}

// dns looks the server up.
func (d *doctor) dns(ctx context.Context, bot config.Bot) bool {
	u, err := url.Parse(bot.APIBase)
	if err != nil {
		return false // the settings have been checked
	}
	ctx, cancel := context.WithTimeout(ctx, dnsTimeout)
	defer cancel()
	start := time.Now()
	addrs, err := new(net.Resolver).LookupHost(ctx, u.Hostname())
	if err != nil {
		d.say("dns", gradeFail, "is the network up? look at /etc/resolv.conf", "%s: %s can't be looked up: %s", bot.Name, u.Hostname(), plainNetError(err))
		return false
	}
	took := time.Since(start)
	if took > 2*time.Second {
		d.say("dns", gradeWarn, "another name server may be quicker", "%s: %s took %s", bot.Name, u.Hostname(), took.Round(time.Millisecond))
		return true
	}
	d.say("dns", gradeOK, "", "%s: %s has %s", bot.Name, u.Hostname(), plural(len(addrs), "address"))
	return true
}

// plainNetError leaves the resolver's address out, which is nobody's business.
func plainNetError(err error) string {
	if e, ok := errors.AsType[*net.DNSError](err); ok {
		return e.Err
	}
	return err.Error()
}

// way judges the connection.
func (d *doctor) way(bot config.Bot, seen botapi.Seen, out botapi.Outcome) {
	switch {
	case out.Class == botapi.ClassOffline:
		d.say("tls", gradeFail, "is the network up? a firewall, or a clock that is wrong, looks like this, too", "%s: Telegram can't be reached: %s", bot.Name, out.Description)
	case out.Class == botapi.ClassNotTelegram:
		d.say("tls", gradeFail, "a captive portal or a proxy answers: log in there", "%s: it isn't Telegram that answers: %s", bot.Name, out.Description)
	case seen.TLSVerified:
		d.say("tls", gradeOK, "", "%s: verified, answered within %s", bot.Name, seen.Duration.Round(time.Millisecond))
	case out.Class == botapi.ClassOK || out.Class == botapi.ClassUnauthorized:
		d.say("tls", gradeWarn, "api_base without https sends the token in the clear: only on this machine", "%s: not used", bot.Name)
	default:
		d.say("tls", gradeWarn, "try again in a while", "%s: Telegram answers with %s: %s", bot.Name, out.Class, out.Description)
	}
}

// clock compares the time with the server's.
func (d *doctor) clock(bot config.Bot, seen botapi.Seen) {
	if seen.ServerDate.IsZero() {
		return
	}
	off := time.Since(seen.ServerDate).Abs()
	if off > clockSlack {
		d.say("clock", gradeFail, "timedatectl status; a Raspberry Pi has no clock of its own and waits for NTP", "%s off the time of %s's server", off.Round(time.Second), bot.Name)
		return
	}
	d.say("clock", gradeOK, "", "right (to %s)", max(off.Round(time.Second), time.Second))
}
