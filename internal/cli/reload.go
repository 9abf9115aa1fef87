package cli

import (
	"encoding/json"
	"errors"
	"net/http"

	"github.com/spf13/cobra"

	"github.com/tgspool/tgspool/internal/localapi"
	"github.com/tgspool/tgspool/internal/manage"
)

func (a *app) reloadCommand() *cobra.Command {
	return a.jsonFlag(&cobra.Command{
		Use: "reload", Short: "Make the daemon read its settings again", Args: cobra.NoArgs,
		Long: `Make the daemon read its settings again, and wait until they are in use.

Settings with a mistake are refused as a whole: the running ones stay, and the
mistakes are printed. What counts only after a restart is named.`,
		Example: "  tgspool config check && tgspool reload",
		RunE: func(c *cobra.Command, _ []string) error {
			client, err := a.dial()
			if err != nil {
				return err
			}
			defer client.Close()
			var raw json.RawMessage
			err = client.Do(c.Context(), localapi.Request{Method: http.MethodPost, Path: "/v1/reload"}, &raw)
			if p, ok := errors.AsType[*manage.Problem](err); ok && p.Status == http.StatusUnprocessableEntity {
				return &exitError{code: exitConfig, msg: p.Detail, hint: "the running settings stay in use"}
			}
			if err != nil {
				return err
			}
			if a.json {
				a.out.jsonLine(raw)
				return nil
			}
			var done manage.Reload
			if err := json.Unmarshal(raw, &done); err != nil {
				return err
			}
			a.printReload(done)
			return nil
		},
	})
}

func (a *app) printReload(done manage.Reload) {
	if len(done.Applied)+len(done.Restart) == 0 {
		a.out.printf("nothing has changed\n")
	}
	for _, k := range done.Applied {
		a.out.printf("in use         %s\n", safe(k))
	}
	for _, k := range done.Restart {
		a.out.printf("after restart  %s\n", safe(k))
	}
}
