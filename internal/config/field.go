package config

import (
	"reflect"
	"strings"
	"time"
)

// field is one key of a table, as the tags of its struct field describe it.
type field struct {
	name     string // the key
	index    int    // of the struct field
	typ      reflect.Type
	def      string   // TOML text, strings without their quotes; "" for the zero value
	doc      string   // sentences for people
	example  string   // as def, for the example of a key without a default
	form     string   // the name of an entry of forms, or size
	values   []string // the values allowed, nil for any
	min, max string   // bounds, written as a value of the key
	only     string   // handlers: the kind that has the key
	required bool
	secret   bool // the value may hold a secret and is never shown
	restart  bool
	unset    bool // absence is a value of its own, and nil
}

// fieldsOf returns the fields of a settings struct in their order. Fields
// without a toml tag are no keys.
func fieldsOf(t reflect.Type) []field {
	var out []field
	for i := range t.NumField() {
		sf := t.Field(i)
		name, ok := sf.Tag.Lookup("toml")
		if !ok {
			continue
		}
		tag := sf.Tag.Get
		f := field{
			name: name, index: i, typ: sf.Type,
			def: tag("default"), doc: tag("doc"), example: tag("example"), form: tag("form"),
			min: tag("min"), max: tag("max"), only: tag("only"),
			required: tag("required") == "true", secret: tag("secret") == "true", restart: tag("restart") == "true",
			unset: tag("unset") == "true",
		}
		if enum := tag("enum"); enum != "" {
			f.values = strings.Split(enum, "|")
		}
		out = append(out, f)
	}
	return out
}

// isTable reports whether the field is a table with keys of its own: a struct,
// a list of structs, or the bots by name.
func (f field) isTable() bool {
	t := f.typ
	if t.Kind() == reflect.Slice {
		t = t.Elem()
	}
	return t.Kind() == reflect.Struct && t != reflect.TypeFor[Allow]()
}

// typeName returns what the key holds, in words for people.
func (f field) typeName() string {
	if f.form == "size" {
		return "size"
	}
	switch f.typ {
	case reflect.TypeFor[time.Duration]():
		return "duration"
	case reflect.TypeFor[Allow](), reflect.TypeFor[[]int64]():
		return "list of chats"
	case reflect.TypeFor[[]Listen]():
		return "list of addresses"
	case reflect.TypeFor[map[string]string]():
		return "table of chats"
	}
	switch f.typ.Kind() {
	case reflect.Slice:
		return "list of strings"
	case reflect.Bool:
		return "boolean"
	case reflect.Float64:
		return "number"
	case reflect.Int, reflect.Int64:
		return "integer"
	default:
		return "string"
	}
}

// quoted reports whether a value of the key stands in quotes in a file.
func (f field) quoted() bool {
	return f.form == "size" || f.typ == reflect.TypeFor[time.Duration]() || f.typ.Kind() == reflect.String
}
