package telegramsim

import (
	"context"
	"maps"
	"strings"
	"time"
)

// Arrival is one call that truly arrived, whatever became of the answer.
type Arrival struct {
	// N counts arrivals from 1.
	N int `json:"n"`
	// At is when the call took effect or was refused.
	At time.Time `json:"at"`
	// Bot is the id of the account, 0 when the token was refused.
	Bot int64 `json:"bot"`
	// Method is the method as the documentation spells it.
	Method string `json:"method"`
	// ChatID is the chat that chat_id led to, 0 when there is none.
	ChatID int64 `json:"chat_id,omitempty"`
	// Text is the text or caption parameter as it came.
	Text string `json:"text,omitempty"`
	// Params are the text parameters.
	Params map[string]string `json:"params,omitempty"`
	// MessageID is the message that was made or changed, the first of several.
	MessageID int64 `json:"message_id,omitempty"`
	// MessageIDs are all messages that were made.
	MessageIDs []int64 `json:"message_ids,omitempty"`
	// Effect tells whether the call changed anything: false for refusals,
	// reads, and faults that struck before the call was carried out.
	Effect bool `json:"effect"`
	// Status is the HTTP status that the call earned; 0 when a fault left none.
	Status int `json:"status"`
	// Answered tells whether the whole answer was handed to the connection.
	Answered bool `json:"answered"`
	// Via is "webhook" for a call that came as the answer to a pushed update.
	Via string `json:"via,omitempty"`
	// Files are the uploads.
	Files []ArrivedFile `json:"files,omitempty"`
}

// ArrivedFile is one upload of a call.
type ArrivedFile struct {
	Field  string `json:"field"`
	Name   string `json:"name"`
	Size   int64  `json:"size"`
	SHA256 string `json:"sha256"`
}

// textKey counts equal texts in one chat.
type textKey struct {
	chat int64
	text string
}

// Journal is a copy of all arrivals, oldest first. getUpdates calls are not in
// it; see Polls.
func (s *Sim) Journal() []Arrival {
	return s.JournalAfter(0)
}

// JournalAfter is a copy of the part of the journal behind entry n.
func (s *Sim) JournalAfter(n int) []Arrival {
	s.mu.Lock()
	defer s.mu.Unlock()
	n = min(max(n, 0), len(s.journal))
	return append([]Arrival(nil), s.journal[n:]...)
}

// CountText is how many messages with exactly this text or caption were sent
// to a chat, deleted and edited ones included. It is above 1 when something
// was sent twice.
func (s *Sim) CountText(chatID int64, text string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.texts[textKey{chatID, text}]
}

// Arrived returns a channel that is closed at the next change of the journal or
// of the polls. Take it before looking, then nothing is missed.
func (s *Sim) Arrived() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.arrived
}

// WaitFor waits until the journal satisfies done, and returns ctx's error when
// that takes too long.
func (s *Sim) WaitFor(ctx context.Context, done func(journal []Arrival) bool) error {
	for {
		next := s.Arrived()
		if done(s.Journal()) {
			return nil
		}
		select {
		case <-next:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// changedLocked wakes all who wait for arrivals.
func (s *Sim) changedLocked() {
	close(s.arrived)
	s.arrived = make(chan struct{})
}

// recordLocked writes a call into the journal.
func (s *Sim) recordLocked(c *call, status int, effect bool) {
	a := Arrival{
		N: len(s.journal) + 1, At: time.Now(), Method: c.name, Via: c.via,
		ChatID: c.chatID, Text: c.params.get("text") + c.params.get("caption"),
		Params: maps.Clone(c.params.text), Effect: effect, Status: status,
	}
	if c.bot != nil {
		a.Bot = c.bot.id
	}
	if len(c.made) > 0 {
		a.MessageID = c.made[0]
		a.MessageIDs = c.made
	}
	for _, name := range c.params.order {
		up := c.params.uploads[name]
		a.Files = append(a.Files, ArrivedFile{Field: up.field, Name: up.name, Size: up.size, SHA256: up.sha256})
	}
	if effect && a.Text != "" && strings.HasPrefix(c.name, "send") {
		s.texts[textKey{a.ChatID, a.Text}]++
	}
	s.journal = append(s.journal, a)
	c.entry = a.N
	s.changedLocked()
}

// answered marks a call's entry: the whole answer is on its way.
func (s *Sim) answered(c *call) {
	if c.entry == 0 {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.journal[c.entry-1].Answered = true
	s.changedLocked()
}
