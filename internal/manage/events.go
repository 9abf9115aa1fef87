package manage

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tgspool/tgspool/internal/spool"
)

const (
	maxListeners = 64 // clients of /v1/events at once
	// feedRoom and clientRoom are how many changes may wait for us and for a client.
	feedRoom   = 1024
	clientRoom = 256
	// botEvery is how often the bots are looked at while somebody listens.
	botEvery = time.Second
	// keepAlive is the longest silence, so that both ends notice when the other has
	// gone; eventWrite is how long a client may take to read what was written.
	keepAlive  = 15 * time.Second
	eventWrite = 30 * time.Second
)

// eventNames are the events of /v1/events, hello apart.
var eventNames = []string{"job", "update", "bot", "chat"}

// hello is the first event, and comes again when a client has missed something:
// what it knew may be wrong from here on.
type hello struct {
	Version string   `json:"version"`
	Missed  int64    `json:"missed"` // events left out before this one
	Bots    BotTable `json:"bots"`
}

// botEvent is a bot as status shows it.
type botEvent struct {
	Bot string `json:"bot"`
	BotStatus
}

// updateEvent is an update without its bytes, chatEvent a chat; of which bot.
type updateEvent struct {
	Bot string `json:"bot"`
	spool.Update
	// These stay in the inbox.
	Output omitted `json:"output,omitempty"`
	Raw    omitted `json:"update,omitempty"`
}

type chatEvent struct {
	Bot string `json:"bot"`
	spool.Chat
}

// jobEvent is a job without its parameters, files and result.
type jobEvent struct {
	spool.Job
	Params omitted `json:"params,omitempty"`
	Files  omitted `json:"files,omitempty"`
	Result omitted `json:"result,omitempty"`
}

// omitted hides a member of the record around it.
type omitted *struct{}

// frame is one event as it goes out, encoded once for all who hear it.
type frame struct {
	event, bot string
	data       []byte
}

// listener is one client.
type listener struct {
	bot    string   // "": all
	events []string // empty: all
	ch     chan frame
	missed atomic.Int64
}

// hub hands the spool's commits and the bots' changes to all clients. It works
// only while there are any.
type hub struct {
	a    *api
	mu   sync.Mutex // guards both below
	all  map[*listener]struct{}
	stop context.CancelFunc
}

// add lets a client in; false when there are too many.
func (h *hub) add(ctx context.Context, l *listener) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.all) >= maxListeners {
		return false
	}
	if len(h.all) == 0 {
		ctx, h.stop = context.WithCancel(context.WithoutCancel(ctx)) // it outlives this client
		// From before the client's hello: nothing falls between.
		go h.run(ctx, h.a.store.Feed(feedRoom))
	}
	h.all[l] = struct{}{}
	return true
}

func (h *hub) remove(l *listener) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.all, l)
	if len(h.all) == 0 {
		h.stop()
	}
}

// run ends with ctx, when the last client has gone.
func (h *hub) run(ctx context.Context, feed *spool.Feed) {
	defer feed.Close()
	tick := time.NewTicker(botEvery)
	defer tick.Stop()
	last := h.botFrames()
	for {
		select {
		case <-ctx.Done():
			return
		case c := <-feed.C():
			h.tell(changeFrame(c))
			if missed := feed.Missed(); missed > 0 {
				h.lost(missed)
			}
		case <-tick.C:
			now := h.botFrames()
			for name, f := range now {
				if !bytes.Equal(f.still, last[name].still) {
					h.tell(f.frame)
				}
			}
			last = now
		}
	}
}

// tell hands an event to all who want it; whoever can't take it misses it.
func (h *hub) tell(f frame) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for l := range h.all {
		if l.bot != "" && l.bot != f.bot || len(l.events) > 0 && !slices.Contains(l.events, f.event) {
			continue
		}
		select {
		case l.ch <- f:
		default:
			l.missed.Add(1)
		}
	}
}

func (h *hub) lost(n int64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for l := range h.all {
		l.missed.Add(n)
	}
}

// changeFrame encodes a change of the spool.
func changeFrame(c spool.Change) frame {
	switch {
	case c.Job != nil:
		return encoded("job", c.Bot, jobEvent{Job: *c.Job})
	case c.Update != nil:
		return encoded("update", c.Bot, updateEvent{Bot: c.Bot, Update: *c.Update})
	}
	return encoded("chat", c.Bot, chatEvent{Bot: c.Bot, Chat: *c.Chat})
}

// encoded makes the lines of one event. What it is made of always can be encoded.
func encoded(event, bot string, v any) frame {
	data, err := json.Marshal(v)
	if err != nil {
		data = []byte("null")
	}
	return frame{event, bot, slices.Concat([]byte("event: "+event+"\ndata: "), data, []byte("\n\n"))}
}

// botFrame is a bot's event, and what of it doesn't change by itself.
type botFrame struct {
	frame
	still []byte
}

func (h *hub) botFrames() map[string]botFrame {
	table, out := h.a.currentStatus().Bots, map[string]botFrame{}
	for _, name := range table.Names {
		b := table.ByName[name]
		f := botFrame{frame: encoded("bot", name, botEvent{name, b})}
		b.OldestPendingAgeS = 0
		f.still = encoded("bot", name, botEvent{name, b}).data
		out[name] = f
	}
	return out
}

// events is GET /v1/events.
func (a *api) events(w http.ResponseWriter, r *http.Request) {
	l, err := a.newListener(r)
	if err != nil {
		a.fail(w, r, err)
		return
	}
	if !a.hub.add(r.Context(), l) {
		a.fail(w, r, problemf(http.StatusServiceUnavailable, "%d clients listen already", maxListeners))
		return
	}
	defer a.hub.remove(l)
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("X-Accel-Buffering", "no") // a proxy in between must not collect them
	s := stream{w: w, control: http.NewResponseController(w)}
	silent := time.NewTicker(keepAlive)
	defer silent.Stop()
	err = s.write(a.hello(l))
	for err == nil {
		select {
		case <-r.Context().Done():
			return
		case f := <-l.ch:
			err = s.write(f.data, l.waiting()...)
		case <-silent.C:
			err = s.write([]byte(":\n\n"))
		}
		if err == nil && len(l.ch) == 0 && l.missed.Load() > 0 {
			err = s.write(a.hello(l))
		}
	}
}

// newListener reads what a client wants to hear.
func (a *api) newListener(r *http.Request) (*listener, error) {
	q, err := readQuery(r, "bot", "event")
	if err != nil {
		return nil, err
	}
	l := &listener{bot: q["bot"], ch: make(chan frame, clientRoom)}
	if _, known := a.bots.View(l.bot); l.bot != "" && !known {
		return nil, problemf(http.StatusNotFound, "there is no bot %q in the settings", l.bot)
	}
	if names, ok := q["event"]; ok {
		l.events = strings.Split(names, ",")
	}
	for _, name := range l.events {
		if !slices.Contains(eventNames, name) {
			return nil, problemf(http.StatusBadRequest, "unknown event %q; known: %s", name, strings.Join(eventNames, ", "))
		}
	}
	return l, nil
}

func (a *api) hello(l *listener) []byte {
	missed := l.missed.Swap(0)
	table := a.currentStatus().Bots
	if l.bot != "" {
		table.Names = []string{l.bot}
	}
	return encoded("hello", "", hello{Version: a.version, Missed: missed, Bots: table}).data
}

// waiting takes what else is there, so that it goes out in one piece.
func (l *listener) waiting() (more [][]byte) {
	for len(l.ch) > 0 && len(more) < clientRoom {
		more = append(more, (<-l.ch).data)
	}
	return more
}

// stream is the way to one client.
type stream struct {
	w       http.ResponseWriter
	control *http.ResponseController
}

// write sends events at once. A client that reads nothing for long is given up.
func (s stream) write(first []byte, more ...[]byte) error {
	// Not every writer can (a test's recorder); then nothing is slow either.
	_ = s.control.SetWriteDeadline(time.Now().Add(eventWrite))
	if _, err := s.w.Write(bytes.Join(append([][]byte{first}, more...), nil)); err != nil {
		return err
	}
	return s.control.Flush()
}
