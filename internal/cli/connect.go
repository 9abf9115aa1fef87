package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"iter"
	"maps"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"

	"github.com/tgspool/tgspool/internal/config"
	"github.com/tgspool/tgspool/internal/localapi"
	"github.com/tgspool/tgspool/internal/manage"
)

// systemSocket is where an installed daemon listens.
const systemSocket = "/run/tgspool/tgspool.sock"

// dial returns a client of the daemon that the flags, the environment or the
// settings name.
func (a *app) dial() (*localapi.Client, error) {
	socket, err := a.findSocket()
	if err != nil {
		return nil, err
	}
	return localapi.Dial(socket), nil
}

// findSocket looks for the daemon's socket. Settings that this user may not
// read, or that are broken, don't keep the commands from a running daemon,
// unless somebody named them: those may be of another one than the system's.
func (a *app) findSocket() (string, error) {
	if named := cmp.Or(a.socket, a.env("TGSPOOL_SOCKET")); named != "" {
		return strings.TrimPrefix(named, "unix:"), nil
	}
	path, explicit := config.Resolve(a.configPath, a.env)
	cfg, err := config.Load(path, a.env)
	switch {
	case err == nil || errors.Is(err, config.ErrNothingConfigured):
	case explicit:
		return "", withHint(explain(err), "name the socket of a running daemon with --socket")
	default:
		if bad, ok := errors.AsType[config.Errors](err); ok {
			a.refused = bad
		}
		return systemSocket, nil
	}
	socket := cfg.API.Socket()
	if socket == "" {
		return "", withHint(&exitError{code: exitConfig, msg: "no unix socket serves the management API"}, "add one to listen in [api]")
	}
	if path == "" {
		// Without settings the daemon may be this user's or the system's.
		if _, err := os.Stat(socket); err != nil {
			if _, err := os.Stat(systemSocket); err == nil {
				return systemSocket, nil
			}
		}
	}
	return socket, nil
}

// session is a client with the bot that a command is about.
type session struct {
	*localapi.Client
	bot string
}

// connect returns a client and finds the bot: the flag's, or the only one.
func (a *app) connect(ctx context.Context) (*session, error) {
	client, err := a.dial()
	if err != nil {
		return nil, err
	}
	if a.bot != "" {
		return &session{client, a.bot}, nil
	}
	names, err := botsOf(ctx, client)
	if err != nil {
		return nil, err
	}
	switch len(names) {
	case 0:
		return nil, dataf("the daemon has no bot")
	case 1:
		return &session{client, names[0]}, nil
	default:
		return nil, withHint(usagef("there are several bots: %s", strings.Join(names, ", ")), "name one with --bot")
	}
}

// botsOf lists the bots of the daemon. Where no more is served than posting jobs
// the refusal names them.
func botsOf(ctx context.Context, client *localapi.Client) ([]string, error) {
	var status manage.Status
	err := client.Do(ctx, localapi.Request{Method: http.MethodGet, Path: "/v1/status"}, &status)
	if p, ok := errors.AsType[*manage.Problem](err); ok && len(p.Bots) > 0 {
		return p.Bots, nil
	}
	return status.Bots.Names, err
}

// path is the path of something of the session's bot.
func (s *session) path(parts ...string) string {
	all := make([]string, 0, len(parts)+1)
	for _, part := range append([]string{s.bot}, parts...) {
		all = append(all, url.PathEscape(part))
	}
	return "/v1/bots/" + strings.Join(all, "/")
}

// get asks for one thing.
func (s *session) get(ctx context.Context, path string, out any) error {
	return s.Do(ctx, localapi.Request{Method: http.MethodGet, Path: path}, out)
}

// post asks for a change; body may be nil.
func (s *session) post(ctx context.Context, path string, body []byte, out any) error {
	return s.Do(ctx, localapi.Request{Method: http.MethodPost, Path: path, Body: body, Origin: "cli"}, out)
}

// item is one element of a list, as it came.
type item struct {
	raw json.RawMessage
	err error
}

// list walks through all pages of a list; at most limit elements, 0 for all.
func (s *session) list(ctx context.Context, path string, query url.Values, limit int) iter.Seq[item] {
	return func(yield func(item) bool) {
		q := url.Values{}
		maps.Copy(q, query)
		for left := limit; ; {
			q.Set("limit", "1000")
			if limit > 0 {
				q.Set("limit", strconv.Itoa(min(left, 1000)))
			}
			var page struct {
				Items []json.RawMessage `json:"items"`
				Next  *string           `json:"next"`
			}
			if err := s.get(ctx, path+"?"+q.Encode(), &page); err != nil {
				yield(item{err: err})
				return
			}
			for _, raw := range page.Items {
				if !yield(item{raw: raw}) {
					return
				}
			}
			left -= len(page.Items)
			if page.Next == nil || limit > 0 && left <= 0 {
				return
			}
			q.Set("after", *page.Next)
		}
	}
}
