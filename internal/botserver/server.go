package botserver

import (
	"context"
	"log/slog"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/tgspool/tgspool/internal/botapi"
	"github.com/tgspool/tgspool/internal/gate"
	"github.com/tgspool/tgspool/internal/spool"
	"github.com/tgspool/tgspool/internal/wire"
)

const (
	defaultMaxWait   = 10 * time.Minute
	defaultMaxUpload = 50_000_000
)

// Caller is a bot's way to Telegram.
type Caller interface {
	Call(ctx context.Context, r botapi.Request) botapi.Seen
	// Stream makes a call that changes nothing and hands its result over as it comes.
	Stream(ctx context.Context, r botapi.Request) (*http.Response, botapi.Seen)
	// Fetch begins to fetch a file.
	Fetch(ctx context.Context, method, path string, header http.Header) (*http.Response, error)
}

// Bot is one bot that can work.
type Bot struct {
	Name   string
	Spool  *spool.Bot
	Gate   *gate.Gate
	Client Caller
	// TokenIs compares a token with the bot's own in constant time.
	TokenIs func(token string) bool
	// Me is the last answer of getMe; nil while there has been none.
	Me func() []byte
	// AllowedChanged is told that a client asks for other kinds of updates, which
	// the spool's note has. May be nil.
	AllowedChanged func()
	// Upstream says what keeps updates from coming in, and since when; "" while
	// nothing does. May be nil.
	Upstream func() (trouble string, since time.Time)
}

// Bots finds the bots of the settings; the daemon may change them at any time.
type Bots interface {
	// ByID finds a bot that can work by Telegram's id.
	ByID(id int64) (*Bot, bool)
}

// Identity is who calls, and what may be done in that name.
type Identity struct {
	Bot    *Bot
	Client string // its name in the settings; empty: the bot's own token
	// Full lets a caller take updates, set webhooks and fetch files. The bot's
	// own token always may.
	Full bool
	// Check refuses a call that is outside of the client's limits, with a reason
	// that the caller may read; nil: nothing is refused.
	Check func(m botapi.Method, p *wire.Params) error
	// Take asks for one call of the client's own rate and says when to come again
	// if there is none; nil: no such limit.
	Take func() (wait time.Duration)

	Lane        spool.Lane    // empty: by what the chat has done
	MaxWait     time.Duration // 0: the endpoint's
	OnUncertain spool.Policy  // empty: the bot's
	TTL         time.Duration // 0: the bot's
}

// Authorizer knows the clients' tokens.
type Authorizer interface {
	// Authorize finds the client that a token belongs to.
	Authorize(token string) (Identity, bool)
}

// Config is what a Server needs. Store and Bots are required.
type Config struct {
	Store   *spool.Store
	Bots    Bots
	Clients Authorizer // nil: there are none
	// Pusher carries updates to webhooks; nil: to this machine only.
	Pusher    *wire.Pusher
	MaxWait   time.Duration // longest wait of a call for its answer; 0: 10 min
	MaxUpload int64         // most bytes of the files of one call; 0: 50 MB
	// Stopping ends when the daemon begins to stop: what is held then is answered.
	Stopping context.Context
	Logger   *slog.Logger // nil: silent
}

// Server answers the Bot API. Make one with New.
type Server struct {
	store    *spool.Store
	bots     Bots
	clients  Authorizer
	settings atomic.Pointer[Settings]
	stopping context.Context
	log      *slog.Logger
	joins    *joins

	updates updates
	pushing *wire.Pusher
}

// New returns the endpoint.
func New(c Config) *Server {
	s := &Server{
		store: c.Store, bots: c.Bots, clients: c.Clients,
		joins:    newJoins(),
		stopping: c.Stopping, log: c.Logger,
	}
	if s.pushing = c.Pusher; s.pushing == nil {
		s.pushing = wire.NewPusher(nil, nil)
	}
	s.Use(Settings{MaxWait: c.MaxWait, MaxUpload: c.MaxUpload})
	if s.stopping == nil {
		s.stopping = context.Background()
	}
	if s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	return s
}

// Settings are what a reload may change.
type Settings struct {
	MaxWait   time.Duration // as in Config
	MaxUpload int64         // as in Config
}

// MaxUpload is how many bytes the files of one call may have, as of now.
func (s *Server) MaxUpload() int64 { return s.settings.Load().MaxUpload }

// Use takes other settings into use, for the calls that come from now on.
func (s *Server) Use(c Settings) {
	if c.MaxWait <= 0 {
		c.MaxWait = defaultMaxWait
	}
	if c.MaxUpload <= 0 {
		c.MaxUpload = defaultMaxUpload
	}
	s.settings.Store(&c)
}
