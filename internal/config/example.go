package config

import (
	"reflect"
	"strings"
)

// Example returns a settings file with every key, its default or a sample value,
// and what it is for. All of it is commented out: sentences behind "# ", settings
// behind "#" alone, so that taking away that one sign sets the key.
func Example() string {
	w := &exampleWriter{}
	w.doc("Settings of tgspool. As they stand here, all commented out, the defaults count; " +
		"what you change is better put into a file of its own, conf.d/NAME.toml beside this one. " +
		"A key may be set once only. Take away the # in front of a key, and of the [table] above it, to set it. " +
		"tgspool config check says whether all is well, tgspool reload applies what can change without a restart.")
	w.table(reflect.TypeFor[Config](), "")
	return w.b.String()
}

// exampleWriter writes the example.
type exampleWriter struct {
	b strings.Builder
}

// doc writes sentences as comments, wrapped.
func (w *exampleWriter) doc(text string) {
	const width = 88
	line := "#"
	for word := range strings.FieldsSeq(text) {
		if len(line)+1+len(word) > width {
			w.b.WriteString(line + "\n")
			line = "#"
		}
		line += " " + word
	}
	w.b.WriteString(line + "\n")
}

// setting writes a line that counts when its comment sign is taken away.
func (w *exampleWriter) setting(line string) {
	w.b.WriteString("#" + line + "\n")
}

// header begins a table.
func (w *exampleWriter) header(line string) {
	w.b.WriteString("\n")
	w.setting(line)
}

// table writes the keys of a table, then the tables in it: in TOML a key behind
// the header of an inner table would belong to that one.
func (w *exampleWriter) table(t reflect.Type, path string) {
	var inner []field
	for _, f := range fieldsOf(t) {
		switch {
		case f.typ == reflect.TypeFor[Match](), f.typ == reflect.TypeFor[Keep]():
			w.inline(f)
		case f.typ == reflect.TypeFor[[]Listen]():
			w.listen(f)
		case f.isTable(), f.typ.Kind() == reflect.Map:
			inner = append(inner, f)
		default:
			w.key(f)
		}
	}
	for _, f := range inner {
		name := join(path, f.name)
		switch {
		case f.typ == reflect.TypeFor[[]Bot]():
			w.header("[" + name + ".home]")
			w.table(f.typ.Elem(), name+".home")
		case f.typ == reflect.TypeFor[[]Handler]():
			w.handlers(name)
		case f.typ.Kind() == reflect.Slice:
			w.header("[[" + name + "]]")
			w.table(f.typ.Elem(), name)
		case f.typ.Kind() == reflect.Map:
			w.header("[" + name + "]")
			w.doc(f.doc)
			w.setting("me = " + f.example)
			w.setting("family = -1001234567890")
		default:
			w.header("[" + name + "]")
			w.table(f.typ, name)
		}
	}
}

// key writes one key with its default, or a sample where it has none.
func (w *exampleWriter) key(f field) {
	w.doc(f.doc + f.allowed() + f.reload())
	w.setting(f.line(f.sample()))
}

// allowed lists the values that the key may have.
func (f field) allowed() string {
	if f.values == nil {
		return ""
	}
	return " One of " + strings.Join(f.values, ", ") + "."
}

// reload says when a change of the key counts only after a restart.
func (f field) reload() string {
	if !f.restart {
		return ""
	}
	return " (A change needs a restart.)"
}

// sample returns the default, else the example, else the zero value, as line
// wants it.
func (f field) sample() string {
	switch {
	case f.def != "":
		return f.def
	case f.example != "":
		return f.example
	case f.quoted():
		return ""
	}
	switch f.typ.Kind() {
	case reflect.Bool:
		return "false"
	case reflect.Slice:
		return "[]"
	default:
		return "0"
	}
}

// inline writes a small table in one line, with those of its keys that have a
// default or an example.
func (w *exampleWriter) inline(f field) {
	var parts []string
	for _, inner := range fieldsOf(f.typ) {
		w.doc(inner.name + ": " + inner.doc)
		if inner.def == "" && inner.example == "" {
			continue
		}
		parts = append(parts, inner.line(inner.sample()))
	}
	w.setting(f.name + " = { " + strings.Join(parts, ", ") + " }")
}

// listen writes the addresses, with the keys of an entry explained.
func (w *exampleWriter) listen(f field) {
	w.doc(f.doc + f.reload())
	for _, inner := range fieldsOf(f.typ.Elem()) {
		w.doc(inner.name + ": " + inner.doc + inner.allowed())
	}
	w.setting(f.line(f.def))
}

// handlers writes one handler of each kind: the first with every key that a
// program may have, the others with what is theirs alone.
func (w *exampleWriter) handlers(path string) {
	for _, kind := range []struct{ only, name, match string }{
		{"exec", "", ""},
		{"webhook", "buttons", `{ kind = "callback_query" }`},
		{"pull", "rest", ""},
	} {
		w.header("[[" + path + "]]")
		for _, f := range handlerFields() {
			switch {
			case f.name == "name" && kind.name != "":
				w.setting(f.line(kind.name))
			case f.typ == reflect.TypeFor[Match]() && kind.only == "exec":
				w.inline(f)
			case f.typ == reflect.TypeFor[Match]() && kind.match != "":
				w.setting(f.line(kind.match))
			case f.isTable():
			case f.only == kind.only, f.only == "" && kind.only == "exec":
				w.key(f)
			}
		}
	}
}
