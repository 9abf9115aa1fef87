package telegramsim

import "strings"

// methodTable is every method that the simulator answers, by its lower-case
// name. Methods are found whatever their case.
func methodTable() map[string]method {
	table := make(map[string]method)
	add := func(weight int, name string, run methodFunc) {
		table[strings.ToLower(name)] = method{name: name, run: run, weight: weight}
	}
	addAccountMethods(add)
	addSendMethods(add)
	addChangeMethods(add)
	for _, name := range trueMethods() {
		add(1, name, methodTrue)
	}
	return table
}

// addFunc adds one method to the table under construction.
type addFunc func(weight int, name string, run methodFunc)

// addAccountMethods adds what concerns the account, its chats and its files.
func addAccountMethods(add addFunc) {
	// getUpdates waits and is carried out apart; it stands here to be known.
	add(0, "getUpdates", func(*Sim, *call) (any, *apiError) { return []any{}, nil })
	add(0, "getMe", methodGetMe)
	add(0, "close", methodClose)
	add(0, "logOut", methodLogOut)
	add(0, "setWebhook", methodSetWebhook)
	add(0, "deleteWebhook", methodDeleteWebhook)
	add(0, "getWebhookInfo", methodGetWebhookInfo)
	add(1, "setMyCommands", methodSetMyCommands)
	add(1, "getMyCommands", methodGetMyCommands)
	add(1, "deleteMyCommands", methodDeleteMyCommands)
	add(1, "getChat", methodGetChat)
	add(1, "getChatMember", methodGetChatMember)
	add(1, "getChatMemberCount", methodGetChatMemberCount)
	add(1, "getChatMembersCount", methodGetChatMemberCount)
	add(1, "getChatAdministrators", methodGetChatAdministrators)
	add(1, "leaveChat", methodLeaveChat)
	add(1, "createForumTopic", methodCreateForumTopic)
	add(1, "deleteForumTopic", methodDeleteForumTopic)
	add(1, "getFile", methodGetFile)
}

// addSendMethods adds what makes messages.
func addSendMethods(add addFunc) {
	add(2, "sendMessage", methodSendMessage)
	for _, kind := range mediaKinds() {
		add(2, kind.method, sendMedia(kind))
	}
	add(2, "sendMediaGroup", methodSendMediaGroup)
	add(2, "sendLocation", sendPlain("location", locationContent))
	add(2, "sendVenue", sendPlain("venue", venueContent))
	add(2, "sendContact", sendPlain("contact", contactContent))
	add(2, "sendPoll", sendPlain("poll", pollContent))
	add(2, "sendDice", sendPlain("dice", diceContent))
	add(2, "copyMessage", methodCopyMessage)
	add(2, "copyMessages", methodCopyMessages)
	add(2, "forwardMessage", methodForwardMessage)
	add(2, "forwardMessages", methodForwardMessages)
}

// addChangeMethods adds what changes messages, and what is gone in a moment.
func addChangeMethods(add addFunc) {
	add(2, "editMessageText", methodEditMessageText)
	add(2, "editMessageCaption", methodEditMessageCaption)
	add(2, "editMessageMedia", methodEditMessageMedia)
	add(2, "editMessageReplyMarkup", methodEditMessageReplyMarkup)
	add(1, "stopPoll", methodStopPoll)
	add(1, "deleteMessage", methodDeleteMessage)
	add(1, "deleteMessages", methodDeleteMessages)
	add(1, "pinChatMessage", methodPinChatMessage)
	add(1, "unpinChatMessage", methodUnpinChatMessage)
	add(1, "unpinAllChatMessages", methodUnpinAllChatMessages)
	add(1, "setMessageReaction", methodSetMessageReaction)
	add(1, "sendChatAction", methodSendChatAction)
	add(1, "answerCallbackQuery", answerQuery("callback_query", "callback_query_id"))
	add(1, "answerInlineQuery", methodAnswerInlineQuery)
	add(1, "answerShippingQuery", answerQuery("shipping_query", "shipping_query_id"))
	add(1, "answerPreCheckoutQuery", answerQuery("pre_checkout_query", "pre_checkout_query_id"))
}

// trueMethods are methods that the simulator takes note of and answers with
// true, without a model of what they change.
func trueMethods() []string {
	return strings.Fields(`
		approveChatJoinRequest declineChatJoinRequest banChatMember banChatSenderChat
		unbanChatMember unbanChatSenderChat restrictChatMember promoteChatMember kickChatMember
		setChatAdministratorCustomTitle setChatDescription setChatMenuButton setChatPermissions
		setChatPhoto setChatStickerSet setChatTitle deleteChatPhoto deleteChatStickerSet
		closeForumTopic reopenForumTopic editForumTopic unpinAllForumTopicMessages
		closeGeneralForumTopic reopenGeneralForumTopic editGeneralForumTopic
		hideGeneralForumTopic unhideGeneralForumTopic
		setMyName setMyDescription setMyShortDescription setMyDefaultAdministratorRights
		setPassportDataErrors sendMessageDraft readBusinessMessage deleteBusinessMessages`)
}

// methodTrue checks the chat, when there is one, and says true.
func methodTrue(s *Sim, c *call) (any, *apiError) {
	if c.params.has("chat_id") {
		if _, err := s.openChatLocked(c.params.get("chat_id")); err != nil {
			return nil, err
		}
	}
	return true, nil
}
