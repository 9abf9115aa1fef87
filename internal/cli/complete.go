package cli

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/tgspool/tgspool/internal/localapi"
	"github.com/tgspool/tgspool/internal/manage"
	"github.com/tgspool/tgspool/internal/spool"
)

// completeWithin bounds how long a shell waits for what can stand here.
const completeWithin = 2 * time.Second

// complete gives flags and arguments of all commands their completion: bots,
// states, lanes, ids. What needs the daemon is left out when it doesn't answer.
func (a *app) complete(c *cobra.Command) {
	for name, choices := range map[string]func(context.Context, *cobra.Command) []string{
		"bot":   func(ctx context.Context, _ *cobra.Command) []string { return a.botNames(ctx) },
		"lane":  func(context.Context, *cobra.Command) []string { return words(spool.Lanes()) },
		"state": func(_ context.Context, c *cobra.Command) []string { return statesOf(c) },
		"format": func(context.Context, *cobra.Command) []string {
			return []string{"nagios", "text", "json", "prometheus"}
		},
	} {
		if c.Flags().Lookup(name) == nil {
			continue
		}
		// It fails only for a flag that isn't there, or that has one already.
		_ = c.RegisterFlagCompletionFunc(name, func(c *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
			ctx, cancel := context.WithTimeout(context.WithoutCancel(c.Context()), completeWithin)
			defer cancel()
			return choices(ctx, c), cobra.ShellCompDirectiveNoFileComp
		})
	}
	switch {
	case strings.HasPrefix(c.Use, c.Name()+" ID"), strings.HasPrefix(c.Use, c.Name()+" SEQ"):
		c.ValidArgsFunction = a.completeIDs
	case c.ValidArgsFunction == nil && c.ValidArgs == nil && c.Use == c.Name():
		c.ValidArgsFunction = cobra.NoFileCompletions
	}
	for _, sub := range c.Commands() {
		a.complete(sub)
	}
}

func words[S ~string](all []S) []string {
	names := make([]string, len(all))
	for i, s := range all {
		names[i] = string(s)
	}
	return names
}

// statesOf are those of updates below inbox, of jobs elsewhere.
func statesOf(c *cobra.Command) []string {
	if c.HasParent() && c.Parent().Name() == "inbox" {
		return words(spool.UpdateStates())
	}
	return words(spool.States())
}

func (a *app) botNames(ctx context.Context) []string {
	client, err := a.dial()
	if err != nil {
		return nil
	}
	defer client.Close()
	var status manage.Status
	if client.Do(ctx, localapi.Request{Method: http.MethodGet, Path: "/v1/status"}, &status) != nil {
		return nil
	}
	return status.Bots.Names
}

// idsFrom are the states whose ids a command is mostly given.
var idsFrom = map[string][]string{
	"cancel": {"pending", "held", "uncertain"}, "hold": {"pending"}, "release": {"held"}, "retry": {"dead", "cancelled", "expired"},
	"resolve": {"uncertain"}, "replay": {"dead"}, "drop": {"open", "dead"},
}

// completeIDs offers ids of jobs or updates with what they are.
func (a *app) completeIDs(c *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(c.Context()), completeWithin)
	defer cancel()
	s, err := a.connect(ctx)
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	defer s.Close()
	what, states := "jobs", idsFrom[c.Name()]
	if c.Parent().Name() == "inbox" {
		what = "updates"
	}
	if states == nil {
		states = []string{""}
	}
	var found []string
	for _, state := range states {
		query := url.Values{}
		if state != "" {
			query.Set("state", state)
		}
		for it := range s.list(ctx, s.path(what), query, 50) {
			var r struct {
				ID, Seq             int64
				State, Method, Kind string
			}
			if it.err != nil || json.Unmarshal(it.raw, &r) != nil {
				break
			}
			found = append(found, itoa(max(r.ID, r.Seq))+"\t"+short(r.State+" "+r.Method+r.Kind, 60))
		}
	}
	return found, cobra.ShellCompDirectiveNoFileComp
}
