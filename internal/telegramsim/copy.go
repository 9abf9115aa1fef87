package telegramsim

import (
	"encoding/json"
)

// source finds the message that is to be copied or forwarded.
func (s *Sim) source(c *call, from *chat, id int64, verb string) (*message, *apiError) {
	m := from.find(c.bot, id)
	if m == nil {
		return nil, badRequest("message to %s not found", verb)
	}
	if m.protect {
		return nil, badRequest("message has protected content and can't be forwarded")
	}
	return m, nil
}

// replica is a new message with the content of another.
func replica(draft, m *message) *message {
	n := *draft
	n.kind, n.content, n.file, n.text, n.entities = m.kind, m.content, m.file, m.text, m.entities
	return &n
}

// origin is the forward_origin of a message.
func (s *Sim) origin(m *message) object {
	at := field{"date", m.date.Unix()}
	switch {
	case m.origin != nil:
		return m.origin
	case m.ch.kind == kindChannel:
		return object{{"type", "channel"}, at, {"chat", m.ch.brief()}, {"message_id", m.id}}
	case m.out:
		return object{{"type", "user"}, at, {"sender_user", m.bot.user()}}
	}
	var fed struct {
		From json.RawMessage `json:"from"`
	}
	if json.Unmarshal(m.raw, &fed) == nil && fed.From != nil {
		return object{{"type", "user"}, at, {"sender_user", fed.From}}
	}
	return object{{"type", "hidden_user"}, at, {"sender_user_name", "Somebody"}}
}

// methodCopyMessage answers copyMessage.
func methodCopyMessage(s *Sim, c *call) (any, *apiError) {
	m, err := s.oneReplica(c, "copy")
	if err != nil {
		return nil, err
	}
	if c.params.has("caption") && m.kind != "text" {
		if m.text, m.entities, err = readCaption(c.params); err != nil {
			return nil, err
		}
	}
	s.post(c, m)
	return object{{"message_id", m.id}}, nil
}

// methodForwardMessage answers forwardMessage.
func methodForwardMessage(s *Sim, c *call) (any, *apiError) {
	m, err := s.oneReplica(c, "forward")
	if err != nil {
		return nil, err
	}
	return s.post(c, m), nil
}

// oneReplica prepares the copy of the one message that a call names.
func (s *Sim) oneReplica(c *call, verb string) (*message, *apiError) {
	draft, err := s.draft(c)
	if err != nil {
		return nil, err
	}
	from, err := s.findChatLocked(c.params.get("from_chat_id"))
	if err != nil {
		return nil, err
	}
	m, err := s.source(c, from, c.params.integer("message_id"), verb)
	if err != nil {
		return nil, err
	}
	n := replica(draft, m)
	if verb == "forward" {
		n.origin = s.origin(m)
	}
	return n, nil
}

// methodCopyMessages answers copyMessages.
func methodCopyMessages(s *Sim, c *call) (any, *apiError) { return s.replicas(c, "copy") }

// methodForwardMessages answers forwardMessages.
func methodForwardMessages(s *Sim, c *call) (any, *apiError) { return s.replicas(c, "forward") }

// replicas copies several messages. Those that are missing are skipped.
func (s *Sim) replicas(c *call, verb string) (any, *apiError) {
	draft, err := s.draft(c)
	if err != nil {
		return nil, err
	}
	from, err := s.findChatLocked(c.params.get("from_chat_id"))
	if err != nil {
		return nil, err
	}
	ids, err := messageIDs(c)
	if err != nil {
		return nil, err
	}
	for i, id := range ids {
		if i > 0 && id <= ids[i-1] {
			return nil, badRequest("message identifiers must be in a strictly increasing order")
		}
	}
	var results []object
	for _, id := range ids {
		m, err := s.source(c, from, id, verb)
		if err != nil {
			continue
		}
		n := replica(draft, m)
		if verb == "forward" {
			n.origin = s.origin(m)
		}
		s.post(c, n)
		results = append(results, object{{"message_id", n.id}})
	}
	if results == nil {
		return nil, badRequest("there are no messages to %s", verb)
	}
	return results, nil
}

// messageIDs reads the message_ids parameter.
func messageIDs(c *call) ([]int64, *apiError) {
	var ids []int64
	if json.Unmarshal([]byte(c.params.get("message_ids")), &ids) != nil {
		return nil, badRequest("can't parse message identifiers JSON object")
	}
	switch {
	case len(ids) == 0:
		return nil, badRequest("message identifiers are not specified")
	case len(ids) > 100:
		return nil, badRequest("too many message identifiers specified")
	}
	return ids, nil
}
