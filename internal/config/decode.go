package config

import (
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
)

// decoder fills structs from a tree along their tags. It goes on after an
// error, so that one reading shows everything.
type decoder struct {
	errs  Errors
	chats map[string]string // the names of the bot being decoded
	set   map[string]*node  // every key that a file sets, by its dotted path with element numbers
}

// maxHints is the number of errors up to which unknown keys get a hint. A file
// with more is no settings file, and each hint costs a look at all keys.
const maxHints = 100

func (d *decoder) fail(at Position, key, why, hint string) {
	d.errs = append(d.errs, newError(at, key, why, hint))
}

// table decodes a table into a struct. path is the dotted path for errors, id
// the one that tells elements of lists apart.
func (d *decoder) table(n *node, v reflect.Value, path, id string) {
	if n.kind != kindTable {
		d.fail(n.at, path, "want a table, have "+n.kind.String(), "")
		return
	}
	fields := fieldsOf(v.Type())
	known := make([]string, len(fields))
	for i, f := range fields {
		known[i] = f.name
		child, ok := n.child[f.name]
		if !ok {
			if f.required && f.def == "" {
				d.fail(n.at, join(path, f.name), "missing", "")
			}
			continue
		}
		d.set[join(id, f.name)] = child
		d.field(child, f, v.Field(f.index), join(path, f.name), join(id, f.name))
	}
	for _, key := range n.keys {
		if slices.Contains(known, key) {
			continue
		}
		hint := ""
		if len(d.errs) < maxHints {
			hint = keyHint(key, known)
		}
		d.fail(n.child[key].at, join(path, key), "unknown key", hint)
	}
}

// field decodes the value of one key.
func (d *decoder) field(n *node, f field, v reflect.Value, path, id string) {
	switch dst := v.Addr().Interface().(type) {
	case *[]Bot:
		d.bots(n, dst, path)
	case *[]Handler:
		decodeTables(d, n, dst, path, id)
	case *[]Client:
		decodeTables(d, n, dst, path, id)
	case *[]Listen:
		d.listen(n, dst, path, id)
	case *map[string]string:
		d.chatNames(n, dst, path)
	case *Allow:
		d.allow(n, f, dst, path)
	case *[]int64:
		d.ids(n, f, dst, path)
	case *[]string:
		d.texts(n, f, dst, path)
	case *string:
		*dst = d.text(n, f, path)
	case *bool:
		d.boolean(n, dst, path)
	case *time.Duration:
		d.number(n, f, path, func(s scalar) { *dst = time.Duration(s.whole) })
	case *int64:
		d.number(n, f, path, func(s scalar) { *dst = s.whole })
	case *int:
		d.number(n, f, path, func(s scalar) { *dst = int(s.whole) })
	case *float64:
		d.number(n, f, path, func(s scalar) { *dst = s.real })
	default:
		d.table(n, v, path, id)
	}
}

// bots decodes the tables [bots.NAME].
func (d *decoder) bots(n *node, dst *[]Bot, path string) {
	if n.kind != kindTable {
		d.fail(n.at, path, "want a table, have "+n.kind.String(), "begin with [bots.NAME]")
		return
	}
	for _, name := range n.keys {
		child, at := n.child[name], join(path, name)
		if !validBotName(name) {
			d.fail(child.at, at, "not a bot's name", "1 to 32 of a-z, 0-9, - and _")
		}
		bot := Bot{Name: name}
		setDefaults(reflect.ValueOf(&bot).Elem())
		d.set[at] = child
		d.chats = map[string]string{}
		d.table(child, reflect.ValueOf(&bot).Elem(), at, at)
		d.defaultChats(&bot, at)
		*dst = append(*dst, bot)
	}
}

// validBotName reports whether the name can stand in file names, in the names
// of credentials and in addresses as it is.
func validBotName(s string) bool {
	return s != "" && len(s) <= 32 && strings.Trim(s, "abcdefghijklmnopqrstuvwxyz0123456789-_") == ""
}

// decodeTables decodes a list of tables.
func decodeTables[T any](d *decoder, n *node, dst *[]T, path, id string) {
	if n.kind != kindTables && n.kind != kindList {
		d.fail(n.at, path, "want a list of tables, have "+n.kind.String(), "begin with [["+path+"]]")
		return
	}
	for i, item := range n.items {
		var one T
		setDefaults(reflect.ValueOf(&one).Elem())
		at := join(id, strconv.Itoa(i))
		d.set[at] = item
		d.table(item, reflect.ValueOf(&one).Elem(), path, at)
		*dst = append(*dst, one)
	}
}

// listen decodes addresses, each alone or as a table.
func (d *decoder) listen(n *node, dst *[]Listen, path, id string) {
	*dst = nil
	if n.kind != kindList && n.kind != kindTables {
		d.fail(n.val, path, "want a list, have "+n.kind.String(), `for example ["tcp:127.0.0.1:8081"]`)
		return
	}
	addr := fieldsOf(reflect.TypeFor[Listen]())[0]
	for i, item := range n.items {
		at := join(id, strconv.Itoa(i))
		d.set[at] = item
		*dst = append(*dst, d.address(item, addr, path, at))
	}
}

// address decodes one entry of listen; addr is the field of its address.
func (d *decoder) address(n *node, addr field, path, id string) Listen {
	var one Listen
	if n.kind == kindString {
		one.Addr = d.text(n, addr, path)
		return one
	}
	if n.kind != kindTable {
		d.fail(n.val, path, "want an address, have "+n.kind.String(), `"unix:/path" or "tcp:host:port", or a table with addr`)
		return one
	}
	d.table(n, reflect.ValueOf(&one).Elem(), path, id)
	return one
}

// setDefaults fills a struct with the defaults of its tags. They go through the
// decoder like what a file sets, so that they obey the same rules.
func setDefaults(v reflect.Value) {
	for _, f := range fieldsOf(v.Type()) {
		switch {
		case f.def != "":
			d := decoder{set: map[string]*node{}, chats: map[string]string{}}
			if f.form == "chat" { // a name whose meaning depends on the file; see defaultChats
				continue
			}
			d.field(f.node(f.def), f, v.Field(f.index), f.name, f.name)
			if len(d.errs) > 0 {
				panic(fmt.Sprintf("default of %s: %v", f.name, d.errs))
			}
		case f.typ.Kind() == reflect.Struct && f.isTable():
			setDefaults(v.Field(f.index))
		}
	}
}

// line returns the text of the key in a settings file.
func (f field) line(value string) string {
	if f.quoted() {
		value = strconv.Quote(value)
	}
	return f.name + " = " + value
}

// node returns the tree of a value written as in the tags.
func (f field) node(value string) *node {
	root, errs := parse("default", 0, []byte(f.line(value)))
	if len(errs) > 0 {
		panic(fmt.Sprintf("default of %s: %v", f.name, errs))
	}
	return root.child[f.name]
}
