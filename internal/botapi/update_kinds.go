package botapi

// order is what the updates of a kind are kept in order by.
type order string

const (
	orderChat order = "chat"
	orderUser order = "user"
	orderPoll order = "poll"
)

// updateKind says where the parts of a kind of update lie, as paths inside its payload.
// Of several paths the first that leads to something counts.
type updateKind struct {
	known    bool
	chat     []string // id of the chat
	user     []string // id of whoever caused it
	order    order    // "" for each by itself
	orderID  []string // the id that order goes by
	date     []string // time of the event
	text     []string
	isNew    bool // is a new message
	commands bool // may begin with a command
}

// updateKinds are the kinds of Bot API 10.2 and two that only the server's source names.
// The date of the message under a pressed button isn't that of the press, so that kind
// has none.
var updateKinds = map[string]updateKind{
	"message": {
		known:    true,
		chat:     []string{"chat.id"},
		user:     []string{"from.id", "sender_chat.id"},
		order:    orderChat,
		orderID:  []string{"chat.id"},
		date:     []string{"date"},
		text:     []string{"text", "caption"},
		isNew:    true,
		commands: true,
	},
	"edited_message": {
		known:   true,
		chat:    []string{"chat.id"},
		user:    []string{"from.id", "sender_chat.id"},
		order:   orderChat,
		orderID: []string{"chat.id"},
		date:    []string{"edit_date", "date"},
		text:    []string{"text", "caption"},
	},
	"channel_post": {
		known:    true,
		chat:     []string{"chat.id"},
		user:     []string{"from.id", "sender_chat.id"},
		order:    orderChat,
		orderID:  []string{"chat.id"},
		date:     []string{"date"},
		text:     []string{"text", "caption"},
		isNew:    true,
		commands: true,
	},
	"edited_channel_post": {
		known:   true,
		chat:    []string{"chat.id"},
		user:    []string{"from.id", "sender_chat.id"},
		order:   orderChat,
		orderID: []string{"chat.id"},
		date:    []string{"edit_date", "date"},
		text:    []string{"text", "caption"},
	},
	"business_connection": {
		known:   true,
		chat:    []string{"user_chat_id"},
		user:    []string{"user.id"},
		order:   orderUser,
		orderID: []string{"user.id"},
		date:    []string{"date"},
	},
	"business_message": {
		known:   true,
		chat:    []string{"chat.id"},
		user:    []string{"from.id"},
		order:   orderChat,
		orderID: []string{"chat.id"},
		date:    []string{"date"},
		text:    []string{"text", "caption"},
		isNew:   true,
	},
	"edited_business_message": {
		known:   true,
		chat:    []string{"chat.id"},
		user:    []string{"from.id"},
		order:   orderChat,
		orderID: []string{"chat.id"},
		date:    []string{"edit_date", "date"},
		text:    []string{"text", "caption"},
	},
	"deleted_business_messages": {
		known:   true,
		chat:    []string{"chat.id"},
		order:   orderChat,
		orderID: []string{"chat.id"},
	},
	"guest_message": {
		known:   true,
		chat:    []string{"chat.id"},
		user:    []string{"from.id"},
		order:   orderChat,
		orderID: []string{"chat.id"},
		date:    []string{"date"},
		text:    []string{"text", "caption"},
		isNew:   true,
	},
	"message_reaction": {
		known:   true,
		chat:    []string{"chat.id"},
		user:    []string{"user.id", "actor_chat.id"},
		order:   orderChat,
		orderID: []string{"chat.id"},
		date:    []string{"date"},
	},
	"message_reaction_count": {
		known:   true,
		chat:    []string{"chat.id"},
		order:   orderChat,
		orderID: []string{"chat.id"},
		date:    []string{"date"},
	},
	"inline_query": {
		known:   true,
		user:    []string{"from.id"},
		order:   orderUser,
		orderID: []string{"from.id"},
		text:    []string{"query"},
	},
	"chosen_inline_result": {
		known:   true,
		user:    []string{"from.id"},
		order:   orderUser,
		orderID: []string{"from.id"},
		text:    []string{"query"},
	},
	"callback_query": {
		known:   true,
		chat:    []string{"message.chat.id"},
		user:    []string{"from.id"},
		order:   orderUser,
		orderID: []string{"from.id"},
		text:    []string{"data"},
	},
	"shipping_query": {
		known:   true,
		user:    []string{"from.id"},
		order:   orderUser,
		orderID: []string{"from.id"},
	},
	"pre_checkout_query": {
		known:   true,
		user:    []string{"from.id"},
		order:   orderUser,
		orderID: []string{"from.id"},
	},
	"purchased_paid_media": {
		known:   true,
		user:    []string{"from.id"},
		order:   orderUser,
		orderID: []string{"from.id"},
	},
	"poll": {known: true, order: orderPoll, orderID: []string{"id"}},
	"poll_answer": {
		known:   true,
		user:    []string{"user.id", "voter_chat.id"},
		order:   orderPoll,
		orderID: []string{"poll_id"},
	},
	"my_chat_member": {
		known:   true,
		chat:    []string{"chat.id"},
		user:    []string{"from.id"},
		order:   orderChat,
		orderID: []string{"chat.id"},
		date:    []string{"date"},
	},
	"chat_member": {
		known:   true,
		chat:    []string{"chat.id"},
		user:    []string{"from.id", "new_chat_member.user.id"},
		order:   orderUser,
		orderID: []string{"new_chat_member.user.id"},
		date:    []string{"date"},
	},
	"chat_join_request": {
		known:   true,
		chat:    []string{"chat.id", "user_chat_id"},
		user:    []string{"from.id"},
		order:   orderUser,
		orderID: []string{"from.id"},
		date:    []string{"date"},
	},
	"chat_boost": {
		known:   true,
		chat:    []string{"chat.id"},
		user:    []string{"boost.source.user.id"},
		order:   orderChat,
		orderID: []string{"chat.id"},
		date:    []string{"boost.add_date"},
	},
	"removed_chat_boost": {
		known:   true,
		chat:    []string{"chat.id"},
		user:    []string{"source.user.id"},
		order:   orderChat,
		orderID: []string{"chat.id"},
		date:    []string{"remove_date"},
	},
	"managed_bot": {
		known:   true,
		user:    []string{"user.id"},
		order:   orderUser,
		orderID: []string{"user.id"},
	},
	"subscription": {known: true, user: []string{"user.id"}},
	"custom_event": {known: true},
	"custom_query": {known: true},
}
