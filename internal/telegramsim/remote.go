package telegramsim

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// remoteWait is how long one request of Remote.WaitFor waits for an arrival.
const remoteWait = 20 * time.Second

// Remote drives a simulator in another process through its control paths. Its
// methods do what those of Sim with the same names do.
type Remote struct {
	base   string
	client *http.Client
}

// NewRemote makes a client of the control paths at a base URL such as
// http://127.0.0.1:8081.
func NewRemote(baseURL string) *Remote {
	return &Remote{base: strings.TrimSuffix(baseURL, "/"), client: &http.Client{Transport: &http.Transport{}}}
}

// Close lets go of idle connections.
func (r *Remote) Close() { r.client.CloseIdleConnections() }

// do makes one request; in and out may be nil.
func (r *Remote) do(ctx context.Context, method, path string, in, out any) error {
	var body io.Reader
	switch value := in.(type) {
	case nil:
	case []byte:
		body = bytes.NewReader(value)
	default:
		body = bytes.NewReader(encode(value))
	}
	request, err := http.NewRequestWithContext(ctx, method, r.base+"/sim/"+path, body)
	if err != nil {
		return fmt.Errorf("making control request: %w", err)
	}
	response, err := r.client.Do(request)
	if err != nil {
		return fmt.Errorf("asking simulator: %w", err)
	}
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		return fmt.Errorf("reading simulator's answer: %w", err)
	}
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("asking simulator for %s: status %d: %s", path, response.StatusCode, text)
	}
	if out == nil {
		return nil
	}
	if err := json.Unmarshal(text, out); err != nil {
		return fmt.Errorf("decoding simulator's answer: %w", err)
	}
	return nil
}

// post is do with POST and no interest in the answer.
func (r *Remote) post(ctx context.Context, path string, in any) error {
	return r.do(ctx, http.MethodPost, path, in, nil)
}

// Journal is a copy of all arrivals, oldest first.
func (r *Remote) Journal(ctx context.Context) ([]Arrival, error) {
	return r.JournalAfter(ctx, 0, 0)
}

// JournalAfter is the part of the journal behind entry n. When there is none it
// waits up to the given time.
func (r *Remote) JournalAfter(ctx context.Context, n int, wait time.Duration) ([]Arrival, error) {
	query := url.Values{
		"after":   {strconv.Itoa(n)},
		"timeout": {strconv.FormatFloat(wait.Seconds(), 'f', 3, 64)},
	}
	var list []Arrival
	err := r.do(ctx, http.MethodGet, "journal?"+query.Encode(), nil, &list)
	return list, err
}

// WaitFor waits until the journal satisfies done. Only new arrivals travel, so
// Answered is as it was when an entry was fetched.
func (r *Remote) WaitFor(ctx context.Context, done func(journal []Arrival) bool) error {
	var journal []Arrival
	for !done(journal) {
		list, err := r.JournalAfter(ctx, len(journal), remoteWait)
		if err != nil {
			return err
		}
		journal = append(journal, list...)
	}
	return nil
}

// CountText is how many messages with this text were sent to a chat.
func (r *Remote) CountText(ctx context.Context, chatID int64, text string) (int, error) {
	list, err := r.Journal(ctx)
	n := 0
	for _, a := range list {
		if a.Effect && a.ChatID == chatID && a.Text == text && strings.HasPrefix(a.Method, "send") {
			n++
		}
	}
	return n, err
}

// Polls are the getUpdates calls that came to their end.
func (r *Remote) Polls(ctx context.Context) ([]Poll, error) {
	var list []Poll
	err := r.do(ctx, http.MethodGet, "polls", nil, &list)
	return list, err
}

// Pending is the number of updates that wait for a bot (0: the first bot).
func (r *Remote) Pending(ctx context.Context, bot int64) (int, error) {
	b, err := r.status(ctx, bot)
	return b.Pending, err
}

// Polling tells whether a getUpdates call of a bot (0: the first bot) waits for
// updates.
func (r *Remote) Polling(ctx context.Context, bot int64) (bool, error) {
	b, err := r.status(ctx, bot)
	return b.Polling, err
}

// status is what the simulator says of a bot, nothing of one that it hasn't.
func (r *Remote) status(ctx context.Context, bot int64) (botStatus, error) {
	var status struct {
		Bots []botStatus `json:"bots"`
	}
	if err := r.do(ctx, http.MethodGet, "status", nil, &status); err != nil {
		return botStatus{}, err
	}
	for _, b := range status.Bots {
		if bot == 0 || b.ID == bot {
			return b, nil
		}
	}
	return botStatus{}, nil
}

// Feed puts updates into a bot's queue and returns their ids, 0 for each that
// was dropped.
func (r *Remote) Feed(ctx context.Context, bot int64, updates ...json.RawMessage) ([]int64, error) {
	var lines bytes.Buffer
	for _, update := range updates {
		if err := json.Compact(&lines, update); err != nil {
			return nil, fmt.Errorf("compacting update: %w", err)
		}
		lines.WriteByte('\n')
	}
	var answer fedIDs
	err := r.do(ctx, http.MethodPost, "feed?bot="+strconv.FormatInt(bot, 10), lines.Bytes(), &answer)
	return answer.UpdateIDs, err
}

// FeedText makes a text message from a user and returns its update_id.
func (r *Remote) FeedText(ctx context.Context, chatID, userID int64, text string) (int64, error) {
	var answer fedID
	err := r.do(ctx, http.MethodPost, "text", person{ChatID: chatID, UserID: userID, Text: text}, &answer)
	return answer.UpdateID, err
}

// PressButton is a user pressing a button and returns the update_id.
func (r *Remote) PressButton(ctx context.Context, chatID, userID, messageID int64, data string) (int64, error) {
	var answer fedID
	in := person{ChatID: chatID, UserID: userID, MessageID: messageID, Data: data}
	err := r.do(ctx, http.MethodPost, "press", in, &answer)
	return answer.UpdateID, err
}

// JumpUpdateID sets the id of the bot's next update.
func (r *Remote) JumpUpdateID(ctx context.Context, bot, next int64) error {
	return r.post(ctx, "jump", jump{bot, next})
}

// AddFault puts a fault in force and returns its id.
func (r *Remote) AddFault(ctx context.Context, f Fault) (int, error) {
	var answer faultID
	err := r.do(ctx, http.MethodPost, "faults", f, &answer)
	return answer.ID, err
}

// RemoveFault ends a fault.
func (r *Remote) RemoveFault(ctx context.Context, id int) error {
	return r.do(ctx, http.MethodDelete, "faults/"+strconv.Itoa(id), nil, nil)
}

// SetOffline takes the network away or brings it back. It needs a control
// listener of its own (Sim.ServeControl) to be able to come back.
func (r *Remote) SetOffline(ctx context.Context, offline bool) error {
	return r.post(ctx, "offline", outage{offline})
}

// Chats are the ids of all chats, ascending.
func (r *Remote) Chats(ctx context.Context) ([]int64, error) {
	var ids []int64
	err := r.do(ctx, http.MethodGet, "chats", nil, &ids)
	return ids, err
}

// Chat returns the messages that now stand in a chat, oldest first.
func (r *Remote) Chat(ctx context.Context, chatID int64) ([]Message, error) {
	var list []Message
	err := r.do(ctx, http.MethodGet, "chats/"+strconv.FormatInt(chatID, 10), nil, &list)
	return list, err
}

// AddChat makes a chat known.
func (r *Remote) AddChat(ctx context.Context, spec ChatSpec) error { return r.post(ctx, "chats", spec) }

// Block is a person blocking the bot.
func (r *Remote) Block(ctx context.Context, chatID int64) error { return r.verb(ctx, chatID, "block") }

// Unblock undoes Block, Kick and Leave.
func (r *Remote) Unblock(ctx context.Context, chatID int64) error {
	return r.verb(ctx, chatID, "unblock")
}

// Kick throws the bot out of a group or channel.
func (r *Remote) Kick(ctx context.Context, chatID int64) error { return r.verb(ctx, chatID, "kick") }

// Deactivate is a person deleting the account.
func (r *Remote) Deactivate(ctx context.Context, chatID int64) error {
	return r.verb(ctx, chatID, "deactivate")
}

// RemoveChat makes a chat unknown.
func (r *Remote) RemoveChat(ctx context.Context, chatID int64) error {
	return r.verb(ctx, chatID, "remove")
}

// verb changes the state of a chat.
func (r *Remote) verb(ctx context.Context, chatID int64, verb string) error {
	return r.post(ctx, "chats/"+strconv.FormatInt(chatID, 10)+"/"+verb, nil)
}

// Migrate turns a basic group into a supergroup.
func (r *Remote) Migrate(ctx context.Context, oldID, newID int64) error {
	return r.post(ctx, "migrate", move{oldID, newID})
}

// RevokeToken makes every later call with the token a 401.
func (r *Remote) RevokeToken(ctx context.Context, token string) error {
	return r.post(ctx, "token", tokenState{token, true})
}

// RestoreToken undoes RevokeToken.
func (r *Remote) RestoreToken(ctx context.Context, token string) error {
	return r.post(ctx, "token", tokenState{token, false})
}
