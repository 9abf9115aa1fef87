package spool

import (
	"crypto/sha256"
	"encoding/binary"
)

// schemaVersion is what this program writes. A file with a higher one is refused.
const schemaVersion = 1

// The buckets; the package comment draws them.
var (
	bMeta    = []byte("meta")
	bBotNum  = []byte("botnum")
	bBots    = []byte("bots")
	bNotes   = []byte("notes")
	bLive    = []byte("live")
	bParked  = []byte("parked")
	bEnded   = []byte("ended")
	bBody    = []byte("body")
	bRun     = []byte("run")
	bQueue   = []byte("queue")
	bReady   = []byte("ready")
	bKey     = []byte("key")
	bChat    = []byte("chat")
	bAlias   = []byte("alias")
	bInbox   = []byte("inbox")
	bInEnded = []byte("inended")
	bInBody  = []byte("inbody")
	bInLease = []byte("inlease")
	bInQueue = []byte("inqueue")
	bInReady = []byte("inready")
	bInPull  = []byte("inpull")
	bSession = []byte("session")
	bSeen    = []byte("seen")
	bTimer   = []byte("timer")
	bDamaged = []byte("damaged")
)

func allBuckets() [][]byte {
	return [][]byte{
		bMeta, bBotNum, bBots, bNotes, bLive, bParked, bEnded, bBody, bRun, bQueue, bReady, bKey, bChat, bAlias,
		bInbox, bInEnded, bInBody, bInLease, bInQueue, bInReady, bInPull, bSession, bSeen, bTimer, bDamaged,
	}
}

var (
	kSchema  = []byte("schema")
	kNextJob = []byte("next_job")
	kClock   = []byte("clock")
)

// key is a key under construction: fixed-width parts, big-endian.
type key []byte

func (k key) u8(v byte) key        { return append(k, v) }
func (k key) u16(v uint16) key     { return binary.BigEndian.AppendUint16(k, v) }
func (k key) u32(v uint32) key     { return binary.BigEndian.AppendUint32(k, v) }
func (k key) u64(v uint64) key     { return binary.BigEndian.AppendUint64(k, v) }
func (k key) text(s string) key    { return append(k, s...) }
func newKey(size int) key          { return make(key, 0, size) }
func u16at(b []byte, i int) uint16 { return binary.BigEndian.Uint16(b[i:]) }
func u32at(b []byte, i int) uint32 { return binary.BigEndian.Uint32(b[i:]) }
func u64at(b []byte, i int) uint64 { return binary.BigEndian.Uint64(b[i:]) }

func u64bytes(v uint64) []byte { return binary.BigEndian.AppendUint64(nil, v) }

func botKey(bot uint16) key            { return newKey(2).u16(bot) }
func liveKey(bot uint16, id int64) key { return newKey(10).u16(bot).u64(uint64(id)) }
func stateKey(bot uint16, state byte, id int64) key {
	return newKey(11).u16(bot).u8(state).u64(uint64(id))
}
func bodyKey(id int64) key { return newKey(8).u64(uint64(id)) }

func chatKey(bot uint16, chat uint32) key { return newKey(6).u16(bot).u32(chat) }
func nameKey(bot uint16, name string) key { return newKey(2 + len(name)).u16(bot).text(name) }

func queuePrefix(bot uint16, chat uint32, lane byte) key {
	return newKey(15).u16(bot).u32(chat).u8(lane)
}

func queueKey(bot uint16, chat uint32, lane byte, order uint64) key {
	return queuePrefix(bot, chat, lane).u64(order)
}
func readyPrefix(bot uint16, lane byte) key { return newKey(11).u16(bot).u8(lane) }
func readyKey(bot uint16, lane byte, order uint64) key {
	return readyPrefix(bot, lane).u64(order)
}

// dedupeKey hashes a caller's key to 16 bytes: 2⁶⁴ keys before two are likely
// to meet.
func dedupeKey(bot uint16, k string) key {
	h := sha256.Sum256([]byte(k))
	return append(newKey(18).u16(bot), h[:16]...)
}

func inQueuePrefix(bot uint16, order uint64) key { return newKey(18).u16(bot).u64(order) }
func inQueueKey(bot uint16, order uint64, seq int64) key {
	return inQueuePrefix(bot, order).u64(uint64(seq))
}
func inReadyPrefix(bot uint16, handler uint64) key { return newKey(18).u16(bot).u64(handler) }
func inReadyKey(bot uint16, handler uint64, seq int64) key {
	return inReadyPrefix(bot, handler).u64(uint64(seq))
}

// seenKey keeps negative ids apart from positive ones; their order is of no use.
func seenKey(bot uint16, updateID int64) key { return newKey(10).u16(bot).u64(uint64(updateID)) }

// timerKind says what a timer wakes.
type timerKind byte

const (
	timerChat      timerKind = iota + 1 // id = chat: its gates may be open
	timerDue                            // id = job: its not_before has come
	timerExpire                         // id = job: its expires_at has come
	timerUncertain                      // id = job: nobody has decided in time
	timerFlood                          // id = job: held by a flood that is over
	timerUpdate                         // id = seq: its next attempt is due
	timerGone                           // id = chat: more jobs of a dead chat to end
	timerStale                          // id = seq: from now on it is of no use
	timerLease                          // id = seq: its lease runs out
	timerWaits                          // id = job: more wait for its result than fitted
	timerPause                          // id = part: its pause is over
)

func timerKey(at int64, kind timerKind, bot uint16, id uint64) key {
	return newKey(19).u64(uint64(at)).u8(byte(kind)).u16(bot).u64(id)
}

// queued is the value of a queue entry: all that is needed to know when the
// job may go, without reading its record.
type queued struct {
	id      int64
	weight  byte
	retryAt int64
}

func (q queued) bytes() []byte {
	return newKey(17).u64(uint64(q.id)).u8(q.weight).u64(uint64(q.retryAt))
}

func readQueued(v []byte) (queued, bool) {
	if len(v) != 17 {
		return queued{}, false
	}
	return queued{id: int64(u64at(v, 0)), weight: v[8], retryAt: int64(u64at(v, 9))}, true
}
