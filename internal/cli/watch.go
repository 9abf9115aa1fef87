package cli

import (
	"context"
	"encoding/json"
	"errors"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/tgspool/tgspool/internal/manage"
	"github.com/tgspool/tgspool/internal/spool"
)

// watchAgain is how long watch looks for a daemon that has gone: as long as an
// upgrade may take.
const watchAgain = time.Minute

func (a *app) watchCommand() *cobra.Command {
	var events string
	var limit int
	c := &cobra.Command{
		Use: "watch", Short: "Show what happens, as lines, as it happens", Args: cobra.NoArgs,
		Long: "Show what happens, as lines, as it happens: each change of a job, an update, a chat, and of\n" +
			"the state of a bot. Texts aren't shown. It goes on over a restart of the daemon, and says what\n" +
			"it may have missed.",
		Example: "  tgspool watch\n  tgspool watch --event job --json | jq 'select(.data.state == \"dead\")'",
		RunE: func(c *cobra.Command, _ []string) error {
			if limit < 0 {
				return usagef("--limit must not be negative")
			}
			query := url.Values{}
			if a.bot != "" {
				query.Set("bot", a.bot)
			}
			if events != "" {
				query.Set("event", events)
			}
			return a.watch(c.Context(), query, limit)
		},
	}
	c.Flags().StringVar(&events, "event", "", "only these `events`, with commas between: job, update, bot, chat")
	c.Flags().IntVar(&limit, "limit", 0, "end after this `number` of events")
	return a.botFlag(a.jsonFlag(c))
}

// errEnough ends a watch that has shown what it was asked for.
var errEnough = errors.New("enough")

func (a *app) watch(ctx context.Context, query url.Values, limit int) error {
	client, err := a.dial()
	if err != nil {
		return err
	}
	defer client.Close()
	w := watcher{a: a, bots: map[string]string{}, limit: limit}
	path := ""
	if len(query) > 0 {
		path = "?" + query.Encode()
	}
	for gone := (time.Time{}); ; {
		err := client.Follow(ctx, path, func(event string, data []byte) error {
			gone = time.Time{}
			return w.hear(event, data)
		})
		_, refused := errors.AsType[*manage.Problem](err)
		switch {
		case errors.Is(err, errEnough), ctx.Err() != nil:
			return nil
		case !w.connected || refused, !gone.IsZero() && time.Since(gone) > watchAgain:
			return err
		case gone.IsZero():
			gone = time.Now()
			a.complain("hint", "the daemon has gone; waiting for it")
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(time.Second):
		}
	}
}

// watcher prints events.
type watcher struct {
	a         *app
	connected bool
	bots      map[string]string // how each bot was last shown
	limit     int
	shown     int
}

// hear prints one event at once: somebody may be looking.
func (w *watcher) hear(event string, data []byte) error {
	line, err := w.line(event, data)
	if err != nil || line == "" {
		return err
	}
	if w.a.json {
		w.a.out.jsonLine(json.RawMessage(line))
	} else {
		w.a.out.printf("%s  %s\n", time.Now().Format("15:04:05"), line)
	}
	if err := w.a.out.flush(); err != nil {
		return err
	}
	if event != "hello" {
		w.shown++
	}
	if w.limit > 0 && w.shown >= w.limit {
		return errEnough
	}
	return nil
}

// line makes the line of an event, "" for one that says nothing new.
func (w *watcher) line(event string, data []byte) (string, error) {
	first := !w.connected
	w.connected = true
	if w.a.json {
		return `{"event":` + strconv.Quote(event) + `,"data":` + string(data) + `}`, nil
	}
	var v eventData
	if err := json.Unmarshal(data, &v); err != nil {
		return "", dataf("an event of the daemon can't be read: %s", err)
	}
	switch event {
	case "hello":
		switch {
		case first:
			return "-- " + plural(len(v.Bots.Names), "bot") + ": " + safe(strings.Join(v.Bots.Names, ", ")), nil
		case v.Missed == 0:
			return "-- connected again; what happened meanwhile isn't shown", nil
		}
		return "-- " + plural(int(v.Missed), "event") + " left out: more than could be shown", nil
	case "job":
		return v.jobLine(), nil
	case "update":
		return v.updateLine(), nil
	case "chat":
		return v.chatLine(), nil
	}
	line := v.botLine()
	if w.bots[v.Bot] == line {
		return "", nil
	}
	w.bots[v.Bot] = line
	return line, nil
}

// eventData is what the lines show of any event.
type eventData struct {
	Bot    string          `json:"bot"`
	Missed int64           `json:"missed"`
	Bots   manage.BotTable `json:"bots"`
	ID     int64           `json:"id"`
	Seq    int64           `json:"seq"`
	Kind   string          `json:"kind"`
	State  string          `json:"state"`
	Method string          `json:"method"`
	ChatID json.RawMessage `json:"chat_id"`

	Attempts  int             `json:"attempts"`
	LastError *spool.JobError `json:"last_error"`
	Handler   *string         `json:"handler"`
	Error     *string         `json:"error"`

	Aliases        []string   `json:"aliases"`
	Active         bool       `json:"active"`
	InactiveReason *string    `json:"inactive_reason"`
	CooldownUntil  *time.Time `json:"cooldown_until"`

	Intake manage.IntakeStatus `json:"intake"`
	Sender manage.SenderStatus `json:"sender"`
}

func (v *eventData) jobLine() string {
	line := safe(v.Bot) + "  job " + itoa(v.ID) + " " + stateMark(spool.State(v.State)) + safe(v.State) + "  " + short(v.Method, 32)
	if chat := plainJSON(v.ChatID); chat != "-" {
		line += " to " + short(chat, 40)
	}
	if v.LastError != nil && v.State != string(spool.Running) {
		line += " (" + reason(v.LastError) + ")"
	}
	return line
}

func (v *eventData) updateLine() string {
	line := safe(v.Bot) + "  update " + itoa(v.Seq) + " " + safe(v.State) + "  " + short(v.Kind, 32)
	if v.Handler != nil {
		line += " by " + short(*v.Handler, 32)
	}
	if v.Error != nil && v.State != string(spool.UpdateLeased) {
		line += " (" + short(*v.Error, 200) + ")"
	}
	return line
}

func (v *eventData) chatLine() string {
	name := plainJSON(v.ChatID)
	if name == "-" && len(v.Aliases) > 0 {
		name = v.Aliases[0]
	}
	line := safe(v.Bot) + "  chat " + short(name, 40)
	switch {
	case v.InactiveReason != nil:
		line += " inactive (" + short(*v.InactiveReason, 200) + ")"
	case v.CooldownUntil != nil:
		line += " waits until " + when(*v.CooldownUntil)
	default:
		line += " active"
	}
	return line
}

// botLine leaves the counters out: jobs and updates have lines of their own.
func (v *eventData) botLine() string {
	line := safe(v.Bot) + "  bot intake " + safe(v.Intake.State) + detail(v.Intake.Detail) + ", sender " + safe(v.Sender.State)
	if t := v.Sender.CooldownUntil; t != nil {
		line += " until " + when(*t)
	}
	return line + detail(v.Sender.Detail)
}
