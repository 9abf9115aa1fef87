package botserver

import (
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tgspool/tgspool/internal/botapi"
	"github.com/tgspool/tgspool/internal/spool"
	"github.com/tgspool/tgspool/internal/wire"
)

// Client is one client of the settings and what it may do. What isn't allowed
// is refused.
type Client struct {
	Bot     int64             // Telegram's id of its bot
	Name    string            // in the settings
	SHA256  [sha256.Size]byte // of its whole token
	Methods []string          // "*" for all
	Chats   []string          // ids in decimal, @names; "*" for all
	// Full also lets it take updates, set webhooks, fetch files, and name files of
	// the Bot API server.
	Full bool
	Rate float64 // calls a second, 0: no limit

	Lane        spool.Lane
	MaxWait     time.Duration
	OnUncertain spool.Policy
	TTL         time.Duration
}

// Clients knows the tokens of all bots' clients. Make one with NewClients.
type Clients struct {
	bots  Bots
	list  atomic.Pointer[[]*client]
	wrong *bucket
}

// client is a Client in use.
type client struct {
	Client

	all     bool // every method
	methods map[string]bool
	chats   map[string]bool
	rate    *bucket // nil: none
}

// How many wrong tokens are answered at once, and how many a second after that.
// Right ones are never held up.
const (
	wrongBurst = 20
	wrongRate  = 0.5
)

// NewClients makes an Authorizer that knows nobody before Set.
func NewClients(bots Bots) *Clients {
	c := &Clients{bots: bots, wrong: newBucket(wrongRate, wrongBurst)}
	c.Set(nil)
	return c
}

// Set replaces all clients, at a start and a reload. Who is called as before
// keeps what is left of its rate.
func (c *Clients) Set(list []Client) {
	before := c.list.Load()
	next := make([]*client, 0, len(list))
	for _, l := range list {
		n := &client{Client: l, methods: map[string]bool{}, chats: map[string]bool{}}
		for _, m := range l.Methods {
			n.all = n.all || m == "*"
			n.methods[botapi.MethodFor(m).Name] = true
		}
		for _, chat := range l.Chats {
			n.chats[strings.ToLower(chat)] = true
		}
		if l.Rate > 0 {
			n.rate = newBucket(l.Rate, max(1, l.Rate))
			if old := find(before, l.Bot, l.Name); old != nil && old.Rate == l.Rate {
				n.rate = old.rate
			}
		}
		next = append(next, n)
	}
	c.list.Store(&next)
}

func find(list *[]*client, bot int64, name string) *client {
	if list == nil {
		return nil
	}
	i := slices.IndexFunc(*list, func(c *client) bool { return c.Bot == bot && c.Name == name })
	if i < 0 {
		return nil
	}
	return (*list)[i]
}

// Authorize finds the client that a token belongs to. It takes as long for one
// client as for another.
func (c *Clients) Authorize(token string) (Identity, bool) {
	sum := sha256.Sum256([]byte(token))
	var found *client
	for _, one := range *c.list.Load() {
		if subtle.ConstantTimeCompare(sum[:], one.SHA256[:]) == 1 {
			found = one
		}
	}
	return c.identity(found)
}

// ByName finds a client of a bot by its name in the settings.
func (c *Clients) ByName(bot int64, name string) (Identity, bool) {
	return c.identity(find(c.list.Load(), bot, name))
}

// Wrong counts a wrong token and says when its sender may come again, 0 for at
// once.
func (c *Clients) Wrong() (retryAfter time.Duration) { return c.wrong.take() }

func (c *Clients) identity(one *client) (Identity, bool) {
	if one == nil {
		return Identity{}, false
	}
	b, ok := c.bots.ByID(one.Bot)
	if !ok {
		return Identity{}, false
	}
	who := Identity{
		Bot: b, Client: one.Name, Full: one.Full, Check: one.check,
		Lane: one.Lane, MaxWait: one.MaxWait, OnUncertain: one.OnUncertain, TTL: one.TTL,
	}
	if one.rate != nil {
		who.Take = one.rate.take
	}
	return who, true
}

// check refuses a call outside of the client's limits, naming client and limit.
func (c *client) check(m botapi.Method, p *wire.Params) error {
	if !c.all && !c.methods[m.Name] && (!c.Full || !fullOnly[m.Name]) {
		return fmt.Errorf("tgspool: client %q may not call %s: its methods are %s", c.Name, m.Name, listed(c.Methods))
	}
	err := wire.CheckChats(m.Name, p.Raw(), c.chats, c.Full)
	if errors.Is(err, wire.ErrBroken) {
		return err
	}
	if err != nil {
		return fmt.Errorf("tgspool: client %q may not call %s with this %w: its chats are %s", c.Name, m.Name, err, listed(c.Chats))
	}
	return nil
}

// listed names a client's limit.
func listed(limit []string) string {
	if len(limit) == 0 {
		return "none"
	}
	const shown = 20
	if len(limit) > shown {
		return strings.Join(limit[:shown], ", ") + ", …"
	}
	return strings.Join(limit, ", ")
}

// bucket gives out so many calls a second, and a few at once.
type bucket struct {
	rate, burst float64

	mu   sync.Mutex // guards the rest
	left float64
	at   time.Time
}

func newBucket(rate, burst float64) *bucket { return &bucket{rate: rate, burst: burst, left: burst} }

// take takes one and returns 0, or says when there is the next.
func (b *bucket) take() (wait time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := time.Now()
	if !b.at.IsZero() {
		b.left = min(b.burst, b.left+b.rate*now.Sub(b.at).Seconds())
	}
	b.at = now
	if b.left >= 1 {
		b.left--
		return 0
	}
	return time.Duration((1 - b.left) / b.rate * float64(time.Second))
}
