package botserver

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"github.com/tgspool/tgspool/internal/spool"
)

const (
	// unreadFor is how long after its end a job can be joined whose end nobody
	// has read.
	unreadFor = 60 * time.Second
	// settleTime is how long it may take to notice that a caller has hung up.
	settleTime = 100 * time.Millisecond
	// readDelay is when at the latest it is stored which ends have been read. A
	// later call stores it on its way, so that a busy bot pays nothing for it.
	// If we stop before, the same call made once more within a minute gets the
	// old answer: a caller whose call comes again just then has hardly read it.
	readDelay = 2 * time.Second
)

// joins knows which jobs have a caller who waits, and whose ends have been read.
type joins struct {
	mu      sync.Mutex
	waiting map[int64]bool                       // jobs with a caller
	locks   map[[spool.PrintSize]byte]*joinLock  // calls on their way to disk
	read    map[*spool.Bot]map[int64]spool.Print // ends that were read, not stored yet
	timers  map[*spool.Bot]*time.Timer           // that store them
}

// joinLock lets the same call come in one after the other, so that the second
// knows whether the first has a caller who waits.
type joinLock struct {
	sync.Mutex

	users int
}

func newJoins() *joins {
	return &joins{
		waiting: map[int64]bool{}, locks: map[[spool.PrintSize]byte]*joinLock{},
		read: map[*spool.Bot]map[int64]spool.Print{}, timers: map[*spool.Bot]*time.Timer{},
	}
}

// ticket is a caller's wait for a job.
type ticket struct {
	id    int64
	state spool.State

	joins *joins // nil: nobody can join
	bot   *spool.Bot
	sum   [spool.PrintSize]byte
}

// join finds the job of the same call whose caller went away before it heard the
// end, or makes a new one. Two callers who wait are two messages.
func (s *Server) join(c *call, job spool.NewJob) (*ticket, error) {
	t := &ticket{joins: s.joins, bot: c.Bot.Spool, sum: fingerprint(c.Bot.Spool.ID(), c.Client, c.method.Name, c.params, c.upload.Files(), c.upload.Sums())}
	unlock := s.joins.lock(t.sum)
	defer func() { unlock() }()
	busy, err := t.find()
	if err != nil || t.id != 0 {
		return t, err
	}
	if busy {
		// Somebody waits for the same call. It may be this caller's own former
		// connection, whose end has not been noticed yet.
		unlock()
		s.pause(c.r.Context(), settleTime)
		unlock = s.joins.lock(t.sum)
		if _, err := t.find(); err != nil || t.id != 0 {
			return t, err
		}
	}
	job.Print, job.Read = t.sum[:], s.joins.unstored(t.bot)
	made, err := enqueue(c, job)
	if err != nil {
		return nil, err
	}
	s.joins.stored(t.bot, job.Read)
	t.id, t.state = made.ID, made.State
	s.joins.take(t.bot, []int64{t.id})
	return t, nil
}

// find takes the first job of the same call that has no caller, and reports
// whether there are others that have one.
func (t *ticket) find() (busy bool, err error) {
	ids, err := t.bot.Unread(t.sum, unreadFor)
	t.id, busy = t.joins.take(t.bot, ids)
	return busy, err
}

// pause waits for d, or less when the caller goes away.
func (s *Server) pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// lock is held from the look for a job to the commit of a new one.
func (j *joins) lock(sum [spool.PrintSize]byte) (unlock func()) {
	j.mu.Lock()
	l := j.locks[sum]
	if l == nil {
		l = &joinLock{}
		j.locks[sum] = l
	}
	l.users++
	j.mu.Unlock()
	l.Lock()
	return func() {
		l.Unlock()
		j.mu.Lock()
		defer j.mu.Unlock()
		if l.users--; l.users == 0 {
			delete(j.locks, sum)
		}
	}
}

// take attaches a caller to the first of the jobs that has none and whose end
// wasn't read; 0 when there is none. busy: some before it have a caller.
func (j *joins) take(b *spool.Bot, ids []int64) (id int64, busy bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, id := range ids {
		switch _, read := j.read[b][id]; {
		case read:
		case j.waiting[id]:
			busy = true
		default:
			j.waiting[id] = true
			return id, busy
		}
	}
	return 0, busy
}

// release ends the wait: from now on the same call joins the job, unless its end
// was read.
func (t *ticket) release() {
	if t.joins == nil {
		return
	}
	t.joins.mu.Lock()
	defer t.joins.mu.Unlock()
	delete(t.joins.waiting, t.id)
}

// read says that the caller has got the job's end.
func (t *ticket) read() {
	j := t.joins
	if j == nil {
		return
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.read[t.bot] == nil {
		j.read[t.bot] = map[int64]spool.Print{}
	}
	j.read[t.bot][t.id] = spool.Print{Sum: t.sum, ID: t.id}
	if j.timers[t.bot] == nil {
		j.timers[t.bot] = time.AfterFunc(readDelay, func() { j.flush(t.bot) })
	}
}

// unstored lists which ends have been read and aren't stored as such.
func (j *joins) unstored(b *spool.Bot) []spool.Print {
	j.mu.Lock()
	defer j.mu.Unlock()
	prints := make([]spool.Print, 0, len(j.read[b]))
	for _, p := range j.read[b] {
		prints = append(prints, p)
	}
	slices.SortFunc(prints, func(x, y spool.Print) int { return cmp.Compare(x.ID, y.ID) })
	return prints
}

// stored says that they are stored.
func (j *joins) stored(b *spool.Bot, prints []spool.Print) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, p := range prints {
		delete(j.read[b], p.ID)
	}
}

// flush stores which ends have been read, when no call has done so on its way.
func (j *joins) flush(b *spool.Bot) {
	j.mu.Lock()
	delete(j.timers, b)
	j.mu.Unlock()
	prints := j.unstored(b)
	if len(prints) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), commitTime)
	defer cancel()
	// A store that can't be written says so by itself, and the next call stores it.
	// At worst the same call, made once more within a minute and after a restart,
	// gets the old answer.
	if err := b.MarkRead(ctx, prints...); err == nil {
		j.stored(b, prints)
	}
}

// Close stores what hasn't been stored. It is called when nobody is served any
// more, before the store is closed.
func (s *Server) Close() {
	s.joins.mu.Lock()
	bots := make([]*spool.Bot, 0, len(s.joins.timers))
	for b, t := range s.joins.timers {
		t.Stop()
		bots = append(bots, b)
	}
	s.joins.mu.Unlock()
	for _, b := range bots {
		s.joins.flush(b)
	}
}
