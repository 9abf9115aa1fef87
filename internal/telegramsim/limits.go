package telegramsim

import (
	"encoding/json"
	"math"
	"time"
)

// Limits are the flood limits of a strict simulator. A field that is zero sets
// no limit of its kind.
type Limits struct {
	// BotPerSecond is how many calls a second one bot may make, over all
	// chats, after a burst of BotBurst.
	BotPerSecond float64
	BotBurst     int
	// ChatGap is the time between two messages in one chat; ChatBurst
	// messages may come at once after a pause.
	ChatGap   time.Duration
	ChatBurst int
	// GroupPerMinute is how many messages a minute a group or channel takes,
	// beside ChatGap.
	GroupPerMinute int
	// Absorb is the longest wait that the server takes upon itself: the call
	// is slow and succeeds. Telegram waits up to 8 s. 0 answers 429 at once.
	Absorb time.Duration
	// MaxRetryAfter caps the growing waits of a bot that ignores them; 0 means
	// 15 minutes.
	MaxRetryAfter time.Duration
}

// DefaultLimits are the limits that Telegram's documentation speaks of: about
// one message a second in a chat, twenty a minute in a group, thirty a second
// in all.
func DefaultLimits() *Limits {
	return &Limits{BotPerSecond: 30, BotBurst: 30, ChatGap: time.Second, ChatBurst: 3, GroupPerMinute: 20}
}

// floodKey names a bucket: a bot's own has chat 0, a group's minute is apart.
type floodKey struct {
	bot    *bot
	chat   int64
	minute bool
}

// floodgate holds the buckets of a strict simulator. Sim.mu guards it.
type floodgate struct {
	chats map[floodKey]*bucket
}

// bucket refills with time. While it is closed every try makes the wait longer.
type bucket struct {
	tokens float64
	filled time.Time
	closed time.Time     // refusals until then
	wait   time.Duration // of the last refusal, 0 when there was none since
}

// rule is the rate of one bucket.
type rule struct {
	perSecond float64
	burst     float64
}

// floodRules are the buckets that a call draws from.
func (s *Sim) floodRules(c *call, weight int) map[floodKey]rule {
	l := s.opts.Strict
	if l == nil || weight == 0 {
		return nil
	}
	rules := make(map[floodKey]rule)
	if l.BotPerSecond > 0 {
		rules[floodKey{bot: c.bot}] = rule{l.BotPerSecond, float64(max(l.BotBurst, 1))}
	}
	ch := s.chats[c.chatID]
	if weight < 2 || ch == nil {
		return rules
	}
	if l.ChatGap > 0 {
		rules[floodKey{bot: c.bot, chat: ch.id}] = rule{1 / l.ChatGap.Seconds(), float64(max(l.ChatBurst, 1))}
	}
	if l.GroupPerMinute > 0 && ch.kind != kindPrivate {
		n := float64(l.GroupPerMinute)
		rules[floodKey{bot: c.bot, chat: ch.id, minute: true}] = rule{n / 60, n}
	}
	return rules
}

// cost is how many messages a call makes.
func cost(c *call) float64 {
	for _, name := range []string{"media", "message_ids"} {
		var list []json.RawMessage
		if c.params.has(name) && json.Unmarshal([]byte(c.params.get(name)), &list) == nil && len(list) > 0 {
			return float64(len(list))
		}
	}
	return 1
}

// floodLocked takes the call's tokens, or refuses it with the longest of the
// waits.
func (s *Sim) floodLocked(c *call, weight int) *apiError {
	now, n := time.Now(), cost(c)
	rules := s.floodRules(c, weight)
	var longest time.Duration
	for key, r := range rules {
		b := s.flood.chats[key]
		if b == nil {
			b = &bucket{tokens: r.burst, filled: now}
			s.flood.chats[key] = b
		}
		longest = max(longest, b.refusal(r, n, now, s.maxRetryAfter()))
	}
	if longest > 0 {
		return tooMany(int(math.Ceil(longest.Seconds())))
	}
	for key := range rules {
		b := s.flood.chats[key]
		b.tokens -= n
		b.wait = 0
	}
	return nil
}

// maxRetryAfter is the cap of growing waits.
func (s *Sim) maxRetryAfter() time.Duration {
	if m := s.opts.Strict.MaxRetryAfter; m > 0 {
		return m
	}
	return 15 * time.Minute
}

// missing is how long the bucket needs until it holds n tokens. More than the
// burst it never holds: a large call waits for a full bucket.
func (b *bucket) missing(r rule, n float64, now time.Time) time.Duration {
	b.tokens = min(r.burst, b.tokens+now.Sub(b.filled).Seconds()*r.perSecond)
	b.filled = now
	lack := min(n, r.burst) - b.tokens
	if lack <= 1e-9 {
		return 0
	}
	return time.Duration(lack / r.perSecond * float64(time.Second))
}

// refusal is the wait that the bucket demands, 0 to let the call through. A
// call inside a wait doubles it.
func (b *bucket) refusal(r rule, n float64, now time.Time, limit time.Duration) time.Duration {
	lack := b.missing(r, n, now)
	if now.Before(b.closed) {
		b.wait = min(max(2*b.wait, lack), limit)
	} else {
		b.wait = lack
	}
	if b.wait == 0 {
		return 0
	}
	// Whole seconds are what the client is told, so whole seconds are held.
	b.wait = time.Duration(math.Ceil(b.wait.Seconds())) * time.Second
	b.closed = now.Add(b.wait)
	return b.wait
}

// absorb is how long a call is held back before it is tried, because the server
// waits out short floods by itself.
func (s *Sim) absorb(c *call, weight int) time.Duration {
	if s.opts.Strict == nil || s.opts.Strict.Absorb <= 0 {
		return 0
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if ch, err := s.findChatLocked(c.params.get("chat_id")); err == nil {
		c.chatID = ch.id
	}
	now, n := time.Now(), cost(c)
	var longest time.Duration
	for key, r := range s.floodRules(c, weight) {
		if b := s.flood.chats[key]; b != nil {
			longest = max(longest, b.missing(r, n, now), b.closed.Sub(now))
		}
	}
	if longest > s.opts.Strict.Absorb {
		return 0
	}
	return longest
}
