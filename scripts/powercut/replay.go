package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"

	"github.com/tgspool/tgspool/internal/spool"
)

// sector is the least that a card writes as a whole, in bytes.
const sector = 512

// replay cuts the power at random moments of the trace and looks at what is left.
func replay(ctx context.Context, trace string, cuts int, seed uint64, out io.Writer) error {
	events, err := readTrace(trace)
	if err != nil {
		return err
	}
	first := slices.IndexFunc(events, func(e event) bool { return e.kind == "confirmed" })
	if first < 0 {
		return errors.New("the trace confirms nothing")
	}
	dir, err := os.MkdirTemp("", "powercut")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	random := rand.New(rand.NewPCG(seed, seed+1))
	at := make([]int, cuts)
	for i := range at {
		at[i] = first + random.IntN(len(events)-first)
	}
	slices.Sort(at)
	d := &card{random: random}
	done := 0
	var promised []event
	for i, cut := range at {
		for ; done < cut; done++ {
			if e := events[done]; e.kind == "confirmed" {
				promised = append(promised, e)
			} else {
				d.apply(e)
			}
		}
		if err := inspect(ctx, filepath.Join(dir, fmt.Sprint(i)), d.cut(), promised); err != nil {
			return fmt.Errorf("cut %d of %d, before event %d of %d: %w", i+1, cuts, cut, len(events), err)
		}
	}
	_, err = fmt.Fprintf(out, "%d power cuts in %d writes and syncs: nothing confirmed was lost, each job in one state\n", cuts, len(events))
	return err
}

// card is a file on a card: what is safe, and what was written since the last sync.
type card struct {
	random *rand.Rand
	safe   []byte
	open   []event
}

func (d *card) apply(e event) {
	d.open = append(d.open, e)
	if e.kind == "sync" {
		for _, w := range d.open {
			d.safe = put(d.safe, w, nil)
		}
		d.open = nil
	}
}

// put makes one change; keep says for each sector whether it has arrived.
func put(file []byte, e event, keep func() bool) []byte {
	switch e.kind {
	case "size":
		if e.offset > int64(len(file)) {
			file = append(file, make([]byte, e.offset-int64(len(file)))...)
		}
	case "write":
		if end := e.offset + int64(len(e.data)); end > int64(len(file)) {
			file = append(file, make([]byte, end-int64(len(file)))...)
		}
		for i := 0; i < len(e.data); i += sector {
			if keep == nil || keep() {
				copy(file[e.offset+int64(i):], e.data[i:min(i+sector, len(e.data))])
			}
		}
	}
	return file
}

// cut is what a power cut leaves: of the changes that weren't synced each may
// have arrived or not, or in parts, in any order.
func (d *card) cut() []byte {
	file := slices.Clone(d.safe)
	for _, e := range d.open {
		switch d.random.IntN(3) {
		case 0:
			file = put(file, e, nil)
		case 1:
			file = put(file, e, func() bool { return d.random.IntN(2) == 0 })
		}
	}
	return file
}

// inspect opens what is left as the next start would and compares it with what
// was confirmed.
func inspect(ctx context.Context, dir string, file []byte, promised []event) error {
	if err := os.Mkdir(dir, 0o700); err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	path := filepath.Join(dir, "spool.db")
	if err := os.WriteFile(path, file, 0o600); err != nil {
		return err
	}
	store, err := spool.Open(ctx, spool.Options{Path: path})
	if err != nil {
		return err
	}
	defer func() { _ = store.Close() }()
	b, err := store.Attach(ctx, bot())
	if err != nil {
		return err
	}
	problems, err := store.Check()
	if err != nil || len(problems) > 0 {
		return fmt.Errorf("the store doesn't fit together: %v %w", problems, err)
	}
	return compare(store, b, promised)
}

func compare(store *spool.Store, b *spool.Bot, promised []event) error {
	for _, e := range promised {
		if e.what == "update" {
			if _, err := b.UpdateByID(e.id); err != nil {
				return fmt.Errorf("update %d was confirmed: %w", e.id, err)
			}
			if b.Offset() <= e.id {
				return fmt.Errorf("update %d was confirmed, the offset is %d", e.id, b.Offset())
			}
			continue
		}
		j, err := store.Job(e.id)
		if err != nil {
			return fmt.Errorf("job %d was confirmed: %w", e.id, err)
		}
		switch {
		case e.what == "done" && j.State != spool.Done:
			return fmt.Errorf("job %d was done and is %s: it would be sent again", e.id, j.State)
		case e.what == "attempt" && j.State == spool.Pending:
			return fmt.Errorf("job %d had an attempt and is pending: it could be sent twice unsaid", e.id)
		}
	}
	return nil
}
