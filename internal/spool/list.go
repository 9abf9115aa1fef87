package spool

import (
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"

	bolt "go.etcd.io/bbolt"
)

// Page sizes, and how many records a filtered list looks at before it returns
// a short page: a list must never hold a read transaction for long.
const (
	defaultPage = 100
	maxPage     = 1000
	maxLooked   = 10_000
)

func pageSize(limit int) int {
	if limit <= 0 {
		return defaultPage
	}
	return min(limit, maxPage)
}

// stream walks the records of one stand in ascending id.
type stream struct {
	c      *bolt.Cursor
	prefix []byte
	k, v   []byte
	state  string
}

// merge walks several stands together, in ascending id; every key ends in it.
type merge []*stream

func (t *txn) stream(bucket []byte, prefix key, after int64, state string) *stream {
	s := &stream{c: t.bucket(bucket).Cursor(), prefix: prefix, state: state}
	s.k, s.v = s.c.Seek(slices.Clone(prefix).u64(uint64(after) + 1))
	return s
}

func (s *stream) id() (int64, bool) {
	if !hasPrefix(s.k, s.prefix) || len(s.k) < 8 {
		return 0, false
	}
	return int64(u64at(s.k, len(s.k)-8)), true
}

// next returns the stream with the smallest id that is left.
func (m merge) next() *stream {
	var best *stream
	var lowest int64
	for _, s := range m {
		if id, ok := s.id(); ok && (best == nil || id < lowest) {
			best, lowest = s, id
		}
	}
	return best
}

func (s *stream) advance() { s.k, s.v = s.c.Next() }

// Jobs lists the bot's jobs in ascending id. State is indexed; for the rest it
// looks at a bounded number of records, so a page may be short while Next is set.
func (b *Bot) Jobs(f JobFilter) (JobPage, error) {
	page := JobPage{Items: []Job{}}
	f.Limit = pageSize(f.Limit)
	err := b.s.view(func(t *txn) error {
		if f.Key != "" {
			return b.byKey(t, f, &page)
		}
		chat := uint32(0)
		if f.Chat != "" {
			if chat = t.lookupChat(b, chatName(f.Chat)); chat == 0 {
				return nil
			}
		}
		m := t.jobStreams(b, f)
		for looked := 0; ; looked++ {
			s := m.next()
			if s == nil {
				page.Next = 0
				return nil
			}
			if len(page.Items) == f.Limit || looked == maxLooked {
				return nil
			}
			page.Next, _ = s.id()
			t.look(b, s, f, chat, &page)
			s.advance()
		}
	})
	return page, err
}

func (t *txn) jobStreams(b *Bot, f JobFilter) (m merge) {
	for _, st := range States() {
		if f.State != "" && f.State != st {
			continue
		}
		switch {
		case st == Running && f.State == Running:
			m = append(m, t.stream(bRun, botKey(b.num), f.After, string(Running)))
		case st == Running:
			// Stands among the pending ones, told apart when looked at.
		case st == Pending:
			m = append(m, t.stream(bLive, botKey(b.num), f.After, ""))
		default:
			m = append(m, t.stream(standOf(st), stateKey(b.num, st.code(), 0)[:3], f.After, string(st)))
		}
	}
	return m
}

// look adds the record under a stream to the page if the filter wants it.
func (t *txn) look(b *Bot, s *stream, f JobFilter, chat uint32, page *JobPage) {
	id, _ := s.id()
	var r *jobRec
	var err error
	if s.state == "" || s.state == string(Running) {
		if r, err = t.liveJob(b, id); err == nil {
			t.fillRun(b, r)
		}
	} else if r, err = decode[jobRec](s.k, s.v); err == nil {
		r.state = State(s.state)
	}
	if err != nil || !f.wants(r, chat, t) {
		return
	}
	page.Items = append(page.Items, t.full(r).view(b.Name(), t.s.clock))
}

func (f *JobFilter) wants(r *jobRec, chat uint32, t *txn) bool {
	return (f.State == "" || f.State == r.state) &&
		(chat == 0 || chat == r.ChatNo) &&
		(f.Lane == "" || f.Lane.code() == r.Lane) &&
		(f.Method == "" || strings.EqualFold(f.Method, r.Method)) &&
		(f.Origin == "" || f.Origin == r.Origin) &&
		(f.Older == 0 || r.Created <= t.now-int64(f.Older))
}

// byKey finds the one job that holds a dedupe key.
func (b *Bot) byKey(t *txn, f JobFilter, page *JobPage) error {
	id := t.keyHolder(b, f.Key)
	if id == 0 {
		id = t.replyHolder(b, f.Key)
	}
	r, err := t.job(id)
	if errors.Is(err, ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	f.Key = ""
	if id > f.After && f.wants(r, 0, t) {
		page.Items = append(page.Items, t.full(r).view(b.Name(), t.s.clock))
	}
	return nil
}

// replyHolder finds a handler's job by its key, through the update.
func (t *txn) replyHolder(b *Bot, k string) int64 {
	parts := strings.Split(k, ":")
	if len(parts) < 3 || parts[0] != "reply" {
		return 0
	}
	id, err1 := strconv.ParseInt(parts[1], 10, 64)
	n, err2 := strconv.Atoi(parts[2])
	v := t.get(bSeen, seenKey(b.num, id))
	if err1 != nil || err2 != nil || len(v) != 8 {
		return 0
	}
	r, err := t.update(b, int64(u64at(v, 0)))
	if err != nil || n < 1 || n > len(r.Jobs) || r.replyKey(n-1) != k {
		return 0
	}
	return r.Jobs[n-1]
}

// Updates lists the bot's updates in ascending seq.
func (b *Bot) Updates(f UpdateFilter) (UpdatePage, error) {
	page := UpdatePage{Items: []Update{}}
	f.Limit = pageSize(f.Limit)
	err := b.s.view(func(t *txn) error {
		m := t.updateStreams(b, f)
		for looked := 0; ; looked++ {
			s := m.next()
			if s == nil {
				page.Next = 0
				return nil
			}
			if len(page.Items) == f.Limit || looked == maxLooked {
				return nil
			}
			seq, _ := s.id()
			page.Next = seq
			if r, err := t.update(b, seq); err == nil && (f.State == "" || r.state == f.State) {
				page.Items = append(page.Items, t.fullUpdate(b, r).view(t.s.clock))
			}
			s.advance()
		}
	})
	return page, err
}

func (t *txn) updateStreams(b *Bot, f UpdateFilter) (m merge) {
	for _, st := range UpdateStates() {
		switch {
		case f.State != "" && f.State != st:
		case st == UpdateLeased && f.State == "":
			// Stands among the open ones.
		case st == UpdateLeased:
			m = append(m, t.stream(bInLease, botKey(b.num), f.After, ""))
		case st == UpdateOpen:
			m = append(m, t.stream(bInbox, botKey(b.num), f.After, ""))
		default:
			m = append(m, t.stream(bInEnded, stateKey(b.num, st.code(), 0)[:3], f.After, ""))
		}
	}
	return m
}

func age(now, since int64) float64 {
	if since == 0 {
		return 0
	}
	return time.Duration(now - since).Seconds()
}
