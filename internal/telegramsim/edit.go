package telegramsim

import (
	"encoding/json"
	"slices"
	"time"
)

const textNotModified = "message is not modified: specified new message content and reply markup are " +
	"exactly the same as a current content and reply markup of the message"

// editTarget finds the message that a call wants to change. A nil message
// without an error is one that was sent through an inline query: such edits are
// taken note of, and answered with true.
func (s *Sim) editTarget(c *call) (*message, *apiError) {
	if c.params.get("inline_message_id") != "" {
		return nil, nil
	}
	ch, err := s.openChatLocked(c.params.get("chat_id"))
	if err != nil {
		return nil, err
	}
	m := ch.find(c.bot, c.params.integer("message_id"))
	switch {
	case m == nil:
		return nil, badRequest("message to edit not found")
	case !m.out || m.bot != c.bot || m.origin != nil || (m.markup != "" && !isInline(m.markup)):
		return nil, badRequest("message can't be edited")
	}
	return m, nil
}

// edit changes a message by a function that works on a copy, so that an edit
// that fails or changes nothing leaves the message as it was.
func (s *Sim) edit(c *call, change func(m *message) *apiError) (any, *apiError) {
	m, err := s.editTarget(c)
	if err != nil {
		return nil, err
	}
	if m == nil {
		return true, nil
	}
	next := *m
	if next.markup, err = readMarkup(c.params.get("reply_markup")); err != nil {
		return nil, err
	}
	if err := change(&next); err != nil {
		return nil, err
	}
	if next.text == m.text && next.markup == m.markup && next.file == m.file &&
		(slices.Equal(next.entities, m.entities) || len(next.entities)+len(m.entities) == 0) {
		return nil, badRequest(textNotModified)
	}
	next.edited = time.Now()
	*m = next
	c.touch(m)
	return s.render(m), nil
}

// methodEditMessageText answers editMessageText.
func methodEditMessageText(s *Sim, c *call) (any, *apiError) {
	return s.edit(c, func(m *message) *apiError {
		if m.kind != "text" {
			return badRequest("there is no text in the message to edit")
		}
		var err *apiError
		m.text, m.entities, err = readText(c.params, "text", "entities")
		return err
	})
}

// methodEditMessageCaption answers editMessageCaption.
func methodEditMessageCaption(s *Sim, c *call) (any, *apiError) {
	return s.edit(c, func(m *message) *apiError {
		if m.file == nil || m.kind == "sticker" || m.kind == "video_note" {
			return badRequest("there is no caption in the message to edit")
		}
		var err *apiError
		m.text, m.entities, err = readCaption(c.params)
		return err
	})
}

// methodEditMessageMedia answers editMessageMedia.
func methodEditMessageMedia(s *Sim, c *call) (any, *apiError) {
	return s.edit(c, func(m *message) *apiError {
		var in inputMedia
		if json.Unmarshal([]byte(c.params.get("media")), &in) != nil {
			return badRequest("can't parse media JSON object")
		}
		if m.kind == "sticker" || m.kind == "poll" {
			return badRequest("message can't be edited")
		}
		return s.mediaContent(c, in, m)
	})
}

// methodEditMessageReplyMarkup answers editMessageReplyMarkup.
func methodEditMessageReplyMarkup(s *Sim, c *call) (any, *apiError) {
	return s.edit(c, func(*message) *apiError { return nil })
}

// methodStopPoll answers stopPoll.
func methodStopPoll(s *Sim, c *call) (any, *apiError) {
	m, err := s.editTarget(c)
	if err != nil {
		return nil, err
	}
	if m == nil {
		return nil, badRequest("message identifier is not specified")
	}
	poll, ok := m.content.(*pollState)
	if !ok {
		return nil, badRequest("message with poll to stop not found")
	}
	if poll.closed {
		return nil, badRequest("poll has already been closed")
	}
	poll.closed = true
	c.touch(m)
	return poll, nil
}

// methodPinChatMessage answers pinChatMessage.
func methodPinChatMessage(s *Sim, c *call) (any, *apiError) {
	m, err := s.target(c, "pin")
	if err != nil {
		return nil, err
	}
	if !slices.Contains(m.ch.pinned, m.id) {
		m.ch.pinned = append(m.ch.pinned, m.id)
	}
	return true, nil
}

// methodUnpinChatMessage answers unpinChatMessage; without a message_id it
// unpins the most recent pin.
func methodUnpinChatMessage(s *Sim, c *call) (any, *apiError) {
	ch, err := s.openChatLocked(c.params.get("chat_id"))
	if err != nil {
		return nil, err
	}
	at := len(ch.pinned) - 1
	if id := c.params.integer("message_id"); id != 0 {
		at = slices.Index(ch.pinned, id)
	}
	if at < 0 {
		return nil, badRequest("message to unpin not found")
	}
	ch.pinned = slices.Delete(ch.pinned, at, at+1)
	return true, nil
}

// methodUnpinAllChatMessages answers unpinAllChatMessages.
func methodUnpinAllChatMessages(s *Sim, c *call) (any, *apiError) {
	ch, err := s.openChatLocked(c.params.get("chat_id"))
	if err != nil {
		return nil, err
	}
	ch.pinned = nil
	return true, nil
}

// methodSetMessageReaction answers setMessageReaction.
func methodSetMessageReaction(s *Sim, c *call) (any, *apiError) {
	if _, err := s.target(c, "react"); err != nil {
		return nil, err
	}
	var reaction []struct {
		Type  string `json:"type"`
		Emoji string `json:"emoji"`
	}
	if c.params.has("reaction") && json.Unmarshal([]byte(c.params.get("reaction")), &reaction) != nil {
		return nil, badRequest("can't parse reaction types JSON object")
	}
	if len(reaction) > 1 {
		return nil, badRequest("REACTIONS_TOO_MANY")
	}
	return true, nil
}

// target finds the message that a call is about.
func (s *Sim) target(c *call, verb string) (*message, *apiError) {
	ch, err := s.openChatLocked(c.params.get("chat_id"))
	if err != nil {
		return nil, err
	}
	m := ch.find(c.bot, c.params.integer("message_id"))
	if m == nil {
		return nil, badRequest("message to %s not found", verb)
	}
	return m, nil
}
