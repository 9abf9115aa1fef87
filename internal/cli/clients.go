package cli

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tgspool/tgspool/internal/botapi"
	"github.com/tgspool/tgspool/internal/config"
	"github.com/tgspool/tgspool/internal/localapi"
	"github.com/tgspool/tgspool/internal/manage"
	"github.com/tgspool/tgspool/internal/setup"
)

func (a *app) clientCommand() *cobra.Command {
	c := &cobra.Command{
		Use: "client", Short: "Give programs tokens of their own",
		Long: "Give programs tokens of their own for the local Bot API. Such a token looks like one of\n" +
			"Telegram's, works only here, and allows what is written down for it and nothing else, so that\n" +
			"the bot's own token never leaves tgspool.",
	}
	c.AddCommand(a.clientAdd(), a.clientList(), a.clientRotate(), a.clientRemove())
	return c
}

func (a *app) clientAdd() *cobra.Command {
	e := setup.Client{}
	c := &cobra.Command{
		Use: "add NAME", Short: "Make a token for a program and print it once", Args: cobra.ExactArgs(1),
		Long: "Make a token for a program and print it; it is shown this once and kept as a hash. Without\n" +
			"methods or chats nothing is allowed. --full is for a whole bot: the program also takes the\n" +
			"updates, sets webhooks and fetches files, and may call everything everywhere unless methods\n" +
			"or chats are given. The client is written into conf.d/60-clients.toml beside the settings.",
		Example: "  sudo tgspool client add doorbell --method sendMessage,sendPhoto --chat me\n  sudo tgspool client add mybot --full",
		RunE: func(c *cobra.Command, args []string) error {
			e.Name = args[0]
			if e.Full && !c.Flags().Changed("method") {
				e.Methods = []string{"*"}
			}
			if e.Full && !c.Flags().Changed("chat") {
				e.Chats = []string{"*"}
			}
			if len(e.Methods) == 0 {
				return withHint(usagef("a client without methods may do nothing"), "name them: --method sendMessage; all: --method '*'; for a whole bot: --full")
			}
			return a.changeClient(c.Context(), "client add "+e.Name, func(clients setup.Clients, bot string, id int64) (string, error) {
				token := setup.NewClientToken(id)
				e.Bot, e.Hash = bot, setup.HashClientToken(token)
				return token, clients.Add(e)
			}, e.Name)
		},
	}
	f := c.Flags()
	f.StringSliceVar(&e.Methods, "method", nil, "the `methods` that it may call, * for all")
	f.StringSliceVar(&e.Chats, "chat", nil, "the `chats` that it may name: names of the settings, ids, @names, * for all")
	f.BoolVar(&e.Full, "full", false, "let it take updates, set webhooks and fetch files, too")
	f.StringVar(&e.Lane, "lane", "", "the `lane` of its jobs: interactive, normal or bulk")
	f.DurationVar(&e.MaxWait, "max-wait", 0, "how `long` its calls wait for their answer at most")
	f.Float64Var(&e.Rate, "rate", 0, "how many `calls` a second it may make")
	return a.botFlag(a.jsonFlag(c))
}

func (a *app) clientRotate() *cobra.Command {
	return a.botFlag(a.jsonFlag(&cobra.Command{
		Use: "rotate NAME", Short: "Give a program another token; the old one is refused from then on", Args: cobra.ExactArgs(1),
		Example: "  sudo tgspool client rotate doorbell",
		RunE: func(c *cobra.Command, args []string) error {
			return a.changeClient(c.Context(), "client rotate "+args[0], func(clients setup.Clients, bot string, id int64) (string, error) {
				token := setup.NewClientToken(id)
				return token, clients.Rotate(bot, args[0], setup.HashClientToken(token))
			}, args[0])
		},
	}))
}

func (a *app) clientRemove() *cobra.Command {
	return a.botFlag(a.jsonFlag(&cobra.Command{
		Use: "remove NAME", Aliases: []string{"rm"}, Short: "Refuse a program's token from now on", Args: cobra.ExactArgs(1),
		Long:    "Refuse a program's token from now on. What it has queued stays queued.",
		Example: "  sudo tgspool client remove doorbell",
		RunE: func(c *cobra.Command, args []string) error {
			return a.changeClient(c.Context(), "client remove "+args[0], func(clients setup.Clients, bot string, _ int64) (string, error) {
				return "", clients.Remove(bot, args[0])
			}, args[0])
		},
	}))
}

// changeClient changes the clients' file, has the daemon read it, and prints the
// token, if there is a new one.
func (a *app) changeClient(ctx context.Context, what string, change func(clients setup.Clients, bot string, id int64) (token string, err error), name string) error {
	cfg, bot, err := a.clientBot()
	if err != nil {
		return err
	}
	if err := a.mustRoot(setup.OpenDir(filepath.Dir(cfg.Path)), what); err != nil {
		return err
	}
	id, err := a.botID(ctx, cfg, bot)
	if err != nil {
		return err
	}
	clients := setup.OpenClients(cfg.Path)
	token, err := change(clients, bot.Name, id)
	switch {
	case errors.Is(err, setup.ErrNoClient):
		return withHint(dataf("%s", err), "tgspool client list shows them")
	case err != nil:
		return &exitError{code: exitConfig, msg: err.Error()}
	}
	inUse, err := a.haveReloaded(ctx)
	if err != nil {
		a.complain("warning", "the daemon hasn't read it: "+explain(err).msg)
	}
	if a.json {
		out := map[string]string{"bot": bot.Name, "name": name}
		if token != "" {
			out["token"] = token
		}
		raw, err := json.Marshal(out)
		if err != nil {
			return err
		}
		a.out.jsonLine(raw)
		return nil
	}
	if token == "" {
		a.out.printf("client %s of bot %s: removed, %s\n", safe(name), bot.Name, inUse)
		return nil
	}
	a.out.printf("%s\n", token)
	a.out.printf("client %s of bot %s, %s. The token isn't shown again; %s holds its hash.\n", safe(name), bot.Name, inUse, safe(clients.Path()))
	return nil
}

// clientBot finds the bot that is meant in the settings, which must be in files.
func (a *app) clientBot() (*config.Config, config.Bot, error) {
	cfg, err := a.load()
	if err != nil {
		return nil, config.Bot{}, err
	}
	if cfg.Path == "" {
		return nil, config.Bot{}, withHint(&exitError{code: exitConfig, msg: "clients are written beside the settings, and there is no settings file"}, "tgspool setup writes one")
	}
	if a.bot != "" {
		bot, ok := cfg.Bot(a.bot)
		if !ok {
			return nil, bot, usagef("there is no bot %q in the settings", a.bot)
		}
		return cfg, bot, nil
	}
	if len(cfg.Bots) == 1 {
		return cfg, cfg.Bots[0], nil
	}
	names := make([]string, len(cfg.Bots))
	for i, bot := range cfg.Bots {
		names[i] = bot.Name
	}
	return nil, config.Bot{}, withHint(usagef("there are several bots: %s", strings.Join(names, ", ")), "name one with --bot")
}

// botID finds Telegram's id of a bot: in its token, else from the daemon.
func (a *app) botID(ctx context.Context, cfg *config.Config, bot config.Bot) (int64, error) {
	if text, _, err := a.botToken(cfg, bot); err == nil {
		if token, err := botapi.ParseToken(text); err == nil {
			return token.BotID(), nil
		}
	}
	client, err := a.dial()
	if err != nil {
		return 0, err
	}
	defer client.Close()
	var status manage.Status
	if err := client.Do(ctx, localapi.Request{Method: http.MethodGet, Path: "/v1/status"}, &status); err == nil {
		if b, ok := status.Bots.ByName[bot.Name]; ok && b.ID != nil {
			return *b.ID, nil
		}
	}
	return 0, withHint(&exitError{code: exitConfig, msg: "the id of bot " + bot.Name + " isn't known: it has no token that can be read, and no daemon runs"}, "tgspool token set "+bot.Name)
}

// haveReloaded has the daemon read its settings again, if there is one.
func (a *app) haveReloaded(ctx context.Context) (inUse string, err error) {
	const later = "in use from the daemon's next start on"
	client, err := a.dial()
	if err != nil {
		return later, err
	}
	defer client.Close()
	err = client.Do(ctx, localapi.Request{Method: http.MethodPost, Path: "/v1/reload"}, nil)
	if absent, ok := errors.AsType[*localapi.NoDaemonError](err); ok && !absent.Denied() {
		return later, nil
	}
	if err != nil {
		return "in use after tgspool reload", err
	}
	return "in use now", nil
}

// clientLine is a client as list --json shows it.
type clientLine struct {
	Bot     string   `json:"bot"`
	Name    string   `json:"name"`
	Methods []string `json:"methods"`
	Chats   []string `json:"chats"`
	Full    bool     `json:"full"`
	Lane    *string  `json:"lane"`
	MaxWait string   `json:"max_wait"`
	Rate    float64  `json:"rate"`
}

func (a *app) clientList() *cobra.Command {
	return a.botFlag(a.jsonFlag(&cobra.Command{
		Use: "list", Aliases: []string{"ls"}, Short: "List the programs that have tokens", Args: cobra.NoArgs,
		Example: "  tgspool client list",
		RunE: func(*cobra.Command, []string) error {
			cfg, err := a.load()
			if err != nil {
				return err
			}
			if _, ok := cfg.Bot(a.bot); a.bot != "" && !ok {
				return usagef("there is no bot %q in the settings", a.bot)
			}
			total := 0
			for _, bot := range cfg.Bots {
				for _, client := range bot.Clients {
					if a.bot != "" && a.bot != bot.Name {
						continue
					}
					total++
					if err := a.printClient(bot.Name, client, total == 1); err != nil {
						return err
					}
				}
			}
			if total == 0 && !a.json {
				a.out.printf("no client has a token; tgspool client add makes one\n")
			}
			return nil
		},
	}))
}

func (a *app) printClient(bot string, c config.Client, first bool) error {
	if a.json {
		line := clientLine{
			Bot: bot, Name: c.Name, Methods: append([]string{}, c.Methods...), Chats: append([]string{}, c.Chats...),
			Full: c.Full, MaxWait: c.MaxWait.String(), Rate: c.Rate,
		}
		if c.Lane != "" {
			line.Lane = &c.Lane
		}
		raw, err := json.Marshal(line)
		if err != nil {
			return err
		}
		a.out.jsonLine(raw)
		return nil
	}
	if first {
		a.out.printf("%-12s  %-16s  %-4s  %-6s  %-30s  %s\n", "BOT", "CLIENT", "FULL", "RATE", "METHODS", "CHATS")
	}
	full, rate := "no", "-"
	if c.Full {
		full = "yes"
	}
	if c.Rate > 0 {
		rate = strconv.FormatFloat(c.Rate, 'g', 4, 64) + "/s"
	}
	a.out.printf("%-12s  %-16s  %-4s  %-6s  %-30s  %s\n", short(bot, 12), short(c.Name, 16), full, rate, short(orNone(c.Methods), 30), short(orNone(c.Chats), 60))
	return nil
}

func orNone(list []string) string {
	if len(list) == 0 {
		return "none"
	}
	return strings.Join(list, " ")
}
