package spool

import (
	"context"
	"encoding/binary"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// groupWindow is the span that GroupPerMinute counts over.
const groupWindow = 60 * time.Second

// probeGoneAfter is how long an inactive chat is left alone before one job may
// try whether it can be written to again.
const probeGoneAfter = 7 * 24 * time.Hour

// chatName makes a chat's queue key of an id or @name: names are compared
// without regard to case, ids in plain decimal.
func chatName(s string) string {
	s = strings.TrimSpace(s)
	if strings.HasPrefix(s, "@") {
		return strings.ToLower(s)
	}
	if id, err := strconv.ParseInt(s, 10, 64); err == nil {
		return strconv.FormatInt(id, 10)
	}
	return s
}

func chatID(name string) (int64, bool) {
	id, err := strconv.ParseInt(name, 10, 64)
	return id, err == nil
}

// lookupChat finds a chat's number by one of its names; 0 when it is new.
func (t *txn) lookupChat(b *Bot, name string) uint32 {
	if v := t.get(bAlias, nameKey(b.num, name)); len(v) == 4 {
		return binary.BigEndian.Uint32(v)
	}
	return 0
}

// internChat finds a chat's number, giving it one when it is new.
func (t *txn) internChat(b *Bot, name string) (uint32, *chatRec) {
	if no := t.lookupChat(b, name); no != 0 {
		if c := t.chat(b, no); c != nil {
			return no, c
		}
	}
	b.rec.ChatNo++
	t.touchBot(b)
	no, c := b.rec.ChatNo, &chatRec{Name: name}
	t.put(bAlias, nameKey(b.num, name), binary.BigEndian.AppendUint32(nil, no))
	t.touchChat(b, no, c)
	t.changedChat(b, c)
	return no, c
}

// addAlias gives a chat another name. When another chat had it, that one's
// waiting jobs move over and both are one from then on.
func (t *txn) addAlias(b *Bot, no uint32, c *chatRec, name string) {
	other := t.lookupChat(b, name)
	if other == no {
		return
	}
	if other != 0 && !t.handOver(b, c, other, name) {
		t.absorb(b, no, other)
	}
	t.put(bAlias, nameKey(b.num, name), binary.BigEndian.AppendUint32(nil, no))
	if name != c.Name && !slices.Contains(c.Others, name) {
		c.Others = append(c.Others, name)
	}
	t.touchChat(b, no, c)
}

// handOver takes a @name from a chat that is known by another id: Telegram lets
// names change hands, and then only the name moves, never a chat's jobs.
func (t *txn) handOver(b *Bot, to *chatRec, from uint32, name string) bool {
	old := t.chat(b, from)
	if old == nil || !strings.HasPrefix(name, "@") {
		return false
	}
	_, oldIsID := chatID(old.Name)
	_, newIsID := chatID(to.Name)
	if !oldIsID || !newIsID {
		return false
	}
	old.Others = slices.DeleteFunc(old.Others, func(s string) bool { return s == name })
	t.touchChat(b, from, old)
	return true
}

// absorb moves the waiting jobs of one chat into another's queue. Their order
// numbers are the bot's, so that they fall into place.
func (t *txn) absorb(b *Bot, into, from uint32) {
	t.unready(b, from)
	t.unready(b, into)
	for lane := range Lanes() {
		var orders []uint64
		var values [][]byte
		p := queuePrefix(b.num, from, byte(lane))
		t.each(bQueue, p, p, func(k, v []byte) bool {
			orders, values = append(orders, u64at(k, len(p))), append(values, append([]byte(nil), v...))
			return true
		})
		for i, order := range orders {
			t.del(bQueue, queueKey(b.num, from, byte(lane), order))
			t.put(bQueue, queueKey(b.num, into, byte(lane), order), values[i])
			if q, ok := readQueued(values[i]); ok {
				t.renumber(b, q.id, into)
			}
		}
	}
	t.moveAliases(b, into, from)
	t.rearm(b, into)
}

// follow finds the number under which a chat's jobs stand now.
func (t *txn) follow(b *Bot, no uint32) uint32 {
	for range 8 { // chats merge once or twice in their life; a longer chain is a fault
		c := t.chat(b, no)
		if c == nil || c.Moved == 0 {
			break
		}
		no = c.Moved
	}
	return no
}

// renumber writes a job's new chat number into its record.
func (t *txn) renumber(b *Bot, id int64, no uint32) {
	if r, err := t.liveJob(b, id); err == nil {
		r.ChatNo = no
		t.putLive(b, r)
	}
}

func (t *txn) moveAliases(b *Bot, into, from uint32) {
	old, c := t.chat(b, from), t.chat(b, into)
	if old == nil || c == nil {
		return
	}
	for _, name := range append([]string{old.Name}, old.Others...) {
		t.put(bAlias, nameKey(b.num, name), binary.BigEndian.AppendUint32(nil, into))
		if name != c.Name && !slices.Contains(c.Others, name) {
			c.Others = append(c.Others, name)
		}
	}
	c.Cooldown, c.GapFree = max(c.Cooldown, old.Cooldown), max(c.GapFree, old.GapFree)
	c.Stamps = append(c.Stamps, old.Stamps...)
	slices.Sort(c.Stamps)
	t.touchChat(b, into, c)
	old.Name, old.Others, old.Moved = "", nil, into
	t.touchChat(b, from, old)
}

// see takes over what an update or an answer told about a chat.
func (t *txn) see(b *Bot, no uint32, c *chatRec, seen *ChatSeen) {
	if seen == nil || !isChatName(c.Name) {
		return // calls that go to no chat have a queue, and no chat to learn of
	}
	defer t.regroup(b, no, c, c.isGroup())
	if seen.ID != 0 {
		name := strconv.FormatInt(seen.ID, 10)
		if _, isID := chatID(c.Name); !isID {
			// Known by @name so far: from now on the id, which never changes hands.
			t.addAlias(b, no, c, name)
			c.Others = append(slices.DeleteFunc(c.Others, func(s string) bool { return s == name }), c.Name)
			c.Name = name
			t.touchChat(b, no, c)
		}
	}
	if seen.Type != "" && seen.Type != c.Type {
		c.Type = seen.Type
		t.touchChat(b, no, c)
	}
	if seen.Username != "" {
		t.addAlias(b, no, c, "@"+strings.ToLower(seen.Username))
	}
}

// regroup lets a chat's queue know that the group window counts from now on, or
// no longer: the chat opens later or earlier than its heads have been told.
func (t *txn) regroup(b *Bot, no uint32, c *chatRec, was bool) {
	if c.isGroup() != was {
		t.unready(b, no)
		t.rearm(b, no)
	}
}

// migrate gives a chat its new id: all that waits goes there, in order. A
// chat that comes back to an id that it had before is a loop and refused.
func (t *txn) migrate(b *Bot, no uint32, c *chatRec, to int64) error {
	name := strconv.FormatInt(to, 10)
	if name == c.Name {
		return nil
	}
	if slices.Contains(c.Migrated, name) {
		return fmt.Errorf("chat %s migrated to %s, where it came from: %w", c.Name, name, ErrConflict)
	}
	old := c.Name
	defer t.regroup(b, no, c, c.isGroup())
	t.addAlias(b, no, c, name)
	c.Others = append(slices.DeleteFunc(c.Others, func(s string) bool { return s == name }), old)
	c.Migrated = append(c.Migrated, old)
	c.Name, c.Type = name, "supergroup"
	t.touchChat(b, no, c)
	if from, ok := chatID(old); ok {
		t.moveSessions(b, from, to)
	}
	t.changedChat(b, c)
	return nil
}

// deactivate marks a chat as one that can't be written to.
func (t *txn) deactivate(b *Bot, no uint32, c *chatRec, reason string) {
	if c.Gone == "" {
		c.GoneAt = t.now
	}
	c.Gone = reason
	t.touchChat(b, no, c)
	t.changedChat(b, c)
}

func (t *txn) activate(b *Bot, no uint32, c *chatRec) {
	if c.Gone != "" {
		c.Gone, c.GoneAt = "", 0
		t.touchChat(b, no, c)
		t.changedChat(b, c)
	}
}

// isGroup says whether the group window counts for the chat. Ids and names of
// an unknown type count as groups: later is allowed, earlier never.
func (c *chatRec) isGroup() bool {
	switch c.Type {
	case "private", "channel":
		return false
	case "group", "supergroup":
		return true
	}
	id, ok := chatID(c.Name)
	return ok && id < 0 || strings.HasPrefix(c.Name, "@")
}

// opensAt is when the chat's gates let a job go; 0 or the past is now.
func (c *chatRec) opensAt(l Limits, weight byte, retryAt int64) int64 {
	at := max(retryAt, c.Cooldown)
	if weight == 0 {
		return at
	}
	if l.ChatGap > 0 && c.GapFree > 0 {
		at = max(at, c.GapFree-int64(l.ChatBurst-1)*int64(l.ChatGap))
	}
	return max(at, c.windowOpensAt(l, int(weight)))
}

// windowOpensAt is when the group window has room for weight more messages.
func (c *chatRec) windowOpensAt(l Limits, weight int) int64 {
	n := l.GroupPerMinute
	if n <= 0 || !c.isGroup() {
		return 0
	}
	// An album bigger than the window goes when the window is empty.
	over := len(c.Stamps) + min(weight, n) - n
	if over <= 0 {
		return 0
	}
	return c.Stamps[min(over, len(c.Stamps))-1] + int64(groupWindow)
}

// spend notes that messages have reached the chat, counted from their end. It
// reports whether that changes anything.
func (c *chatRec) spend(l Limits, now int64, weight int) (changed bool) {
	if weight == 0 {
		return false
	}
	if l.ChatGap > 0 {
		c.GapFree = max(c.GapFree, now) + int64(l.ChatGap)*int64(weight)
	}
	if l.GroupPerMinute <= 0 || !c.isGroup() {
		return l.ChatGap > 0
	}
	c.Stamps = slices.DeleteFunc(c.Stamps, func(at int64) bool { return at+int64(groupWindow) <= now })
	for range weight {
		c.Stamps = append(c.Stamps, now)
	}
	if drop := len(c.Stamps) - l.GroupPerMinute; drop > 0 {
		c.Stamps = slices.Delete(c.Stamps, 0, drop)
	}
	return true
}

// view makes the public form of a chat.
func (c *chatRec) view(now int64, clock *timeline) Chat {
	out := Chat{
		Aliases: append([]string{}, c.Others...), Type: textPtr(c.Type),
		Active: c.Gone == "", InactiveReason: textPtr(c.Gone), LastSeenAt: clock.atPtr(c.Seen),
	}
	if id, ok := chatID(c.Name); ok {
		out.ChatID = &id
	} else {
		out.Aliases = append([]string{c.Name}, out.Aliases...)
	}
	if c.Cooldown > now {
		out.CooldownUntil = clock.atPtr(c.Cooldown)
	}
	return out
}

// Chats lists the bot's chats in the order in which they were met.
func (b *Bot) Chats(after int64, limit int) (ChatPage, error) {
	page := ChatPage{Items: []Chat{}}
	limit = pageSize(limit)
	err := b.s.view(func(t *txn) error {
		t.each(bChat, botKey(b.num), chatKey(b.num, uint32(after)+1), func(k, v []byte) bool {
			if len(page.Items) == limit {
				return false
			}
			page.Next = int64(u32at(k, 2))
			c, err := decode[chatRec](k, v)
			if err == nil && isChatName(c.Name) {
				page.Items = append(page.Items, c.view(t.now, t.s.clock))
			}
			return true
		})
		return nil
	})
	if len(page.Items) < limit {
		page.Next = 0
	}
	return page, err
}

// isChatName tells chats from the queues of calls that go to none.
func isChatName(name string) bool {
	_, isID := chatID(name)
	return isID || strings.HasPrefix(name, "@")
}

// Chat finds a chat by its id in decimal or one of its @names.
func (b *Bot) Chat(name string) (chat Chat, err error) {
	err = b.s.view(func(t *txn) error {
		c := t.chat(b, t.lookupChat(b, chatName(name)))
		if c == nil || !isChatName(c.Name) {
			return fmt.Errorf("chat %q: %w", name, ErrNotFound)
		}
		chat = c.view(t.now, t.s.clock)
		return nil
	})
	return chat, err
}

// ActivateChat says that a chat can be written to again.
func (b *Bot) ActivateChat(ctx context.Context, name string) (Chat, error) {
	return b.changeChat(ctx, name, func(t *txn, no uint32, c *chatRec) { t.activate(b, no, c) })
}

// DeactivateChat says that a chat is not to be written to, and why.
func (b *Bot) DeactivateChat(ctx context.Context, name, reason string) (Chat, error) {
	return b.changeChat(ctx, name, func(t *txn, no uint32, c *chatRec) { t.deactivate(b, no, c, reason) })
}

func (b *Bot) changeChat(ctx context.Context, name string, fn func(*txn, uint32, *chatRec)) (chat Chat, err error) {
	err = b.s.do(ctx, 256, func(t *txn) error {
		no := t.lookupChat(b, chatName(name))
		c := t.chat(b, no)
		if c == nil || !isChatName(c.Name) {
			return fmt.Errorf("chat %q: %w", name, ErrNotFound)
		}
		fn(t, no, c)
		chat = c.view(t.now, t.s.clock)
		return nil
	})
	return chat, err
}
