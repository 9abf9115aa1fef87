package daemon

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/json"
	"fmt"
	"log/slog"
	"sync/atomic"

	"github.com/tgspool/tgspool/internal/botapi"
	"github.com/tgspool/tgspool/internal/botserver"
	"github.com/tgspool/tgspool/internal/config"
	"github.com/tgspool/tgspool/internal/localapi"
	"github.com/tgspool/tgspool/internal/manage"
	"github.com/tgspool/tgspool/internal/wire"
)

// adminToken is the token that opens the management API over TCP, as a hash: in
// memory it is of no use to anybody.
type adminToken struct {
	sum atomic.Pointer[[sha256.Size]byte]
}

// read reads the token's file, at a start and a reload. When that fails the one
// in use stays.
func (t *adminToken) read(path string) error {
	if path == "" {
		t.sum.Store(nil)
		return nil
	}
	token, err := config.ReadSecret(path)
	if err != nil {
		return fmt.Errorf("reading api.admin_token_file: %w", err)
	}
	sum := sha256.Sum256([]byte(token))
	t.sum.Store(&sum)
	return nil
}

// is compares in constant time.
func (t *adminToken) is(token string) bool {
	want := t.sum.Load()
	sum := sha256.Sum256([]byte(token))
	return want != nil && subtle.ConstantTimeCompare(sum[:], want[:]) == 1
}

// useAccess takes over what the settings say of who may come in: names of this
// machine, certificates, the administrator's token.
func (d *daemon) useAccess(ctx context.Context, cfg *config.Config) {
	d.server.UseHosts(cfg.API.Hosts)
	if err := d.server.ReloadTLS(); err != nil {
		d.log.LogAttrs(ctx, slog.LevelError, "the certificate in use stays", slog.Any("err", err))
	}
	if err := d.admin.read(cfg.API.AdminTokenFile); err != nil {
		d.log.LogAttrs(ctx, slog.LevelError, "the administrator's token in use stays", slog.Any("err", err))
	}
}

// login finds whose a bearer token is.
func (d *daemon) login(token string) localapi.Login {
	if d.admin.is(token) {
		return localapi.Login{Admin: true}
	}
	who, ok := d.clients.Authorize(token)
	if !ok {
		return localapi.Login{Wait: d.clients.Wrong()}
	}
	return localapi.Login{Caller: callerFor(who)}
}

// callerFor is a client of the bot endpoint as the management API sees it.
func callerFor(who botserver.Identity) *manage.Caller {
	return &manage.Caller{
		Name: fmt.Sprintf("client %q", who.Client), Bot: who.Bot.Name,
		Origins: []string{"api:" + who.Client, "botapi:" + who.Client},
		Check: func(method string, params json.RawMessage) error {
			p, err := wire.ParamsOf(params)
			if err != nil {
				return err
			}
			return who.Check(botapi.MethodFor(method), p)
		},
		Take: who.Take, Lane: who.Lane, OnUncertain: who.OnUncertain, TTL: who.TTL,
	}
}
