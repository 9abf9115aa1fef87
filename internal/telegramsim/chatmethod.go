package telegramsim

import "strconv"

// methodGetChat answers getChat. A chat that refuses messages can still be
// looked at, unless the bot is out of it.
func methodGetChat(s *Sim, c *call) (any, *apiError) {
	ch, err := s.visible(c)
	if err != nil {
		return nil, err
	}
	o := append(ch.brief(),
		field{"accent_color_id", 1},
		field{"max_reaction_count", 11},
		field{"accepted_gift_types", object{
			{"unlimited_gifts", true}, {"limited_gifts", true}, {"unique_gifts", true}, {"premium_subscription", true},
		}},
	)
	if n := len(ch.pinned); n > 0 {
		if m := ch.find(c.bot, ch.pinned[n-1]); m != nil {
			o = append(o, field{"pinned_message", s.render(m)})
		}
	}
	return o, nil
}

// visible finds a chat that is to be looked at.
func (s *Sim) visible(c *call) (*chat, *apiError) {
	ch, err := s.findChatLocked(c.params.get("chat_id"))
	if err != nil {
		return nil, err
	}
	if ch.state == stateBlocked {
		return ch, nil
	}
	return ch, ch.refusal()
}

// methodGetChatMember answers getChatMember: everybody is a member, and the bot
// an administrator of channels.
func methodGetChatMember(s *Sim, c *call) (any, *apiError) {
	ch, err := s.visible(c)
	if err != nil {
		return nil, err
	}
	id := c.params.integer("user_id")
	switch {
	case id <= 0:
		return nil, badRequest("invalid user_id specified")
	case id == c.bot.id && ch.kind == kindChannel:
		return memberObject(c.bot, "administrator"), nil
	case id == c.bot.id:
		return memberObject(c.bot, "member"), nil
	}
	return object{{"user", userObject(id)}, {"status", "member"}}, nil
}

// methodGetChatMemberCount answers getChatMemberCount.
func methodGetChatMemberCount(s *Sim, c *call) (any, *apiError) {
	if _, err := s.visible(c); err != nil {
		return nil, err
	}
	return 2, nil
}

// methodGetChatAdministrators answers getChatAdministrators.
func methodGetChatAdministrators(s *Sim, c *call) (any, *apiError) {
	ch, err := s.visible(c)
	if err != nil {
		return nil, err
	}
	if ch.kind == kindPrivate {
		return nil, badRequest("there are no administrators in the private chat")
	}
	return []object{{
		{"user", userObject(777_000_001)}, {"status", "creator"}, {"is_anonymous", false},
	}}, nil
}

// methodLeaveChat answers leaveChat.
func methodLeaveChat(s *Sim, c *call) (any, *apiError) {
	ch, err := s.openChatLocked(c.params.get("chat_id"))
	if err != nil {
		return nil, err
	}
	if ch.kind == kindPrivate {
		return nil, badRequest("chat member status can't be changed in private chats")
	}
	ch.state = stateLeft
	return true, nil
}

// methodCreateForumTopic answers createForumTopic.
func methodCreateForumTopic(s *Sim, c *call) (any, *apiError) {
	ch, err := s.openChatLocked(c.params.get("chat_id"))
	if err != nil {
		return nil, err
	}
	name := c.params.get("name")
	if ch.kind != kindSupergroup {
		return nil, badRequest("the chat is not a forum")
	}
	if name == "" || len([]rune(name)) > 128 {
		return nil, badRequest("TOPIC_TITLE_EMPTY")
	}
	thread := s.nextMessageIDLocked(c.bot, ch)
	c.bot.threads[threadKey{ch.id, thread}] = true
	return object{{"message_thread_id", thread}, {"name", name}, {"icon_color", 7322096}}, nil
}

// methodDeleteForumTopic answers deleteForumTopic: the thread is gone.
func methodDeleteForumTopic(s *Sim, c *call) (any, *apiError) {
	ch, err := s.openChatLocked(c.params.get("chat_id"))
	if err != nil {
		return nil, err
	}
	thread, _ := strconv.ParseInt(c.params.get("message_thread_id"), 10, 64)
	key := threadKey{ch.id, thread}
	if !c.bot.threads[key] {
		return nil, badRequest("message thread not found")
	}
	delete(c.bot.threads, key)
	return true, nil
}
