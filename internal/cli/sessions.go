package cli

import (
	"encoding/json"
	"net/http"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/tgspool/tgspool/internal/localapi"
	"github.com/tgspool/tgspool/internal/spool"
)

func (a *app) sessionCommand() *cobra.Command {
	c := &cobra.Command{
		Use: "session", Short: "Look at what handlers keep of conversations, and change it",
		Long: "Look at what handlers keep of conversations, and change it. A session is a JSON object of up to\n" +
			"64 KiB with a version. Its KEY is a chat, or a chat and a user as CHAT:USER, each an id or a name\n" +
			"of the settings. A handler that is at work while its session is changed runs again.",
	}
	c.AddCommand(a.sessionList(), a.sessionGet(), a.sessionSet(), a.sessionDelete())
	return c
}

func (a *app) sessionList() *cobra.Command {
	limit := 0
	c := &cobra.Command{
		Use: "list", Aliases: []string{"ls"}, Short: "List the sessions", Args: cobra.NoArgs,
		Example: "  tgspool session list\n  tgspool session list --json | jq 'select(.data.step == 2) | .key'",
		RunE: func(c *cobra.Command, _ []string) error {
			s, err := a.connect(c.Context())
			if err != nil {
				return err
			}
			defer s.Close()
			total := 0
			for it := range s.list(c.Context(), s.path("sessions"), nil, limit) {
				if it.err != nil {
					return it.err
				}
				if a.json {
					a.out.jsonLine(it.raw)
					continue
				}
				var one spool.Session
				if err := json.Unmarshal(it.raw, &one); err != nil {
					return err
				}
				if total++; total == 1 {
					a.out.printf("%24s  %8s  %8s  %8s  %s\n", "SESSION", "VERSION", "CHANGED", "SIZE", "DATA")
				}
				a.out.printf("%24s  %8d  %8s  %8s  %s\n", one.Key, one.Version, span(time.Since(one.UpdatedAt)), size(int64(len(one.Data))), short(string(one.Data), 60))
			}
			switch {
			case a.json:
			case total == 0:
				a.out.printf("no sessions\n")
			default:
				a.out.printf("-- %s\n", plural(total, "session"))
			}
			return nil
		},
	}
	c.Flags().IntVar(&limit, "limit", 0, "at most so many")
	return a.botFlag(a.jsonFlag(c))
}

func (a *app) sessionGet() *cobra.Command {
	return a.botFlag(a.jsonFlag(&cobra.Command{
		Use: "get KEY", Short: "Print a session", Args: cobra.ExactArgs(1),
		Long:    "Print the data of a session as one line of JSON; with --json the version and the time, too.",
		Example: "  tgspool session get family\n  tgspool session get -1001234567890:12345 --json",
		RunE: func(c *cobra.Command, args []string) error {
			s, err := a.connect(c.Context())
			if err != nil {
				return err
			}
			defer s.Close()
			var raw json.RawMessage
			if err := s.get(c.Context(), s.path("sessions", args[0]), &raw); err != nil {
				return err
			}
			if a.json {
				a.out.jsonLine(raw)
				return nil
			}
			var one spool.Session
			if err := json.Unmarshal(raw, &one); err != nil {
				return err
			}
			a.out.jsonLine(one.Data)
			return nil
		},
	}))
}

func (a *app) sessionSet() *cobra.Command {
	var from *int64
	c := &cobra.Command{
		Use: "set KEY JSON|-", Short: "Store a session", Args: cobra.ExactArgs(2),
		Long: "Store a session, in the place of what is there. With --version only if that has the version; 0\n" +
			"is for a session that isn't there yet.",
		Example: "  tgspool session set family '{\"step\":1}'\n  jq -n '{step:2}' | tgspool session set family - --version 1",
		RunE: func(c *cobra.Command, args []string) error {
			data, err := a.readParams(args[1:])
			if err != nil {
				return err
			}
			var raw json.RawMessage
			if err := a.changeSession(c, http.MethodPut, args[0], data, *from, &raw); err != nil {
				return err
			}
			if a.json {
				a.out.jsonLine(raw)
				return nil
			}
			var one spool.Session
			if err := json.Unmarshal(raw, &one); err != nil {
				return err
			}
			a.out.printf("session %s has version %d\n", one.Key, one.Version)
			return nil
		},
	}
	from = versionFlag(c)
	return a.botFlag(a.jsonFlag(c))
}

func (a *app) sessionDelete() *cobra.Command {
	var from *int64
	c := &cobra.Command{
		Use: "delete KEY", Aliases: []string{"rm"}, Short: "End a session", Args: cobra.ExactArgs(1),
		Example: "  tgspool session delete family\n  tgspool session delete -1001234567890:12345 --version 7",
		RunE: func(c *cobra.Command, args []string) error {
			if err := a.changeSession(c, http.MethodDelete, args[0], nil, *from, nil); err != nil {
				return err
			}
			if !a.json {
				a.out.printf("session %s deleted\n", safe(args[0]))
			}
			return nil
		},
	}
	from = versionFlag(c)
	return a.botFlag(a.jsonFlag(c))
}

func versionFlag(c *cobra.Command) *int64 {
	return c.Flags().Int64("version", spool.AnyVersion, "only if the session has this `version`")
}

// changeSession asks for a change, on the condition that --version says.
func (a *app) changeSession(c *cobra.Command, method, key string, data []byte, from int64, out any) error {
	header := http.Header{}
	switch {
	case !c.Flags().Changed("version"):
	case from < 0 || from == 0 && method == http.MethodDelete:
		return usagef("--version %d is no version of a session", from)
	case from == 0:
		header.Set("If-None-Match", "*")
	default:
		header.Set("If-Match", strconv.Quote(strconv.FormatInt(from, 10)))
	}
	s, err := a.connect(c.Context())
	if err != nil {
		return err
	}
	defer s.Close()
	return s.Do(c.Context(), localapi.Request{Method: method, Path: s.path("sessions", key), Body: data, Header: header}, out)
}
