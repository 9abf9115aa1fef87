package spool

import (
	"cmp"
	"context"
	"slices"
	"time"
)

// ShapeRow is how many jobs wait for one chat, by how long they have been due.
type ShapeRow struct {
	Chat  string  `json:"chat"`  // id or @name; empty: calls that go to no chat
	Total int64   `json:"total"` // all that are pending or running
	Ages  []int64 `json:"ages"`  // one a bound, and those older than the last
	Later int64   `json:"later"` // those whose time is still to come
}

// shapeRec is what of a job's record the shape is made of.
type shapeRec struct {
	ChatNo    uint32 `cbor:"3,keyasint"`
	NotBefore int64  `cbor:"15,keyasint,omitempty"`
	Created   int64  `cbor:"24,keyasint"`
}

// Shape counts the jobs that wait by chat and age, the fullest chats first. It
// looks at all of them, a bounded number at a time, so that the store isn't held
// up; the queue may change meanwhile.
func (b *Bot) Shape(ctx context.Context, bounds []time.Duration) ([]ShapeRow, error) {
	rows := map[uint32]*ShapeRow{}
	for after, more := int64(0), true; more; {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		err := b.s.view(func(t *txn) error {
			after, more = t.shape(b, after, bounds, rows)
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	list := make([]ShapeRow, 0, len(rows))
	for _, r := range rows {
		list = append(list, *r)
	}
	slices.SortFunc(list, func(x, y ShapeRow) int { return cmp.Or(cmp.Compare(y.Total, x.Total), cmp.Compare(x.Chat, y.Chat)) })
	return list, nil
}

func (t *txn) shape(b *Bot, after int64, bounds []time.Duration, rows map[uint32]*ShapeRow) (last int64, more bool) {
	looked := 0
	t.each(bLive, botKey(b.num), liveKey(b.num, after+1), func(k, v []byte) bool {
		if looked++; looked > maxLooked {
			more = true
			return false
		}
		after = int64(u64at(k, 2))
		r, err := decode[shapeRec](k, v)
		if err != nil {
			return true // whoever claims it sets it aside
		}
		no := t.follow(b, r.ChatNo)
		row := rows[no]
		if row == nil {
			row = &ShapeRow{Ages: make([]int64, len(bounds)+1)}
			if c := t.chat(b, no); c != nil && isChatName(c.Name) {
				row.Chat = c.Name
			}
			rows[no] = row
		}
		row.Total++
		due := max(r.Created, r.NotBefore)
		if due > t.now {
			row.Later++
			return true
		}
		i := slices.IndexFunc(bounds, func(d time.Duration) bool { return t.now-due < int64(d) })
		if i < 0 {
			i = len(bounds)
		}
		row.Ages[i]++
		return true
	})
	return after, more
}
