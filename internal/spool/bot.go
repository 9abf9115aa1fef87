package spool

import (
	"context"
	"encoding/binary"
	"fmt"
	"sync/atomic"
	"time"
)

// defaultMaxAttempts is how often a job is tried when nobody says otherwise.
const defaultMaxAttempts = 8

// Limits are a bot's settings that the store applies itself.
type Limits struct {
	ChatGap        time.Duration // between two messages of a chat; 0: off
	ChatBurst      int           // messages that may go before the gap counts; below 1 means 1
	GroupPerMinute int           // messages of a group in any 60 s; 0: off
	MaxAttempts    int           // default of new jobs; 0: 8
	OnUncertain    Policy        // default of new jobs; empty: hold
	UncertainFor   time.Duration // how long an uncertain job waits for a decision; 0: 72 h
	TTL            time.Duration // default expiry of new jobs; 0: none
}

// BotConfig is what the settings and the other rooms say of a bot.
type BotConfig struct {
	ID     int64  // Telegram's id of the bot: it keeps its spool under a new token or name
	Name   string // in the settings
	Limits Limits

	// Admit asks the bot's gate for one call in a lane and takes a token when it
	// says yes. It runs inside the writer's transaction: it must answer at once
	// and call nobody. When it says no, at is when to ask again; zero means that
	// Kick will be called. Nil is always open.
	Admit func(now time.Time, lane Lane) (ok bool, at time.Time)
	// Refund gives back a token that came to nothing. May be nil.
	Refund func()

	// Sight finds the message of the bot's that an update shows, nil when there is
	// none. It is asked only while jobs are uncertain, by the writer: it must
	// answer at once and call nobody. May be nil.
	Sight func(raw []byte) *Sighting
	// PauseChanged is called after a part was paused or resumed, by a person or by
	// time; it must not wait. May be nil.
	PauseChanged func()

	// Route finds an update's handler again when Routes, the fingerprint of the
	// settings' routes, differs from the stored one.
	Route  func(raw []byte) Route
	Routes string
}

// Bot is one bot's part of the store.
type Bot struct {
	s   *Store
	num uint16

	// The writer goroutine alone uses these.
	rec      botRec
	cfg      BotConfig
	busy     map[uint32]int64           // chats with a running job
	parked   []*waiter                  // workers without a job, longest waiting first
	askAt    int64                      // when the gate may be open again, 0: unknown or no need
	inbusy   map[uint64]int64           // order keys with a leased update
	inparked map[uint64][]*updateWaiter // per handler's hash
	owned    map[message]bool           // messages that are known to be the results of jobs

	public   atomic.Pointer[botRec] // copy of rec as of the last commit
	config   atomic.Pointer[BotConfig]
	pulls    pulls
	taking   taking
	attached atomic.Bool // it is in the settings of this process
}

func newBot(s *Store, num uint16, rec botRec) *Bot {
	b := &Bot{
		s: s, num: num, rec: rec,
		busy: map[uint32]int64{}, inbusy: map[uint64]int64{}, inparked: map[uint64][]*updateWaiter{},
	}
	b.config.Store(&BotConfig{ID: rec.ID, Name: rec.Name})
	b.publish()
	return b
}

// ID is Telegram's id of the bot.
func (b *Bot) ID() int64 { return b.public.Load().ID }

// Attached reports whether the bot is in the settings of this process. A bot
// that isn't keeps what it has, and nothing of it moves.
func (b *Bot) Attached() bool { return b.attached.Load() }

// Name is the bot's name in the settings, the last one used.
func (b *Bot) Name() string { return b.public.Load().Name }

// Cooldown is when the bot's persisted deadline is over, reckoned from now so
// that no step of the wall clock moves it; zero when none is running.
func (b *Bot) Cooldown() time.Time {
	if left := b.s.clock.left(b.public.Load().Cooldown); left > 0 {
		return time.Now().Add(left)
	}
	return time.Time{}
}

// Offset is the offset to ask Telegram for next, 0 at the very beginning.
func (b *Bot) Offset() int64 { return b.public.Load().Offset }

func (b *Bot) limits() Limits { return b.config.Load().Limits }

// publish shows the record to readers. The writer calls it after a commit.
func (b *Bot) publish() {
	c := b.rec
	c.Jobs = append([]int64(nil), b.rec.Jobs...)
	c.Updates = append([]int64(nil), b.rec.Updates...)
	c.DeadHour = append([]int64(nil), b.rec.DeadHour...)
	b.public.Store(&c)
}

// reload puts the record back to what the last commit said.
func (b *Bot) reload() {
	c := *b.public.Load()
	c.Jobs = append([]int64(nil), c.Jobs...)
	c.Updates = append([]int64(nil), c.Updates...)
	c.DeadHour = append([]int64(nil), c.DeadHour...)
	b.rec = c
}

// Bot finds a bot by its name in the settings.
func (s *Store) Bot(name string) (*Bot, bool) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	b, ok := s.bots[name]
	return b, ok
}

// Bots lists all bots that the store has ever had.
func (s *Store) Bots() []*Bot {
	s.mu.RLock()
	defer s.mu.RUnlock()
	list := make([]*Bot, 0, len(s.bots))
	for _, b := range s.bots {
		list = append(list, b)
	}
	return list
}

// Attach makes a bot of the settings known to the store, or takes up the one
// with its id. What was running when the process ended becomes an unknown
// outcome here, what was leased is open again. A second bot with the same id is
// refused with ErrInvalid.
func (s *Store) Attach(ctx context.Context, cfg BotConfig) (*Bot, error) {
	if cfg.ID <= 0 || cfg.Name == "" {
		return nil, fmt.Errorf("bot %q with id %d: %w", cfg.Name, cfg.ID, ErrInvalid)
	}
	var b *Bot
	err := s.do(ctx, 256, func(t *txn) error {
		if known := t.findBot(cfg.ID); known != nil {
			if known.attached.Load() {
				return fmt.Errorf("bots %q and %q have the same id %d: %w", known.cfg.Name, cfg.Name, cfg.ID, ErrInvalid)
			}
			b = known
		} else {
			b = t.makeBot(cfg)
		}
		t.rename(b, cfg.Name)
		t.configure(b, cfg)
		t.recover(b)
		b.attached.Store(true)
		t.undo = append(t.undo, func() { b.attached.Store(false) })
		t.touchBot(b)
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("attaching bot %q: %w", cfg.Name, err)
	}
	return b, nil
}

// Configure applies changed settings to an attached bot.
func (b *Bot) Configure(ctx context.Context, cfg BotConfig) error {
	return b.s.do(ctx, 256, func(t *txn) error {
		if cfg.ID != b.rec.ID {
			return fmt.Errorf("bot %q has id %d, not %d: %w", b.rec.Name, b.rec.ID, cfg.ID, ErrInvalid)
		}
		t.rename(b, cfg.Name)
		t.configure(b, cfg)
		t.touchBot(b)
		return nil
	})
}

func (t *txn) findBot(id int64) *Bot {
	for _, b := range t.s.all {
		if b.rec.ID == id {
			return b
		}
	}
	return nil
}

func (t *txn) makeBot(cfg BotConfig) *Bot {
	num := uint16(1)
	for _, b := range t.s.all {
		num = max(num, b.num+1)
	}
	rec := botRec{ID: cfg.ID, Name: cfg.Name, Fence: t.s.past.fenceForNew()}
	rec.normalize()
	b := newBot(t.s, num, rec)
	t.put(bBotNum, u64bytes(uint64(cfg.ID)), binary.BigEndian.AppendUint16(nil, num))
	t.s.adopt(b)
	t.undo = append(t.undo, func() { t.s.disown(b) })
	return b
}

func (s *Store) disown(b *Bot) {
	s.all = s.all[:len(s.all)-1]
	s.mu.Lock()
	delete(s.bots, b.rec.Name)
	s.mu.Unlock()
}

// rename keeps the bot's present name in the settings. A bot that isn't in the
// settings any more and has the same name gives it up.
func (t *txn) rename(b *Bot, name string) {
	s := t.s
	s.mu.Lock()
	defer s.mu.Unlock()
	if other, ok := s.bots[name]; ok && other != b {
		other.rec.Name = fmt.Sprintf("%s-%d", name, other.rec.ID)
		s.bots[other.rec.Name] = other
		t.touchBot(other)
	}
	if s.bots[b.rec.Name] == b {
		delete(s.bots, b.rec.Name)
	}
	b.rec.Name = name
	s.bots[name] = b
}

func (t *txn) configure(b *Bot, cfg BotConfig) {
	old := b.cfg
	l := &cfg.Limits
	l.ChatBurst = max(1, l.ChatBurst)
	if l.MaxAttempts <= 0 {
		l.MaxAttempts = defaultMaxAttempts
	}
	if l.OnUncertain == "" {
		l.OnUncertain = PolicyHold
	}
	if l.UncertainFor <= 0 {
		l.UncertainFor = 72 * time.Hour
	}
	b.cfg, b.askAt = cfg, 0
	b.config.Store(&cfg)
	t.undo = append(t.undo, func() { b.cfg = old; b.config.Store(&old) })
	if cfg.Route != nil && cfg.Routes != b.rec.Routes {
		t.reroute(b)
	}
}

// Kick tells the store that the bot's gate may have opened. It never waits, so
// that a gate may call it from wherever it opens.
func (b *Bot) Kick() { b.s.kick() }

func (s *Store) kick() {
	select {
	case s.kicks <- struct{}{}:
	default: // a kick is on its way already
	}
}

// ExtendCooldown moves the bot's deadline to until, if that is later.
func (b *Bot) ExtendCooldown(ctx context.Context, until time.Time) error {
	return b.s.do(ctx, 64, func(t *txn) error {
		t.extendCooldown(b, t.s.clock.ns(until))
		return nil
	})
}

func (t *txn) extendCooldown(b *Bot, until int64) {
	if until > b.rec.Cooldown {
		b.rec.Cooldown = until
		t.touchBot(b)
	}
}

// SetNote keeps a small value of another room under a name; nil removes it.
func (b *Bot) SetNote(ctx context.Context, name string, value []byte) error {
	return b.s.do(ctx, len(value), func(t *txn) error {
		if value == nil {
			t.del(bNotes, nameKey(b.num, name))
			return nil
		}
		k := nameKey(b.num, name)
		t.put(bNotes, k, seal(k, value))
		return nil
	})
}

// Note returns what SetNote has kept; nil when there is nothing.
func (b *Bot) Note(name string) (value []byte, err error) {
	err = b.s.view(func(t *txn) error {
		k := nameKey(b.num, name)
		stored := t.get(bNotes, k)
		if stored == nil {
			return nil
		}
		v, err := unseal(k, stored)
		value = append([]byte{}, v...)
		return err
	})
	return value, err
}
