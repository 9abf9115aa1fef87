package spool_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tgspool/tgspool/internal/spool"
)

// What the model knows of calls that have to do with others: edits that fold,
// results that are waited for, keys whose holder is replaced.

// takesOver notes that a job gives way to another, which gets its place.
func (m *model) takesOver(id, by int64) {
	m.states[id] = spool.Cancelled
	if m.place[id] != 0 && m.place[id] < m.place[by] {
		m.place[by] = m.place[id]
	}
	if m.place[id] == 0 {
		m.place[by] = 0 // brought back by a person: its place isn't compared
	}
	if lane := slices.Index(spool.Lanes(), m.lane[id]); lane < slices.Index(spool.Lanes(), m.lane[by]) {
		m.lane[by] = m.lane[id]
	}
	m.place[id] = 0
}

func (m *model) edit(s step) {
	j := edit([]string{"editMessageText", "editMessageCaption"}[s.Lane%2], modelChats[s.Chat], s.N%2, fmt.Sprint(m.nth))
	j.Lane = spool.Lanes()[s.Lane]
	id := m.accepted(m.f.enqueue(j)[0], j)
	what := j.Edits + j.Method
	for _, old := range slices.Sorted(maps.Keys(m.edits)) {
		if m.edits[old] == what && m.states[old] == spool.Pending {
			m.takesOver(old, id)
		}
	}
	m.edits[id] = what
}

func (m *model) delete(s step) {
	j := message(modelChats[s.Chat], fmt.Sprint(m.nth))
	j.Method, j.Weight, j.SafeToRepeat = "deleteMessage", 0, true
	j.Deletes = []string{fmt.Sprint("/", modelChats[s.Chat], "/", s.N%2)}
	m.accepted(m.f.enqueue(j)[0], j)
	for old, what := range m.edits {
		if strings.HasPrefix(what, j.Deletes[0]+"edit") && m.states[old] == spool.Pending {
			m.states[old] = spool.Cancelled
		}
	}
}

func (m *model) replace(s step) {
	j := message(modelChats[s.Chat], fmt.Sprint(m.nth))
	j.DedupeKey, j.Replace, j.Lane = "replace"+modelChats[s.Chat], true, spool.Lanes()[s.Lane]
	old, known := m.holder[j.DedupeKey]
	replaces := known && m.states[old] == spool.Pending && !m.maybe[old]
	q := m.f.enqueue(j)[0]
	if q.Duplicate {
		if replaces || q.Job.ID != old {
			m.fail("job %d (%s) was not replaced, but job %d found", old, m.states[old], q.Job.ID)
		}
		return
	}
	id := m.accepted(q, j)
	if replaces {
		m.takesOver(old, id)
	}
	m.holder[j.DedupeKey] = id
}

func (m *model) refer(s step) {
	if len(m.named) == 0 {
		return
	}
	other := m.named[s.N%len(m.named)]
	named, err := m.f.store.Job(other)
	if err != nil {
		m.fail("job %d: %v", other, err)
		return
	}
	j := refer(modelChats[s.Chat], *named.DedupeKey)
	j.Edits, j.Lane = "", spool.Lanes()[s.Lane]
	j.Params = []byte(strings.Replace(string(j.Params), `"text":"x"`, fmt.Sprintf(`"text":"%d"`, m.nth), 1))
	q, err := m.f.bot.Enqueue(m.t.Context(), j)
	if st := m.states[other]; st.Ended() && st != spool.Done {
		if !errors.Is(err, spool.ErrInvalid) {
			m.fail("a reference to job %d, which is %s: %v", other, st, err)
		}
		return
	}
	if err != nil {
		m.fail("a reference to job %d, which is %s: %v", other, m.states[other], err)
		return
	}
	id := m.accepted(q[0], j)
	if m.states[other] != spool.Done {
		m.refs[id], m.place[id] = other, 0
	}
}

// waits reports whether a job waits for the result of another.
func (m *model) waits(id int64) bool { _, waits := m.refs[id]; return waits }

// results lets jobs go on whose results are there, or never will be.
func (m *model) results() {
	for _, id := range slices.Sorted(maps.Keys(m.refs)) {
		switch st := m.states[m.refs[id]]; {
		case m.states[id] != spool.Pending:
		case st == spool.Done:
			m.nth++
			m.place[id] = m.nth
			delete(m.refs, id)
		case st.Ended():
			m.states[id] = spool.Dead
		}
	}
}

// modelShown is what an update of the model shows.
type modelShown struct {
	Chat, ID int64
	Date     time.Time
	Method   string
	Params   string
}

func modelSight(raw []byte) *spool.Sighting {
	var u struct{ Shows *modelShown }
	if json.Unmarshal(raw, &u) != nil || u.Shows == nil {
		return nil
	}
	s := u.Shows
	return &spool.Sighting{
		Chat: s.Chat, ID: s.ID, Date: s.Date, Message: fmt.Appendf(nil, `{"message_id":%d}`, s.ID),
		Is: func(method string, params json.RawMessage) bool {
			return method == s.Method && string(params) == s.Params
		},
	}
}

// show takes in an update that shows the message of a job, whatever its state is.
func (m *model) show(s step) {
	id := int64(s.N%(len(m.states)+1)) + 1
	chat, err := strconv.ParseInt(m.chat[id], 10, 64)
	j, err2 := m.f.store.Job(id)
	if err != nil || err2 != nil {
		return // a @name: nothing shows that it is the chat
	}
	date := m.tried[id]
	if s.Late {
		date = date.Add(-time.Hour)
	}
	raw, err := json.Marshal(map[string]any{"Shows": modelShown{chat, 1000 + id, date, j.Method, string(j.Params)}})
	if err != nil {
		m.fail("%v", err)
	}
	m.nextID++
	u := text(m.nextID, chat)
	u.Raw = raw
	m.shows(&u, s)
	m.f.intake(u)
	if m.states[id] == spool.Uncertain && !s.Late {
		m.states[id] = spool.Done
	}
}
