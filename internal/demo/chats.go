package demo

import "strconv"

const (
	chatCount    = 200
	groupCount   = 40                 // of them
	firstUser    = 7_000_000_001      // needs more than 32 bits, like many of Telegram's
	firstGroup   = -1_002_000_000_001 // supergroups, downwards
	shakyEvery   = 40                 // one update in so many makes the handler fail at first
	minReplies   = 1
	replyPattern = 2 // updates have one reply or two, in turn
)

// Message is a message that must arrive once.
type Message struct {
	ChatID int64
	// Text is unlike that of every other message: by it a message is known.
	Text string
	// JobID is the job that the daemon has named for it, 0 when a handler asked
	// for the message.
	JobID int64
	// UpdateID is the update that it answers, 0 when it is none's answer.
	UpdateID int64
}

// chat is the n-th of the chats that write.
func chat(n int) int64 {
	n %= chatCount
	if n < groupCount {
		return firstGroup - int64(n)
	}
	return firstUser + int64(n)
}

// isOurs tells whether chat makes an id.
func isOurs(id int64) bool {
	return id <= firstGroup && id > firstGroup-groupCount || id >= firstUser+groupCount && id < firstUser+chatCount
}

// Replies are the messages that the handler asks for when it gets an update
// from a chat; a run that is repeated asks for the same. An update that comes
// from none of the 200 chats is reported to one of them.
func Replies(update, from int64) []Message {
	to := from
	if !isOurs(from) {
		to = chat(int(update % chatCount))
	}
	var list []Message
	for n := range minReplies + int(update%replyPattern) {
		list = append(list, Message{ChatID: to, UpdateID: update, Text: "update " + strconv.FormatInt(update, 10) + ", reply " + strconv.Itoa(n+1)})
	}
	return list
}
