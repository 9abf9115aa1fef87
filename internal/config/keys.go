package config

import (
	"reflect"
	"strings"
	"time"
)

// defaultOnceAge is the age at which an update is too old for a handler with
// once, where max_age isn't given.
const defaultOnceAge = 60 * time.Second

// Key describes one key of the settings.
type Key struct {
	// Path is the dotted path; NAME stands for a name that the user chooses,
	// [] for the elements of a list of tables.
	Path string
	// Type is what the key holds, in words: string, duration, size, integer,
	// number, boolean, list of strings, list of chats, list of addresses,
	// table of chats.
	Type string
	// Default is the value of an absent key as it stands in a file; "" when
	// there is none.
	Default string
	// Doc says in sentences what the key is for.
	Doc string
	// Restart is set when a change counts only after a restart.
	Restart bool
	// Secret is set when the value may hold a secret; show whether it is set,
	// never what it is.
	Secret bool
	// Values are the only values allowed; nil for any.
	Values []string
}

// Keys returns every key of the settings, in the order in which a file has
// them.
func Keys() []Key {
	var out []Key
	walkKeys(reflect.TypeFor[Config](), "", false, func(path string, f field) {
		key := Key{
			Path: path, Type: f.typeName(), Default: f.def, Doc: f.doc,
			Restart: f.restart, Secret: f.secret, Values: f.values,
		}
		switch {
		case f.def != "" && f.quoted():
			key.Default = strings.TrimPrefix(f.line(f.def), f.name+" = ")
		case f.def == "" && f.typ.Kind() == reflect.Slice && f.form != "argv" && !f.unset:
			key.Default = "[]"
		}
		out = append(out, key)
	})
	return out
}

// walkKeys visits every key of a settings struct and of the tables in it.
// restart is inherited by all keys of a table that needs it.
func walkKeys(t reflect.Type, prefix string, restart bool, visit func(path string, f field)) {
	for _, f := range fieldsOf(t) {
		f.restart = f.restart || restart
		path := join(prefix, f.name)
		if !f.isTable() || f.typ == reflect.TypeFor[[]Listen]() {
			visit(path, f)
		}
		switch {
		case !f.isTable():
		case f.typ == reflect.TypeFor[[]Bot]():
			walkKeys(f.typ.Elem(), path+".NAME", f.restart, visit)
		case f.typ.Kind() == reflect.Slice:
			walkKeys(f.typ.Elem(), path+"[]", f.restart, visit)
		default:
			walkKeys(f.typ, path, f.restart, visit)
		}
	}
}

// handlerFields returns the fields of a handler's table.
func handlerFields() []field {
	return fieldsOf(reflect.TypeFor[Handler]())
}
