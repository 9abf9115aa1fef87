package spool

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	bolt "go.etcd.io/bbolt"
)

// MaxSession is the most that a session may hold, in bytes of JSON without
// needless space: what fits in a variable of a program's environment.
const MaxSession = 64 << 10

// SessionKey says whose a session is: a chat's, or with User not 0 that of one
// user in it. It is written <chat> or <chat>:<user>.
type SessionKey struct{ Chat, User int64 }

// String is the key as it is written.
func (k SessionKey) String() string {
	s := strconv.FormatInt(k.Chat, 10)
	if k.User != 0 {
		s += ":" + strconv.FormatInt(k.User, 10)
	}
	return s
}

// ParseSessionKey reads what String has written. Errors wrap ErrInvalid.
func ParseSessionKey(s string) (k SessionKey, err error) {
	chat, user, both := strings.Cut(s, ":")
	if k.Chat, err = strconv.ParseInt(chat, 10, 64); err == nil && both {
		k.User, err = strconv.ParseInt(user, 10, 64)
	}
	if err != nil || k.Chat == 0 || both && k.User <= 0 {
		return SessionKey{}, fmt.Errorf("%q is no key of a session, <chat> or <chat>:<user>: %w", s, ErrInvalid)
	}
	return k, nil
}

// Session is what handlers keep of a conversation.
type Session struct {
	Key       string          `json:"key"`
	Version   int64           `json:"version"` // from 1, one more with each change
	Data      json.RawMessage `json:"data"`    // an object
	UpdatedAt time.Time       `json:"updated_at"`
}

// SessionChange is what a handler's run makes of its session.
type SessionChange struct {
	Data    json.RawMessage // an object; without members: the session ends
	Version int64           // that it was made from; 0: there was none
}

// Versions that a change may ask for beside a number; 0 is: there is none.
const (
	AnyVersion  int64 = -1 // whatever is there, or not
	SomeVersion int64 = -2 // one is there
)

// SessionPage is one page of a list, in ascending order of keys.
type SessionPage struct {
	Items []Session
	Next  string // the key to go on behind; empty at the end
}

// sessionRec is a session on disk. Its version grows for ever: one that is made
// where another was has a higher one, so that no old version fits again.
type sessionRec struct {
	Version int64  `cbor:"1,keyasint"`
	Data    []byte `cbor:"2,keyasint"`
	Updated int64  `cbor:"3,keyasint"`
}

func (r *sessionRec) view(k SessionKey, c *timeline) Session {
	return Session{Key: k.String(), Version: r.Version, Data: raw(r.Data), UpdatedAt: c.at(r.Updated)}
}

// CompactSession checks what is to be a session and returns it as it is stored.
// Errors wrap ErrInvalid or ErrTooLarge.
func CompactSession(data json.RawMessage) (json.RawMessage, error) {
	var out bytes.Buffer
	if err := json.Compact(&out, data); err != nil || out.Len() == 0 || out.Bytes()[0] != '{' || !utf8.Valid(data) {
		return nil, fmt.Errorf("a session must be a JSON object: %w", ErrInvalid)
	}
	if out.Len() > MaxSession {
		return nil, fmt.Errorf("a session of %d bytes is %w, the most is %d", out.Len(), ErrTooLarge, MaxSession)
	}
	return out.Bytes(), nil
}

// check makes the data of a change what is stored.
func (c *SessionChange) check() (err error) {
	if c != nil {
		c.Data, err = CompactSession(c.Data)
	}
	return err
}

// Wanted is what the session is to be; nil when it stays as it is.
func (c *SessionChange) Wanted() json.RawMessage {
	if c == nil {
		return nil
	}
	return c.Data
}

func (c *SessionChange) size() int { return len(c.Wanted()) }

// sessionKey begins with the chat, negative ids before positive ones.
func sessionKey(bot uint16, k SessionKey) key {
	return newKey(18).u16(bot).u64(uint64(k.Chat) ^ 1<<63).u64(uint64(k.User))
}

func readSessionKey(k []byte) SessionKey {
	return SessionKey{Chat: int64(u64at(k, 2) ^ 1<<63), User: int64(u64at(k, 10))}
}

// today is the key by the id that a chat has now: a group may have migrated.
func (t *txn) today(b *Bot, k SessionKey) SessionKey {
	if no := t.lookupChat(b, strconv.FormatInt(k.Chat, 10)); no != 0 {
		if c := t.chat(b, t.follow(b, no)); c != nil {
			if id, ok := chatID(c.Name); ok {
				k.Chat = id
			}
		}
	}
	return k
}

// session reads a session; nil when there is none.
func (t *txn) session(b *Bot, k SessionKey) (*sessionRec, error) {
	sk := sessionKey(b.num, k)
	v := t.get(bSession, sk)
	if v == nil {
		return nil, nil
	}
	r, err := decode[sessionRec](sk, v)
	if err != nil {
		return nil, fmt.Errorf("session %s: %w", k, err)
	}
	return r, nil
}

// heldSession is session for a transition that changes it: a damaged one is set
// aside, as if there were none.
func (t *txn) heldSession(b *Bot, k SessionKey) *sessionRec {
	r, err := t.session(b, k)
	if err != nil {
		t.setAside(bSession, sessionKey(b.num, k), err)
	}
	return r
}

// sessionKeyOf says whose session an update belongs to; false for one that has
// no chat. Without a user it is the chat's.
func (r *updateRec) sessionKeyOf() (k SessionKey, ok bool) {
	k.Chat = r.ChatID
	if r.PerUser {
		k.User = max(r.UserID, 0)
	}
	return k, k.Chat != 0
}

// sessionOf is an update's session as its handler gets it.
func (t *txn) sessionOf(b *Bot, r *updateRec) Session {
	k, ok := r.sessionKeyOf()
	if !ok {
		return Session{}
	}
	k = t.today(b, k)
	if rec := t.heldSession(b, k); rec != nil {
		return rec.view(k, t.s.clock)
	}
	return Session{Key: k.String()}
}

// changeSession carries out what a handler's run makes of its session. It fails
// before it has written anything.
func (t *txn) changeSession(b *Bot, r *updateRec, c *SessionChange) error {
	if c == nil {
		return nil
	}
	k, ok := r.sessionKeyOf()
	if !ok {
		return fmt.Errorf("update %d has no chat that a session could belong to: %w", r.Seq, ErrInvalid)
	}
	k = t.today(b, k)
	rec, err := t.session(b, k)
	if err != nil { // the next lease of the update sets it aside
		return &StaleError{Key: k.String(), Want: c.Version}
	}
	if err := rec.expect(k, c.Version); err != nil {
		return err
	}
	switch {
	case string(c.Data) != "{}":
		t.putSession(b, k, rec, c.Data)
	case rec != nil:
		t.eraseSession(b, k, rec)
	}
	return nil
}

// expect checks that a session has the version that a change was made from.
func (r *sessionRec) expect(k SessionKey, want int64) error {
	now := int64(0)
	if r != nil {
		now = r.Version
	}
	if want == AnyVersion || want == SomeVersion && r != nil || want == now {
		return nil
	}
	return &StaleError{Key: k.String(), Now: now, Want: want}
}

func (t *txn) putSession(b *Bot, k SessionKey, old *sessionRec, data []byte) *sessionRec {
	version := b.rec.Erased
	if old != nil {
		version = old.Version
	}
	return t.storeSession(b, k, &sessionRec{Version: version + 1, Data: data, Updated: t.now})
}

func (t *txn) storeSession(b *Bot, k SessionKey, rec *sessionRec) *sessionRec {
	sk := sessionKey(b.num, k)
	t.put(bSession, sk, encode(sk, rec))
	return rec
}

func (t *txn) eraseSession(b *Bot, k SessionKey, rec *sessionRec) {
	t.del(bSession, sessionKey(b.num, k))
	b.rec.Erased = max(b.rec.Erased, rec.Version)
	t.touchBot(b)
}

// moveSessions takes the sessions of a group along when it gets another id.
// Where the new id has one already, what was written last stays, with a version
// that is news to whoever has read either.
func (t *txn) moveSessions(b *Bot, from, to int64) {
	prefix := sessionKey(b.num, SessionKey{Chat: from})[:10]
	var users []int64
	t.each(bSession, prefix, prefix, func(k, _ []byte) bool {
		users = append(users, readSessionKey(k).User)
		return true
	})
	for _, user := range users {
		k, target := SessionKey{from, user}, SessionKey{to, user}
		rec := t.heldSession(b, k)
		if rec == nil {
			continue
		}
		t.eraseSession(b, k, rec)
		if other := t.heldSession(b, target); other != nil {
			version := max(rec.Version, other.Version) + 1
			if other.Updated >= rec.Updated {
				rec = other
			}
			rec.Version = version
		}
		t.storeSession(b, target, rec)
	}
}

// Session reads a session.
func (b *Bot) Session(k SessionKey) (s Session, err error) {
	err = b.s.view(func(t *txn) error {
		k = t.today(b, k)
		rec, err := t.session(b, k)
		if err == nil && rec == nil {
			err = fmt.Errorf("session %s: %w", k, ErrNotFound)
		}
		if err == nil {
			s = rec.view(k, t.s.clock)
		}
		return err
	})
	return s, err
}

// SetSession stores a session if it has the version that is asked for, and
// reports whether it is new. Another version is ErrStale.
func (b *Bot) SetSession(ctx context.Context, k SessionKey, data json.RawMessage, version int64) (s Session, made bool, err error) {
	if data, err = CompactSession(data); err != nil {
		return s, false, err
	}
	adds := addsMuch
	if len(data) <= smallJob {
		adds = addsSmall
	}
	err = b.s.add(ctx, len(data)+64, adds, func(t *txn) error {
		k = t.today(b, k)
		old, err := t.session(b, k)
		if errors.Is(err, ErrDamaged) && version == AnyVersion {
			t.setAside(bSession, sessionKey(b.num, k), err)
			err = nil
		}
		if err == nil {
			err = old.expect(k, version)
		}
		if err != nil {
			return err
		}
		s, made = t.putSession(b, k, old, data).view(k, t.s.clock), old == nil
		return nil
	})
	return s, made, err
}

// DeleteSession removes a session if it has the version that is asked for.
func (b *Bot) DeleteSession(ctx context.Context, k SessionKey, version int64) error {
	return b.s.do(ctx, 64, func(t *txn) error {
		k = t.today(b, k)
		rec, err := t.session(b, k)
		switch {
		case errors.Is(err, ErrDamaged) && version == AnyVersion:
			t.setAside(bSession, sessionKey(b.num, k), err)
			return nil
		case err != nil:
			return err
		case rec == nil:
			return fmt.Errorf("session %s: %w", k, ErrNotFound)
		}
		if err := rec.expect(k, version); err != nil {
			return err
		}
		t.eraseSession(b, k, rec)
		return nil
	})
}

// sessionPageBytes is about where a page of sessions is cut.
const sessionPageBytes = 8 << 20

// Sessions lists a bot's sessions behind a key; the zero key is the beginning.
func (b *Bot) Sessions(after SessionKey, limit int) (SessionPage, error) {
	page, size := SessionPage{Items: []Session{}}, 0
	limit = pageSize(limit)
	start := botKey(b.num)
	if after != (SessionKey{}) {
		start = append(sessionKey(b.num, after), 0)
	}
	err := b.s.view(func(t *txn) error {
		t.each(bSession, botKey(b.num), start, func(k, v []byte) bool {
			if len(page.Items) == limit || size >= sessionPageBytes {
				page.Next = page.Items[len(page.Items)-1].Key
				return false
			}
			if rec, err := decode[sessionRec](k, v); err == nil {
				page.Items = append(page.Items, rec.view(readSessionKey(k), t.s.clock))
				size += len(rec.Data)
			}
			return true
		})
		return nil
	})
	return page, err
}

// addSessions makes the bucket of sessions in a file of before there was one.
func (s *Store) addSessions() error {
	if missing, err := s.lacks(bSession); err != nil || !missing {
		return err
	}
	return s.db.Update(func(tx *bolt.Tx) error {
		_, err := tx.CreateBucket(bSession)
		return err
	})
}

// lacks reports whether the file has no such bucket.
func (s *Store) lacks(bucket []byte) (missing bool, err error) {
	err = s.db.View(func(tx *bolt.Tx) error {
		missing = tx.Bucket(bucket) == nil
		return nil
	})
	return missing, err
}

// StaleError is an ErrStale that knows the session's version now.
type StaleError struct {
	Key       string
	Now, Want int64 // 0: none
}

// Error names the session and both versions.
func (e *StaleError) Error() string {
	switch {
	case e.Now == 0:
		return fmt.Sprintf("there is no session %s", e.Key)
	case e.Want == 0:
		return fmt.Sprintf("session %s is there already, with version %d", e.Key, e.Now)
	}
	return fmt.Sprintf("session %s has version %d now, not %d", e.Key, e.Now, e.Want)
}

// Is makes every StaleError an ErrStale.
func (e *StaleError) Is(target error) bool { return target == ErrStale }
