package cli

import (
	"encoding/json"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/tgspool/tgspool/internal/spool"
)

func (a *app) chatCommand() *cobra.Command {
	c := &cobra.Command{
		Use: "chat", Short: "Look at the chats that a bot has met",
		Long: "Look at the chats that a bot has met. A chat in which the bot was blocked is inactive: jobs\n" +
			"for it are refused until it shows up again or is activated.",
	}
	c.AddCommand(a.chatList(), a.chatChange("activate", "Let jobs go to a chat again"), a.chatChange("deactivate", "Refuse further jobs to a chat"))
	return c
}

func (a *app) chatList() *cobra.Command {
	return a.botFlag(a.jsonFlag(&cobra.Command{
		Use: "list", Aliases: []string{"ls"}, Short: "List the chats", Args: cobra.NoArgs,
		Example: "  tgspool chat list\n  tgspool chat list --json | jq 'select(.active | not)'",
		RunE: func(c *cobra.Command, _ []string) error {
			s, err := a.connect(c.Context())
			if err != nil {
				return err
			}
			defer s.Close()
			total := 0
			for it := range s.list(c.Context(), s.path("chats"), nil, 0) {
				if it.err != nil {
					return it.err
				}
				if a.json {
					a.out.jsonLine(it.raw)
					continue
				}
				var chat spool.Chat
				if err := json.Unmarshal(it.raw, &chat); err != nil {
					return err
				}
				if total++; total == 1 {
					a.out.printf("%16s  %-10s  %-8s  %8s  %s\n", "CHAT", "TYPE", "STATE", "SEEN", "ALSO")
				}
				a.printChat(chat)
			}
			switch {
			case a.json:
			case total == 0:
				a.out.printf("no chat is known yet\n")
			default:
				a.out.printf("-- %s\n", plural(total, "chat"))
			}
			return nil
		},
	}))
}

func (a *app) printChat(chat spool.Chat) {
	id, kind, state, seen := "-", "-", "active", "-"
	if chat.ChatID != nil {
		id = itoa(*chat.ChatID)
	}
	if chat.Type != nil {
		kind = *chat.Type
	}
	if !chat.Active {
		state = "inactive"
	}
	if chat.LastSeenAt != nil {
		seen = span(time.Since(*chat.LastSeenAt))
	}
	a.out.printf("%16s  %-10s  %-8s  %8s  %s\n", id, short(kind, 10), state, seen, short(strings.Join(chat.Aliases, " "), 80))
	if chat.InactiveReason != nil {
		a.out.printf("%16s  (%s)\n", "", short(*chat.InactiveReason, 200))
	}
	if t := chat.CooldownUntil; t != nil && t.After(time.Now()) {
		a.out.printf("%16s  (cooldown until %s)\n", "", when(*t))
	}
}

// chatChange is activate and deactivate.
func (a *app) chatChange(name, what string) *cobra.Command {
	var why string
	c := &cobra.Command{
		Use: name + " CHAT", Short: what, Args: cobra.ExactArgs(1),
		Example: "  tgspool chat " + name + " -1001234567890\n  tgspool chat " + name + " family",
		RunE: func(c *cobra.Command, args []string) error {
			s, err := a.connect(c.Context())
			if err != nil {
				return err
			}
			defer s.Close()
			var body []byte
			if why != "" {
				if body, err = json.Marshal(map[string]string{"reason": why}); err != nil {
					return err
				}
			}
			var raw json.RawMessage
			if err := s.post(c.Context(), s.path("chats", args[0], name), body, &raw); err != nil {
				return err
			}
			if a.json {
				a.out.jsonLine(raw)
				return nil
			}
			a.out.printf("chat %s %sd\n", safe(args[0]), name)
			return nil
		},
	}
	if name == "deactivate" {
		c.Flags().StringVar(&why, "reason", "", "why, in `words` that whoever sends there is told")
	}
	return a.botFlag(a.jsonFlag(c))
}
