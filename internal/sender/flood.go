package sender

import (
	"sync"
	"time"
)

// shortFlood is how long a flood may be to be taken for the bot's own. Telegram
// doesn't say whom it means. Short ones, the overload of exactly 60 s among
// them, come when a bot is too fast as a whole; long ones mostly mean one chat.
const shortFlood = time.Minute

// floods remembers which chats are flooded, to tell whom the next flood means.
// It is lost at a restart, which only makes it take the bot for meant later.
type floods struct {
	scope FloodScope

	mu    sync.Mutex
	until map[string]time.Time // chats with a long flood that isn't over
	waits time.Time            // until when the bot is known to wait
}

// meansBot reports whether a flood of a call to a chat makes the whole bot
// wait, and remembers it. An empty chat is a call that has none.
func (f *floods) meansBot(chat string, retryAfter time.Duration, now time.Time) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	others := false
	for name, until := range f.until {
		switch {
		case !now.Before(until):
			delete(f.until, name)
		case name != chat:
			others = true
		}
	}
	if chat != "" && retryAfter > shortFlood {
		f.until[chat] = now.Add(retryAfter)
	}
	switch {
	case chat == "" || f.scope == FloodBot:
		return true
	case f.scope == FloodChat:
		return false
	}
	return retryAfter <= shortFlood || others
}

// begins reports whether the bot begins to wait now, and remembers until when.
// Of the calls that were in flight only the first one's flood begins anything.
func (f *floods) begins(now, until time.Time) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	waited := now.Before(f.waits)
	f.waits = later(f.waits, until)
	return !waited
}
