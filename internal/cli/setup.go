package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/tgspool/tgspool/internal/botapi"
	"github.com/tgspool/tgspool/internal/config"
	"github.com/tgspool/tgspool/internal/localapi"
	"github.com/tgspool/tgspool/internal/manage"
	"github.com/tgspool/tgspool/internal/setup"
)

// setupFlags are the flags of setup.
type setupFlags struct {
	tokenFile, apiBase, dir string
	owner                   int64
	noOwner, yes, replace   bool
	wait                    time.Duration
}

func (a *app) setupCommand() *cobra.Command {
	f := &setupFlags{}
	c := &cobra.Command{
		Use: "setup", Short: "Set a bot up: token, owner, settings, service", Args: cobra.NoArgs,
		Long: "Set a bot up. Ask for its token, find out who its owner is, store the token where only root\n" +
			"can read it, write conf.d/50-setup.toml, and start the service.\n\n" +
			"The owner is who opens the link that is shown and presses Start: the sender of exactly that\n" +
			"code, and nobody else who writes to the bot. The owner's chat is named me.\n\n" +
			"It can be run again, also for another bot. What is there already is kept; what would be\n" +
			"replaced is asked for first. Without a terminal it takes the token from stdin or --token-file\n" +
			"and needs --yes; then replacing something takes --replace, too.",
		Example: "  sudo tgspool setup\n  sudo tgspool setup --yes --bot home --token-file ./token --owner 12345\n" +
			"  tgspool setup --dir ~/.config/tgspool",
		RunE: func(c *cobra.Command, _ []string) error {
			if f.noOwner && c.Flags().Changed("owner") {
				return usagef("--owner and --no-owner exclude each other")
			}
			if f.owner < 0 || f.owner == 0 && c.Flags().Changed("owner") {
				return usagef("--owner: %d is a group, a channel or nobody, not a user", f.owner)
			}
			return (&setupRun{app: a, f: f}).run(c.Context())
		},
	}
	flags := c.Flags()
	flags.StringVar(&f.tokenFile, "token-file", "", "a `file` with the token, - for stdin (default: ask)")
	flags.Int64Var(&f.owner, "owner", 0, "the owner's user `id`, in place of the link")
	flags.BoolVar(&f.noOwner, "no-owner", false, "no owner for now")
	flags.BoolVar(&f.yes, "yes", false, "ask nothing")
	flags.BoolVar(&f.replace, "replace", false, "with --yes: replace another token and what was edited")
	flags.StringVar(&f.apiBase, "api-base", "", "the Bot API server's `URL` (default $TGSPOOL_API_BASE, else the settings', else Telegram's)")
	flags.StringVar(&f.dir, "dir", "", "the `folder` of the settings (default "+setup.SystemDir+"); the service is left alone with another one")
	flags.DurationVar(&f.wait, "timeout", 10*time.Minute, "how `long` to wait for the owner")
	return a.botFlag(c)
}

// setupRun is one run of setup.
type setupRun struct {
	*app
	f       *setupFlags
	dir     setup.Dir
	cfg     *config.Config // as it is; nil when there is none yet
	token   botapi.Token
	account setup.Account
	entry   setup.Entry
	place   string // of the token
}

// run goes through the steps. Nothing is written before all questions are
// answered; if we stop before that, nothing has changed.
func (s *setupRun) run(ctx context.Context) error {
	for _, step := range []func(context.Context) error{
		s.open, s.askToken, s.checkAccount, s.checkStored, s.findOwner, s.write, s.start,
	} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	return nil
}

// say prints at once: some steps take long.
func (s *setupRun) say(format string, args ...any) error {
	s.out.printf(format, args...)
	if err := s.out.flush(); err != nil {
		return &exitError{code: exitIO, msg: "writing the output: " + err.Error()}
	}
	return nil
}

var botName = regexp.MustCompile(`^[A-Za-z0-9_-]{1,32}$`)

// open looks at what there is, and whether we may change it.
func (s *setupRun) open(context.Context) error {
	s.dir = setup.OpenDir(cmp.Or(s.f.dir, setup.SystemDir))
	if s.dir.System() && os.Geteuid() != 0 {
		return withHint(usagef("only root may set the system's bots up"), "sudo tgspool setup; for settings of your own: --dir ~/.config/tgspool")
	}
	if !s.f.yes && s.f.tokenFile == "" && !isTerminal(s.stdin) {
		return withHint(usagef("nobody is here to be asked"), "add --yes; the token comes from stdin or --token-file")
	}
	if _, err := os.Stat(s.dir.Main()); err == nil {
		cfg, err := config.Load(s.dir.Main(), s.env)
		if err != nil && !errors.Is(err, config.ErrNothingConfigured) {
			return withHint(&exitError{code: exitConfig, msg: err.Error()}, "the settings have to be right before a bot is added")
		}
		s.cfg = cfg
	}
	s.entry.Bot = cmp.Or(s.bot, s.onlyBot(), "home")
	if !botName.MatchString(s.entry.Bot) {
		return usagef("--bot: %q is no name for a bot: up to 32 of A-Z a-z 0-9 _ -", s.entry.Bot)
	}
	return nil
}

// onlyBot is the bot of the settings, when they have just one.
func (s *setupRun) onlyBot() string {
	if s.cfg == nil || len(s.cfg.Bots) != 1 {
		return ""
	}
	return s.cfg.Bots[0].Name
}

func (s *setupRun) askToken(context.Context) (err error) {
	if s.f.tokenFile == "" && isTerminal(s.stdin) {
		if err := s.say("The token of bot %s, as @BotFather gave it to you (it isn't shown): ", s.entry.Bot); err != nil {
			return err
		}
	}
	s.token, err = s.readToken(s.f.tokenFile)
	return err
}

// checkAccount asks Telegram whose token it is.
func (s *setupRun) checkAccount(ctx context.Context) error {
	client, err := s.client()
	if err != nil {
		return err
	}
	defer client.Close()
	if s.account, err = setup.Ask(ctx, client); err != nil {
		return setupError(err)
	}
	return s.say("bot      @%s (%d), named %s in the settings\n", safe(s.account.Username), s.account.ID, s.entry.Bot)
}

// telegramBase needs no line in the settings.
const telegramBase = "https://api.telegram.org"

// client is a client of the server that the daemon will call.
func (s *setupRun) client() (*botapi.Client, error) {
	var bot config.Bot
	if s.cfg != nil {
		bot, _ = s.cfg.Bot(s.entry.Bot)
	}
	base := strings.TrimSuffix(cmp.Or(s.f.apiBase, s.env("TGSPOOL_API_BASE"), bot.APIBase), "/")
	if base != telegramBase {
		s.entry.APIBase = base
	}
	client, err := botapi.NewClient(botapi.Config{
		Token: s.token, BaseURL: base, Proxy: bot.Proxy, IPFamily: bot.IPFamily,
	})
	if err != nil {
		return nil, usagef("--api-base: %s", err)
	}
	return client, nil
}

// checkStored compares with the token that is stored already.
func (s *setupRun) checkStored(context.Context) error {
	if err := s.otherHas(s.cfg, s.entry.Bot, s.token); err != nil {
		return err
	}
	s.place, _ = s.dir.TokenPlace(s.cfg, s.entry.Bot)
	if !s.dir.System() {
		s.entry.TokenFile = s.place // nobody makes a credential of it
	}
	stored, err := storedToken(s.place)
	switch {
	case errors.Is(err, config.ErrNoToken), err == nil && stored.Equal(s.token.Reveal()):
		return nil // nothing is there that would be lost
	case err != nil:
		return s.mayReplace(fmt.Sprintf("%s holds what is no token (%s). Replace it?", s.place, err))
	case stored.BotID() != s.token.BotID():
		return s.mayReplace(fmt.Sprintf("%s holds the token of another bot, %d, whose queue would be left behind. Replace it?", s.place, stored.BotID()))
	}
	return s.mayReplace(fmt.Sprintf("%s holds another token of this bot. Replace it?", s.place))
}

// mayReplace asks before something is overwritten.
func (s *setupRun) mayReplace(question string) error {
	switch {
	case s.f.replace:
		return nil
	case s.f.yes:
		what, _, _ := strings.Cut(question, " Replace")
		return withHint(usagef("%s", what), "add --replace, or name another bot with --bot")
	}
	return s.confirm(question, false)
}

// agrees asks what isn't grave either way.
func (s *setupRun) agrees(question string) bool { return s.confirm(question, false) == nil }

// findOwner finds who is to be "me".
func (s *setupRun) findOwner(ctx context.Context) error {
	known := ""
	if s.cfg != nil {
		if bot, ok := s.cfg.Bot(s.entry.Bot); ok {
			known = bot.Chats["me"]
		}
	}
	switch {
	case s.f.noOwner:
		s.entry.Me = known
		return nil
	case s.f.owner != 0:
		s.entry.Me = strconv.FormatInt(s.f.owner, 10)
		return nil
	case known != "" && (s.f.yes || !s.agrees("The owner is "+known+". Find out anew?")):
		s.entry.Me = known
		return s.say("owner    %s, as before\n", known)
	}
	if err := s.notPolled(ctx); err != nil {
		return err
	}
	return s.awaitOwner(ctx)
}

// notPolled refuses to get into the way of a daemon that takes the updates of
// this bot: each poll of one would end a poll of the other.
func (s *setupRun) notPolled(ctx context.Context) error {
	var status manage.Status
	if client, err := s.dial(); err == nil { // else no socket is known, and no daemon either
		defer client.Close()
		ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
		defer cancel()
		// Where there is no answer there is nobody to get into the way of.
		_ = client.Do(ctx, localapi.Request{Method: http.MethodGet, Path: "/v1/status"}, &status)
	}
	for name, bot := range status.Bots.ByName {
		if bot.ID != nil && *bot.ID == s.account.ID && bot.Intake.State == "ok" {
			return withHint(
				&exitError{code: exitTempFail, msg: fmt.Sprintf("the daemon polls with this token already, as bot %s (409)", name)},
				"systemctl stop 'tgspool*.socket', then systemctl stop tgspool, and run this again; or name the owner's id with --owner: tgspool inbox list shows who has written")
		}
	}
	return nil
}

func (s *setupRun) awaitOwner(ctx context.Context) error {
	client, err := s.client()
	if err != nil {
		return err
	}
	defer client.Close()
	nonce := setup.Nonce()
	link := setup.Link(s.account.Username, nonce)
	if isTerminal(s.out.raw) {
		if code, err := setup.QR(link); err == nil {
			s.out.printf("%s", code)
		}
	}
	if err := s.say("Open this with the Telegram account of the bot's owner, and press Start:\n\n  %s\n\nwaiting for %s\n", link, span(s.f.wait)); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, s.f.wait)
	defer cancel()
	owner, err := setup.AwaitOwner(ctx, client, nonce, func(e *setup.Error) { s.complain("warning", e.Text) })
	if err != nil {
		return setupError(err)
	}
	s.entry.Me = strconv.FormatInt(owner.ID, 10)
	return s.say("owner    %s (%d), named me\n", short(owner.Name, 60), owner.ID)
}

// setupError gives an error of the setup room its code and its hint.
func setupError(err error) error {
	e, ok := errors.AsType[*setup.Error](err)
	if !ok {
		return err
	}
	code := exitTempFail
	if e.Fault == setup.FaultRefused {
		code = exitData
	}
	return &exitError{code: code, msg: e.Text, hint: e.Hint}
}
