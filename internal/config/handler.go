package config

import (
	"slices"
	"time"
)

// Handler is one [[bots.NAME.handlers]] table: which updates it takes and what
// is done with them. Exactly one of Exec, Webhook and Pull is set.
type Handler struct {
	Name  string `toml:"name" form:"word" required:"true" example:"uptime" doc:"The handler's name in logs, metrics and lists; one of its kind in a bot."`
	Match Match  `toml:"match"`

	Exec    []string `toml:"exec" only:"exec" form:"argv" example:"[\"/usr/bin/uptime\"]" doc:"The program to run and its arguments; no shell. The update comes as JSON on its standard input."`
	Webhook string   `toml:"webhook" only:"webhook" form:"url" example:"http://127.0.0.1:3000/telegram" doc:"The local URL that the update is posted to, as Telegram would post it."`
	Pull    bool     `toml:"pull" only:"pull" example:"true" doc:"The bot's code fetches the updates itself, by getUpdates or by leases."`

	Reply      string `toml:"reply" only:"exec" default:"text" enum:"text|calls" doc:"What standard output is: a text for the chat, or one method call a line as JSON."`
	AllowFrom  Allow  `toml:"allow_from" only:"exec" form:"user" example:"[\"me\"]" doc:"Whose updates may run the program: names of chats, ids, or [\"*\"] for everyone, also updates without a sender. This or allow_chats is required."`
	AllowChats Allow  `toml:"allow_chats" only:"exec" form:"chat" example:"[\"*\"]" doc:"From which chats updates may run the program: names of chats, ids, or [\"*\"] for all."`

	Timeout  time.Duration `toml:"timeout" default:"30s" min:"1s" doc:"How long one run may take; then the whole process group is killed, or the request ended."`
	Attempts int           `toml:"attempts" default:"5" min:"1" doc:"How often an update is tried before it is dead. A handler that can't be reached burns none."`
	Once     bool          `toml:"once" default:"false" doc:"Never run twice for an update: a run that may have happened makes it dead instead."`
	MaxAge   time.Duration `toml:"max_age" min:"0s" doc:"Updates older than this are expired, not handed over. Empty: no limit, or 60s with once."`
	Late     string        `toml:"late" doc:"A text for the user whose update was older than max_age. Empty: nothing is said."`
	Collapse time.Duration `toml:"collapse" min:"0s" doc:"The same command or button pressed by one user again within this time counts once. Empty: each counts."`
	Parallel int           `toml:"parallel" default:"8" min:"1" max:"1024" doc:"How many updates are handled at once; those of one chat always one after the other."`
	Typing   bool          `toml:"typing" default:"false" doc:"Whether the chat shows typing while the handler works."`
	Ack      string        `toml:"ack" doc:"A text sent at once, which the handler's first text then replaces. Other calls may name its message by {\"$job\": \"ack:UPDATE_ID\"}. Empty: none."`
	OnError  string        `toml:"on_error" doc:"A text for the user when the update is given up. Empty: nothing is said."`
	Denied   string        `toml:"denied" only:"exec" doc:"A text for a sender who isn't allowed. Empty: nothing is said."`
	Session  string        `toml:"session" default:"chat" enum:"chat|chat+user" doc:"Whom a session belongs to."`

	AnswerCallbacks bool   `toml:"answer_callbacks" doc:"Whether callback queries are answered at once for the handler. Absent: yes for exec with reply = \"text\", else no."`
	SecretFile      string `toml:"secret_file" only:"webhook" form:"path" example:"/etc/tgspool/credentials/home.push" doc:"A file with the secret sent in X-Telegram-Bot-Api-Secret-Token. Absent: none is sent."`
	MaxConnections  int    `toml:"max_connections" only:"webhook" min:"0" max:"1024" doc:"How many requests to the URL may be open at once. Absent or 0: as many as parallel."`
}

// Match says which updates a handler takes; what is empty takes all. Several
// values of one key are alternatives; all keys given must hold.
type Match struct {
	Command []string `toml:"command" form:"command" example:"\"/uptime\"" doc:"Commands, with slash, without the bot's name."`
	Kind    []string `toml:"kind" form:"kind" doc:"Kinds of updates, such as message or callback_query."`
	Chat    []int64  `toml:"chat" form:"chat" doc:"Chats: names of chats, or ids."`
	From    []int64  `toml:"from" form:"user" doc:"Senders: names of chats, or ids."`
	Text    string   `toml:"text" form:"regexp" doc:"A regular expression (RE2) that the text or caption must match."`
}

// Kind returns "exec", "webhook" or "pull".
func (h Handler) Kind() string {
	switch {
	case len(h.Exec) > 0:
		return "exec"
	case h.Webhook != "":
		return "webhook"
	default:
		return "pull"
	}
}

// CatchAll reports whether the handler takes every update.
func (m Match) CatchAll() bool {
	return len(m.Command) == 0 && len(m.Kind) == 0 && len(m.Chat) == 0 && len(m.From) == 0 && m.Text == ""
}

// Allow is a list of users or chats. The zero value allows nobody.
type Allow struct {
	// All is set by "*": everyone, also an update that has no such id at all.
	All bool
	// IDs are the ids that the names stand for; empty when All is set.
	IDs []int64
}

// Allows reports whether the id is in the list. Pass 0 for an update that has
// no sender or chat; only All allows that.
func (a Allow) Allows(id int64) bool {
	return a.All || (id != 0 && slices.Contains(a.IDs, id))
}

// Client is one [[bots.NAME.clients]] table: a token of our own making, and
// what whoever shows it may do.
type Client struct {
	Name        string        `toml:"name" form:"word" required:"true" example:"doorbell" doc:"The client's name; one of its kind in a bot."`
	TokenSHA256 string        `toml:"token_sha256" form:"sha256" required:"true" secret:"true" example:"9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08" doc:"The SHA-256 of the whole token, in hex. tgspool client add writes it."`
	Methods     []string      `toml:"methods" form:"method" example:"[\"sendMessage\", \"sendPhoto\"]" doc:"The methods it may call; [\"*\"] for all, empty for none."`
	Chats       []string      `toml:"chats" form:"chat" example:"[\"me\"]" doc:"The chats it may write to: names of chats, ids, @names; [\"*\"] for all, empty for none."`
	Full        bool          `toml:"full" default:"false" doc:"Whether it may also take updates, set webhooks and read files."`
	Lane        string        `toml:"lane" enum:"interactive|normal|bulk" doc:"The lane of its jobs. Empty: as for every caller."`
	MaxWait     time.Duration `toml:"max_wait" min:"0s" doc:"The longest wait of a call for its answer. Empty: api.max_wait."`
	OnUncertain string        `toml:"on_uncertain" enum:"hold|resend|resend_marked|drop" doc:"As the sender's on_uncertain, which counts when this is empty."`
	TTL         time.Duration `toml:"ttl" min:"0s" doc:"The default expiry of its jobs. Empty: the sender's ttl."`
	Rate        float64       `toml:"rate" default:"0" min:"0" doc:"Calls a second. 0: no limit of its own."`
}

// MayCall reports whether the client may call the method, in whatever case it
// is spelled.
func (c Client) MayCall(method string) bool {
	return slices.ContainsFunc(c.Methods, func(m string) bool { return m == "*" || equalFold(m, method) })
}

// equalFold compares two ASCII names without regard to case. Folding of other
// letters is left out on purpose: no method has any.
func equalFold(a, b string) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range len(a) {
		if lower(a[i]) != lower(b[i]) {
			return false
		}
	}
	return true
}

// lower returns the lower-case form of an ASCII letter, other bytes as they are.
func lower(c byte) byte {
	if c >= 'A' && c <= 'Z' {
		return c + ('a' - 'A')
	}
	return c
}
