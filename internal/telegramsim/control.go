package telegramsim

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"
)

// maxFeedLine bounds one update of /sim/feed.
const maxFeedLine = 64 << 20

// controlFunc answers one control request with a value or an error.
type controlFunc func(s *Sim, r *http.Request) (any, error)

// ControlHandler serves the control paths, as the package comment lists them.
func (s *Sim) ControlHandler() http.Handler {
	mux := http.NewServeMux()
	for pattern, run := range map[string]controlFunc{
		"GET /sim/journal":            controlJournal,
		"GET /sim/polls":              func(s *Sim, _ *http.Request) (any, error) { return s.Polls(), nil },
		"GET /sim/status":             controlStatus,
		"POST /sim/feed":              controlFeed,
		"POST /sim/text":              controlText,
		"POST /sim/press":             controlPress,
		"POST /sim/jump":              controlJump,
		"GET /sim/faults":             controlFaults,
		"POST /sim/faults":            controlAddFault,
		"DELETE /sim/faults/{id}":     controlRemoveFault,
		"POST /sim/offline":           controlOffline,
		"GET /sim/chats":              func(s *Sim, _ *http.Request) (any, error) { return s.Chats(), nil },
		"POST /sim/chats":             controlAddChat,
		"GET /sim/chats/{id}":         controlChat,
		"POST /sim/chats/{id}/{verb}": controlChatVerb,
		"POST /sim/migrate":           controlMigrate,
		"POST /sim/token":             controlToken,
	} {
		mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
			value, err := run(s, r)
			if err != nil {
				_ = writeAnswer(w, jsonAnswer(http.StatusBadRequest, object{{"error", err.Error()}}))
				return
			}
			_ = writeAnswer(w, jsonAnswer(http.StatusOK, value))
		})
	}
	return mux
}

// done is the answer of control requests that have none.
func done() (any, error) { return object{{"ok", true}}, nil }

// read decodes the body of a control request.
func read[T any](r *http.Request) (T, error) {
	var value T
	if err := json.NewDecoder(r.Body).Decode(&value); err != nil {
		return value, fmt.Errorf("reading request: %w", err)
	}
	return value, nil
}

// controlJournal waits for the first new arrival when asked to.
func controlJournal(s *Sim, r *http.Request) (any, error) {
	query := r.URL.Query()
	after, _ := strconv.Atoi(query.Get("after"))
	seconds, _ := strconv.ParseFloat(query.Get("timeout"), 64)
	ctx, cancel := context.WithTimeout(r.Context(), time.Duration(seconds*float64(time.Second)))
	defer cancel()
	for {
		next := s.Arrived()
		if list := s.JournalAfter(after); len(list) > 0 {
			return list, nil
		}
		select {
		case <-next:
		case <-s.closed:
			return []Arrival{}, nil
		case <-ctx.Done():
			return []Arrival{}, nil
		}
	}
}

// botStatus is what /sim/status says of a bot.
type botStatus struct {
	ID       int64  `json:"id"`
	Username string `json:"username"`
	Pending  int    `json:"pending"`
	Webhook  bool   `json:"webhook"`
	Polling  bool   `json:"polling"`
}

// controlStatus lists the bots.
func controlStatus(s *Sim, _ *http.Request) (any, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := []botStatus{}
	for _, b := range s.order {
		b.queue.expire(time.Now())
		list = append(list, botStatus{b.id, b.username, b.queue.count, b.hook != nil, b.parked != nil})
	}
	return object{{"bots", list}, {"arrivals", len(s.journal)}, {"offline", s.offline}}, nil
}

// fedIDs is the answer of /sim/feed.
type fedIDs struct {
	UpdateIDs []int64 `json:"update_ids"`
}

// controlFeed feeds one update per line, whatever the type that the body says
// it has: curl calls every body a form, and FormValue would eat such a one.
func controlFeed(s *Sim, r *http.Request) (any, error) {
	bot, _ := strconv.ParseInt(r.URL.Query().Get("bot"), 10, 64)
	answer := fedIDs{UpdateIDs: []int64{}}
	lines := bufio.NewScanner(r.Body)
	lines.Buffer(make([]byte, 64<<10), maxFeedLine)
	for lines.Scan() {
		if line := bytes.TrimSpace(lines.Bytes()); len(line) > 0 {
			answer.UpdateIDs = append(answer.UpdateIDs, s.Feed(bot, bytes.Clone(line)))
		}
	}
	return answer, lines.Err()
}

// person is what /sim/text and /sim/press take. A text with a message_id is a
// reply to that one.
type person struct {
	ChatID    int64  `json:"chat_id"`
	UserID    int64  `json:"user_id"`
	MessageID int64  `json:"message_id,omitempty"`
	Text      string `json:"text,omitempty"`
	Data      string `json:"data,omitempty"`
}

// fedID is the answer of both.
type fedID struct {
	UpdateID int64 `json:"update_id"`
}

func controlText(s *Sim, r *http.Request) (any, error) {
	in, err := read[person](r)
	if err != nil {
		return nil, err
	}
	if in.MessageID != 0 {
		return fedID{s.FeedReply(in.ChatID, in.UserID, in.MessageID, in.Text, "")}, nil
	}
	return fedID{s.FeedText(in.ChatID, in.UserID, in.Text)}, nil
}

func controlPress(s *Sim, r *http.Request) (any, error) {
	in, err := read[person](r)
	if err != nil {
		return nil, err
	}
	return fedID{s.PressButton(in.ChatID, in.UserID, in.MessageID, in.Data)}, nil
}

// jump is what /sim/jump takes.
type jump struct {
	Bot  int64 `json:"bot"`
	Next int64 `json:"next"`
}

func controlJump(s *Sim, r *http.Request) (any, error) {
	in, err := read[jump](r)
	if err != nil {
		return nil, err
	}
	s.JumpUpdateID(in.Bot, in.Next)
	return done()
}

func controlFaults(s *Sim, _ *http.Request) (any, error) {
	list := []faultJSON{}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, x := range s.faults {
		list = append(list, x.fault.shaped(x.id))
	}
	return list, nil
}

// faultID is the answer of POST /sim/faults.
type faultID struct {
	ID int `json:"id"`
}

func controlAddFault(s *Sim, r *http.Request) (any, error) {
	f, err := read[Fault](r)
	if err != nil {
		return nil, err
	}
	if f.Kind == "" {
		return nil, errors.New("fault without kind")
	}
	return faultID{s.AddFault(f)}, nil
}

func controlRemoveFault(s *Sim, r *http.Request) (any, error) {
	id, err := strconv.Atoi(r.PathValue("id"))
	if err != nil {
		return nil, fmt.Errorf("reading fault id: %w", err)
	}
	s.RemoveFault(id)
	return done()
}

// outage is what /sim/offline takes.
type outage struct {
	Offline bool `json:"offline"`
}

func controlOffline(s *Sim, r *http.Request) (any, error) {
	in, err := read[outage](r)
	if err != nil {
		return nil, err
	}
	s.SetOffline(in.Offline)
	return done()
}

func controlAddChat(s *Sim, r *http.Request) (any, error) {
	in, err := read[ChatSpec](r)
	if err != nil {
		return nil, err
	}
	s.AddChat(in)
	return done()
}

func controlChat(s *Sim, r *http.Request) (any, error) {
	id, err := strconv.ParseInt(r.PathValue("id"), 10, 64)
	if err != nil {
		return nil, fmt.Errorf("reading chat id: %w", err)
	}
	list := s.Chat(id)
	if list == nil {
		list = []Message{}
	}
	return list, nil
}

func controlChatVerb(s *Sim, r *http.Request) (any, error) {
	id, err := strconv.ParseInt(r.PathValue("id"), 10, 64)
	if err != nil {
		return nil, fmt.Errorf("reading chat id: %w", err)
	}
	verbs := map[string]func(int64){
		"block": s.Block, "unblock": s.Unblock, "kick": s.Kick, "leave": s.Leave,
		"deactivate": s.Deactivate, "delete": s.DeleteGroup, "remove": s.RemoveChat,
	}
	verb := verbs[r.PathValue("verb")]
	if verb == nil {
		return nil, fmt.Errorf("unknown verb %q", r.PathValue("verb"))
	}
	verb(id)
	return done()
}

// move is what /sim/migrate takes.
type move struct {
	Old int64 `json:"old"`
	New int64 `json:"new"`
}

func controlMigrate(s *Sim, r *http.Request) (any, error) {
	in, err := read[move](r)
	if err != nil {
		return nil, err
	}
	s.Migrate(in.Old, in.New)
	return done()
}

// tokenState is what /sim/token takes.
type tokenState struct {
	Token   string `json:"token"`
	Revoked bool   `json:"revoked"`
}

func controlToken(s *Sim, r *http.Request) (any, error) {
	in, err := read[tokenState](r)
	if err != nil {
		return nil, err
	}
	if in.Revoked {
		s.RevokeToken(in.Token)
	} else {
		s.RestoreToken(in.Token)
	}
	return done()
}
