package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/tgspool/tgspool/internal/botapi"
	"github.com/tgspool/tgspool/internal/config"
	"github.com/tgspool/tgspool/internal/localapi"
	"github.com/tgspool/tgspool/internal/setup"
)

// maxTokenFile bounds the reading of a token, in bytes.
const maxTokenFile = 4 << 10

func (a *app) tokenCommand() *cobra.Command {
	c := &cobra.Command{Use: "token", Short: "Replace and check the tokens of the bots"}
	c.AddCommand(a.tokenSet(), a.tokenCheck())
	return c
}

func (a *app) tokenSet() *cobra.Command {
	var file string
	c := &cobra.Command{
		Use: "set BOT", Short: "Give a bot a new token, in use at once", Args: cobra.ExactArgs(1),
		Long: "Give a bot a new token: after @BotFather has revoked the old one, or because it was stolen.\n" +
			"Telegram is asked whose it is; it is stored where only root can read it and handed to the\n" +
			"running daemon, which uses it at once. Queue and inbox stay. A token of another account is\n" +
			"refused: what is queued would go out in its name.",
		Example: "  sudo tgspool token set home\n  sudo tgspool token set home --token-file ./token",
		RunE:    func(c *cobra.Command, args []string) error { return a.setToken(c.Context(), args[0], file) },
	}
	c.Flags().StringVar(&file, "token-file", "", "a `file` with the token, - for stdin (default: ask)")
	return c
}

func (a *app) tokenCheck() *cobra.Command {
	return &cobra.Command{
		Use: "check [BOT]", Short: "Ask Telegram whose the stored tokens are", Args: cobra.MaximumNArgs(1),
		Example: "  sudo tgspool token check",
		RunE: func(c *cobra.Command, args []string) error {
			cfg, err := a.load()
			if err != nil {
				return err
			}
			failed := error(nil)
			for _, bot := range cfg.Bots {
				if len(args) == 1 && bot.Name != args[0] {
					continue
				}
				if err := a.checkToken(c.Context(), cfg, bot); err != nil {
					a.complain("error", fmt.Sprintf("bot %s: %s", bot.Name, explain(err).msg))
					failed = silent(explain(err).code)
				}
			}
			if _, ok := cfg.Bot(firstOf(args)); len(args) == 1 && !ok {
				return usagef("there is no bot %q in the settings", args[0])
			}
			return failed
		},
	}
}

func firstOf(args []string) string {
	if len(args) == 0 {
		return ""
	}
	return args[0]
}

// checkToken asks with the stored token.
func (a *app) checkToken(ctx context.Context, cfg *config.Config, bot config.Bot) error {
	text, source, err := a.botToken(cfg, bot)
	if errors.Is(err, errRootsToken) {
		return withHint(&exitError{code: exitConfig, msg: err.Error()}, "sudo tgspool token check")
	}
	if err != nil {
		return err
	}
	token, err := botapi.ParseToken(text)
	if err != nil {
		return &exitError{code: exitConfig, msg: fmt.Sprintf("the token in %s: %s", source, err)}
	}
	account, err := whose(ctx, bot, token)
	if err != nil {
		return err
	}
	a.out.printf("bot %s: @%s (%d), token in %s\n", bot.Name, safe(account.Username), account.ID, safe(source))
	return a.out.flush()
}

// errRootsToken is the error of a token that is stored where only root can read.
var errRootsToken = errors.New("only root can read it")

// botToken reads a bot's token from where the daemon finds it; outside of the
// service the credential is the file that it is made of.
func (a *app) botToken(cfg *config.Config, bot config.Bot) (text, source string, err error) {
	text, source, err = config.ReadToken(bot, a.env)
	if err == nil || bot.TokenFile != "" {
		return text, source, err
	}
	place, _ := setup.OpenDir(setup.FolderOf(cfg.Path)).TokenPlace(cfg, bot.Name)
	stored, bad := config.ReadSecret(place)
	switch {
	case errors.Is(bad, os.ErrNotExist):
		return text, source, err
	case errors.Is(bad, os.ErrPermission):
		return "", place, fmt.Errorf("the token of bot %s is in %s, and %w", bot.Name, place, errRootsToken)
	}
	return stored, place, bad
}

// otherHas refuses a token of an account that the settings have under another
// name: the daemon doesn't start with one queue for two bots.
func (a *app) otherHas(cfg *config.Config, name string, token botapi.Token) error {
	if cfg == nil {
		return nil
	}
	for _, bot := range cfg.Bots {
		if bot.Name == name {
			continue
		}
		text, _, err := a.botToken(cfg, bot)
		if err != nil {
			continue
		}
		if other, err := botapi.ParseToken(text); err == nil && other.BotID() == token.BotID() {
			return withHint(dataf("this token is of the account that is bot %s already", bot.Name), "each bot has a token of its own from @BotFather; or name that one: "+bot.Name)
		}
	}
	return nil
}

// checkTokens notes tokens that can't be used. About one that only root can read
// nothing is said.
func (a *app) checkTokens(cfg *config.Config) []config.Problem {
	return config.CheckTokens(cfg, func(bot config.Bot) error {
		_, _, err := a.botToken(cfg, bot)
		if errors.Is(err, errRootsToken) {
			return nil
		}
		return err
	})
}

// whose asks Telegram in the way of a bot of the settings.
func whose(ctx context.Context, bot config.Bot, token botapi.Token) (setup.Account, error) {
	client, err := botapi.NewClient(botapi.Config{Token: token, BaseURL: bot.APIBase, Proxy: bot.Proxy, IPFamily: bot.IPFamily})
	if err != nil {
		return setup.Account{}, &exitError{code: exitConfig, msg: err.Error()}
	}
	defer client.Close()
	account, err := setup.Ask(ctx, client)
	if err != nil {
		return account, setupError(err)
	}
	return account, nil
}

// setToken stores a token and hands it over. The file lies ready before the
// daemon is asked, and takes its place after it has agreed: what is in use and
// what is stored differ for a moment at most.
func (a *app) setToken(ctx context.Context, name, file string) error {
	cfg, err := a.load()
	if err != nil {
		return err
	}
	bot, ok := cfg.Bot(name)
	if !ok {
		return usagef("there is no bot %q in the settings", name)
	}
	dir := setup.OpenDir(setup.FolderOf(cfg.Path))
	if err := a.mustRoot(dir, "token set "+name); err != nil {
		return err
	}
	if file == "" && isTerminal(a.stdin) {
		a.out.printf("The new token of bot %s (it isn't shown): ", name)
		if err := a.out.flush(); err != nil {
			return err
		}
	}
	token, err := a.readToken(file)
	if err != nil {
		return err
	}
	place, _ := dir.TokenPlace(cfg, name)
	if old, err := storedToken(place); err == nil && old.BotID() != token.BotID() {
		return withHint(dataf("this token is of bot %d and %s is bot %d: what is queued would go out by another account", token.BotID(), name, old.BotID()),
			"give the other account a name of its own: tgspool setup --bot NAME")
	}
	if err := a.otherHas(cfg, name, token); err != nil {
		return err
	}
	account, err := whose(ctx, bot, token)
	if err != nil {
		return err
	}
	staged, err := setup.StageToken(place, token)
	if err != nil {
		return &exitError{code: exitIO, msg: err.Error()}
	}
	defer staged.Drop()
	inUse, err := a.handOver(ctx, name, token)
	if err != nil {
		return err
	}
	if err := staged.Commit(); err != nil {
		return &exitError{code: exitIO, msg: err.Error(), hint: "the daemon uses the new token, but will not find it at its next start"}
	}
	a.out.printf("bot %s: @%s (%d), token in %s, %s\n", name, safe(account.Username), account.ID, safe(place), inUse)
	return nil
}

// handOver gives the running daemon the token, if there is one.
func (a *app) handOver(ctx context.Context, name string, token botapi.Token) (inUse string, err error) {
	client, err := a.dial()
	if err != nil {
		return "", err
	}
	defer client.Close()
	body, err := json.Marshal(map[string]string{"token": token.Reveal()})
	if err != nil {
		return "", err
	}
	err = client.Do(ctx, localapi.Request{Method: http.MethodPost, Path: "/v1/bots/" + url.PathEscape(name) + "/token", Body: body}, nil)
	if absent, ok := errors.AsType[*localapi.NoDaemonError](err); ok && !absent.Denied() {
		return "in use from the daemon's next start on", nil
	}
	return "in use now", err
}

// readToken takes a token from a file, from stdin, or from somebody at a
// terminal, who doesn't see it. Errors never repeat what was read.
func (a *app) readToken(file string) (botapi.Token, error) {
	text, err := a.readSecret(file)
	if err != nil {
		return botapi.Token{}, &exitError{code: exitIO, msg: "reading the token: " + err.Error()}
	}
	token, err := botapi.ParseToken(text)
	if err != nil {
		return token, withHint(dataf("%s", err), "a token looks like 123456789:AAE… and comes from @BotFather")
	}
	return token, nil
}

func (a *app) readSecret(file string) (string, error) {
	if f, ok := a.stdin.(*os.File); ok && file == "" && isTerminal(f) {
		b, err := term.ReadPassword(int(f.Fd()))
		a.out.printf("\n")
		return string(b), err
	}
	in := a.stdin
	if file != "" && file != "-" {
		f, err := os.Open(filepath.Clean(file))
		if err != nil {
			return "", err
		}
		defer func() { _ = f.Close() }() // it was only read
		in = f
	}
	b, err := io.ReadAll(io.LimitReader(in, maxTokenFile))
	return string(b), err
}

// storedToken reads a token that was stored before.
func storedToken(path string) (botapi.Token, error) {
	text, err := config.ReadSecret(path)
	if err != nil {
		return botapi.Token{}, err
	}
	return botapi.ParseToken(text)
}
