package cli

import (
	"encoding/json"
	"net/url"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/tgspool/tgspool/internal/botapi"
	"github.com/tgspool/tgspool/internal/manage"
	"github.com/tgspool/tgspool/internal/spool"
)

func (a *app) inboxCommand() *cobra.Command {
	c := &cobra.Command{
		Use: "inbox", Short: "Look at the updates and hand them over again",
		Long: "Look at the updates and hand them over again. An update is named by its seq, its place in the\n" +
			"order of arrival.\n\nMarks: * leased to a handler, x dead.",
	}
	c.AddCommand(a.inboxList(), a.inboxShow(), a.inboxReplay(), a.inboxDrop())
	return c
}

func (a *app) inboxList() *cobra.Command {
	var state string
	var limit int
	var all bool
	c := &cobra.Command{
		Use: "list", Aliases: []string{"ls"}, Short: "List the updates, with the last error under each", Args: cobra.NoArgs,
		Long: "List the updates in the order of their arrival. Without --state or --all these are the ones\n" +
			"that nobody has dealt with: open, leased and dead.",
		Example: "  tgspool inbox list\n  tgspool inbox list --state dead --json | jq .seq",
		RunE: func(c *cobra.Command, _ []string) error {
			if all && state != "" {
				return usagef("--all and --state exclude each other")
			}
			s, err := a.connect(c.Context())
			if err != nil {
				return err
			}
			defer s.Close()
			query := url.Values{}
			if state != "" {
				query.Set("state", state)
			}
			empty := "the inbox holds nothing to deal with"
			if state != "" {
				empty = "no update matches"
			}
			return a.printUpdates(empty, func(yield func(item) bool) {
				n := 0
				for it := range s.list(c.Context(), s.path("updates"), query, 0) {
					if it.err == nil && state == "" && !all && !undealt(it.raw) {
						continue
					}
					if !yield(it) {
						return
					}
					if n++; n == limit {
						return
					}
				}
			})
		},
	}
	c.Flags().StringVar(&state, "state", "", "updates in this `state`: "+joined(spool.UpdateStates()))
	c.Flags().IntVar(&limit, "limit", 0, "at most this `number` of updates")
	c.Flags().BoolVar(&all, "all", false, "those that have been dealt with, too")
	return a.botFlag(a.jsonFlag(c))
}

// undealt reports whether nobody has dealt with an update.
func undealt(raw json.RawMessage) bool {
	var u struct {
		State spool.UpdateState `json:"state"`
	}
	return json.Unmarshal(raw, &u) != nil ||
		slices.Contains([]spool.UpdateState{spool.UpdateOpen, spool.UpdateLeased, spool.UpdateDead}, u.State)
}

// printUpdates prints a list as it comes in; empty is what it says of none.
func (a *app) printUpdates(empty string, updates func(func(item) bool)) error {
	now := time.Now()
	states := map[spool.UpdateState]int64{}
	total := 0
	for it := range updates {
		if it.err != nil {
			return it.err
		}
		if a.json {
			a.out.jsonLine(it.raw)
			continue
		}
		var u spool.Update
		if err := json.Unmarshal(it.raw, &u); err != nil {
			return err
		}
		if total++; total == 1 {
			a.out.printf("%10s   %-8s  %12s  %-20s  %14s  %-16s  %5s  %4s  %s\n", "SEQ", "STATE", "UPDATE", "KIND", "CHAT", "HANDLER", "AGE", "TRY", "JOBS")
		}
		states[u.State]++
		a.printUpdate(u, now)
	}
	switch {
	case a.json:
	case total == 0:
		a.out.printf("%s\n", empty)
	default:
		a.out.printf("-- %s: %s\n", plural(total, "update"), present(states))
	}
	return nil
}

func (a *app) printUpdate(u spool.Update, now time.Time) {
	mark := " "
	switch u.State {
	case spool.UpdateLeased:
		mark = "*"
	case spool.UpdateDead:
		mark = "x"
	case spool.UpdateOpen, spool.UpdateHandled, spool.UpdateIgnored, spool.UpdateExpired:
	}
	id, handler := "-", "-"
	if u.UpdateID != nil {
		id = itoa(*u.UpdateID)
	}
	if u.Handler != nil {
		handler = *u.Handler
	}
	chat := "-"
	// What can't be read as an update has no chat.
	if seen, _ := botapi.ParseUpdate(u.Raw); seen.ChatID != 0 {
		chat = itoa(seen.ChatID)
	}
	a.out.printf("%10d %s %-8s  %12s  %-20s  %14s  %-16s  %5s  %4d  %d\n", u.Seq, mark, u.State, id,
		short(u.Kind, 20), chat, short(handler, 16), span(now.Sub(u.ReceivedAt)), u.Attempts, len(u.Jobs))
	if u.Error != nil {
		a.out.printf("%12s (%s)\n", "", short(*u.Error, 200))
	}
}

func (a *app) inboxShow() *cobra.Command {
	return a.botFlag(a.jsonFlag(&cobra.Command{
		Use: "show SEQ...", Short: "Show all that is known of an update", Args: cobra.MinimumNArgs(1),
		Example: "  tgspool inbox show 7",
		RunE: func(c *cobra.Command, args []string) error {
			s, err := a.connect(c.Context())
			if err != nil {
				return err
			}
			defer s.Close()
			return a.each(args, func(seq int64) error {
				var raw json.RawMessage
				if err := s.get(c.Context(), s.path("updates", itoa(seq)), &raw); err != nil {
					return err
				}
				a.printRecord(raw)
				if a.json {
					return nil
				}
				var u spool.Update
				if err := json.Unmarshal(raw, &u); err != nil {
					return err
				}
				if u.State == spool.UpdateOpen && u.Handler == nil {
					a.out.printf("no program takes it; it waits for a client until %s, then it is expired\n", when(u.ReceivedAt.Add(pullFor)))
				}
				return nil
			})
		},
	}))
}

// pullFor is how long the daemon lets an update wait for a client.
const pullFor = 24 * time.Hour

func (a *app) inboxReplay() *cobra.Command {
	var f choiceFlags
	var fresh bool
	c := &cobra.Command{
		Use: "replay SEQ...|-|--since DURATION|ALL", Short: "Hand updates to their handler once more",
		Long: "Hand updates that are over to their handler once more. The calls that it already caused are\n" +
			"not made again, because they have the same keys; with --fresh they are.",
		Example: "  tgspool inbox replay 7\n  tgspool inbox replay --since 5m\n  tgspool inbox replay ALL --state dead --yes",
		RunE: func(c *cobra.Command, args []string) error {
			query := ""
			if fresh {
				query = "?fresh=true"
			}
			// A malformed one has nothing that a handler could read.
			return a.decideChosen(c, f, args, "replay", query, func(u spool.Update) bool { return u.State.Ended() && u.UpdateID != nil })
		},
	}
	f.add(c)
	c.Flags().BoolVar(&fresh, "fresh", false, "as if it had never been handled: its calls are made again")
	return a.botFlag(a.jsonFlag(c))
}

func (a *app) inboxDrop() *cobra.Command {
	var f choiceFlags
	c := &cobra.Command{
		Use: "drop SEQ...|-|--since DURATION|ALL", Short: "Give up on updates: they are ignored",
		Long:    "Give up on updates that are open or dead: they are ignored. A replay brings them back.",
		Example: "  tgspool inbox drop 7\n  tgspool inbox drop ALL --state dead --dry-run",
		RunE: func(c *cobra.Command, args []string) error {
			return a.decideChosen(c, f, args, "drop", "", func(u spool.Update) bool {
				return u.State == spool.UpdateOpen || u.State == spool.UpdateDead
			})
		},
	}
	f.add(c)
	return a.botFlag(a.jsonFlag(c))
}

// choiceFlags select updates for a decision about many.
type choiceFlags struct {
	since, state string
	yes, dryRun  bool
}

func (f *choiceFlags) add(c *cobra.Command) {
	flags := c.Flags()
	flags.StringVar(&f.since, "since", "", "all that arrived within this `duration`")
	flags.StringVar(&f.state, "state", "", "with --since or ALL, only those in this `state`")
	flags.BoolVarP(&f.yes, "yes", "y", false, "don't ask")
	flags.BoolVar(&f.dryRun, "dry-run", false, "with --since or ALL, only count")
}

// decideChosen carries out a decision about the updates of the arguments, or
// about many: their number is shown first.
func (a *app) decideChosen(c *cobra.Command, f choiceFlags, args []string, name, query string, fits func(spool.Update) bool) error {
	many := f.since != "" || slices.Equal(args, []string{allWord})
	switch {
	case many && len(args) > 0 && args[0] != allWord:
		return usagef("give seqs or --since, not both")
	case !many && len(args) == 0:
		return withHint(usagef("which updates?"), "give seqs, --since, or ALL")
	case !many && f.state != "":
		return usagef("--state goes with --since or ALL")
	case !many && f.dryRun:
		return usagef("--dry-run goes with --since or ALL")
	}
	s, err := a.connect(c.Context())
	if err != nil {
		return err
	}
	defer s.Close()
	if !many {
		return a.decideUpdates(c, s, args, name, query)
	}
	seqs, err := s.chosen(c, f, fits)
	switch {
	case err != nil:
		return err
	case f.dryRun && a.json:
		a.out.printf("{\"matched\":%d}\n", len(seqs))
		return nil
	case f.dryRun && len(seqs) > 0:
		a.out.printf("%s to %s\n", plural(len(seqs), "update"), name)
		return nil
	case len(seqs) == 0:
		if !a.json {
			a.out.printf("no update to %s\n", name)
		}
		return nil
	}
	if err := a.confirm(name+" "+plural(len(seqs), "update")+"?", f.yes); err != nil {
		return err
	}
	return a.decideUpdates(c, s, seqs, name, query)
}

// chosen lists the seqs of the updates that the flags select and that fit.
func (s *session) chosen(c *cobra.Command, f choiceFlags, fits func(spool.Update) bool) ([]string, error) {
	var from time.Time
	if f.since != "" {
		d, err := manage.ParseDuration(f.since)
		if err != nil {
			return nil, usagef("--since: %s", err)
		}
		from = time.Now().Add(-d)
	}
	query := url.Values{}
	if f.state != "" {
		query.Set("state", f.state)
	}
	var seqs []string
	for it := range s.list(c.Context(), s.path("updates"), query, 0) {
		if it.err != nil {
			return nil, it.err
		}
		var u spool.Update
		if err := json.Unmarshal(it.raw, &u); err != nil {
			return nil, err
		}
		if fits(u) && !u.ReceivedAt.Before(from) {
			seqs = append(seqs, itoa(u.Seq))
		}
	}
	return seqs, nil
}

// decideUpdates carries out a decision about each update.
func (a *app) decideUpdates(c *cobra.Command, s *session, args []string, name, query string) error {
	return a.each(args, func(seq int64) error {
		var raw json.RawMessage
		if err := s.post(c.Context(), s.path("updates", itoa(seq), name)+query, nil, &raw); err != nil {
			return err
		}
		if a.json {
			a.out.jsonLine(raw)
			return nil
		}
		var u spool.Update
		if err := json.Unmarshal(raw, &u); err != nil {
			return err
		}
		a.out.printf("update %d %s\n", u.Seq, u.State)
		return nil
	})
}
