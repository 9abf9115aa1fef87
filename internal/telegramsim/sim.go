package telegramsim

import (
	"log/slog"
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Bot is one account that the simulator serves.
type Bot struct {
	// Token is the whole token, "<id>:<secret>". Its id part is the bot's id.
	Token string
	// Username is the name without @; empty means "sim<id>_bot".
	Username string
}

// Options say what a simulator serves and how strict it is. The zero value
// serves nobody.
type Options struct {
	// Bots are the accounts. The first is the one that FeedText and other
	// calls without a bot mean.
	Bots []Bot
	// Strict turns flood limits on; nil means no flood limits.
	Strict *Limits
	// Seed starts the random numbers (first update ids, dice, jitter), so that
	// one seed gives one history. 0 is a seed like any other.
	Seed int64
	// AcceptAnyToken serves every well-formed token, as an account made at the
	// first use.
	AcceptAnyToken bool
	// KnownChatsOnly answers "chat not found" for chats that neither wrote nor
	// were added. Without it a chat is made by the first message to it.
	KnownChatsOnly bool
	// Push carries webhook deliveries; nil means a plain HTTP transport.
	Push http.RoundTripper
	// Logger gets one debug line per call; nil means silence.
	Logger *slog.Logger
}

// Sim is a simulated Telegram. Make it with New; all methods may be called from
// any goroutine.
type Sim struct {
	opts    Options
	log     *slog.Logger
	methods map[string]method // read only after New
	closed  chan struct{}     // closed by Close: ends every wait
	push    http.RoundTripper

	pushers sync.WaitGroup // webhook deliveries in flight

	mu       sync.Mutex // guards everything below
	rng      *rand.Rand
	bots     map[string]*bot // by token, with "/test" behind it for the test environment
	order    []*bot          // in order of Options.Bots, then of first use
	chats    map[int64]*chat
	names    map[string]int64 // lower-case @names without @
	files    map[string]*file // by file id
	queries  map[string]*query
	faults   []*script
	faultID  int
	journal  []Arrival
	polls    []Poll
	arrived  chan struct{} // closed and replaced at every change of the journal
	texts    map[textKey]int
	flood    floodgate
	offline  bool
	cut      chan struct{} // closed when the network goes away, replaced when it returns
	fronts   map[*front]struct{}
	serial   int64 // source of ids that need not be random
	shutDown bool
}

// New makes a simulator. It holds no goroutine until a webhook is set.
func New(opts Options) *Sim {
	s := &Sim{
		opts:    opts,
		log:     opts.Logger,
		closed:  make(chan struct{}),
		push:    opts.Push,
		rng:     rand.New(rand.NewPCG(uint64(opts.Seed), 0x7467_7370_6f6f_6c21)),
		bots:    make(map[string]*bot),
		chats:   make(map[int64]*chat),
		names:   make(map[string]int64),
		files:   make(map[string]*file),
		queries: make(map[string]*query),
		arrived: make(chan struct{}),
		texts:   make(map[textKey]int),
		cut:     make(chan struct{}),
		fronts:  make(map[*front]struct{}),
	}
	s.flood.chats = make(map[floodKey]*bucket)
	if s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	if s.push == nil {
		s.push = &http.Transport{MaxIdleConnsPerHost: 40, IdleConnTimeout: 30 * time.Second}
	}
	s.methods = methodTable()
	for _, b := range opts.Bots {
		s.addBotLocked(b, false)
	}
	return s
}

// Close ends every parked poll, hanging call and webhook delivery, and waits
// for the deliveries. Calls made later are answered as by a server that stops.
func (s *Sim) Close() {
	s.mu.Lock()
	already := s.shutDown
	s.shutDown = true
	if !already {
		close(s.closed)
		for _, b := range s.bots {
			b.stopHookLocked()
		}
	}
	s.mu.Unlock()
	s.pushers.Wait()
}

// nextSerialLocked gives numbers for ids that only have to be unique.
func (s *Sim) nextSerialLocked() int64 {
	s.serial++
	return s.serial
}

// botLocked finds a bot by its id; 0 is the first bot. It returns nil when
// there is none.
func (s *Sim) botLocked(id int64) *bot {
	for _, b := range s.order {
		if !b.test && (id == 0 || b.id == id) {
			return b
		}
	}
	return nil
}

// addBotLocked makes the state of an account.
func (s *Sim) addBotLocked(spec Bot, test bool) *bot {
	id, _ := tokenID(spec.Token)
	name := spec.Username
	if name == "" {
		name = "sim" + strconv.FormatInt(id, 10) + "_bot"
	}
	b := &bot{
		sim: s, id: id, token: spec.Token, username: name, test: test, born: time.Now(),
		commands: make(map[string]string),
		threads:  make(map[threadKey]bool),
	}
	// The first id of a fresh queue is random in this range on the real server.
	b.queue.next = 2_000_001 + s.rng.Int64N(998_000_000)
	s.bots[botKey(spec.Token, test)] = b
	s.order = append(s.order, b)
	return b
}

// botKey is the key of Sim.bots: the test environment has accounts of its own.
func botKey(token string, test bool) string {
	if test {
		return token + "/test"
	}
	return token
}

// tokenID reads the bot's id from a token and tells whether the token has the
// shape of one: digits without a leading zero, a colon, no slash, at most 80
// bytes, id below 2^54.
func tokenID(token string) (int64, bool) {
	head, secret, found := strings.Cut(token, ":")
	if !found || secret == "" || len(token) > 80 || strings.HasPrefix(head, "0") || strings.Contains(token, "/") {
		return 0, false
	}
	id, err := strconv.ParseInt(head, 10, 64)
	if err != nil || id < 1 || id > 1<<54 {
		return 0, false
	}
	return id, true
}
