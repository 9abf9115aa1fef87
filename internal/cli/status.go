package cli

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/tgspool/tgspool/internal/localapi"
	"github.com/tgspool/tgspool/internal/manage"
	"github.com/tgspool/tgspool/internal/spool"
)

func (a *app) statusCommand() *cobra.Command {
	var check bool
	var warn, crit []string
	var format string
	c := &cobra.Command{
		Use: "status", Short: "Show the daemon, its bots and their queues on one screen", Args: cobra.NoArgs,
		Long: "Show the daemon, its bots and their queues on one screen.\n\n" +
			"With --check, for cron and monitoring: is all well? It ends with 0 when it is, with 1 for a\n" +
			"warning and with 2 when it is critical, no daemon included. --warn and --crit set thresholds,\n" +
			"0 for none; these are the defaults, warning and critical:\n\n" + limitText(),
		Example: "  tgspool status\n  tgspool status --json | jq .bots.home.queue_depth\n" +
			"  tgspool status --check || logger \"tgspool isn't well\"\n" +
			"  tgspool status --check --crit oldest=1h,dead=5 --warn unhandled=0\n" +
			"  tgspool status --check --format prometheus > /var/lib/node_exporter/tgspool.prom",
		RunE: func(c *cobra.Command, _ []string) error {
			if !check && (len(warn)+len(crit) > 0 || c.Flags().Changed("format")) {
				return usagef("--warn, --crit and --format go with --check")
			}
			client, err := a.dial()
			if err != nil {
				return err
			}
			defer client.Close()
			if check {
				if a.json {
					format = "json"
				}
				return a.check(c.Context(), client, warn, crit, format)
			}
			var raw json.RawMessage
			if err := client.Do(c.Context(), localapi.Request{Method: http.MethodGet, Path: "/v1/status"}, &raw); err != nil {
				return err
			}
			if a.json {
				a.out.jsonLine(raw)
				return nil
			}
			var status manage.Status
			if err := json.Unmarshal(raw, &status); err != nil {
				return err
			}
			a.printStatus(status, time.Now())
			for _, bad := range a.refused {
				a.complain("warning", "at its next start the daemon refuses the settings: "+bad.Error())
			}
			return nil
		},
	}
	flags := c.Flags()
	flags.BoolVar(&check, "check", false, "say whether all is well, by the exit code: 0, 1 or 2")
	flags.StringSliceVar(&warn, "warn", nil, "with --check, `KEY=VALUE` from which on it is a warning")
	flags.StringSliceVar(&crit, "crit", nil, "with --check, `KEY=VALUE` from which on it is critical")
	flags.StringVar(&format, "format", "nagios", "with --check, the `format`: nagios, text, json, prometheus")
	return a.jsonFlag(c)
}

// limitText lists the thresholds for the help.
func limitText() string {
	var b strings.Builder
	for _, name := range limitNames {
		l := limits()[name]
		show := func(v float64) string {
			switch {
			case v == 0:
				return "-"
			case l.unit == "s":
				return span(time.Duration(v) * time.Second)
			case l.unit == "B":
				return itoa(int64(v)>>20) + "MiB"
			}
			return figure(v)
		}
		fmt.Fprintf(&b, "  %-10s %6s %6s  %s\n", name, show(l.warn), show(l.crit), l.what)
	}
	return strings.TrimSuffix(b.String(), "\n")
}

func (a *app) printStatus(s manage.Status, now time.Time) {
	a.out.printf("tgspool %s, up %s, clock %s\n", safe(s.Version), span(now.Sub(s.StartedAt)), safe(s.Clock))
	a.out.printf("store    %s, %s, %s free", safe(s.Store.Path), size(s.Store.SizeBytes), size(s.Store.FreeBytes))
	if s.Store.Full {
		a.out.printf(", FULL: intake waits until there is room")
	}
	a.out.printf("\n")
	if len(s.Bots.Names) == 0 {
		a.out.printf("\nno bot is configured\n")
	}
	for _, name := range s.Bots.Names {
		a.printBot(name, s.Bots.ByName[name], now)
	}
}

func (a *app) printBot(name string, b manage.BotStatus, now time.Time) {
	a.out.printf("\n%s", safe(name))
	if b.Username != nil {
		a.out.printf(" @%s", safe(*b.Username))
	}
	if b.ID != nil {
		a.out.printf(" (%d)", *b.ID)
	}
	a.out.printf("\n  intake   %s%s, offset %d%s\n", safe(b.Intake.State), since(b.Intake.Since, now), b.Intake.Offset, detail(b.Intake.Detail))
	a.out.printf("  sender   %s%s", safe(b.Sender.State), since(b.Sender.Since, now))
	if t := b.Sender.CooldownUntil; t != nil {
		a.out.printf(", cooldown until %s (%s)", when(*t), span(t.Sub(now)))
	}
	a.out.printf("%s\n", detail(b.Sender.Detail))
	for _, p := range b.Paused {
		a.out.printf("  !        %s paused %s\n", p.Part, untilText(p))
	}
	a.out.printf("  queue    %d waiting", b.QueueDepth)
	if b.OldestPendingAgeS > 0 {
		a.out.printf(", the oldest due for %s", span(time.Duration(b.OldestPendingAgeS*float64(time.Second))))
	}
	a.out.printf("\n  jobs     %s\n", counts(b.Jobs, spool.States()))
	a.out.printf("  inbox    %s\n", counts(b.Updates, spool.UpdateStates()))
	if n := b.Jobs[spool.Uncertain]; n > 0 {
		a.out.printf("  ?        %s to decide about: tgspool queue list --state uncertain\n", plural(int(n), "job"))
	}
	if b.DeadLast24h > 0 {
		a.out.printf("  x        %s dead in the last 24 h: tgspool queue list --state dead\n", plural(int(b.DeadLast24h), "job"))
	}
	if n := b.Updates[spool.UpdateDead]; n > 0 {
		a.out.printf("  x        %s dead: tgspool inbox list --state dead\n", plural(int(n), "update"))
	}
	if b.Hint != "" {
		a.out.printf("  hint     %s\n", safe(b.Hint))
	}
	for _, h := range b.Handlers {
		if h.Detail != "" {
			a.out.printf("  x        handler %s is %s, its updates wait%s\n", safe(h.Name), safe(h.State), detail(h.Detail))
		}
	}
}

func since(t *time.Time, now time.Time) string {
	if t == nil {
		return ""
	}
	return " for " + span(now.Sub(*t))
}

func detail(s string) string {
	if s == "" {
		return ""
	}
	return ": " + short(s, 200)
}

func counts[S ~string](n map[S]int64, order []S) string {
	var parts []string
	for _, state := range order {
		parts = append(parts, string(state)+" "+itoa(n[state]))
	}
	return strings.Join(parts, ", ")
}
