package handler

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/tgspool/tgspool/internal/botapi"
	"github.com/tgspool/tgspool/internal/spool"
)

// The reasons why an update is ignored.
const (
	IgnoredNotAllowed = "not_allowed" // its sender or chat may not run the route's program
	IgnoredUnmatched  = "unmatched"   // no route takes it
)

// What becomes of updates that no route takes.
const (
	UnmatchedPull   = "pull"   // they wait for a client
	UnmatchedIgnore = "ignore" // nobody gets them
)

// RouterOptions is what a Router needs to know beside the routes.
type RouterOptions struct {
	// Username returns the bot's name without @, which tells "/x@ourname" from
	// a command for another bot of a group. While it is unknown (nil or empty)
	// every name counts as ours.
	Username func() string
	// Now is as in Config.
	Now func() (now time.Time, known bool)
	// Unmatched is UnmatchedPull (default) or UnmatchedIgnore.
	Unmatched string
}

// Router decides which route an update belongs to. It never changes and may be
// used by many goroutines.
type Router struct {
	routes      []matcher
	username    func() string
	now         func() (time.Time, bool)
	unmatched   spool.Route
	fingerprint string
}

// matcher is a route made ready for matching.
type matcher struct {
	RouteConfig
	text *regexp.Regexp // nil: any text
}

// NewRouter checks the routes and returns their router.
func NewRouter(routes []RouteConfig, o RouterOptions) (*Router, error) {
	r := &Router{username: o.Username, now: o.Now}
	switch o.Unmatched {
	case "", UnmatchedPull:
		r.unmatched = spool.Route{Handler: spool.PullRoute}
	case UnmatchedIgnore:
		r.unmatched = spool.Route{Ignore: IgnoredUnmatched}
	default:
		return nil, fmt.Errorf("unmatched %q is neither pull nor ignore", o.Unmatched)
	}
	names := map[string]bool{}
	for _, c := range routes {
		if err := c.check(); err != nil {
			return nil, err
		}
		if names[c.Name] {
			return nil, fmt.Errorf("two routes are named %q", c.Name)
		}
		names[c.Name] = true
		text, err := c.Match.pattern()
		if err != nil {
			return nil, fmt.Errorf("route %q: %w", c.Name, err)
		}
		r.routes = append(r.routes, matcher{RouteConfig: c, text: text})
	}
	var err error
	r.fingerprint, err = fingerprint(routes, r.unmatched)
	return r, err
}

// Route returns where an update goes: to the first route that takes it. A
// sender who isn't allowed doesn't fall through to a later route.
func (r *Router) Route(u botapi.Update) spool.Route {
	for _, m := range r.routes {
		if !m.takes(u, r.username) {
			continue
		}
		switch {
		case m.denies(u):
			return spool.Route{Handler: m.Name, Ignore: IgnoredNotAllowed, Also: m.refusing(u)}
		case m.Pull:
			return spool.Route{Handler: spool.PullRoute, Attempts: m.Attempts, PerUser: m.PerUser, Also: m.expiring(u, m.collapsing(u), r.now)}
		default:
			return spool.Route{Handler: m.Name, PerUser: m.PerUser, Also: m.collapsing(u)}
		}
	}
	return r.unmatched
}

// refusing is what goes with a sender who isn't allowed; nil for silence.
func (m matcher) refusing(u botapi.Update) *spool.Also {
	if m.Denied == "" {
		return nil
	}
	return &spool.Also{Tell: m.told(u, m.Denied)}
}

// expiring adds when an update that a client fetches is too old for its route.
// Where we hand it over ourselves its age is looked at then.
func (m matcher) expiring(u botapi.Update, also *spool.Also, now func() (time.Time, bool)) *spool.Also {
	if m.MaxAge <= 0 {
		return also
	}
	if also == nil {
		also = &spool.Also{}
	}
	left := m.MaxAge
	if at, known := clockOf(now); known {
		left = min(left, max(0, left-age(u, at)))
	}
	also.StaleAt = time.Now().Add(left)
	return also
}

// clockOf is the time by a clock that may be nil, which is the local one.
func clockOf(now func() (time.Time, bool)) (time.Time, bool) {
	if now == nil {
		return time.Now(), true
	}
	return now()
}

// collapsing names a pressed button or a command of a user, so that the same one
// counts once; nil where each counts.
func (m matcher) collapsing(u botapi.Update) *spool.Also {
	var what string
	switch {
	case m.Collapse <= 0 || u.UserID == 0:
		return nil
	case u.Kind == "callback_query":
		what = u.Message + "\x00" + u.Text
	case u.Command != "":
		what = u.Text
	default:
		return nil
	}
	return &spool.Also{
		Collapse: strings.Join([]string{m.Name, decimal(u.ChatID), decimal(u.UserID), u.Kind, what}, "\x00"),
		Window:   m.Collapse, At: u.Date, Tell: m.told(u, ""),
	}
}

// Fingerprint tells two sets of routes apart that send some update to different
// places. How a program is run doesn't count.
func (r *Router) Fingerprint() string { return r.fingerprint }

// Pulls reports whether some update may wait for a client.
func (r *Router) Pulls() bool {
	return r.unmatched.Ignore == "" || slices.ContainsFunc(r.routes, func(m matcher) bool { return m.Pull })
}

// takes reports whether all that the route asks for holds.
func (m matcher) takes(u botapi.Update, username func() string) bool {
	switch {
	case len(m.Match.Commands) > 0 && !m.takesCommand(u, username):
		return false
	case len(m.Match.Kinds) > 0 && !slices.Contains(m.Match.Kinds, u.Kind):
		return false
	case len(m.Match.Chats) > 0 && (u.ChatID == 0 || !slices.Contains(m.Match.Chats, u.ChatID)):
		return false
	case len(m.Match.From) > 0 && (u.UserID == 0 || !slices.Contains(m.Match.From, u.UserID)):
		return false
	case m.text != nil && !m.text.MatchString(u.Text):
		return false
	}
	return true
}

// takesCommand compares as Telegram's own apps do: in any case.
func (m matcher) takesCommand(u botapi.Update, username func() string) bool {
	if !u.New || u.Command == "" || !oursIfNamed(u.CommandBot, username) {
		return false
	}
	return slices.ContainsFunc(m.Match.Commands, func(c string) bool {
		return strings.EqualFold(c, u.Command)
	})
}

// oursIfNamed reports whether a command addressed to bot is for us.
func oursIfNamed(bot string, username func() string) bool {
	if bot == "" || username == nil {
		return true
	}
	ours := username()
	return ours == "" || strings.EqualFold(bot, ours)
}

// fingerprint hashes what routing depends on.
func fingerprint(routes []RouteConfig, unmatched spool.Route) (string, error) {
	type part struct {
		Name                  string
		Match                 Match
		Exec, Pull            bool
		AllowFrom, AllowChats Allow
		PerUser               bool `json:",omitempty"`
		Attempts              int  `json:",omitempty"` // of those that are leased
	}
	parts := make([]part, 0, len(routes))
	for _, c := range routes {
		p := part{Name: c.Name, Match: c.Match, Exec: c.runs(), Pull: c.Pull, AllowFrom: c.AllowFrom, AllowChats: c.AllowChats, PerUser: c.PerUser}
		if c.Pull {
			p.Attempts = c.Attempts
		}
		parts = append(parts, p)
	}
	b, err := json.Marshal(struct {
		Routes    []part
		Unmatched spool.Route
	}{parts, unmatched})
	if err != nil {
		return "", fmt.Errorf("hashing the routes: %w", err)
	}
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:8]), nil
}
