package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/tgspool/tgspool/internal/telegramsim"
)

// simulatedToken is the account that simulate serves when it isn't told.
const simulatedToken = "123456:SIMULATOR-SIMULATOR-SIMULATOR-SIMUL"

// firstVisitor is the id of the first of the made-up chats that --feed writes from.
const firstVisitor, visitors = 70_001, 20

// simulateFlags are the flags of simulate.
type simulateFlags struct {
	listen, control, token, username string
	feed                             time.Duration
	strict                           bool
	rate                             float64
	chatGap                          time.Duration
	groupPerMinute                   int
}

func (a *app) simulateCommand() *cobra.Command {
	f := &simulateFlags{}
	limits := telegramsim.DefaultLimits()
	c := &cobra.Command{
		Use: "simulate", Short: "Run only the Bot API simulator, for people who write bots", Args: cobra.NoArgs,
		Long: "Run only the simulator of the Bot API and print what arrives. A bot reaches it by its base URL;\n" +
			"nothing reaches Telegram. The control address takes updates to hand out, faults, outages, and\n" +
			"tells what has arrived: GET /sim/journal, POST /sim/text, POST /sim/faults, POST /sim/offline, …",
		Example: "  tgspool simulate --listen 127.0.0.1:8081 --token 123456:test --feed 2s\n" +
			`  curl -d '{"chat_id":5,"user_id":5,"text":"hi"}' http://127.0.0.1:CONTROL/sim/text` + "\n" +
			`  curl -d '{"kind":"flood","retry_after":5,"times":1}' http://127.0.0.1:CONTROL/sim/faults`,
		RunE: func(c *cobra.Command, _ []string) error {
			return a.simulate(c.Context(), f, c.Flags().Changed("token"))
		},
	}
	flags := c.Flags()
	flags.StringVar(&f.listen, "listen", "127.0.0.1:0", "`address` of the Bot API")
	flags.StringVar(&f.control, "control", "127.0.0.1:0", "`address` of the control API, which outages leave alone")
	flags.StringVar(&f.token, "token", simulatedToken, "the bot's `token`; without it every token is served")
	flags.StringVar(&f.username, "username", "", "the bot's `name` without @")
	flags.DurationVar(&f.feed, "feed", 0, "a made-up chat writes every `duration`")
	flags.BoolVar(&f.strict, "strict", false, "refuse with 429 what is over Telegram's limits")
	flags.Float64Var(&f.rate, "rate", limits.BotPerSecond, "with --strict: calls a second")
	flags.DurationVar(&f.chatGap, "chat-gap", limits.ChatGap, "with --strict: time between two messages of a chat")
	flags.IntVar(&f.groupPerMinute, "group-per-minute", limits.GroupPerMinute, "with --strict: messages a minute in a group")
	return c
}

// options are the simulator's. A token that nobody has asked for is one of many.
func (f *simulateFlags) options(onlyToken bool) telegramsim.Options {
	o := telegramsim.Options{
		Bots: []telegramsim.Bot{{Token: f.token, Username: f.username}}, AcceptAnyToken: !onlyToken, Seed: time.Now().UnixNano(),
	}
	if f.strict {
		o.Strict = telegramsim.DefaultLimits()
		o.Strict.BotPerSecond, o.Strict.ChatGap, o.Strict.GroupPerMinute = f.rate, f.chatGap, f.groupPerMinute
	}
	return o
}

// simulate serves until ctx ends or a listener breaks.
func (a *app) simulate(ctx context.Context, f *simulateFlags, onlyToken bool) error {
	if f.feed < 0 {
		return usagef("--feed: %s is below 0", f.feed)
	}
	var config net.ListenConfig
	api, err := config.Listen(ctx, "tcp", f.listen)
	if err != nil {
		return &exitError{code: exitTempFail, msg: fmt.Sprintf("--listen %s: %s", f.listen, err)}
	}
	control, err := config.Listen(ctx, "tcp", f.control)
	if err != nil {
		_ = api.Close()
		return &exitError{code: exitTempFail, msg: fmt.Sprintf("--control %s: %s", f.control, err)}
	}
	a.out.printf("api http://%s\ncontrol http://%s\n", api.Addr(), control.Addr())
	if err := a.out.flush(); err != nil {
		return &exitError{code: exitIO, msg: "writing the output: " + err.Error()}
	}
	sim := telegramsim.New(f.options(onlyToken))
	defer sim.Close()
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	var loops sync.WaitGroup
	ends := make(chan error, 3)
	for _, loop := range []func() error{
		func() error { return sim.Serve(ctx, api) },
		func() error { return sim.ServeControl(ctx, control) },
		func() error { return a.showArrivals(ctx, sim, f.feed) },
	} {
		loops.Go(func() {
			defer stop() // without one of them the others are of no use
			ends <- loop()
		})
	}
	loops.Wait()
	return errors.Join(<-ends, <-ends, <-ends)
}

// showArrivals prints each call as it arrives, and writes as the made-up chats
// when it is to.
func (a *app) showArrivals(ctx context.Context, sim *telegramsim.Sim, every time.Duration) error {
	var tick <-chan time.Time
	if every > 0 {
		ticker := time.NewTicker(every)
		defer ticker.Stop()
		tick = ticker.C
	}
	shown, written := 0, 0
	for {
		arrived := sim.Arrived()
		for _, call := range sim.JournalAfter(shown) {
			a.printArrival(call)
			shown++
		}
		if err := a.out.flush(); err != nil {
			return &exitError{code: exitIO, msg: "writing the output: " + err.Error()}
		}
		select {
		case <-ctx.Done():
			return nil
		case <-arrived:
		case <-tick:
			a.visit(sim, written)
			written++
		}
	}
}

// visit is a made-up chat that writes.
func (a *app) visit(sim *telegramsim.Sim, n int) {
	chat := int64(firstVisitor + n%visitors)
	text := fmt.Sprintf("hello %d", n+1)
	if n < visitors {
		text = "/start"
	}
	update := sim.FeedText(chat, chat, text)
	a.out.printf("%s > update %d from chat %d: %s\n", time.Now().Format(time.TimeOnly), update, chat, text)
}

func (a *app) printArrival(call telegramsim.Arrival) {
	a.out.printf("%s < %s", call.At.Local().Format(time.TimeOnly), safe(call.Method))
	if call.ChatID != 0 {
		a.out.printf(" to chat %d", call.ChatID)
	}
	if call.MessageID != 0 {
		a.out.printf(" message %d", call.MessageID)
	}
	switch {
	case call.Status == 0:
		a.out.printf(", no answer")
	case call.Status != 200:
		a.out.printf(", answered %d", call.Status)
	}
	if text := cmp.Or(call.Text, call.Params["data"]); text != "" {
		a.out.printf(": %s", short(text, 80))
	}
	a.out.printf("\n")
}
