package manage

import (
	"net/http"
	"time"

	"github.com/tgspool/tgspool/internal/spool"
)

// ShapeBounds are the ages in minutes between which jobs are counted.
var ShapeBounds = []int64{5, 10, 20, 40, 80, 160, 320, 640, 1280}

// Shape is the answer of GET /v1/bots/{bot}/jobs/shape.
type Shape struct {
	Minutes []int64          `json:"minutes"` // see ShapeBounds
	Items   []spool.ShapeRow `json:"items"`   // the fullest chats first
	Chats   int              `json:"chats"`   // how many there are in all
	Total   spool.ShapeRow   `json:"total"`
}

// shapeJobs counts what waits by chat and age.
func (a *api) shapeJobs(r *http.Request) (int, any, error) {
	bot, err := a.bot(r)
	if err != nil {
		return 0, nil, err
	}
	q, err := readQuery(r, "limit")
	if err != nil {
		return 0, nil, err
	}
	limit, _, err := q.page()
	if err != nil {
		return 0, nil, err
	}
	bounds := make([]time.Duration, len(ShapeBounds))
	for i, m := range ShapeBounds {
		bounds[i] = time.Duration(m) * time.Minute
	}
	rows, err := bot.Shape(r.Context(), bounds)
	if err != nil {
		return 0, nil, err
	}
	out := Shape{Minutes: ShapeBounds, Chats: len(rows), Items: rows[:min(limit, len(rows))], Total: spool.ShapeRow{Ages: make([]int64, len(bounds)+1)}}
	for _, row := range rows {
		out.Total.Total += row.Total
		out.Total.Later += row.Later
		for i, n := range row.Ages {
			out.Total.Ages[i] += n
		}
	}
	return http.StatusOK, out, nil
}
