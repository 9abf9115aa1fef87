package cli

import (
	"bytes"
	"encoding/json"

	"github.com/spf13/cobra"

	"github.com/tgspool/tgspool/internal/localapi"
)

func (a *app) callCommand() *cobra.Command {
	f := &jobFlags{}
	c := &cobra.Command{
		Use:   "call [flags] METHOD [JSON|-]",
		Short: "Queue any method of the Bot API",
		Long: "Queue a call of any method of the Bot API. The parameters are one JSON object, given as an\n" +
			"argument or, with -, on stdin; they go to Telegram as they are.",
		Example: "  tgspool call sendDice --chat family\n" +
			"  tgspool call sendMessage '{\"chat_id\":\"family\",\"text\":\"hi\"}' --wait\n" +
			"  jq -n '{chat_id:-1001234567890,message_id:7}' | tgspool call pinChatMessage -",
		Args: cobra.RangeArgs(1, 2),
		RunE: func(c *cobra.Command, args []string) error {
			wait, err := f.waitFor(args[1:])
			if err != nil {
				return err
			}
			params, err := a.readParams(args[1:])
			if err != nil {
				return err
			}
			var chat *string
			if c.Flags().Changed("chat") {
				chat = &f.chat
			}
			body, err := f.body(args[0], params, chat)
			if err != nil {
				return err
			}
			return a.enqueue(c.Context(), localapi.Request{Body: body}, wait)
		},
	}
	f.add(c, "the `chat` for chat_id: id, @name or name of the settings")
	return a.botFlag(a.jsonFlag(c))
}

// readParams reads the parameters of a call; nil when there are none.
func (a *app) readParams(args []string) (json.RawMessage, error) {
	if len(args) == 0 {
		return nil, nil
	}
	data := []byte(args[0])
	if args[0] == "-" {
		var err error
		if data, err = a.readStdin(); err != nil {
			return nil, err
		}
	}
	data = bytes.TrimSpace(data)
	if !json.Valid(data) || data[0] != '{' {
		return nil, dataf("the parameters are not a JSON object")
	}
	return data, nil
}
