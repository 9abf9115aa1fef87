package config

import (
	"slices"
	"strings"
)

// text decodes a string and holds it to the values or the form of its key.
func (d *decoder) text(n *node, f field, path string) string {
	if f.form == "chat" {
		return d.chat(n, path)
	}
	if n.kind != kindString {
		hint := n.quoteHint()
		if f.values != nil {
			hint = "one of " + strings.Join(f.values, ", ") + ", in quotes"
		}
		d.fail(n.val, path, "want a string, have "+n.kind.String(), hint)
		return ""
	}
	if n.text == "" && (f.required || (f.values != nil && f.def != "")) {
		d.fail(n.val, path, "must not be empty", "")
		return ""
	}
	return d.checked(n, f, path)
}

// checked returns the text of a string node in the form that its key wants.
// An empty string stands for an absent key.
func (d *decoder) checked(n *node, f field, path string) string {
	if n.text == "" {
		return ""
	}
	if f.values != nil {
		if !slices.Contains(f.values, n.text) {
			hint := "one of " + strings.Join(f.values, ", ")
			if near := nearest(n.text, f.values); near != "" {
				hint = "did you mean " + show(near) + "? " + hint
			}
			d.fail(n.val, path, show(n.text)+" is not known", hint)
		}
		return n.text
	}
	text, why, hint := shape(f.form, n.text)
	if why != "" {
		d.fail(n.val, path, why, hint)
	}
	return text
}

// texts decodes a list of strings. Where a list is an alternative of values,
// one value may stand alone.
func (d *decoder) texts(n *node, f field, dst *[]string, path string) {
	items := n.items
	switch {
	case n.kind == kindList:
	case n.kind == kindString && f.form != "argv":
		items = []*node{n}
	default:
		hint := `for example ["a", "b"]`
		if f.form == "argv" {
			hint = `program and arguments one by one: ["/usr/bin/uptime", "-p"]`
		}
		d.fail(n.val, path, "want a list of strings, have "+n.kind.String(), hint)
		return
	}
	// Not nil: an empty list that someone wrote down is not an absent one.
	*dst = make([]string, 0, len(items))
	for i, item := range items {
		switch {
		case f.form == "chat":
			*dst = append(*dst, d.chatOrAll(item, path, len(items)))
			continue
		case item.kind != kindString:
			d.fail(item.val, path, "want a string, have "+item.kind.String(), item.quoteHint())
			continue
		case f.form == "argv":
			d.argument(item, i, path)
		case item.text == "":
			d.fail(item.val, path, "must not be empty", "")
			continue
		case f.form == "method" && item.text == "*" && len(items) > 1:
			d.fail(item.val, path, `"*" stands alone`, "")
		}
		if f.form == "argv" {
			*dst = append(*dst, item.text)
			continue
		}
		*dst = append(*dst, d.checked(item, f, path))
	}
	if f.form == "argv" && len(items) == 0 {
		d.fail(n.val, path, "names no program", `for example ["/usr/bin/uptime"]`)
	}
}

// argument checks one element of a command line. An argument may be empty, the
// program may not.
func (d *decoder) argument(n *node, i int, path string) {
	if strings.ContainsRune(n.text, 0) {
		d.fail(n.val, path, "holds a NUL", "")
	}
	if i > 0 {
		return
	}
	switch {
	case strings.TrimSpace(n.text) == "":
		d.fail(n.val, path, "names no program", `for example ["/usr/bin/uptime"]`)
	case strings.HasPrefix(n.text, "~"):
		d.fail(n.val, path, "~ is not expanded", "write the whole path")
	}
}
