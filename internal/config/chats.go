package config

import (
	"maps"
	"slices"
	"strconv"
	"strings"
)

// chatNames decodes [bots.NAME.chats].
func (d *decoder) chatNames(n *node, dst *map[string]string, path string) {
	if n.kind != kindTable {
		d.fail(n.at, path, "want a table, have "+n.kind.String(), "begin with ["+path+"]")
		return
	}
	for _, name := range n.keys {
		child, at := n.child[name], join(path, name)
		d.set[at] = child
		if _, isID := chatText(name); isID || name == "" || name == "*" || strings.HasPrefix(name, "@") {
			d.fail(child.at, at, "not a name for a chat", "a name is no id, no @name and no *")
			continue
		}
		text, ok := child.chat()
		if !ok {
			d.fail(child.val, at, "not a chat", `an id such as 12345 or -1001234567890, or "@username"`)
		}
		// A name with a wrong value is known all the same: one mistake, one error.
		d.chats[name] = text
	}
	*dst = maps.Clone(d.chats)
}

// chat decodes what names one chat: a name of the bot's chats, an id, an @name.
// Empty is none.
func (d *decoder) chat(n *node, path string) string {
	if n.kind == kindString {
		if id, ok := d.chats[n.text]; ok || n.text == "" {
			return id
		}
	}
	text, ok := n.chat()
	switch {
	case ok:
	case n.kind == kindString:
		d.fail(n.val, path, show(n.text)+" is no chat", d.chatHint(n.text))
	case n.kind == kindInteger:
		d.fail(n.val, path, "not a chat's id", "")
	default:
		d.fail(n.val, path, "want a chat, have "+n.kind.String(), "a name of [bots.NAME.chats], an id, or an @name")
	}
	return text
}

// chat returns the id, in decimal, or the @name that a node holds; false and ""
// when it holds neither.
func (n *node) chat() (string, bool) {
	switch {
	case n.kind == kindString:
		return chatText(n.text)
	case n.kind != kindInteger:
		return "", false
	}
	id, err := strconv.ParseInt(strings.TrimPrefix(n.text, "+"), 0, 64)
	if err != nil || id == 0 {
		return "", false
	}
	return strconv.FormatInt(id, 10), true
}

// chatHint says what to write in the place of a name that isn't known.
func (d *decoder) chatHint(name string) string {
	if near := nearest(name, slices.Sorted(maps.Keys(d.chats))); near != "" {
		return "did you mean " + show(near) + "?"
	}
	return "names stand in [bots.NAME.chats]"
}

// chatOrAll is chat for an element of a list that may be ["*"].
func (d *decoder) chatOrAll(n *node, path string, count int) string {
	if n.kind != kindString || n.text != "*" {
		return d.chat(n, path)
	}
	if count > 1 {
		d.fail(n.val, path, `"*" stands alone`, "")
	}
	return "*"
}

// ids decodes a list of chats or users, or a single one.
func (d *decoder) ids(n *node, f field, dst *[]int64, path string) {
	items := n.items
	if n.kind != kindList {
		items = []*node{n}
	}
	*dst = make([]int64, 0, len(items))
	for _, item := range items {
		if id, ok := d.id(item, f, path); ok {
			*dst = append(*dst, id)
		}
	}
}

// id decodes a chat or user that must be known by its id: an @name can change
// hands, and updates are matched by ids.
func (d *decoder) id(n *node, f field, path string) (int64, bool) {
	before := len(d.errs)
	text := d.chat(n, path)
	if len(d.errs) > before {
		return 0, false
	}
	id, err := strconv.ParseInt(text, 10, 64)
	switch {
	case text == "" && n.text != "":
		return 0, false // a name whose own value is wrong; reported there
	case text == "":
		d.fail(n.val, path, "must not be empty", "")
	case err != nil:
		d.fail(n.val, path, show(n.text)+" is an @name, which can change hands", "write the id")
	case f.form == "user" && id < 0:
		d.fail(n.val, path, show(n.text)+" is a group or channel, not a user", "")
	default:
		return id, true
	}
	return 0, false
}

// allow decodes a list that says who may do something.
func (d *decoder) allow(n *node, f field, dst *Allow, path string) {
	if n.kind != kindList {
		d.fail(n.val, path, "want a list, have "+n.kind.String(), `for example ["me"], or ["*"] for all`)
		return
	}
	*dst = Allow{IDs: make([]int64, 0, len(n.items))}
	for _, item := range n.items {
		if item.kind == kindString && item.text == "*" {
			if len(n.items) > 1 {
				d.fail(item.val, path, `"*" stands alone`, "")
			}
			*dst = Allow{All: true}
			return
		}
		if id, ok := d.id(item, f, path); ok {
			dst.IDs = append(dst.IDs, id)
		}
	}
}

// defaultChats gives default_chat and admin.chat their default, the chat named
// me, where the file sets neither and has that name.
func (d *decoder) defaultChats(bot *Bot, id string) {
	me := bot.Chats["me"]
	if _, ok := d.set[id+".default_chat"]; !ok {
		bot.DefaultChat = me
	}
	if _, ok := d.set[id+".admin.chat"]; !ok {
		bot.Admin.Chat = me
	}
}
