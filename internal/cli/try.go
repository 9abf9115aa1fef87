package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/tgspool/tgspool/internal/botapi"
	"github.com/tgspool/tgspool/internal/config"
	"github.com/tgspool/tgspool/internal/daemon"
	"github.com/tgspool/tgspool/internal/handler"
	"github.com/tgspool/tgspool/internal/spool"
	"github.com/tgspool/tgspool/internal/wire"
)

// tryFlags are the flags of try.
type tryFlags struct {
	text, from, chat, kind, file string
}

func (a *app) tryCommand() *cobra.Command {
	f := &tryFlags{}
	c := &cobra.Command{
		Use: "try [ROUTE]", Short: "Run a handler with a made-up update, send nothing, show what would be sent", Args: cobra.MaximumNArgs(1),
		Long: "Run a handler's program with a made-up update and show what it would send, its exit status,\n" +
			"what it writes to standard error, and how long it takes; or post the update to a handler's\n" +
			"webhook. Nothing is sent and nothing is stored.\n" +
			"Without ROUTE the update goes where the settings lead it. On an installed system the program\n" +
			"runs in tgspool-exec@.service, with the rights that it will have; that takes root.\n\n" +
			"Exit codes: 0 the update would be handled, 65 it would not, 75 it would be tried again.",
		Example: "  tgspool try --text /uptime\n  tgspool try uptime --from 12345\n  tgspool try buttons --kind callback_query --text yes\n" +
			"  tgspool inbox show 17 --json | jq .update | tgspool try --update -",
		RunE: func(c *cobra.Command, args []string) error { return a.try(c.Context(), f, args) },
	}
	flags := c.Flags()
	flags.StringVar(&f.text, "text", "", "the `text` of the message, the button's data, or the query")
	flags.StringVar(&f.from, "from", "", "the sender: an id or a name of the settings (default me, else 1)")
	flags.StringVar(&f.chat, "chat", "", "the chat: an id or a name of the settings (default the sender's)")
	flags.StringVar(&f.kind, "kind", "message", "the `kind` of update")
	flags.StringVar(&f.file, "update", "", "a `file` with the update itself, - for stdin, in place of the four above")
	return a.botFlag(a.jsonFlag(c))
}

// try is the whole command.
func (a *app) try(ctx context.Context, f *tryFlags, args []string) error {
	cfg, err := a.load()
	if err != nil {
		return err
	}
	bot, err := a.oneBot(cfg)
	if err != nil {
		return err
	}
	if len(args) == 1 && f.text == "" && f.file == "" {
		f.text = commandOf(bot, args[0])
	}
	raw, err := a.madeUp(bot, f)
	if err != nil {
		return err
	}
	route, err := a.routeFor(bot, args, raw)
	if err != nil {
		return err
	}
	trial := handler.Trial{
		Bot: bot.Name, Route: route, Update: raw, Home: a.env("HOME"), Unit: a.execUnit(),
		Line:   func(line []byte) { a.complain("stderr", string(line)) },
		Pusher: wire.NewPusher(cfg.API.WebhookHosts, nil), ReadSecret: config.ReadSecret,
	}
	if trial.Unit == "" && len(route.Exec) > 0 {
		a.complain("hint", "there is no "+handler.UnitSocket+": the program runs with your own rights")
	}
	tried, err := handler.Try(ctx, trial)
	if err != nil {
		return dataf("%s", err)
	}
	return a.printTried(route, tried)
}

// execUnit finds the unit for handlers in the way of the daemon, which has its
// name in the environment.
func (a *app) execUnit() string {
	if named := a.env(daemon.UnitVariable); named != "" {
		return named
	}
	if _, err := os.Stat(handler.UnitSocket); err != nil {
		return ""
	}
	return handler.UnitSocket
}

// oneBot is the bot of the flag, or the only one.
func (a *app) oneBot(cfg *config.Config) (config.Bot, error) {
	if a.bot != "" {
		bot, ok := cfg.Bot(a.bot)
		if !ok {
			return bot, usagef("there is no bot %q in the settings", a.bot)
		}
		return bot, nil
	}
	if len(cfg.Bots) != 1 {
		names := make([]string, len(cfg.Bots))
		for i, bot := range cfg.Bots {
			names[i] = bot.Name
		}
		return config.Bot{}, withHint(usagef("there are several bots: %s", strings.Join(names, ", ")), "name one with --bot")
	}
	return cfg.Bots[0], nil
}

// commandOf is what a person would write to reach a route; "hello" where any
// text does.
func commandOf(bot config.Bot, name string) string {
	for _, h := range bot.Handlers {
		if h.Name == name && len(h.Match.Command) > 0 {
			return h.Match.Command[0]
		}
	}
	return "hello"
}

// routeFor is the route that was named, or the one that takes the update.
func (a *app) routeFor(bot config.Bot, args []string, raw []byte) (handler.RouteConfig, error) {
	routes := daemon.Routes(bot.Handlers)
	router, err := handler.NewRouter(routes, handler.RouterOptions{Unmatched: bot.Unmatched})
	if err != nil {
		return handler.RouteConfig{}, &exitError{code: exitConfig, msg: err.Error()}
	}
	u, err := botapi.ParseUpdate(raw)
	if err != nil {
		return handler.RouteConfig{}, dataf("reading the update: %s", err)
	}
	taken := router.Route(u)
	name := taken.Handler
	if len(args) == 1 {
		name = args[0]
		if taken.Handler != name {
			a.complain("hint", "the settings would not lead this update to "+name+" but "+destination(taken))
		}
	}
	for _, r := range routes {
		if r.Name == name {
			if r.Pull {
				return r, dataf("handler %s has nothing to run: its updates wait for a client", name)
			}
			return r, nil
		}
	}
	if len(args) == 1 {
		return handler.RouteConfig{}, usagef("bot %s has no handler %q", bot.Name, name)
	}
	return handler.RouteConfig{}, dataf("no handler takes this update; it would go %s", destination(taken))
}

func destination(r spool.Route) string {
	switch {
	case r.Handler != spool.PullRoute:
		return "to " + r.Handler
	case r.Ignore != "":
		return "nowhere: it would be ignored"
	}
	return "to a client that asks for it"
}

// madeUp is the update to try with.
func (a *app) madeUp(bot config.Bot, f *tryFlags) ([]byte, error) {
	if f.file != "" {
		return a.givenUpdate(f.file)
	}
	from, err := tryID(bot, "--from", f.from, "me", 1)
	if err != nil {
		return nil, err
	}
	chat, err := tryID(bot, "--chat", f.chat, "", from)
	if err != nil {
		return nil, err
	}
	if from <= 0 {
		return nil, usagef("--from: %d is no user", from)
	}
	return sampleUpdate(f.kind, f.text, from, chat, time.Now())
}

func (a *app) givenUpdate(name string) ([]byte, error) {
	in := a.stdin
	if name != "-" {
		file, err := os.Open(name)
		if err != nil {
			return nil, &exitError{code: exitIO, msg: err.Error()}
		}
		defer func() { _ = file.Close() }() // it was only read
		in = file
	}
	raw, err := io.ReadAll(io.LimitReader(in, maxStdin))
	if err != nil {
		return nil, &exitError{code: exitIO, msg: "reading the update: " + err.Error()}
	}
	return bytes.TrimSpace(raw), nil
}

// tryID finds an id: the flag's, else that of a name, else otherwise.
func tryID(bot config.Bot, flag, value, name string, otherwise int64) (int64, error) {
	if value == "" {
		if value = bot.Chats[name]; value == "" {
			return otherwise, nil
		}
	}
	text, ok := bot.ResolveChat(value)
	id, err := strconv.ParseInt(text, 10, 64)
	if !ok || err != nil {
		return 0, usagef("%s: %q is neither an id nor a name of [bots.%s.chats]", flag, value, bot.Name)
	}
	return id, nil
}

// triedJSON is a trial as JSON.
type triedJSON struct {
	Handler  string      `json:"handler"`
	State    string      `json:"state"`
	Error    *string     `json:"error"`
	Ran      bool        `json:"ran"`
	ExitCode *int        `json:"exit_code"`
	Seconds  float64     `json:"seconds"`
	Output   string      `json:"output"`
	Calls    []triedCall `json:"calls"`

	Session json.RawMessage `json:"session"` // null: it would stay as it is

	webhook bool
}

type triedCall struct {
	Method string          `json:"method"`
	Params json.RawMessage `json:"params"`
}

// printTried shows what came of a trial, and ends with the code that says so.
func (a *app) printTried(route handler.RouteConfig, t handler.Tried) error {
	shown := triedJSON{
		Handler: route.Name, State: string(t.State), Ran: t.Ran, Seconds: t.Took.Seconds(),
		Output: strings.ToValidUTF8(string(t.Stdout), "\ufffd"), Calls: []triedCall{},
		Session: t.Session, webhook: route.Webhook != "",
	}
	if t.Reason != "" {
		shown.Error = &t.Reason
	}
	if t.Code >= 0 && t.Ran {
		shown.ExitCode = &t.Code
	}
	for _, j := range t.Jobs {
		for _, call := range append([]spool.NewJob{j}, j.Parts...) {
			shown.Calls = append(shown.Calls, triedCall{call.Method, call.Params})
		}
	}
	if a.json {
		line, err := json.Marshal(shown)
		if err != nil {
			return err
		}
		a.out.jsonLine(line)
	} else {
		a.showTried(shown)
	}
	if t.State == spool.UpdateHandled {
		return nil
	}
	if t.State == spool.UpdateOpen {
		return silent(exitTempFail)
	}
	return silent(exitData)
}

// showTried prints a trial for people.
func (a *app) showTried(t triedJSON) {
	a.out.printf("handler  %s\n", safe(t.Handler))
	switch {
	case t.ExitCode != nil && t.webhook:
		a.out.printf("answer   %d after %.3f s\n", *t.ExitCode, t.Seconds)
	case t.webhook:
		a.out.printf("answer   none\n")
	case t.ExitCode != nil:
		a.out.printf("exit     %d after %.3f s\n", *t.ExitCode, t.Seconds)
	case t.Ran:
		a.out.printf("exit     none, ended after %.3f s\n", t.Seconds)
	default:
		a.out.printf("exit     the program wasn't started\n")
	}
	a.out.printf("update   would be %s", t.State)
	switch {
	case t.State == string(spool.UpdateOpen) && t.Ran:
		a.out.printf(" (and tried again)")
	case t.State == string(spool.UpdateOpen):
		a.out.printf(" (and wait: its route can't be reached)")
	}
	if t.Error != nil {
		a.out.printf(": %s", safe(*t.Error))
	}
	if t.Session != nil {
		a.out.printf("\nsession  %s", short(string(t.Session), 200))
	}
	a.out.printf("\ncalls    %d\n", len(t.Calls))
	for i, call := range t.Calls {
		a.out.printf("%7d  %s\n", i+1, safe(call.Method))
		var b bytes.Buffer
		if json.Indent(&b, call.Params, "", "  ") != nil {
			b.Write(call.Params)
		}
		for line := range strings.Lines(b.String()) {
			a.out.printf("         %s\n", safe(strings.TrimRight(line, "\n")))
		}
	}
	if len(t.Calls) == 0 && t.Output != "" {
		a.out.printf("output\n")
		for line := range strings.Lines(t.Output) {
			a.out.printf("         %s\n", safe(strings.TrimRight(line, "\n")))
		}
	}
}
