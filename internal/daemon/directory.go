package daemon

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"

	"github.com/tgspool/tgspool/internal/botapi"
	"github.com/tgspool/tgspool/internal/config"
	"github.com/tgspool/tgspool/internal/intake"
	"github.com/tgspool/tgspool/internal/manage"
	"github.com/tgspool/tgspool/internal/spool"
)

// directory holds the bots of the settings; it is what the API asks.
type directory struct {
	d *daemon

	ends  map[string]*hookEnd // the addresses for webhooks; fixed once built
	loops sync.WaitGroup      // what serves them

	mu   sync.RWMutex
	bots map[string]*bot
}

func newDirectory(d *daemon) *directory {
	return &directory{d: d, ends: map[string]*hookEnd{}, bots: map[string]*bot{}}
}

// build makes all bots. A bot without a usable token doesn't stop the others;
// two bots that are one are a mistake in the settings.
func (r *directory) build(ctx context.Context, cfg *config.Config) error {
	for _, c := range cfg.Bots {
		b, err := r.make(ctx, c)
		if err != nil {
			return err
		}
		r.mu.Lock()
		r.bots[c.Name] = b
		r.mu.Unlock()
	}
	return nil
}

func (r *directory) make(ctx context.Context, c config.Bot) (*bot, error) {
	token, err := readToken(c, r.d.o.Getenv)
	return r.makeWith(ctx, c, token, err)
}

// makeWith makes a bot of its token, or of the reason why there is none.
func (r *directory) makeWith(ctx context.Context, c config.Bot, token botapi.Token, err error) (*bot, error) {
	secret := ""
	if err == nil && c.Intake.Mode == "webhook" {
		secret, err = readHookSecret(c)
	}
	if err != nil {
		// What is wrong and what to do are a line each; a state has one.
		b := &bot{name: c.Name, cfg: c, broken: strings.ReplaceAll(err.Error(), "\n", "; ")}
		r.d.log.LogAttrs(ctx, slog.LevelError, "this bot can't work", slog.String("bot", c.Name), slog.Any("err", err))
		return b, nil
	}
	b, err := newBot(ctx, r.d, c, token, secret)
	if errors.Is(err, spool.ErrInvalid) {
		return nil, fmt.Errorf("[bots.%s]: its token is another bot's of these settings: %w", c.Name, err)
	}
	if err != nil {
		return nil, fmt.Errorf("[bots.%s]: %w", c.Name, err)
	}
	if b.hook != nil {
		if err := r.join(b, c.Intake); err != nil {
			return nil, fmt.Errorf("[bots.%s.intake]: %w", c.Name, err)
		}
	}
	return b, nil
}

func readToken(c config.Bot, getenv func(string) string) (botapi.Token, error) {
	text, source, err := config.ReadToken(c, getenv)
	if err != nil {
		return botapi.Token{}, err
	}
	token, err := botapi.ParseToken(text)
	if err != nil {
		return botapi.Token{}, fmt.Errorf("the token in %s: %w", source, err)
	}
	return token, nil
}

func (r *directory) list() []*bot {
	r.mu.RLock()
	defer r.mu.RUnlock()
	list := make([]*bot, 0, len(r.bots))
	for _, b := range r.bots {
		list = append(list, b)
	}
	slices.SortFunc(list, func(a, b *bot) int { return strings.Compare(a.name, b.name) })
	return list
}

func (r *directory) start() {
	for _, b := range r.list() {
		if b.broken == "" {
			b.start(r.d)
		}
	}
	r.startHooks()
}

// wait returns when all loops of all bots have ended.
func (r *directory) wait() {
	r.loops.Wait()
	for _, b := range r.list() {
		b.loops.Wait()
		if b.broken == "" {
			b.client.Close()
		}
	}
}

// trouble is what systemctl status says about bots that aren't well.
func (r *directory) trouble() string {
	var text strings.Builder
	for _, b := range r.list() {
		v := b.view()
		switch {
		case v.Unconfigured != "":
			text.WriteString("; " + b.name + " has no usable token")
		case v.Intake.State != string(intake.OK) && b.intake != nil:
			text.WriteString("; " + b.name + " " + v.Intake.State + " since " + v.Intake.Since.UTC().Format("15:04 UTC"))
		}
	}
	return text.String()
}

// Names lists every bot of the settings.
func (r *directory) Names() []string {
	names := []string{}
	for _, b := range r.list() {
		names = append(names, b.name)
	}
	return names
}

// View returns the bot as it is now.
func (r *directory) View(name string) (manage.View, bool) {
	r.mu.RLock()
	b, ok := r.bots[name]
	r.mu.RUnlock()
	if !ok {
		return manage.View{}, false
	}
	v := b.view()
	v.Hint = b.pullHint(r.d)
	return v, true
}

// ResolveChat finds the chat that a name of the settings stands for.
func (r *directory) ResolveChat(name, chat string) (string, bool) {
	r.mu.RLock()
	b, ok := r.bots[name]
	r.mu.RUnlock()
	if !ok {
		return "", false
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if chat == "" {
		chat = b.cfg.DefaultChat
	}
	return b.cfg.ResolveChat(chat)
}
