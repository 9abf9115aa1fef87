package config

import (
	"slices"
	"strconv"
	"strings"
)

// at returns the place of a key that a file sets, else that of the nearest
// table around it that a file has.
func (d *decoder) at(id string) Position {
	for {
		if n, ok := d.set[id]; ok {
			if n.kind == kindTable || n.kind == kindTables {
				return n.at
			}
			return n.val
		}
		i := strings.LastIndexByte(id, '.')
		if i < 0 {
			return Position{}
		}
		id = id[:i]
	}
}

// given reports whether a file gives the key a value that isn't empty.
func (d *decoder) given(id string) bool {
	n, ok := d.set[id]
	return ok && (n.kind != kindString || n.text != "") && (n.kind != kindBool || n.text != "false")
}

// verify checks what spans several keys, and fills in what depends on others.
func (d *decoder) verify(cfg *Config) {
	d.verifyListen(cfg)
	for i := range cfg.Bots {
		bot := &cfg.Bots[i]
		id := "bots." + bot.Name
		d.verifyIntake(bot, id+".intake")
		d.verifyHandlers(bot, id+".handlers")
		d.verifyClients(cfg, bot, id+".clients")
		d.verifyAdmin(bot, id)
	}
}

// verifyListen settles what is served at each address.
func (d *decoder) verifyListen(cfg *Config) {
	for i := range cfg.API.Listen {
		l := &cfg.API.Listen[i]
		id := "api.listen." + strconv.Itoa(i)
		fail := func(key, why, hint string) { d.fail(d.at(id+"."+key), "api.listen", why, hint) }
		if (l.TLSCert == "") != (l.TLSKey == "") {
			fail("tls_cert", "tls_cert and tls_key belong together", "give both or none")
		}
		if l.Network() == "unix" && l.TLSCert != "" {
			fail("tls_cert", "a unix socket has no TLS", "")
		}
		for _, other := range cfg.API.Listen[:i] {
			if other.Addr == l.Addr && l.Addr != "" {
				fail("addr", show(l.Addr)+" is there twice", "remove one of the two")
			}
		}
		if l.Serve == nil {
			l.Serve = []string{"bot", "manage", "metrics"}
			if l.Exposed() {
				l.Serve = []string{"bot"}
			}
		}
		switch {
		case len(l.Serve) == 0:
			fail("serve", "serves nothing", "bot, manage, metrics, submit")
		case l.Exposed() && slices.ContainsFunc(l.Serve, func(role string) bool { return role != "bot" }):
			fail("serve", "off this machine without TLS nothing but bot can be served", "give tls_cert and tls_key, or listen on 127.0.0.1")
		}
	}
}

// verifyIntake checks that a webhook of our own has what it needs.
func (d *decoder) verifyIntake(bot *Bot, id string) {
	in := bot.Intake
	if (in.TLSCert == "") != (in.TLSKey == "") {
		d.fail(d.at(id+".tls_cert"), id+".tls_cert", "tls_cert and tls_key belong together", "give both or none")
	}
	if in.Mode != "webhook" {
		return
	}
	if !d.given(id + ".secret_file") {
		d.fail(d.at(id+".mode"), id+".secret_file", "missing", `mode = "webhook" needs a secret, so that nobody else can post updates`)
	}
}

// verifyHandlers checks each handler and fills in what depends on its kind.
func (d *decoder) verifyHandlers(bot *Bot, path string) {
	first := map[string]Position{}
	for i := range bot.Handlers {
		h := &bot.Handlers[i]
		id := path + "." + strconv.Itoa(i)
		d.uniqueName(first, h.Name, id, path)
		if d.verifyTarget(id, path) {
			d.verifyKind(h, id, path)
		}
		if h.Once && h.MaxAge == 0 && !d.given(id+".max_age") {
			h.MaxAge = defaultOnceAge
		}
		if h.MaxConnections == 0 {
			h.MaxConnections = h.Parallel
		}
		if _, ok := d.set[id+".answer_callbacks"]; !ok {
			h.AnswerCallbacks = h.Kind() == "exec" && h.Reply == "text"
		}
	}
}

// uniqueName reports a name that an earlier table of the list has too.
func (d *decoder) uniqueName(first map[string]Position, name, id, path string) {
	if name == "" {
		return
	}
	at := d.at(id + ".name")
	if was, ok := first[name]; ok {
		d.fail(at, path+".name", show(name)+" is there twice, first at "+was.String(), "")
		return
	}
	first[name] = at
}

// verifyTarget reports whether the handler has exactly one of exec, webhook and
// pull.
func (d *decoder) verifyTarget(id, path string) bool {
	var have []string
	for _, key := range []string{"exec", "webhook", "pull"} {
		if d.given(id + "." + key) {
			have = append(have, key)
		}
	}
	switch len(have) {
	case 0:
		d.fail(d.at(id), path, "does nothing", "give exec, webhook or pull = true")
	case 1:
		return true
	default:
		d.fail(d.at(id+"."+have[1]), path, "has both "+have[0]+" and "+have[1], "make two handlers of it")
	}
	return false
}

// verifyKind reports keys that don't belong to the handler's kind: they would
// be ignored, and with allow_from that would be dangerous.
func (d *decoder) verifyKind(h *Handler, id, path string) {
	kind := ""
	for _, key := range []string{"exec", "webhook", "pull"} {
		if d.given(id + "." + key) {
			kind = key
		}
	}
	for _, f := range handlerFields() {
		if f.only == "" || f.only == kind || !d.given(id+"."+f.name) {
			continue
		}
		hint := ""
		if strings.HasPrefix(f.name, "allow_") {
			hint = "a " + kind + " handler decides by itself; match = { from = … } narrows what it gets"
		}
		d.fail(d.at(id+"."+f.name), path+"."+f.name, "only for handlers with "+f.only, hint)
	}
	if kind != "exec" {
		// Nobody is kept out here: the bot's code decides by itself.
		h.AllowFrom, h.AllowChats = Allow{All: true}, Allow{All: true}
		return
	}
	_, from := d.set[id+".allow_from"]
	_, chats := d.set[id+".allow_chats"]
	switch {
	case !from && !chats:
		d.fail(d.at(id+".exec"), path+".allow_from", "missing: a program must say who may run it",
			`allow_from = ["me"] or allow_chats = ["me"]; ["*"] is everyone`)
	case !from:
		h.AllowFrom = Allow{All: true}
	case !chats:
		h.AllowChats = Allow{All: true}
	}
}

// verifyClients checks the clients and fills in what they take from elsewhere.
func (d *decoder) verifyClients(cfg *Config, bot *Bot, path string) {
	names, hashes := map[string]Position{}, map[string]string{}
	for i := range bot.Clients {
		c := &bot.Clients[i]
		id := path + "." + strconv.Itoa(i)
		d.uniqueName(names, c.Name, id, path)
		if other, ok := hashes[c.TokenSHA256]; ok && c.TokenSHA256 != "" {
			d.fail(d.at(id+".token_sha256"), path+".token_sha256", "the same token as client "+show(other), "one token, one client")
		}
		hashes[c.TokenSHA256] = c.Name
		if c.MaxWait == 0 {
			c.MaxWait = cfg.API.MaxWait
		}
		if c.OnUncertain == "" {
			c.OnUncertain = bot.Sender.OnUncertain
		}
		if c.TTL == 0 {
			c.TTL = bot.Sender.TTL
		}
	}
}

// verifyAdmin checks that a group's decisions are those of named users: anyone
// can be in a group.
func (d *decoder) verifyAdmin(bot *Bot, id string) {
	chat := bot.Admin.Chat
	if chat == "" || len(bot.Admin.Users) > 0 || (chat[0] != '-' && chat[0] != '@') {
		return
	}
	if n, ok := d.set[id+".admin.users"]; ok && len(n.items) > 0 {
		return // wrong users are reported there
	}
	at := d.at(id + ".chats.me")
	if d.given(id + ".admin.chat") {
		at = d.at(id + ".admin.chat")
	}
	d.fail(at, id+".admin.users", "missing: the admin chat is a group", "list the users who may decide")
}
