package telegramsim

import "time"

// deleteWindow is how long a message can be deleted for everyone.
const deleteWindow = 48 * time.Hour

// methodDeleteMessage answers deleteMessage.
func methodDeleteMessage(s *Sim, c *call) (any, *apiError) {
	m, err := s.target(c, "delete")
	if err != nil {
		return nil, err
	}
	if !m.deletable() {
		return nil, badRequest("message can't be deleted for everyone")
	}
	m.ch.drop(m)
	c.touch(m)
	return true, nil
}

// deletable tells whether the message is young enough. A date outside the last
// two days, ahead included, is judged by the clock only when it lies behind.
func (m *message) deletable() bool {
	return m.raw != nil || time.Since(m.date) <= deleteWindow
}

// methodDeleteMessages answers deleteMessages. Messages that are missing or too
// old are skipped.
func methodDeleteMessages(s *Sim, c *call) (any, *apiError) {
	ch, err := s.openChatLocked(c.params.get("chat_id"))
	if err != nil {
		return nil, err
	}
	ids, err := messageIDs(c)
	if err != nil {
		return nil, err
	}
	for _, id := range ids {
		if m := ch.find(c.bot, id); m != nil && m.deletable() {
			ch.drop(m)
			c.touch(m)
		}
	}
	return true, nil
}
