package spool_test

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/tgspool/tgspool/internal/spool"
)

// step is one random operation on the store.
type step struct {
	Op   string
	Chat int // which of a few chats
	N    int // which job, verdict or span
	Lane int
	Safe bool
	Late bool
	Key  bool
}

func steps() *rapid.Generator[[]step] {
	ops := []string{"enqueue", "enqueue", "enqueue", "edit", "edit", "delete", "refer", "replace", "show", "claim", "claim", "claim", "settle", "settle", "settle", "decide", "sleep", "reopen", "intake", "lease", "finish", "hold", "hold", "end", "end", "session"}
	return rapid.SliceOfN(rapid.Custom(func(t *rapid.T) step {
		return step{
			Op: rapid.SampledFrom(ops).Draw(t, "op"), Chat: rapid.IntRange(0, 3).Draw(t, "chat"),
			N: rapid.IntRange(0, 30).Draw(t, "n"), Lane: rapid.IntRange(0, 2).Draw(t, "lane"),
			Safe: rapid.Bool().Draw(t, "safe"), Late: rapid.IntRange(0, 4).Draw(t, "late") == 0, Key: rapid.IntRange(0, 4).Draw(t, "key") == 0,
		}
	}), 40, 120)
}

// model is what the store must hold, kept the simplest way.
type model struct {
	t      *testing.T
	f      *fixture
	states map[int64]spool.State
	safe   map[int64]bool
	chat   map[int64]string
	lane   map[int64]spool.Lane
	place  map[int64]int // order of acceptance or of becoming due, smaller first
	nth    int
	claims []*spool.Claim
	leases []*spool.Lease
	held   []held
	talks  map[int64]spool.Session // per chat
	erased int64                   // highest version that is gone
	nextID int64
	failed string
	ends   map[string][]modelEnd // per chat: when messages have reached it
	groups map[string]bool       // chats that count as groups
	weight map[int64]int

	edits    map[int64]string  // chat, message and method of edits
	named    []int64           // jobs with a key of their own, name<id>
	refs     map[int64]int64   // jobs that wait for the result of another
	fallback map[int64]bool    // jobs with a fallback that is still to be made
	maybe    map[int64]bool    // jobs that may have reached Telegram
	holder   map[string]int64  // of keys that are replaced
	behind   map[int64][]int64 // the parts of the same text that follow
	tried    map[int64]time.Time
}

func (m *model) fail(format string, args ...any) {
	if m.failed == "" {
		m.failed = fmt.Sprintf(format, args...)
	}
}

// shows lets an update say of its chat that it is something else than before.
func (m *model) shows(u *spool.NewUpdate, s step) {
	u.Chat.Type = []string{"private", "supergroup", "channel"}[s.Lane]
	m.groups[strconv.FormatInt(u.Chat.ID, 10)] = s.Lane == 1
}

// modelEnd is when a message has reached its chat, and whether that counted as a
// group then.
type modelEnd struct {
	at    time.Time
	group bool
}

// modelGroup is small, so that a few steps reach it.
const modelGroup = 4

var modelChats = []string{"1", "2", "-100555", "@news"}

func (m *model) enqueue(s step) {
	j := message(modelChats[s.Chat], fmt.Sprint(m.nth))
	j.Lane, j.SafeToRepeat, j.Weight = spool.Lanes()[s.Lane], s.Safe, s.N%4
	if s.Late {
		j.NotBefore = time.Now().Add(time.Duration(s.N) * time.Second)
	}
	if s.Key {
		j.DedupeKey = fmt.Sprint("key", s.N%3)
	}
	own := !s.Key && s.Safe
	if own {
		j.DedupeKey = fmt.Sprint("name", m.nth)
	}
	if s.N%5 == 0 {
		j.Fallback = &spool.NewFallback{Method: "sendMessage", Params: j.Params, Weight: j.Weight, SafeToRepeat: j.SafeToRepeat}
	}
	for range s.N % 10 / 7 * (1 + s.N%2) { // now and then a text of several parts
		p := j
		p.DedupeKey, p.Parts, p.Fallback = "", nil, nil
		p.Params = message(j.Chat, fmt.Sprint(m.nth, "/", len(j.Parts))).Params // no two jobs say the same: see show
		j.Parts = append(j.Parts, p)
	}
	q := m.f.enqueue(j)[0]
	if q.Duplicate {
		if _, known := m.states[q.Job.ID]; !known {
			m.fail("duplicate of unknown job %d", q.Job.ID)
		}
		return
	}
	id := m.accepted(q, j)
	if m.fallback[id] = j.Fallback != nil; own {
		m.named = append(m.named, id)
	}
	for _, id := range append(q.Parts, id) {
		if s.Late && s.N > 0 {
			m.place[id] = 0 // its place depends on when it becomes due: not compared
		}
	}
}

// accepted notes a new job.
func (m *model) accepted(q spool.Queued, j spool.NewJob) int64 {
	for i, id := range q.Parts {
		m.behind[id] = q.Parts[i+1:]
	}
	for _, id := range append(slices.Clone(q.Parts[min(1, len(q.Parts)):]), q.Job.ID) {
		m.states[id], m.safe[id], m.chat[id], m.lane[id] = q.Job.State, j.SafeToRepeat, j.Chat, j.Lane
		m.weight[id] = j.Weight
	}
	m.nth++
	id := q.Job.ID
	m.place[id] = m.nth
	for _, id := range m.behind[id] {
		m.nth++
		m.place[id] = m.nth
	}
	return id
}

func (m *model) claim() {
	ctx, cancel := context.WithTimeout(m.t.Context(), 10*time.Millisecond)
	defer cancel()
	c, err := m.f.bot.Claim(ctx)
	if err != nil {
		return
	}
	if m.states[c.ID] != spool.Pending {
		m.fail("claimed job %d, which is %s", c.ID, m.states[c.ID])
	}
	for _, other := range m.claims {
		if m.chat[other.ID] == m.chat[c.ID] {
			m.fail("jobs %d and %d of chat %s in flight at once", other.ID, c.ID, m.chat[c.ID])
		}
	}
	for id, st := range m.states {
		older := m.place[id] != 0 && m.place[c.ID] != 0 && m.place[id] < m.place[c.ID]
		if st == spool.Pending && id != c.ID && older && m.chat[id] == m.chat[c.ID] && m.lane[id] == m.lane[c.ID] {
			m.fail("job %d overtook job %d of its chat and lane", c.ID, id)
		}
	}
	if m.waits(c.ID) {
		m.fail("job %d goes without the result of job %d", c.ID, m.refs[c.ID])
	}
	if want := m.fallback[c.ID] && !m.maybe[c.ID]; c.CanFallBack != want {
		m.fail("job %d can fall back: %v", c.ID, c.CanFallBack)
	}
	m.gates(c)
	m.tried[c.ID] = time.Now()
	m.states[c.ID] = spool.Running
	m.claims = append(m.claims, c)
}

// gates checks that the chat's gap and window were open, whatever restarts
// there were.
func (m *model) gates(c *spool.Claim) {
	if m.weight[c.ID] == 0 {
		return
	}
	chat, lately := m.chat[c.ID], 0
	for _, end := range m.ends[chat] {
		if ago := time.Since(end.at); ago < 1050*time.Millisecond {
			m.fail("job %d goes %s after the last message of chat %s", c.ID, ago, chat)
		} else if ago < time.Minute && end.group {
			lately++
		}
	}
	if m.groups[chat] && lately+m.weight[c.ID] > modelGroup {
		m.fail("job %d makes %d messages to group %s in a minute", c.ID, lately+m.weight[c.ID], chat)
	}
}

// reached notes that a job's messages may have reached the chat just now.
func (m *model) reached(id int64) {
	chat := m.chat[id]
	for range m.weight[id] {
		m.ends[chat] = append(m.ends[chat], modelEnd{time.Now(), m.groups[chat]})
	}
}

func (m *model) settle(s step) {
	if len(m.claims) == 0 {
		return
	}
	i := s.N % len(m.claims)
	c := m.claims[i]
	m.claims = slices.Delete(m.claims, i, i+1)
	v := spool.Verdict{Reached: s.Safe}
	switch s.N % 6 {
	case 0, 1:
		v.State, v.Result = spool.Done, []byte(`{"message_id":7}`)
	case 2:
		v.State, v.RetryAt = spool.Pending, time.Now().Add(time.Duration(s.Lane)*time.Second)
	case 3:
		v.State, v.GiveBack = spool.Pending, true
	case 4:
		v.State = spool.Uncertain
		m.maybe[c.ID] = true
	case 5:
		v.State, v.Error = spool.Dead, &spool.JobError{Class: "rejected"}
		if c.CanFallBack {
			v.State, v.FallBack, m.fallback[c.ID] = spool.Pending, true, false
		}
	}
	if _, err := m.f.bot.Settle(m.t.Context(), c, v); err != nil {
		m.fail("settling job %d: %v", c.ID, err)
	}
	m.states[c.ID] = v.State
	for _, id := range m.behind[c.ID] {
		if v.State == spool.Dead && m.states[id] == spool.Pending {
			m.states[id] = spool.Dead
		}
	}
	if v.Reached {
		m.reached(c.ID)
	}
}

func (m *model) decide(s step) {
	id := int64(s.N%(len(m.states)+1)) + 1
	was, known := m.states[id]
	var j spool.Job
	var err error
	switch s.Lane {
	case 0:
		j, err = m.f.store.Cancel(m.t.Context(), id)
	case 1:
		if was == spool.Pending {
			j, err = m.f.store.Hold(m.t.Context(), id)
		} else {
			j, err = m.f.store.Release(m.t.Context(), id)
		}
	default:
		if was == spool.Uncertain {
			j, err = m.f.store.Resolve(m.t.Context(), id, spool.Resolution{Outcome: "resend"})
		} else {
			j, err = m.f.store.Retry(m.t.Context(), id)
			m.fallback[id] = m.fallback[id] || err == nil && j.Fallback != nil
		}
	}
	if !known && err == nil {
		m.fail("a decision on job %d, which doesn't exist, was taken", id)
	}
	if err == nil {
		m.states[id] = j.State
	}
	for _, next := range m.behind[id] {
		if was == spool.Pending && j.State == spool.Cancelled && m.states[next] == spool.Pending {
			m.states[next] = spool.Cancelled
		}
	}
}

func (m *model) reopen() {
	m.f.reopen()
	for _, c := range m.claims {
		m.reached(c.ID)
		m.maybe[c.ID] = true
		m.states[c.ID] = spool.Uncertain
		if m.safe[c.ID] {
			m.states[c.ID] = spool.Pending
		}
	}
	m.claims, m.leases = nil, nil
}

func (m *model) inbox(s step) {
	switch s.Op {
	case "intake":
		repeat := s.Key && m.nextID > 0
		if !repeat {
			m.nextID++
		}
		u := text(m.nextID, []int64{1, 2, -100555, 4}[s.Chat])
		if !repeat {
			m.shows(&u, s)
		}
		if s.Safe {
			u.Route = spool.Route{Handler: spool.PullRoute, Attempts: 2}
		}
		m.f.intake(u)
	case "lease":
		if l := m.f.lease(time.Millisecond); l != nil {
			m.leases = append(m.leases, l)
		}
	case "finish":
		if len(m.leases) == 0 {
			return
		}
		l := m.leases[0]
		m.leases = m.leases[1:]
		var err error
		switch s.Lane {
		case 0:
			_, err = m.f.bot.Handled(m.t.Context(), l, spool.Handling{})
		case 1:
			err = m.f.bot.FailUpdate(m.t.Context(), l, spool.Failure{State: spool.UpdateOpen, RetryAt: time.Now().Add(time.Second)})
		default:
			err = m.f.bot.FailUpdate(m.t.Context(), l, spool.Failure{State: spool.UpdateDead})
		}
		if err != nil {
			m.fail("finishing update %d: %v", l.Seq, err)
		}
	}
}

func (m *model) compare() {
	synctest.Wait()
	m.results()
	for id, want := range m.states {
		j, err := m.f.store.Job(id)
		if err != nil {
			m.fail("job %d: %v", id, err)
		} else if j.State != want {
			m.fail("job %d is %s, the model says %s", id, j.State, want)
		}
	}
	m.compareTalks()
	problems, err := m.f.store.Check()
	if err != nil || len(problems) > 0 {
		m.fail("check: %s %v", strings.Join(problems, "; "), err)
	}
}

// TestStore_AgainstAModel runs random operations, with restarts among them,
// and compares the store with the model after each.
func TestStore_AgainstAModel(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		list, failed := steps().Draw(rt, "steps"), ""
		l := limits()
		l.GroupPerMinute = modelGroup
		bubble(t, l, func(t *testing.T, f *fixture) {
			f.checked = true
			f.cfg.Sight = modelSight
			f.reopen()
			m := &model{
				t: t, f: f, states: map[int64]spool.State{}, safe: map[int64]bool{},
				chat: map[int64]string{}, lane: map[int64]spool.Lane{}, place: map[int64]int{},
				ends: map[string][]modelEnd{}, groups: map[string]bool{"-100555": true, "@news": true}, weight: map[int64]int{}, edits: map[int64]string{}, refs: map[int64]int64{},
				fallback: map[int64]bool{}, maybe: map[int64]bool{}, holder: map[string]int64{}, tried: map[int64]time.Time{}, talks: map[int64]spool.Session{},
				behind: map[int64][]int64{},
			}
			for i, s := range list {
				m.run(s)
				if m.compare(); m.failed != "" {
					failed = fmt.Sprintf("after step %d (%+v): %s", i, s, m.failed)
					return
				}
			}
		})
		if failed != "" {
			rt.Fatal(failed)
		}
	})
}

func (m *model) run(s step) {
	switch s.Op {
	case "enqueue":
		m.enqueue(s)
	case "edit":
		m.edit(s)
	case "delete":
		m.delete(s)
	case "refer":
		m.refer(s)
	case "replace":
		m.replace(s)
	case "show":
		m.show(s)
	case "claim":
		m.claim()
	case "settle":
		m.settle(s)
	case "decide":
		m.decide(s)
	case "sleep":
		time.Sleep(time.Duration(s.N) * 300 * time.Millisecond)
	case "reopen":
		m.reopen()
	case "hold":
		m.hold(s)
	case "end":
		m.end(s)
	case "session":
		m.session(s)
	default:
		m.inbox(s)
	}
}
