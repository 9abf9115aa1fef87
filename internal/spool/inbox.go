package spool

import (
	"context"
	"encoding/binary"
	"fmt"
	"strconv"
	"time"
)

// seenSteps is how fine a chat's last_seen_at is kept: not every message
// writes the chat's record.
const seenStep = 10 * time.Second

// Intake stores a batch of updates together with the offset that acknowledges
// it. An update whose id is known is counted and skipped; a malformed one is
// kept once, dead, with its bytes.
func (b *Bot) Intake(ctx context.Context, batch Batch) (Taken, error) {
	size := 64
	for i := range batch.Updates {
		u := &batch.Updates[i]
		size += len(u.Raw) + 128
		if also := u.Route.Also; also != nil {
			size += sizeOf(also.Tell)
		}
	}
	var taken Taken
	err := b.s.add(ctx, size, addsMuch, func(t *txn) error {
		taken = Taken{}
		for i := range batch.Updates {
			t.takeIn(b, &batch.Updates[i], &taken)
		}
		if b.rec.Fence != 0 && len(batch.Updates) > 0 {
			b.rec.Fence = 0 // what comes after the first batch was never taken in before
			t.touchBot(b)
		}
		if batch.SetOffset && batch.Offset != b.rec.Offset {
			b.rec.Offset = batch.Offset
			t.touchBot(b)
		}
		return nil
	})
	return taken, err
}

func (t *txn) takeIn(b *Bot, u *NewUpdate, taken *Taken) {
	if t.knows(b, u) {
		taken.Duplicates++
		return
	}
	b.rec.Seq++
	t.touchBot(b)
	r := &updateRec{
		Seq: b.rec.Seq, UpdateID: u.ID, HasID: u.HasID, Kind: u.Kind, Raw: u.Raw,
		OrderKey: u.OrderKey, Received: t.now, Updated: t.now,
		StaleAt: t.s.clock.ns(u.staleAt()), UserID: u.UserID, Error: u.Error,
	}
	r.follow(u.Route)
	if r.OrderKey == "" {
		r.OrderKey = "seq:" + strconv.FormatInt(r.Seq, 10)
	}
	if u.Chat != nil {
		r.ChatID = u.Chat.ID
		t.meet(b, u)
	}
	if u.HasID {
		t.settleBySight(b, u.Raw)
	}
	t.remember(b, u, r)
	if len(r.Raw) > inlineMax {
		k := inBodyKey(b.num, r.Seq)
		t.put(bInBody, k, seal(k, r.Raw))
		r.Raw, r.InBody = nil, true
	}
	switch {
	case !u.HasID:
		taken.Malformed++
		t.shelve(b, r, "", UpdateDead)
	case u.ID < b.rec.Fence:
		taken.Stored++
		r.Error = restoredReason
		t.shelve(b, r, "", UpdateDead)
	case t.ignores(b, u, r):
		taken.Stored++
		t.shelve(b, r, "", UpdateIgnored)
	default:
		taken.Stored++
		r.state = UpdateOpen
		t.countUpdate(b, "", UpdateOpen)
		t.changedUpdate(b, r)
		t.putOpen(b, r)
		t.lineIn(b, r)
		if r.StaleAt != 0 {
			t.put(bTimer, timerKey(r.StaleAt, timerStale, b.num, uint64(r.Seq)), []byte{})
		}
	}
}

// staleAt is the earlier of what the update's kind and its route say; zero for never.
func (u *NewUpdate) staleAt() time.Time {
	also := u.Route.Also
	if also == nil || also.StaleAt.IsZero() || !u.StaleAt.IsZero() && u.StaleAt.Before(also.StaleAt) {
		return u.StaleAt
	}
	return also.StaleAt
}

// malformedKey names a malformed element by its content.
func malformedKey(u *NewUpdate) string { return "malformed\x00" + string(u.Raw) }

// knows reports whether an update has been taken in before.
func (t *txn) knows(b *Bot, u *NewUpdate) bool {
	if !u.HasID {
		return t.get(bKey, dedupeKey(b.num, malformedKey(u))) != nil
	}
	v := t.get(bSeen, seenKey(b.num, u.ID))
	return len(v) == 8 || len(v) == 16 && int64(u64at(v, 8)) > t.now
}

func (t *txn) remember(b *Bot, u *NewUpdate, r *updateRec) {
	if u.HasID {
		t.put(bSeen, seenKey(b.num, u.ID), u64bytes(uint64(r.Seq)))
		return
	}
	t.put(bKey, dedupeKey(b.num, malformedKey(u)), keyValue(r.Seq, 0))
}

// meet takes over what an update shows of its chat.
func (t *txn) meet(b *Bot, u *NewUpdate) {
	name := strconv.FormatInt(u.Chat.ID, 10)
	if u.MigrateFrom != 0 {
		// The new group names the old one: the old one's queue becomes this chat's.
		no, c := t.internChat(b, strconv.FormatInt(u.MigrateFrom, 10))
		_ = t.migrate(b, no, c, u.Chat.ID)
	}
	no, c := t.internChat(b, name)
	if u.MigrateTo != 0 {
		_ = t.migrate(b, no, c, u.MigrateTo)
	} else if _, moved := chatID(c.Name); !moved || c.Name == name {
		t.see(b, no, c, u.Chat)
	}
	if t.now-c.Seen >= int64(seenStep) {
		c.Seen = t.now
		t.touchChat(b, no, c)
	}
	switch {
	case u.Gone != "":
		t.deactivate(b, no, c, u.Gone)
		t.endWaiting(b, no)
	case u.Active:
		t.activate(b, no, c)
	}
}

func inBodyKey(bot uint16, seq int64) key { return liveKey(bot, seq) }
func inboxKey(bot uint16, seq int64) key  { return liveKey(bot, seq) }

func (t *txn) putOpen(b *Bot, r *updateRec) {
	k := inboxKey(b.num, r.Seq)
	t.put(bInbox, k, encode(k, r))
}

// open puts an update into its order key's queue, with the handler that the
// routes of today give it. from is the state that it comes from; whatever it
// stood in is gone already.
func (t *txn) open(b *Bot, r *updateRec, from UpdateState) {
	r.state, r.Updated = UpdateOpen, t.now
	t.countUpdate(b, from, UpdateOpen)
	t.changedUpdate(b, r)
	if from == UpdateLeased {
		t.ran(b, r, UpdateOpen)
	}
	route := r.route()
	if b.cfg.Route != nil {
		route = b.cfg.Route(t.fullUpdate(b, r).Raw)
	}
	if route.Ignore != "" {
		r.Error = route.Ignore
		t.shelve(b, r, UpdateOpen, UpdateIgnored)
		t.rearmIn(b, hash64(r.OrderKey))
		return
	}
	r.follow(route)
	t.putOpen(b, r)
	t.lineIn(b, r)
}

// route is the route that an update has; follow gives it another.
func (r *updateRec) route() Route {
	return Route{Handler: r.Handler, Attempts: r.Most, PerUser: r.PerUser}
}

func (r *updateRec) follow(to Route) {
	r.Handler, r.Most, r.PerUser = to.Handler, to.Attempts, to.PerUser
}

// shelve puts an update away whose life is over.
func (t *txn) shelve(b *Bot, r *updateRec, from, to UpdateState) {
	if from != "" {
		t.del(bInbox, inboxKey(b.num, r.Seq))
	}
	r.state, r.Updated, r.NextAt = to, t.now, 0
	t.countUpdate(b, from, to)
	t.changedUpdate(b, r)
	if from == UpdateLeased {
		t.ran(b, r, to)
	}
	k := stateKey(b.num, to.code(), r.Seq)
	t.putEnded(b, bInEnded, k, encode(k, r))
}

// inQueued is the value of an inqueue entry.
func inQueued(handler uint64, nextAt int64) []byte {
	return newKey(16).u64(handler).u64(uint64(nextAt))
}

// lineIn puts an open update into its order key's queue.
func (t *txn) lineIn(b *Bot, r *updateRec) {
	order := hash64(r.OrderKey)
	t.unreadyIn(b, order)
	t.put(bInQueue, inQueueKey(b.num, order, r.Seq), inQueued(hash64(r.Handler), r.NextAt))
	t.linePull(b, r)
	t.rearmIn(b, order)
}

// unlineIn takes an open update out of its order key's queue.
func (t *txn) unlineIn(b *Bot, r *updateRec) {
	order := hash64(r.OrderKey)
	t.unreadyIn(b, order)
	t.unqueueIn(b, order, r.Seq)
	t.rearmIn(b, order)
}

func (t *txn) unreadyIn(b *Bot, order uint64) {
	head, v := t.first(bInQueue, inQueuePrefix(b.num, order))
	if head == nil || len(v) != 16 {
		return
	}
	k := inReadyKey(b.num, u64at(v, 0), int64(u64at(head, 10)))
	if t.get(bInReady, k) != nil {
		t.del(bInReady, k)
	}
}

// rearmIn puts the head of a free order key into the ready index, or sets a
// timer for its next attempt.
func (t *txn) rearmIn(b *Bot, order uint64) {
	if _, busy := b.inbusy[order]; busy {
		return
	}
	head, v := t.first(bInQueue, inQueuePrefix(b.num, order))
	if head == nil || len(v) != 16 {
		return
	}
	seq, at := int64(u64at(head, 10)), int64(u64at(v, 8))
	if at <= t.now {
		t.put(bInReady, inReadyKey(b.num, u64at(v, 0), seq), u64bytes(order))
		return
	}
	t.put(bTimer, timerKey(at, timerUpdate, b.num, uint64(seq)), []byte{})
}

func (t *txn) wakeUpdate(b *Bot, seq int64) {
	if r, err := t.update(b, seq); err == nil && r.state == UpdateOpen {
		t.unreadyIn(b, hash64(r.OrderKey))
		t.rearmIn(b, hash64(r.OrderKey))
	}
}

// staleReason is why a query is expired.
const staleReason = "too old when its turn came"

// expireStale ends an update that nobody has begun to handle in time.
func (t *txn) expireStale(b *Bot, seq int64) {
	r, err := t.update(b, seq)
	if err != nil || r.state != UpdateOpen || r.StaleAt == 0 || r.StaleAt > t.now {
		return
	}
	t.expireOpen(b, r, staleReason)
}

// expireOpen ends an open update before its turn.
func (t *txn) expireOpen(b *Bot, r *updateRec, reason string) {
	t.unlineIn(b, r)
	r.Error = reason
	t.shelve(b, r, UpdateOpen, UpdateExpired)
}

// update finds an update by its seq, whatever its state.
func (t *txn) update(b *Bot, seq int64) (*updateRec, error) {
	k := inboxKey(b.num, seq)
	if v := t.get(bInbox, k); v != nil {
		r, err := decode[updateRec](k, v)
		if err != nil {
			return nil, fmt.Errorf("update %d: %w", seq, err)
		}
		r.state = UpdateOpen
		if lease, err := t.lease(b, seq); err == nil && lease != nil {
			r.state, r.Attempts = UpdateLeased, lease.Attempt
		}
		return r, nil
	}
	for _, st := range UpdateStates() {
		k := stateKey(b.num, st.code(), seq)
		v := t.get(bInEnded, k)
		if v == nil {
			continue
		}
		r, err := decode[updateRec](k, v)
		if err != nil {
			return nil, fmt.Errorf("update %d: %w", seq, err)
		}
		r.state = st
		return r, nil
	}
	return nil, fmt.Errorf("update %d: %w", seq, ErrNotFound)
}

func (t *txn) lease(b *Bot, seq int64) (*leaseRec, error) {
	k := inboxKey(b.num, seq)
	v := t.get(bInLease, k)
	if v == nil {
		return nil, nil
	}
	return decode[leaseRec](k, v)
}

// fullUpdate fills in the bytes of an update whose payload stands elsewhere.
func (t *txn) fullUpdate(b *Bot, r *updateRec) *updateRec {
	if !r.InBody {
		return r
	}
	c := *r
	k := inBodyKey(b.num, r.Seq)
	v, err := unseal(k, t.get(bInBody, k))
	if err != nil {
		c.Error = "the update's bytes are damaged on disk"
		return &c
	}
	c.Raw = append([]byte(nil), v...)
	return &c
}

// Update reads an update by its seq.
func (b *Bot) Update(seq int64) (u Update, err error) {
	err = b.s.view(func(t *txn) error {
		r, err := t.update(b, seq)
		if err == nil {
			u = t.fullUpdate(b, r).view(t.s.clock)
		}
		return err
	})
	return u, err
}

// UpdateByID finds the update that Telegram gave an id to.
func (b *Bot) UpdateByID(id int64) (u Update, err error) {
	err = b.s.view(func(t *txn) error {
		v := t.get(bSeen, seenKey(b.num, id))
		if len(v) != 8 {
			return fmt.Errorf("update_id %d: %w", id, ErrNotFound)
		}
		r, err := t.update(b, int64(binary.BigEndian.Uint64(v)))
		if err == nil {
			u = t.fullUpdate(b, r).view(t.s.clock)
		}
		return err
	})
	return u, err
}

// Replay opens an ended update again. Its calls keep their keys, so that the
// jobs it has caused stand, unless fresh asks for new ones.
func (b *Bot) Replay(ctx context.Context, seq int64, fresh bool) (Update, error) {
	return b.moveUpdate(ctx, seq, UpdateOpen, func(t *txn, r *updateRec) {
		from := r.state
		t.delEnded(b, bInEnded, stateKey(b.num, from.code(), seq))
		r.Attempts, r.NextAt, r.StaleAt, r.Error, r.Output = 0, 0, 0, "", ""
		r.Replays++
		if fresh {
			r.Fresh, r.Jobs, r.Further = r.Fresh+1, nil, nil
		}
		t.open(b, r, from)
	})
}

// Drop ignores an update that is open or dead.
func (b *Bot) Drop(ctx context.Context, seq int64) (Update, error) {
	return b.moveUpdate(ctx, seq, UpdateIgnored, func(t *txn, r *updateRec) {
		r.Error = "dropped"
		if r.state == UpdateOpen {
			t.unlineIn(b, r)
			t.shelve(b, r, UpdateOpen, UpdateIgnored)
			return
		}
		t.delEnded(b, bInEnded, stateKey(b.num, r.state.code(), seq))
		t.countUpdate(b, r.state, "")
		t.shelve(b, r, "", UpdateIgnored)
	})
}

func (b *Bot) moveUpdate(ctx context.Context, seq int64, to UpdateState, change func(*txn, *updateRec)) (u Update, err error) {
	err = b.s.do(ctx, 256, func(t *txn) error {
		r, err := t.update(b, seq)
		if err != nil {
			return err
		}
		if !canMoveUpdate(r.state, to) || r.state == UpdateLeased || !r.HasID && to == UpdateOpen {
			return &StateError{What: "update", ID: seq, Now: string(r.state), Want: string(to)}
		}
		change(t, r)
		u = t.fullUpdate(b, r).view(t.s.clock)
		return nil
	})
	return u, err
}
