package cli

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tgspool/tgspool/internal/localapi"
	"github.com/tgspool/tgspool/internal/manage"
	"github.com/tgspool/tgspool/internal/spool"
)

// verb is a decision about jobs, by ids or by filter.
type verb struct {
	name, short, long string
}

var verbs = []verb{
	{"cancel", "Call jobs off that are pending, held or uncertain", "A running job can't be called off any more."},
	{"hold", "Keep pending jobs back until they are released", "While a job is held it does not expire."},
	{"release", "Let held jobs go on", "They go out before younger ones, through all gates."},
	{"retry", "Bring dead, cancelled or expired jobs back", "They go out before younger ones, through all gates. A job that may have arrived the first time may arrive twice."},
}

// allWord selects everything. It must be in capitals, so that nobody types it by
// accident.
const allWord = "ALL"

func (a *app) verbCommand(v verb) *cobra.Command {
	var f filterFlags
	var yes, dryRun bool
	c := &cobra.Command{
		Use: v.name + " ID...|-|ALL|FILTER", Short: v.short,
		Long: v.short + ".\n" + v.long + "\n\n" +
			"Jobs are named by their ids; with - the ids are read from stdin, one a line, alone or in the\n" +
			"lines of queue list --json. A filter, or ALL, selects many: their number is shown first, and\n" +
			"on a terminal you are asked.",
		Example: fmt.Sprintf("  tgspool queue %[1]s 42 43\n  tgspool queue %[1]s --chat family --older 1h\n"+
			"  tgspool queue list --json | jq 'select(.attempts > 3)' -c | tgspool queue %[1]s -\n  tgspool queue %[1]s ALL --yes", v.name),
		RunE: func(c *cobra.Command, args []string) error {
			query := f.query()
			switch bulk := len(query) > 0; {
			case bulk && len(args) > 0 && !slices.Equal(args, []string{allWord}):
				return usagef("give ids or a filter, not both")
			case !bulk && len(args) == 0:
				return withHint(usagef("which jobs?"), "give ids, a filter, or ALL")
			case bulk || args[0] == allWord:
				return a.decideMany(c.Context(), v.name, query, yes, dryRun)
			case dryRun:
				return usagef("--dry-run goes with a filter or ALL")
			}
			return a.decideEach(c.Context(), args, v.name, nil)
		},
	}
	f.add(c)
	c.Flags().BoolVarP(&yes, "yes", "y", false, "don't ask")
	c.Flags().BoolVar(&dryRun, "dry-run", false, "only count")
	return a.botFlag(a.jsonFlag(c))
}

// decideMany carries out a decision by filter, after showing how many it is
// about.
func (a *app) decideMany(ctx context.Context, name string, query url.Values, yes, dryRun bool) error {
	s, err := a.connect(ctx)
	if err != nil {
		return err
	}
	defer s.Close()
	if len(query) == 0 {
		query.Set("all", "true")
	}
	path := s.path("jobs", name) + "?" + query.Encode()
	var counted struct{ Matched int }
	if err := s.post(ctx, path+"&dry_run=true", nil, &counted); err != nil {
		return err
	}
	switch {
	case dryRun && !a.json:
		a.out.printf("%s to %s\n", plural(counted.Matched, "job"), name)
		return nil
	case counted.Matched == 0 && !a.json:
		a.out.printf("no job to %s\n", name)
		return nil
	case !dryRun && counted.Matched > 0:
		if err := a.confirm(fmt.Sprintf("%s %s?", name, plural(counted.Matched, "job")), yes); err != nil {
			return err
		}
	}
	if dryRun {
		path += "&dry_run=true"
	}
	var raw json.RawMessage
	if err := s.post(ctx, path, nil, &raw); err != nil {
		return err
	}
	if a.json {
		a.out.jsonLine(raw)
		return nil
	}
	var done struct{ Matched, Changed, Skipped int }
	if err := json.Unmarshal(raw, &done); err != nil {
		return err
	}
	a.out.printf("%s: %d of %s", name, done.Changed, plural(done.Matched, "job"))
	if done.Skipped > 0 {
		a.out.printf(", %d skipped because they had moved on", done.Skipped)
	}
	a.out.printf("\n")
	return nil
}

// confirm asks on a terminal; elsewhere --yes must have been given.
func (a *app) confirm(question string, yes bool) error {
	if yes {
		return nil
	}
	if !isTerminal(a.stdin) {
		return withHint(usagef("%s Nobody is here to be asked", question), "add --yes, or --dry-run to only count")
	}
	a.out.printf("%s [y/N] ", question)
	if err := a.out.flush(); err != nil {
		return err
	}
	answer, err := bufio.NewReader(a.stdin).ReadString('\n')
	if answer = strings.ToLower(strings.TrimSpace(answer)); err != nil || answer != "y" && answer != "yes" {
		return &exitError{code: exitUsage, msg: "nothing done"}
	}
	return nil
}

// decideEach carries out a decision about the jobs of the arguments, or of
// stdin, one after the other.
func (a *app) decideEach(ctx context.Context, args []string, name string, body []byte) error {
	client, err := a.dial()
	if err != nil {
		return err
	}
	defer client.Close()
	return a.each(args, func(id int64) error {
		var raw json.RawMessage
		err := client.Do(ctx, localapi.Request{
			Method: http.MethodPost, Path: "/v1/jobs/" + itoa(id) + "/" + name, Body: body, Origin: "cli",
		}, &raw)
		if err != nil {
			return err
		}
		if a.json {
			a.out.jsonLine(raw)
			return nil
		}
		var job spool.Job
		if err := json.Unmarshal(raw, &job); err != nil {
			return err
		}
		a.out.printf("job %d %s\n", job.ID, job.State)
		return nil
	})
}

func (a *app) resolveCommand() *cobra.Command {
	var sent, resend, drop bool
	var messageID int64
	c := &cobra.Command{
		Use: "resolve ID...|- --sent|--resend|--drop", Short: "Settle uncertain jobs: look into the chat, then say what is true",
		Long: "Settle uncertain jobs. Nobody but you can see whether the message is in the chat: with --sent\n" +
			"it is (the job is done), with --resend it isn't and goes out again, with --drop it doesn't matter.",
		Example: "  tgspool queue resolve 42 --sent --message-id 1234\n  tgspool queue list --json --state uncertain | tgspool queue resolve - --resend",
		Args:    cobra.MinimumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			if count(sent, resend, drop) != 1 {
				return usagef("give one of --sent, --resend and --drop")
			}
			if c.Flags().Changed("message-id") && (!sent || messageID < 1 || len(args) != 1 || args[0] == "-") {
				return usagef("--message-id goes with --sent and one job, and is above 0")
			}
			outcome := "drop"
			if sent {
				outcome = "sent"
			} else if resend {
				outcome = "resend"
			}
			how := map[string]any{"outcome": outcome}
			if messageID != 0 {
				how["message_id"] = messageID
			}
			body, err := json.Marshal(how)
			if err != nil {
				return err
			}
			return a.decideEach(c.Context(), args, "resolve", body)
		},
	}
	c.Flags().BoolVar(&sent, "sent", false, "it arrived")
	c.Flags().BoolVar(&resend, "resend", false, "it didn't arrive; send it again")
	c.Flags().BoolVar(&drop, "drop", false, "leave it")
	c.Flags().Int64Var(&messageID, "message-id", 0, "with --sent, the `id` of the message that it became")
	return a.jsonFlag(c)
}

// each does something for every id of the arguments, or of stdin for "-". What
// fails for one doesn't keep it from the others, but shows in the exit code.
func (a *app) each(args []string, do func(id int64) error) error {
	ids, err := a.ids(args)
	if err != nil {
		return err
	}
	failed := 0
	for _, id := range ids {
		err := do(id)
		if err == nil {
			continue
		}
		if _, refused := errors.AsType[*manage.Problem](err); !refused || len(ids) == 1 {
			return err
		}
		failed = a.report(err)
	}
	if failed != 0 {
		return silent(failed)
	}
	return nil
}

// ids reads ids from the arguments, or from stdin for "-".
func (a *app) ids(args []string) ([]int64, error) {
	var ids []int64
	if !slices.Equal(args, []string{"-"}) {
		for _, arg := range args {
			id, err := parseID(arg)
			if err != nil {
				return nil, err
			}
			ids = append(ids, id)
		}
		return ids, nil
	}
	data, err := a.readStdin()
	if err != nil {
		return nil, err
	}
	for line := range bytes.Lines(data) {
		if line = bytes.TrimSpace(line); len(line) == 0 {
			continue
		}
		id, err := lineID(line)
		if err != nil {
			return nil, err
		}
		ids = append(ids, id)
	}
	a.complain("hint", plural(len(ids), "id")+" on stdin")
	return ids, nil
}

// lineID reads an id that stands alone or in a JSON object.
func lineID(line []byte) (int64, error) {
	if line[0] != '{' {
		return parseID(string(line))
	}
	var record struct {
		ID  int64 `json:"id"`
		Seq int64 `json:"seq"`
	}
	if err := json.Unmarshal(line, &record); err != nil || record.ID < 1 && record.Seq < 1 {
		return 0, dataf("a line of stdin holds no id")
	}
	return max(record.ID, record.Seq), nil
}

func parseID(s string) (int64, error) {
	id, err := strconv.ParseInt(s, 10, 64)
	if err != nil || id < 1 {
		return 0, usagef("%q is no id", short(s, 40))
	}
	return id, nil
}

// fetch asks the daemon for one thing.
func (a *app) fetch(ctx context.Context, path string) (json.RawMessage, error) {
	client, err := a.dial()
	if err != nil {
		return nil, err
	}
	defer client.Close()
	var raw json.RawMessage
	err = client.Do(ctx, localapi.Request{Method: http.MethodGet, Path: path}, &raw)
	return raw, err
}
