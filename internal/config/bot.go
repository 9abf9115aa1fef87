package config

import (
	"strconv"
	"strings"
	"time"
)

// Bot is one [bots.NAME] table.
type Bot struct {
	// Name is the key of the table; "default" for the bot of the environment.
	Name string

	// Chats comes first: every list of chats after it may use its names. The
	// values are ids in decimal or @names.
	Chats map[string]string `toml:"chats" example:"12345" doc:"Names for chats and users, for use wherever an id stands: name = id, or name = \"@username\"."`

	TokenFile   string `toml:"token_file" form:"path" example:"/etc/tgspool/credentials/home.token" doc:"A file with the bot's token. Absent: the systemd credential bot_NAME.token, which tgspool token set writes."`
	APIBase     string `toml:"api_base" default:"https://api.telegram.org" form:"base" required:"true" restart:"true" doc:"The Bot API server."`
	Proxy       string `toml:"proxy" form:"proxy" secret:"true" restart:"true" doc:"The proxy to Telegram, http://, https:// or socks5://. Empty: the environment's."`
	IPFamily    string `toml:"ip_family" default:"auto" enum:"auto|4|6" restart:"true" doc:"The IP version used to reach Telegram."`
	Unmatched   string `toml:"unmatched" default:"pull" enum:"pull|ignore" doc:"What becomes of updates that no handler takes: they wait for a client (pull), or are ignored."`
	DefaultChat string `toml:"default_chat" default:"me" form:"chat" doc:"The chat that texts go to when none is named. me counts only where chats has that name."`

	Intake   Intake    `toml:"intake"`
	Sender   Sender    `toml:"sender"`
	Handlers []Handler `toml:"handlers"`
	Clients  []Client  `toml:"clients"`
	Admin    Admin     `toml:"admin"`
}

// Intake says how updates come from Telegram.
type Intake struct {
	Mode           string        `toml:"mode" default:"poll" enum:"poll|webhook|off" restart:"true" doc:"How updates come: by long poll, by a webhook of our own, or not at all."`
	PollTimeout    time.Duration `toml:"poll_timeout" default:"50s" min:"1s" max:"50s" doc:"How long Telegram holds a poll open when there is nothing new."`
	AllowedUpdates []string      `toml:"allowed_updates" form:"kind" unset:"true" example:"[\"message\", \"callback_query\"]" doc:"The kinds of updates to ask Telegram for. Absent: what local clients last asked for; an empty list: Telegram's own default."`
	TakeOver       bool          `toml:"take_over" default:"false" doc:"Whether a webhook that someone else has set is removed (no update is dropped) so that polling can start."`
	URL            string        `toml:"url" form:"https" example:"https://bot.example.org/telegram/home" restart:"true" doc:"With mode = \"webhook\": the address to register with Telegram. Absent: you register it yourself."`
	Listen         string        `toml:"listen" default:"127.0.0.1:8443" form:"hostport" restart:"true" doc:"With mode = \"webhook\": where to listen for Telegram or the proxy before it."`
	SecretFile     string        `toml:"secret_file" form:"path" example:"/etc/tgspool/credentials/home.webhook" doc:"With mode = \"webhook\", required: a file with the secret that Telegram sends along."`
	TLSCert        string        `toml:"tls_cert" form:"path" restart:"true" doc:"With mode = \"webhook\": the certificate file (PEM). Absent: a proxy or tunnel ends TLS."`
	TLSKey         string        `toml:"tls_key" form:"path" restart:"true" doc:"The file of the certificate's private key (PEM)."`
}

// Sender says how jobs go to Telegram. A value of 0 switches a gate off.
type Sender struct {
	Workers        int           `toml:"workers" default:"16" min:"1" max:"256" restart:"true" doc:"How many calls may be in flight at once."`
	Rate           float64       `toml:"rate" default:"25.0" min:"0" doc:"Calls a second of the whole bot. 0: no limit of our own."`
	PaidRate       float64       `toml:"paid_rate" default:"0" min:"0" doc:"Calls a second with allow_paid_broadcast. 0: no limit of our own."`
	ChatGap        time.Duration `toml:"chat_gap" default:"1.05s" min:"0s" doc:"The least time between two messages to one chat. 0s: none."`
	ChatBurst      int           `toml:"chat_burst" default:"1" min:"1" doc:"How many messages may go to a chat at once before chat_gap counts."`
	GroupPerMinute int           `toml:"group_per_minute" default:"20" min:"0" doc:"The most messages to one group in any 60 seconds. 0: no limit of our own."`
	MaxAttempts    int           `toml:"max_attempts" default:"8" min:"1" doc:"How often a job is tried before it is dead. Outages and floods don't count."`
	OnUncertain    string        `toml:"on_uncertain" default:"hold" enum:"hold|resend|resend_marked|drop" doc:"What becomes of a call that may or may not have arrived: it waits for a decision, is sent again, is sent again with a note, or is dropped."`
	UncertainFor   time.Duration `toml:"uncertain_for" default:"72h" min:"1m" doc:"How long an uncertain job waits for a decision before it is cancelled."`
	FloodScope     string        `toml:"flood_scope" default:"auto" enum:"auto|bot|chat" doc:"Whom a flood wait holds up. auto: a short one the bot, a long one the chat."`
	TTL            time.Duration `toml:"ttl" min:"0s" doc:"The default expiry of a job, counted from its acceptance. Empty: none."`
	LateNote       time.Duration `toml:"late_note" default:"10m" min:"0s" doc:"Texts of the commands and of notify that go out later than this end with the time of writing. 0s: never."`
	RequestTimeout time.Duration `toml:"request_timeout" default:"60s" min:"1s" doc:"How long an answer may take, counted from the last byte written."`
	StallTimeout   time.Duration `toml:"stall_timeout" default:"60s" min:"1s" doc:"How long writing a request may stand still."`
}

// Admin says who is told of trouble and may decide, in Telegram itself.
type Admin struct {
	Chat  string  `toml:"chat" default:"me" form:"chat" doc:"The chat for alerts and decisions. me counts only where chats has that name; empty: none."`
	Users []int64 `toml:"users" form:"user" doc:"Who may decide there. Empty: the user whose private chat it is; needed when the chat is a group."`
}

// ResolveChat returns the chat that a name of [bots.NAME.chats], an integer or
// an @name stands for, as the text that goes into chat_id. It is false when the
// text is none of these.
func (b Bot) ResolveChat(nameOrID string) (string, bool) {
	s := strings.TrimSpace(nameOrID)
	if id, ok := b.Chats[s]; ok {
		return id, true
	}
	return chatText(s)
}

// chatText returns the form of an id or @name that goes into chat_id, false
// when s is neither.
func chatText(s string) (string, bool) {
	if name, ok := strings.CutPrefix(s, "@"); ok {
		if !validName(name, 64) {
			return "", false
		}
		return s, true
	}
	id, err := strconv.ParseInt(s, 10, 64)
	if err != nil || id == 0 {
		return "", false
	}
	return strconv.FormatInt(id, 10), true
}

// validName reports whether s is made of 1 to limit letters, digits and
// underscores.
func validName(s string, limit int) bool {
	if s == "" || len(s) > limit {
		return false
	}
	for _, c := range []byte(s) {
		if c != '_' && (c < '0' || c > '9') && (c < 'A' || c > 'Z') && (c < 'a' || c > 'z') {
			return false
		}
	}
	return true
}
