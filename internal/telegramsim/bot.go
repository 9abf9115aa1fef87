package telegramsim

import (
	"time"
)

// bot is the state of one account in one environment. Sim.mu guards it.
type bot struct {
	sim      *Sim
	id       int64
	token    string
	username string
	test     bool
	born     time.Time // close is refused in the first ten minutes

	revoked   bool // 401 from now on
	loggedOut bool // 400 "Logged out" from now on

	queue   queue
	allowed map[string]bool // nil: the default set

	parked       *parkedPoll
	lastOffset   int64     // of the previous getUpdates, for the anti-spin rules
	lastPoll     time.Time // its start
	nextConflict time.Time // until then a 409 is held back for 3 s

	hook *webhook

	messageID int64 // one counter for private chats and basic groups
	commands  map[string]string
	threads   map[threadKey]bool
}

// threadKey names a forum topic.
type threadKey struct {
	chat, thread int64
}

// authLocked finds the bot of a call, or says why there is none.
func (s *Sim) authLocked(c *call) (*bot, *apiError) {
	id, ok := tokenID(c.token)
	if !ok {
		// The open server says 401 here; the public one hides malformed paths.
		return nil, failure(404, "Not Found")
	}
	b := s.bots[botKey(c.token, c.test)]
	if b == nil && c.test {
		if live := s.bots[c.token]; live != nil && !live.revoked {
			b = s.addBotLocked(Bot{Token: c.token, Username: live.username}, true)
		}
	}
	if b == nil && s.opts.AcceptAnyToken && id > 0 {
		b = s.addBotLocked(Bot{Token: c.token}, c.test)
	}
	switch {
	case b == nil || b.revoked:
		return nil, failure(401, "Unauthorized")
	case b.loggedOut:
		return nil, failure(400, "Logged out")
	}
	return b, nil
}

// RevokeToken makes every later call with the token a 401, and ends a parked
// poll with one.
func (s *Sim) RevokeToken(token string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if b := s.bots[token]; b != nil {
		b.revoked = true
		b.abortPollLocked(failure(401, "Unauthorized"), 0)
	}
}

// RestoreToken undoes RevokeToken.
func (s *Sim) RestoreToken(token string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if b := s.bots[token]; b != nil {
		b.revoked = false
	}
}

// user is the bot as a User object.
func (b *bot) user() object {
	return object{{"id", b.id}, {"is_bot", true}, {"first_name", b.username}, {"username", b.username}}
}

// methodGetMe answers getMe.
func methodGetMe(_ *Sim, c *call) (any, *apiError) {
	return append(c.bot.user(),
		field{"can_join_groups", true},
		field{"can_read_all_group_messages", false},
		field{"supports_inline_queries", false},
		field{"can_connect_to_business", false},
		field{"has_main_web_app", false},
	), nil
}

// closeGrace is how long after its start an instance can't be closed.
const closeGrace = 10 * time.Minute

// methodClose answers close. The instance comes back by itself at the next call.
func methodClose(_ *Sim, c *call) (any, *apiError) {
	if left := closeGrace - time.Since(c.bot.born); left > 0 {
		return nil, tooMany(int((left + time.Second - 1) / time.Second))
	}
	c.bot.born = time.Now()
	return true, nil
}

// methodLogOut answers logOut. From then on the account is gone from here.
func methodLogOut(_ *Sim, c *call) (any, *apiError) {
	c.bot.loggedOut = true
	c.bot.abortPollLocked(failure(400, "Logged out"), 0)
	return true, nil
}

// methodSetMyCommands answers setMyCommands.
func methodSetMyCommands(_ *Sim, c *call) (any, *apiError) {
	list := c.params.get("commands")
	if !isJSONArray(list) {
		return nil, badRequest("can't parse commands JSON array")
	}
	c.bot.commands[commandScope(c)] = list
	return true, nil
}

// methodGetMyCommands answers getMyCommands.
func methodGetMyCommands(_ *Sim, c *call) (any, *apiError) {
	if list, ok := c.bot.commands[commandScope(c)]; ok {
		return rawJSON(list), nil
	}
	return []any{}, nil
}

// methodDeleteMyCommands answers deleteMyCommands.
func methodDeleteMyCommands(_ *Sim, c *call) (any, *apiError) {
	delete(c.bot.commands, commandScope(c))
	return true, nil
}

// commandScope is the key under which a list of commands is kept.
func commandScope(c *call) string {
	return c.params.get("scope") + "\x00" + c.params.get("language_code")
}
