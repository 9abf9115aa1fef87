package spool

import (
	"encoding/binary"
	"errors"
	"math"
	"slices"

	bolt "go.etcd.io/bbolt"
)

// idJump is how far ids jump when it isn't known which ones were given since a
// snapshot: ids are never given twice. It is more than half a day's work at
// Telegram's limit.
const idJump = 1 << 20

// hints is what can still be read in a file that is given up, and must not be
// forgotten: the deadlines, the last ids, and what had been taken in.
type hints struct {
	known   bool // something could be read
	nextJob int64
	clock   []byte
	bots    map[int64]botRec // by Telegram's id
	nums    map[int64]uint16 // their internal numbers
	floods  []flood
}

// flood is a chat that was asked to wait.
type flood struct {
	bot   uint16
	name  string
	until int64
}

// readHints reads what it can, and nothing of which the checksum is wrong.
func readHints(path string) *hints {
	h := &hints{bots: map[int64]botRec{}, nums: map[int64]uint16{}}
	p, err := openPages(path)
	if err != nil {
		return h
	}
	defer p.close()
	w := &walker{
		lenient: true,
		only: func(bucket string) bool {
			return bucket == string(bMeta) || bucket == string(bBots) || bucket == string(bChat)
		},
		fn: func(bucket string, k, v []byte) error { h.read(bucket, k, v); return nil },
	}
	_ = p.walk(w) // what it finds is kept; what is wrong is known already
	return h
}

func (h *hints) read(bucket string, k, v []byte) {
	switch {
	case bucket == "meta" && string(k) == string(kNextJob) && len(v) == 8:
		h.nextJob = int64(binary.BigEndian.Uint64(v))
	case bucket == "meta" && string(k) == string(kClock):
		if _, err := decode[clockRec](kClock, v); err == nil {
			h.clock = slices.Clone(v)
		}
	case bucket == "bots" && len(k) == 2:
		if rec, err := decode[botRec](k, v); err == nil {
			h.known = true
			h.bots[rec.ID], h.nums[rec.ID] = *rec, u16at(k, 0)
		}
	case bucket == "chat" && len(k) == 6:
		if rec, err := decode[chatRec](k, v); err == nil && rec.Cooldown != 0 {
			h.floods = append(h.floods, flood{u16at(k, 0), rec.Name, rec.Cooldown})
		}
	}
}

// merge writes into a restored file what must not fall back to an older value.
//
// The offset does fall back: Telegram has forgotten what an offset confirmed
// once, so that an older one brings back exactly what was never confirmed. Of
// that the last batch may have been taken in by the file that is given up, and
// handled; the fence in the bot's record makes these dead instead of handling
// them again.
func (h *hints) merge(tx *bolt.Tx, empty bool) error {
	meta := tx.Bucket(bMeta)
	next := int64(0)
	if v := meta.Get(kNextJob); len(v) == 8 {
		next = int64(binary.BigEndian.Uint64(v))
	}
	if h.nextJob > 0 && h.nextJob >= next && h.nextJob-next < maxIDGap {
		next = h.nextJob
	} else {
		next += idJump
	}
	if err := meta.Put(kNextJob, u64bytes(uint64(next))); err != nil {
		return err
	}
	if h.clock != nil {
		if err := meta.Put(kClock, h.clock); err != nil {
			return err
		}
	}
	if empty {
		if err := h.seed(tx); err != nil {
			return err
		}
	}
	if err := h.mergeBots(tx.Bucket(bBots)); err != nil {
		return err
	}
	return h.mergeFloods(tx)
}

// seed gives an empty file the bots of the old one, without anything in them.
func (h *hints) seed(tx *bolt.Tx) error {
	for _, old := range h.bots {
		num := h.nums[old.ID]
		rec := botRec{ID: old.ID, Name: old.Name}
		rec.normalize()
		k := botKey(num)
		if err := tx.Bucket(bBots).Put(k, encode(k, &rec)); err != nil {
			return err
		}
		if err := tx.Bucket(bBotNum).Put(u64bytes(uint64(old.ID)), binary.BigEndian.AppendUint16(nil, num)); err != nil {
			return err
		}
	}
	return nil
}

func (h *hints) mergeBots(bots *bolt.Bucket) error {
	changed := map[string]botRec{}
	err := bots.ForEach(func(k, v []byte) error {
		rec, err := decode[botRec](k, v)
		if err != nil {
			return err
		}
		old, known := h.bots[rec.ID]
		rec.Cooldown = max(rec.Cooldown, old.Cooldown)
		switch {
		case known && (old.Offset != 0 || old.Seq == 0):
			rec.Fence = old.Offset
		default: // by webhook, or unknown: the whole first batch
			rec.Fence = math.MaxInt64
		}
		if known {
			rec.Seq = max(rec.Seq, old.Seq)
		} else {
			rec.Seq += idJump
		}
		changed[string(k)] = *rec
		return nil
	})
	if err != nil {
		return err
	}
	for k, rec := range changed {
		if err := bots.Put([]byte(k), encode([]byte(k), &rec)); err != nil {
			return err
		}
	}
	return nil
}

// mergeFloods keeps the deadlines of chats. Both files come from one store, so
// that the bots' numbers are the same.
func (h *hints) mergeFloods(tx *bolt.Tx) error {
	chats := tx.Bucket(bChat)
	for _, f := range h.floods {
		no, err := restoredChat(tx, f.bot, f.name)
		if err != nil {
			return err
		}
		k := chatKey(f.bot, no)
		rec, err := decode[chatRec](k, chats.Get(k))
		if no == 0 || err != nil || rec.Cooldown >= f.until {
			continue
		}
		rec.Cooldown = f.until
		if err := chats.Put(k, encode(k, rec)); err != nil {
			return err
		}
	}
	return nil
}

// restoredChat finds a chat's number, giving it one when the restored file has
// none; 0 when it doesn't have the bot.
func restoredChat(tx *bolt.Tx, bot uint16, name string) (uint32, error) {
	aliases, bots := tx.Bucket(bAlias), tx.Bucket(bBots)
	if no := aliases.Get(nameKey(bot, name)); len(no) == 4 {
		return binary.BigEndian.Uint32(no), nil
	}
	bk := botKey(bot)
	rec, err := decode[botRec](bk, bots.Get(bk))
	if err != nil || name == "" {
		return 0, nil //nolint:nilerr // no such bot: nothing is sent by it either
	}
	rec.ChatNo++
	ck := chatKey(bot, rec.ChatNo)
	return rec.ChatNo, errors.Join(
		bots.Put(bk, encode(bk, rec)),
		aliases.Put(nameKey(bot, name), binary.BigEndian.AppendUint32(nil, rec.ChatNo)),
		tx.Bucket(bChat).Put(ck, encode(ck, &chatRec{Name: name})),
	)
}
