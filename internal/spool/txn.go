package spool

import (
	"errors"
	"fmt"

	bolt "go.etcd.io/bbolt"
	bolterrors "go.etcd.io/bbolt/errors"
)

// txn is one write transaction of the writer: the records that it has read or
// changed, and what is to happen in memory once it is on disk. A read
// transaction uses the same type without ever changing anything.
type txn struct {
	s     *Store
	tx    *bolt.Tx
	now   int64 // Unix nanoseconds, the same for all transitions of the transaction
	chats map[uint64]*chatRec
	dirty map[uint64]bool // chats to be written back
	bots  map[*Bot]bool   // bots whose record is to be written back

	writes int      // changes so far: a transition that fails after one is undone with its whole transaction
	taken  []int64  // jobs whose place the record under way takes over
	nested int      // how deep tellWaiting is in a chain of jobs
	again  bool     // there is more to do than fits: run again at once
	bytes  int      // payload written, to bound the transaction
	after  []func() // run after the commit
	undo   []func() // run, last first, when the transaction is given up
}

func (s *Store) begin(tx *bolt.Tx) *txn {
	return &txn{
		s: s, tx: tx, now: s.clock.now(),
		chats: map[uint64]*chatRec{}, dirty: map[uint64]bool{}, bots: map[*Bot]bool{},
	}
}

// view runs fn in a read transaction. Nothing that fn gets from it may be kept
// unless copied; fn must be short, since pages freed meanwhile can't be reused.
func (s *Store) view(fn func(*txn) error) error {
	err := guarded(func() error {
		return s.db.View(func(tx *bolt.Tx) error { return fn(s.begin(tx)) })
	})
	if isFileDamage(err) {
		s.fail(err)
	}
	if errors.Is(err, bolterrors.ErrDatabaseNotOpen) {
		return ErrClosed
	}
	return err
}

func (t *txn) bucket(name []byte) *bolt.Bucket { return t.tx.Bucket(name) }

func (t *txn) get(bucket []byte, k key) []byte { return t.bucket(bucket).Get(k) }

// put and del write at once. They fail only where the file can't be changed at
// all, which fails the whole transaction.
func (t *txn) put(bucket []byte, k key, v []byte) {
	t.writes++
	t.bytes += len(k) + len(v)
	b := t.bucket(bucket)
	if appends(bucket) {
		b.FillPercent = 0.9
	}
	if err := b.Put(k, v); err != nil {
		panic(storeFault{fmt.Errorf("writing %s: %w", bucket, err)})
	}
}

func (t *txn) del(bucket []byte, k key) {
	t.writes++
	if err := t.bucket(bucket).Delete(k); err != nil {
		panic(storeFault{fmt.Errorf("deleting from %s: %w", bucket, err)})
	}
}

// appends names the buckets whose keys mostly ascend: full pages are right there.
func appends(bucket []byte) bool {
	switch string(bucket) {
	case "live", "ended", "inbox", "inended", "seen", "body", "inbody":
		return true
	}
	return false
}

// storeFault carries an error of the file itself out of a transition.
type storeFault struct{ err error }

// prefix returns the first key at or after from that begins with prefix.
func (t *txn) first(bucket []byte, prefix key) (k, v []byte) {
	k, v = t.bucket(bucket).Cursor().Seek(prefix)
	if !hasPrefix(k, prefix) {
		return nil, nil
	}
	return k, v
}

func hasPrefix(k, prefix []byte) bool {
	return len(k) >= len(prefix) && string(k[:len(prefix)]) == string(prefix)
}

// each walks the keys of a prefix from start until fn says stop.
func (t *txn) each(bucket []byte, prefix, start key, fn func(k, v []byte) (more bool)) {
	c := t.bucket(bucket).Cursor()
	for k, v := c.Seek(start); hasPrefix(k, prefix); k, v = c.Next() {
		if !fn(k, v) {
			return
		}
	}
}

// setAside moves a damaged record out of the way, so that it is kept for
// inspection and stops nobody.
func (t *txn) setAside(bucket []byte, k key, err error) {
	v := append([]byte(nil), t.get(bucket, k)...)
	id := append(append(append(key{}, bucket...), 0), k...)
	t.put(bDamaged, id, v)
	t.del(bucket, k)
	t.after = append(t.after, func() { t.s.reportDamage(string(bucket), err) })
}

// chat reads a chat's record; nil when there is none.
func (t *txn) chat(b *Bot, no uint32) *chatRec {
	id := uint64(b.num)<<32 | uint64(no)
	if c, ok := t.chats[id]; ok {
		return c
	}
	k := chatKey(b.num, no)
	v := t.get(bChat, k)
	if v == nil {
		return nil
	}
	c, err := decode[chatRec](k, v)
	if err != nil {
		c = t.lostChat(b, no)
		t.after = append(t.after, func() { t.s.reportDamage("chat", err) })
	}
	t.chats[id] = c
	return c
}

// lostChat stands in for a record that is damaged or gone. Its name is found
// again by alias; its gates are not. Being too careful is safe: a minute's pause.
func (t *txn) lostChat(b *Bot, no uint32) *chatRec {
	return &chatRec{Name: t.nameOf(b, no), Cooldown: t.now + int64(groupWindow)}
}

// queuedChat is chat for one that may have a queue: jobs whose chat's record is
// gone must not wait for ever. It is nil where nothing waits.
func (t *txn) queuedChat(b *Bot, no uint32) *chatRec {
	c := t.chat(b, no)
	if c != nil {
		return c
	}
	if head, _ := t.first(bQueue, chatKey(b.num, no)); head == nil {
		return nil
	}
	c = t.lostChat(b, no)
	t.touchChat(b, no, c)
	t.after = append(t.after, func() { t.s.reportDamage("chat", damagef("chat %d of bot %d is gone", no, b.num)) })
	return c
}

// nameOf finds an alias of a chat whose record is lost. It walks all aliases,
// which is slow and happens once per damaged record.
func (t *txn) nameOf(b *Bot, no uint32) string {
	name := ""
	t.each(bAlias, botKey(b.num), botKey(b.num), func(k, v []byte) bool {
		if len(v) == 4 && u32at(v, 0) == no {
			name = string(k[2:])
		}
		return name == ""
	})
	return name
}

func (t *txn) touchChat(b *Bot, no uint32, c *chatRec) {
	id := uint64(b.num)<<32 | uint64(no)
	t.chats[id], t.dirty[id] = c, true
	t.writes++
}

func (t *txn) touchBot(b *Bot) {
	t.bots[b] = true
	t.writes++
}

// flush writes the records that transitions have changed in memory.
func (t *txn) flush() {
	for id := range t.dirty {
		k := chatKey(uint16(id>>32), uint32(id))
		t.put(bChat, k, encode(k, t.chats[id]))
	}
	for b := range t.bots {
		k := botKey(b.num)
		t.put(bBots, k, encode(k, &b.rec))
	}
	if t.writes > 0 {
		// It stands in the page that every commit writes anyway.
		t.put(bMeta, kClock, encode(kClock, t.s.clock.record()))
	}
}

// count moves a job between two states' counters; an empty state is outside.
func (t *txn) count(b *Bot, from, to State) {
	if from != "" {
		b.rec.Jobs[from.code()]--
	}
	if to != "" {
		b.rec.Jobs[to.code()]++
	}
	if to == Dead && from != Dead {
		b.rec.countDead(t.now)
	}
	t.touchBot(b)
}

func (t *txn) countUpdate(b *Bot, from, to UpdateState) {
	if from != "" {
		b.rec.Updates[from.code()]--
	}
	if to != "" {
		b.rec.Updates[to.code()]++
	}
	t.touchBot(b)
}

const hour = int64(3600e9)

// countDead notes a death in its hour; hours older than a day are dropped.
func (r *botRec) countDead(now int64) {
	h := now / hour
	kept := r.DeadHour[:0]
	for i := 0; i+1 < len(r.DeadHour); i += 2 {
		if r.DeadHour[i] > h-24 {
			kept = append(kept, r.DeadHour[i], r.DeadHour[i+1])
		}
	}
	if n := len(kept); n > 0 && kept[n-2] == h {
		kept[n-1]++
	} else {
		kept = append(kept, h, 1)
	}
	r.DeadHour = kept
}

func (r *botRec) deadLastDay(now int64) (n int64) {
	for i := 0; i+1 < len(r.DeadHour); i += 2 {
		if r.DeadHour[i] > now/hour-24 {
			n += r.DeadHour[i+1]
		}
	}
	return n
}
