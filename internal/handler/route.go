package handler

import (
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"time"

	"github.com/tgspool/tgspool/internal/botapi"
)

// Reply says what a program's standard output is.
type Reply string

// The forms of an answer.
const (
	ReplyText  Reply = "text"  // a text for the update's chat
	ReplyCalls Reply = "calls" // one method call a line, as JSON
)

// The defaults of a route.
const (
	DefaultTimeout    = 30 * time.Second
	DefaultAttempts   = 5
	DefaultParallel   = 8
	DefaultOnceMaxAge = time.Minute // the MaxAge of a route with Once that has none
)

// RouteConfig is one route: which updates it takes and what is done with them.
// Exactly one of Exec, Webhook and Pull is set.
type RouteConfig struct {
	Name  string // in logs and lists; one of its kind in a bot
	Match Match

	Exec    []string // the program, an absolute path, and its arguments
	Webhook string   // the URL that the update is posted to
	Pull    bool     // clients take the updates by themselves

	Reply      Reply // with Exec; default ReplyText
	AllowFrom  Allow // with Exec: whose updates may run the program
	AllowChats Allow // with Exec: from which chats; this or AllowFrom must be given

	Timeout  time.Duration // of one run; default DefaultTimeout
	Attempts int           // until an update is dead; default DefaultAttempts
	Parallel int           // runs at once; default DefaultParallel
	Once     bool          // never a second start for one update
	MaxAge   time.Duration // older updates expire; 0: none, or DefaultOnceMaxAge with Once

	PerUser         bool          // its session is that of a user in the chat, not the chat's
	Collapse        time.Duration // the same press or command of one user within it counts once; 0: each counts
	AnswerCallbacks bool          // pressed buttons are answered for the handler, at once
	Typing          bool          // the chat shows typing while the handler works
	// Texts for the update's chat; empty: nothing is said.
	Ack     string // at once; the handler's first text then takes its place
	Late    string // when the update was older than MaxAge
	OnError string // when it is dead
	Denied  string // with Exec: when its sender or chat isn't allowed

	SecretFile     string // with Webhook: the file of the secret that is sent along; empty: none
	MaxConnections int    // with Webhook: requests at once; default Parallel
}

// Match says which updates a route takes. What is empty takes all; several
// values of one field are alternatives; all that is given must hold.
type Match struct {
	Commands []string // with slash, without the bot's name, in any case
	Kinds    []string // as Telegram names them: message, callback_query, …
	Chats    []int64
	From     []int64
	Text     string // RE2, searched in the text, caption, pressed button's data or query
}

// Allow is a list of users or chats. The zero value stands for a list that
// wasn't given; one that was given and is empty (IDs not nil) allows nobody.
type Allow struct {
	All bool // everyone, also an update without a sender or chat
	IDs []int64
}

func (a Allow) given() bool { return a.All || a.IDs != nil }

// allows takes id 0 for an update that has no sender or chat.
func (a Allow) allows(id int64) bool { return a.All || id != 0 && slices.Contains(a.IDs, id) }

// runs reports whether the route has a program that we start ourselves.
func (c RouteConfig) runs() bool { return len(c.Exec) > 0 }

// ours reports whether we hand the route's updates over by ourselves.
func (c RouteConfig) ours() bool { return c.runs() || c.Webhook != "" }

// workers is how many updates of the route are handled at once.
func (c RouteConfig) workers() int {
	if c.Webhook != "" && c.MaxConnections > 0 {
		return c.MaxConnections
	}
	return c.Parallel
}

// denies reports whether the update's sender or chat may not run the program.
func (c RouteConfig) denies(u botapi.Update) bool {
	if !c.runs() {
		return false
	}
	return c.AllowFrom.given() && !c.AllowFrom.allows(u.UserID) ||
		c.AllowChats.given() && !c.AllowChats.allows(u.ChatID)
}

// withDefaults fills in what wasn't given.
func (c RouteConfig) withDefaults() RouteConfig {
	if c.Reply == "" {
		c.Reply = ReplyText
	}
	if c.Timeout <= 0 {
		c.Timeout = DefaultTimeout
	}
	if c.Attempts <= 0 {
		c.Attempts = DefaultAttempts
	}
	if c.Parallel <= 0 {
		c.Parallel = DefaultParallel
	}
	if c.Once && c.MaxAge <= 0 {
		c.MaxAge = DefaultOnceMaxAge
	}
	return c
}

// check refuses a route that can't be what its writer meant.
func (c RouteConfig) check() error {
	ways := 0
	for _, is := range []bool{c.runs(), c.Webhook != "", c.Pull} {
		if is {
			ways++
		}
	}
	switch {
	case c.Name == "":
		return errors.New("a route has no name")
	case ways != 1:
		return fmt.Errorf("route %q needs exactly one of exec, webhook and pull", c.Name)
	case !c.runs():
		return nil
	case !filepath.IsAbs(c.Exec[0]):
		return fmt.Errorf("route %q: program %q is no absolute path", c.Name, c.Exec[0])
	case c.Reply != "" && c.Reply != ReplyText && c.Reply != ReplyCalls:
		return fmt.Errorf("route %q: reply %q is neither text nor calls", c.Name, c.Reply)
	case !c.AllowFrom.given() && !c.AllowChats.given():
		return fmt.Errorf("route %q: allow_from or allow_chats is required", c.Name)
	}
	return nil
}

// pattern compiles the regular expression; nil when there is none.
func (m Match) pattern() (*regexp.Regexp, error) {
	if m.Text == "" {
		return nil, nil
	}
	re, err := regexp.Compile(m.Text)
	if err != nil {
		return nil, fmt.Errorf("compiling the pattern of text: %w", err)
	}
	return re, nil
}
