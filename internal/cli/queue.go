package cli

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/tgspool/tgspool/internal/spool"
)

// waiting are the states in which a job is still of the queue.
var waiting = []spool.State{spool.Pending, spool.Running, spool.Uncertain, spool.Held}

// filterFlags select jobs: the same for every command.
type filterFlags struct{ state, chat, lane, method, older, origin, key string }

func (f *filterFlags) add(c *cobra.Command) {
	flags := c.Flags()
	flags.StringVar(&f.state, "state", "", "jobs in this `state`: "+joined(spool.States()))
	flags.StringVar(&f.chat, "chat", "", "jobs for this `chat`: id, @name or name of the settings")
	flags.StringVar(&f.lane, "lane", "", "jobs of this `lane`: "+joined(spool.Lanes()))
	flags.StringVar(&f.method, "method", "", "jobs that call this `method`")
	flags.StringVar(&f.older, "older", "", "jobs made longer ago than this `duration`")
	flags.StringVar(&f.origin, "origin", "", "jobs that came from here: cli, api, handler:`NAME`")
	flags.StringVar(&f.key, "key", "", "the job with this dedupe `key`")
}

// query is the filter as the daemon reads it.
func (f *filterFlags) query() url.Values {
	q := url.Values{}
	for name, value := range map[string]string{
		"state": f.state, "chat": f.chat, "lane": f.lane, "method": f.method,
		"older": f.older, "origin": f.origin, "key": f.key,
	} {
		if value != "" {
			q.Set(name, value)
		}
	}
	return q
}

func (a *app) queueCommand() *cobra.Command {
	c := &cobra.Command{
		Use: "queue", Short: "Look at the jobs and decide about them",
		Long: "Look at the jobs and decide about them. A job is one call to Telegram.\n\n" +
			"Marks: * running, ! held, ? uncertain (it may or may not have arrived), x dead.",
	}
	c.AddCommand(a.queueList(), a.queueShow(), a.queueWhy(), a.queueShape(), a.resolveCommand())
	for _, d := range verbs {
		c.AddCommand(a.verbCommand(d))
	}
	return c
}

func (a *app) queueList() *cobra.Command {
	var f filterFlags
	var limit int
	var all bool
	c := &cobra.Command{
		Use: "list", Aliases: []string{"ls"}, Short: "List the jobs, with the last reason under each", Args: cobra.NoArgs,
		Long: "List the jobs, oldest first, with the last reason under each. Without --state or --all these\n" +
			"are the jobs that aren't over: pending, running, uncertain and held. The queue may change\n" +
			"while it is listed.",
		Example: "  tgspool queue list\n  tgspool queue list --state dead --chat family\n" +
			"  tgspool queue list --json --state uncertain | jq .id",
		RunE: func(c *cobra.Command, _ []string) error {
			if all && f.state != "" {
				return usagef("--all and --state exclude each other")
			}
			s, err := a.connect(c.Context())
			if err != nil {
				return err
			}
			defer s.Close()
			states := waiting
			switch {
			case f.state != "":
				states = []spool.State{spool.State(f.state)}
			case all:
				states = []spool.State{""}
			}
			empty := "the queue is empty"
			if len(f.query()) > 0 {
				empty = "no job matches"
			}
			return a.printJobs(empty, s.jobs(c.Context(), f.query(), states, limit))
		},
	}
	f.add(c)
	c.Flags().IntVar(&limit, "limit", 0, "at most this `number` of jobs")
	c.Flags().BoolVar(&all, "all", false, "those that are over, too")
	return a.botFlag(a.jsonFlag(c))
}

// jobs lists the jobs of several states in the order of their ids.
func (s *session) jobs(ctx context.Context, query url.Values, states []spool.State, limit int) iter.Seq[item] {
	return func(yield func(item) bool) {
		type head struct {
			item
			id   int64
			next func() (item, bool)
		}
		var heads []*head
		advance := func(h *head) {
			it, ok := h.next()
			if !ok {
				heads = slices.DeleteFunc(heads, func(o *head) bool { return o == h })
				return
			}
			var job struct {
				ID int64 `json:"id"`
			}
			if it.err == nil {
				it.err = json.Unmarshal(it.raw, &job)
			}
			h.item, h.id = it, job.ID
		}
		for _, state := range states {
			q := url.Values{}
			maps.Copy(q, query)
			if state != "" {
				q.Set("state", string(state))
			}
			next, stop := iter.Pull(s.list(ctx, s.path("jobs"), q, limit))
			defer stop()
			h := &head{next: next}
			heads = append(heads, h)
			advance(h)
		}
		for n := 0; len(heads) > 0 && (limit == 0 || n < limit); n++ {
			first := slices.MinFunc(heads, func(x, y *head) int { return cmp.Compare(x.id, y.id) })
			if !yield(first.item) || first.err != nil {
				return
			}
			advance(first)
		}
	}
}

// printJobs prints a list as it comes in; empty is what it says of none.
func (a *app) printJobs(empty string, jobs iter.Seq[item]) error {
	now := time.Now()
	states := map[spool.State]int64{}
	total := 0
	var oldest time.Time
	for it := range jobs {
		if it.err != nil {
			return it.err
		}
		if a.json {
			a.out.jsonLine(it.raw)
			continue
		}
		var job spool.Job
		if err := json.Unmarshal(it.raw, &job); err != nil {
			return err
		}
		if total == 0 {
			a.out.printf("%10s   %-9s  %-11s  %-16s  %5s  %5s  %s\n", "ID", "STATE", "LANE", "CHAT", "AGE", "TRY", "METHOD")
			oldest = job.CreatedAt
		}
		total++
		states[job.State]++
		a.printJob(job, now)
	}
	switch {
	case a.json:
	case total == 0:
		a.out.printf("%s\n", empty)
	default:
		a.out.printf("-- %s, oldest %s: %s\n", plural(total, "job"), span(now.Sub(oldest)), present(states))
	}
	return nil
}

// printJob prints one job of a list, and why it isn't over under it.
func (a *app) printJob(job spool.Job, now time.Time) {
	a.out.printf("%10d %s  %-11s  %-16s  %5s  %5s  %s\n", job.ID, a.state(job.State), job.Lane,
		short(plainJSON(job.ChatID), 16), span(now.Sub(job.CreatedAt)),
		fmt.Sprintf("%d/%d", job.Attempts, job.MaxAttempts), short(job.Method, 32))
	switch {
	case job.LastError != nil:
		a.out.printf("%12s (%s)\n", "", reason(job.LastError))
	case job.State == spool.Pending && job.NotBefore != nil && job.NotBefore.After(now):
		a.out.printf("%12s (not before %s)\n", "", when(*job.NotBefore))
	}
}

// state is a job's mark and state, nine wide.
func (a *app) state(s spool.State) string {
	text := fmt.Sprintf("%s %-9s", stateMark(s), s)
	if code := stateColour(s); code != "" {
		return a.colour(code, text)
	}
	return text
}

func stateMark(s spool.State) string {
	switch s {
	case spool.Running:
		return "*"
	case spool.Held:
		return "!"
	case spool.Uncertain:
		return "?"
	case spool.Dead:
		return "x"
	case spool.Pending, spool.Done, spool.Cancelled, spool.Expired:
	}
	return " "
}

// present lists the states that occur.
func present[S ~string](n map[S]int64) string {
	var parts []string
	for state, count := range n {
		parts = append(parts, itoa(count)+" "+string(state))
	}
	slices.Sort(parts)
	return strings.Join(parts, ", ")
}

// plainJSON is a JSON string without its quotes, anything else as it is, "-"
// for nothing.
func plainJSON(raw json.RawMessage) string {
	var s string
	switch {
	case len(raw) == 0 || string(raw) == "null":
		return "-"
	case json.Unmarshal(raw, &s) == nil:
		return s
	}
	return string(raw)
}

func (a *app) queueShow() *cobra.Command {
	return a.jsonFlag(&cobra.Command{
		Use: "show ID...", Short: "Show all that is known of a job", Args: cobra.MinimumNArgs(1),
		Example: "  tgspool queue show 42",
		RunE: func(c *cobra.Command, args []string) error {
			return a.each(args, func(id int64) error {
				raw, err := a.fetch(c.Context(), "/v1/jobs/"+itoa(id))
				if err == nil {
					a.printRecord(raw)
				}
				return err
			})
		},
	})
}

// printRecord prints every member of a record under its name in JSON.
func (a *app) printRecord(raw json.RawMessage) {
	if a.json {
		a.out.jsonLine(raw)
		return
	}
	dec := json.NewDecoder(bytes.NewReader(raw))
	_, _ = dec.Token() // the daemon's own JSON: an object
	for dec.More() {
		name, _ := dec.Token()
		var value json.RawMessage
		if dec.Decode(&value) != nil {
			break
		}
		var pretty bytes.Buffer
		if len(value) > 0 && (value[0] == '{' || value[0] == '[') && json.Indent(&pretty, value, "                  ", "  ") == nil {
			value = pretty.Bytes()
		}
		a.out.printf("%-17s %s\n", name, safeLines(plainJSON(value)))
	}
}

// safeLines escapes a text but for its line breaks, which indentation made.
func safeLines(s string) string {
	lines := strings.Split(s, "\n")
	for i, line := range lines {
		lines[i] = safe(line)
	}
	return strings.Join(lines, "\n")
}

func (a *app) queueWhy() *cobra.Command {
	return a.jsonFlag(&cobra.Command{
		Use: "why ID...", Short: "Show what a job waits for: the gates that are shut, and when they open", Args: cobra.MinimumNArgs(1),
		Example: "  tgspool queue why 42",
		RunE: func(c *cobra.Command, args []string) error {
			return a.each(args, func(id int64) error {
				raw, err := a.fetch(c.Context(), "/v1/jobs/"+itoa(id)+"/why")
				if err != nil {
					return err
				}
				if a.json {
					a.out.jsonLine(raw)
					return nil
				}
				var why spool.Why
				if err := json.Unmarshal(raw, &why); err != nil {
					return err
				}
				a.printWhy(why)
				return nil
			})
		},
	})
}

func (a *app) printWhy(why spool.Why) {
	job := why.Job
	a.out.printf("job %d %s: %s to %s\n", job.ID, job.State, short(job.Method, 64), short(plainJSON(job.ChatID), 64))
	if job.LastError != nil {
		a.out.printf("  last error  %s, at %s\n", reason(job.LastError), when(job.LastError.At))
	}
	if job.Evidence != nil {
		a.out.printf("  evidence    the request got as far as %q, %d bytes written, at %s\n",
			safe(job.Evidence.Phase), job.Evidence.BytesWritten, when(job.Evidence.At))
	}
	if job.State.Ended() {
		a.out.printf("it is over; nothing more happens by itself\n")
		return
	}
	shut := 0
	for _, g := range why.Gates {
		if g.Open {
			a.out.printf("  %-13s open%s\n", safe(g.Name), detail(g.Detail))
			continue
		}
		shut++
		state := "shut"
		if g.OpensAt != nil {
			state = "shut until " + when(*g.OpensAt)
		}
		a.out.printf("  %-13s %s%s\n", safe(g.Name), state, detail(g.Detail))
	}
	switch {
	case job.State == spool.Running:
		a.out.printf("it is in flight\n")
		return
	case shut == 0:
		a.out.printf("all gates are open: it goes out next\n")
	case shut < len(why.Gates):
		a.out.printf("all other gates are open\n")
	}
	if why.NextAttemptAt != nil {
		a.out.printf("next attempt at %s\n", when(*why.NextAttemptAt))
	}
}

func itoa(n int64) string { return strconv.FormatInt(n, 10) }

func joined[S ~string](all []S) string {
	names := make([]string, len(all))
	for i, s := range all {
		names[i] = string(s)
	}
	return strings.Join(names, ", ")
}
