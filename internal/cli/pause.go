package cli

import (
	"encoding/json"
	"slices"

	"github.com/spf13/cobra"

	"github.com/tgspool/tgspool/internal/spool"
)

func (a *app) pauseCommand() *cobra.Command {
	var span string
	c := &cobra.Command{
		Use: "pause [intake|handlers|sender]", Short: "Stop a part of a bot, or all of it, for a while", Args: cobra.MaximumNArgs(1),
		Long: "Stop a part of a bot, or all of it: intake takes no updates in (Telegram keeps them for a day),\n" +
			"handlers get none, the sender sends nothing (what is queued stays). It holds over restarts, until\n" +
			"tgspool resume or until the time of --for is over. What is under way ends as usual.",
		Example: "  tgspool pause sender --for 8h\n  tgspool pause --bot home",
		RunE: func(c *cobra.Command, args []string) error {
			body := map[string]string{}
			if c.Flags().Changed("for") {
				body["for"] = span
			}
			return a.changePause(c, "pause", args, body)
		},
	}
	c.Flags().StringVar(&span, "for", "", "how long, a `duration` like 30m; without it until tgspool resume")
	c.ValidArgs = partNames()
	return a.botFlag(a.jsonFlag(c))
}

func (a *app) resumeCommand() *cobra.Command {
	c := &cobra.Command{
		Use: "resume [intake|handlers|sender]", Short: "Let a paused part of a bot go on, or all of it", Args: cobra.MaximumNArgs(1),
		Long: "Let a paused part of a bot go on, or all of it. Where Telegram has refused the token it is asked\n" +
			"again, too.",
		Example: "  tgspool resume\n  tgspool resume sender",
		RunE: func(c *cobra.Command, args []string) error {
			return a.changePause(c, "resume", args, map[string]string{})
		},
	}
	c.ValidArgs = partNames()
	return a.botFlag(a.jsonFlag(c))
}

func partNames() (names []string) {
	for _, p := range spool.Parts() {
		names = append(names, string(p))
	}
	return names
}

// changePause pauses or resumes, and says what stands still now.
func (a *app) changePause(c *cobra.Command, verb string, args []string, body map[string]string) error {
	if len(args) > 0 {
		if !slices.Contains(partNames(), args[0]) {
			return usagef("%q is no part of a bot; known: %s", short(args[0], 40), joined(spool.Parts()))
		}
		body["part"] = args[0]
	}
	raw, err := json.Marshal(body)
	if err != nil {
		return err
	}
	s, err := a.connect(c.Context())
	if err != nil {
		return err
	}
	defer s.Close()
	var answer json.RawMessage
	if err := s.post(c.Context(), s.path(verb), raw, &answer); err != nil {
		return err
	}
	if a.json {
		a.out.jsonLine(answer)
		return nil
	}
	var now struct {
		Paused []spool.Pause `json:"paused"`
	}
	if err := json.Unmarshal(answer, &now); err != nil {
		return err
	}
	if len(now.Paused) == 0 {
		a.out.printf("%s: nothing is paused\n", safe(s.bot))
	}
	for _, p := range now.Paused {
		a.out.printf("%s: %s paused %s\n", safe(s.bot), p.Part, untilText(p))
	}
	return nil
}

func untilText(p spool.Pause) string {
	if p.Until == nil {
		return "until tgspool resume"
	}
	return "until " + when(*p.Until)
}
