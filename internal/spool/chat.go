package spool

import "time"

// Chat is one chat that a bot has met or written to.
type Chat struct {
	ChatID         *int64     `json:"chat_id"`
	Aliases        []string   `json:"aliases"` // other ids and @names of the same chat
	Type           *string    `json:"type"`
	Active         bool       `json:"active"`
	InactiveReason *string    `json:"inactive_reason"`
	LastSeenAt     *time.Time `json:"last_seen_at"`
	CooldownUntil  *time.Time `json:"cooldown_until"`
}

// ChatPage is one page of a list, in the order in which the chats were met.
type ChatPage struct {
	Items []Chat
	Next  int64
}
