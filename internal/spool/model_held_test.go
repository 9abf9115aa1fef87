package spool_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/tgspool/tgspool/internal/spool"
)

// held is a lease of the model that has an end: it outlives restarts.
type held struct {
	*spool.Lease
	until time.Time
}

// holds reports whether the lease can still be used; nobody knows at its very end.
func (h held) holds() bool { return time.Now().Before(h.until) }

// hold leases what is ready of the pull route. Nothing may be handed out that
// another holds.
func (m *model) hold(s step) {
	span := time.Duration(s.N+1) * time.Second
	got, err := m.f.bot.ClaimUpdates(m.t.Context(), spool.PullRoute, 1+s.Lane, span, 0)
	if err != nil {
		m.fail("claiming updates: %v", err)
	}
	for _, l := range got {
		for _, other := range m.held {
			if other.holds() && (other.Seq == l.Seq || other.ChatID == l.ChatID) {
				m.fail("update %d of chat %d is handed out, update %d is held", l.Seq, l.ChatID, other.Seq)
			}
		}
		if l.Attempts > 2 {
			m.fail("update %d is handed out for attempt %d of 2", l.Seq, l.Attempts)
		}
		m.held = append(m.held, held{l, time.Now().Add(span)})
	}
}

// end ends a lease, with a change of the session made from what was leased.
func (m *model) end(s step) {
	if len(m.held) == 0 {
		return
	}
	i := s.N % len(m.held)
	h := m.held[i]
	l := m.f.bot.HeldLease(h.Seq, h.Token())
	if !h.holds() { // it may be in another's hands
		m.held = slices.Delete(m.held, i, i+1)
		if err := m.f.bot.FailLease(m.t.Context(), l, "late", false); !errors.Is(err, spool.ErrLeaseLost) {
			m.fail("a lease of update %d that has run out is answered %v", h.Seq, err)
		}
		return
	}
	var err error
	switch s.Lane {
	case 0:
		err = m.complete(s, h, l)
	case 1:
		err = m.f.bot.FailLease(m.t.Context(), l, "no luck", s.Late)
	default:
		span := time.Duration(s.N) * time.Second
		_, err = m.f.bot.ExtendLease(m.t.Context(), l, span)
		m.held[i].until = time.Now().Add(span)
	}
	if err != nil {
		m.fail("ending the lease of update %d: %v", h.Seq, err)
	}
	if u, err := m.f.bot.Update(h.Seq); err == nil && u.State != spool.UpdateLeased {
		m.held = slices.Delete(m.held, i, i+1)
	}
}

// complete hands in a change. A stale one leaves lease and session as they are.
func (m *model) complete(s step, h held, l *spool.Lease) error {
	data, chat := fmt.Sprintf(`{"by":%d}`, h.Seq), h.ChatID
	if s.Late {
		data = "{}"
	}
	_, err := m.f.bot.Handled(m.t.Context(), l, spool.Handling{Session: change(data, h.Session.Version)})
	if now := m.talks[chat].Version; now != h.Session.Version {
		if !errors.Is(err, spool.ErrStale) {
			m.fail("a change made from version %d of %d is answered %v", h.Session.Version, now, err)
		}
		return nil
	}
	m.talk(chat, data, s.Late)
	return err
}

// talk is what the model makes of a change that is accepted.
func (m *model) talk(chat int64, data string, gone bool) {
	now := m.talks[chat]
	switch {
	case gone:
		m.erased = max(m.erased, now.Version)
		delete(m.talks, chat)
		return
	case now.Version == 0:
		now.Version = m.erased
	}
	m.talks[chat] = spool.Session{Version: now.Version + 1, Data: json.RawMessage(data)}
}

// session changes a session from outside, by a version that fits or not.
func (m *model) session(s step) {
	chat := int64(s.Chat) + 1
	version := m.talks[chat].Version
	fits := !s.Key
	if s.Key {
		version++
	}
	var err error
	data := fmt.Sprintf(`{"n":%d}`, s.N)
	if s.Late && version > 0 {
		err = m.f.bot.DeleteSession(m.t.Context(), key(chat, 0), version)
	} else {
		_, _, err = m.f.bot.SetSession(m.t.Context(), key(chat, 0), json.RawMessage(data), version)
	}
	if fits != (err == nil) {
		m.fail("a change of session %d made from version %d: %v", chat, version, err)
	}
	if err == nil {
		m.talk(chat, data, s.Late && version > 0)
	}
}

func (m *model) compareTalks() {
	page, err := m.f.bot.Sessions(spool.SessionKey{}, 0)
	if err != nil || len(page.Items) != len(m.talks) {
		m.fail("%d sessions (%v), the model has %d", len(page.Items), err, len(m.talks))
	}
	for chat, want := range m.talks {
		got, err := m.f.bot.Session(key(chat, 0))
		if err != nil || got.Version != want.Version || string(got.Data) != string(want.Data) {
			m.fail("session %d is %d %s (%v), the model says %d %s", chat, got.Version, got.Data, err, want.Version, want.Data)
		}
	}
}
