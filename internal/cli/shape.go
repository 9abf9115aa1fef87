package cli

import (
	"encoding/json"

	"github.com/spf13/cobra"

	"github.com/tgspool/tgspool/internal/manage"
	"github.com/tgspool/tgspool/internal/spool"
)

func (a *app) queueShape() *cobra.Command {
	var limit int
	c := &cobra.Command{
		Use: "shape", Short: "Show for which chats jobs wait, and how long they have been due", Args: cobra.NoArgs,
		Long: "Show for which chats jobs wait, and how long they have been due: chats down, the fullest first,\n" +
			"minutes across. One full row is one chat that can't be written to; a full column is an outage,\n" +
			"and says when it began. LATER are jobs for a time that is still to come.",
		Example: "  tgspool queue shape\n  tgspool queue shape --limit 5 --bot home",
		RunE: func(c *cobra.Command, _ []string) error {
			if limit < 1 || limit > 1000 {
				return usagef("--limit must be from 1 to 1000")
			}
			s, err := a.connect(c.Context())
			if err != nil {
				return err
			}
			defer s.Close()
			var raw json.RawMessage
			if err := s.get(c.Context(), s.path("jobs", "shape")+"?limit="+itoa(int64(limit)), &raw); err != nil {
				return err
			}
			var shape manage.Shape
			if err := json.Unmarshal(raw, &shape); err != nil {
				return err
			}
			if a.json {
				return a.shapeLines(shape)
			}
			a.printShape(shape)
			return nil
		},
	}
	c.Flags().IntVar(&limit, "limit", 20, "at most this `number` of chats")
	return a.botFlag(a.jsonFlag(c))
}

// shapeLines prints one object a chat, the total first.
func (a *app) shapeLines(shape manage.Shape) error {
	shape.Total.Chat = "TOTAL"
	for _, row := range append([]spool.ShapeRow{shape.Total}, shape.Items...) {
		raw, err := json.Marshal(row)
		if err != nil {
			return err
		}
		a.out.jsonLine(raw)
	}
	return nil
}

func (a *app) printShape(shape manage.Shape) {
	if shape.Chats == 0 {
		a.out.printf("the queue is empty\n")
		return
	}
	a.out.printf("%20s %7s", "", "TOTAL")
	for _, m := range shape.Minutes {
		a.out.printf(" %6d", m)
	}
	a.out.printf(" %5d+ %6s\n", shape.Minutes[len(shape.Minutes)-1], "LATER")
	line := func(name string, row spool.ShapeRow) {
		a.out.printf("%20s %7d", name, row.Total)
		for _, n := range append(row.Ages, row.Later) {
			a.out.printf(" %6d", n)
		}
		a.out.printf("\n")
	}
	line("TOTAL", shape.Total)
	for _, row := range shape.Items {
		name := row.Chat
		if name == "" {
			name = "-"
		}
		line(short(name, 20), row)
	}
	if rest := shape.Chats - len(shape.Items); rest > 0 {
		a.out.printf("-- %s more\n", plural(rest, "chat"))
	}
}
