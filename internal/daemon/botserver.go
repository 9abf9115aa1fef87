package daemon

import (
	"context"
	"log/slog"
	"net/http"
	"slices"

	"github.com/tgspool/tgspool/internal/botapi"
	"github.com/tgspool/tgspool/internal/botserver"
	"github.com/tgspool/tgspool/internal/config"
	"github.com/tgspool/tgspool/internal/localapi"
	"github.com/tgspool/tgspool/internal/spool"
)

// newBotAPI makes the bot endpoint. What is held there is answered as soon as
// the daemon begins to stop.
func (d *daemon) newBotAPI() *botserver.Server {
	d.clients = botserver.NewClients(d.bots)
	d.useClients(d.cfg)
	return botserver.New(botserver.Config{
		Store: d.store, Bots: d.bots, Clients: d.clients,
		Pusher: d.pusher, MaxWait: d.cfg.API.MaxWait, MaxUpload: d.cfg.Store.MaxUpload,
		Stopping: d.take, Logger: d.log.With(slog.String("component", "botapi")),
	})
}

// botSettings is what a reload changes for the bot endpoint.
func botSettings(cfg *config.Config) botserver.Settings {
	return botserver.Settings{MaxWait: cfg.API.MaxWait, MaxUpload: cfg.Store.MaxUpload}
}

// serveBots makes the bot endpoint for one listener.
func (d *daemon) serveBots(a localapi.BotAccess) http.Handler {
	return d.botapi.Handler(botserver.Access{ClientsOnly: a.ClientsOnly})
}

// ByID finds a bot that can work, for the bot endpoint.
func (r *directory) ByID(id int64) (*botserver.Bot, bool) {
	bots := r.list()
	i := slices.IndexFunc(bots, func(b *bot) bool { return b.broken == "" && b.client.BotID() == id })
	if i < 0 {
		return nil, false
	}
	b := bots[i]
	return &botserver.Bot{
		Name: b.name, Spool: b.spool, Gate: b.gate, Client: b.client, TokenIs: b.client.HasToken,
		Me:             func() []byte { return noteOf(b.spool, noteMe) },
		AllowedChanged: b.allowedChanged, Upstream: b.upstream,
	}, true
}

// noteOf reads a note; one that can't be read is as good as none.
func noteOf(b *spool.Bot, name string) []byte {
	note, err := b.Note(name)
	if err != nil {
		return nil
	}
	return note
}

// HasToken compares a token with the one in use, in constant time.
func (l *line) HasToken(token string) bool {
	client, _ := l.now()
	return client.HasToken(token)
}

// Stream makes a call that changes nothing.
func (l *line) Stream(ctx context.Context, r botapi.Request) (*http.Response, botapi.Seen) {
	client, _ := l.now()
	res, seen := client.Stream(ctx, r)
	if seen.Status == http.StatusTooManyRequests {
		l.flood()
	}
	return res, seen
}

// Fetch begins to fetch a file.
func (l *line) Fetch(ctx context.Context, method, path string, header http.Header) (*http.Response, error) {
	client, _ := l.now()
	return client.Fetch(ctx, method, path, header)
}
