package config

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
)

// TOML returns the settings as a file that Load reads to the same effect,
// defaults included. What may hold a secret is left out, with a comment in its
// place; clients, which can't do without theirs, are comments as a whole.
func (c *Config) TOML() string {
	w := &tomlWriter{}
	w.table(reflect.ValueOf(c).Elem(), "", "")
	return strings.TrimPrefix(w.b.String(), "\n")
}

// tomlWriter writes settings along the tags of their structs.
type tomlWriter struct {
	b strings.Builder
}

func (w *tomlWriter) line(format string, args ...any) { fmt.Fprintf(&w.b, format+"\n", args...) }

// table writes the keys of a table, then the tables in it: in TOML a key behind
// the header of an inner table would belong to that one. kind is the handler's,
// which decides what keys it may have.
func (w *tomlWriter) table(v reflect.Value, path, kind string) {
	var inner []field
	for _, f := range fieldsOf(v.Type()) {
		value := v.Field(f.index)
		switch {
		case f.only != "" && f.only != kind:
		case f.typ == reflect.TypeFor[Match](), f.typ == reflect.TypeFor[Keep]():
			w.line("%s = %s", f.name, inlineTOML(value))
		case f.typ == reflect.TypeFor[[]Listen]():
			list := make([]string, value.Len())
			for i := range list {
				list[i] = "\n\t" + inlineTOML(value.Index(i)) + ","
			}
			w.line("%s = [%s\n]", f.name, strings.Join(list, ""))
		case f.isTable(), f.typ.Kind() == reflect.Map:
			inner = append(inner, f)
		case f.secret && !value.IsZero():
			w.line("# %s is set; it may hold a secret", f.name)
		case f.unset && value.IsNil():
		default:
			w.line("%s = %s", f.name, f.toml(value))
		}
	}
	for _, f := range inner {
		w.inner(v.Field(f.index), join(path, f.name))
	}
}

// inner writes what has a header of its own.
func (w *tomlWriter) inner(v reflect.Value, path string) {
	switch value := v.Interface().(type) {
	case []Bot:
		for _, bot := range value {
			at := join(path, bot.Name)
			w.line("\n[%s]", at)
			w.table(reflect.ValueOf(bot), at, "")
		}
	case []Handler:
		for _, h := range value {
			w.line("\n[[%s]]", path)
			w.table(reflect.ValueOf(h), path, h.Kind())
		}
	case []Client:
		for _, c := range value {
			hidden := &tomlWriter{}
			hidden.line("[[%s]]", path)
			hidden.table(reflect.ValueOf(c), path, "")
			w.line("\n# %s", strings.ReplaceAll(strings.TrimSpace(hidden.b.String()), "\n", "\n# "))
		}
	case map[string]string:
		if len(value) > 0 {
			w.line("\n[%s]", path)
		}
		for _, name := range slices.Sorted(maps.Keys(value)) {
			chat := value[name]
			if _, err := strconv.ParseInt(chat, 10, 64); err != nil {
				chat = quoteTOML(chat)
			}
			w.line("%s = %s", keyTOML(name), chat)
		}
	default:
		w.line("\n[%s]", path)
		w.table(v, path, "")
	}
}

// inlineTOML writes a small table in one line, without what is empty.
func inlineTOML(v reflect.Value) string {
	var parts []string
	for _, f := range fieldsOf(v.Type()) {
		value := v.Field(f.index)
		if f.def == "" && (value.IsZero() || value.Kind() == reflect.Slice && value.Len() == 0) {
			continue
		}
		parts = append(parts, f.name+" = "+f.toml(value))
	}
	return "{ " + strings.Join(parts, ", ") + " }"
}

// toml writes the value of the key.
func (f field) toml(v reflect.Value) string {
	switch value := v.Interface().(type) {
	case time.Duration:
		return quoteTOML(shortDuration(value))
	case Allow:
		if value.All {
			return `["*"]`
		}
		return listTOML(value.IDs, func(id int64) string { return strconv.FormatInt(id, 10) })
	case []int64:
		return listTOML(value, func(id int64) string { return strconv.FormatInt(id, 10) })
	case []string:
		return listTOML(value, quoteTOML)
	case string:
		return quoteTOML(value)
	case int64:
		if f.form == "size" {
			return quoteTOML(sizeText(value))
		}
	}
	return fmt.Sprint(v.Interface()) // integers, numbers, true and false look as in Go
}

func listTOML[T any](list []T, one func(T) string) string {
	parts := make([]string, len(list))
	for i, v := range list {
		parts[i] = one(v)
	}
	return "[" + strings.Join(parts, ", ") + "]"
}

// shortDuration is a duration without the zeros that Go writes behind hours and
// minutes.
func shortDuration(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}

// sizeText is a size in the largest unit that leaves no rest.
func sizeText(n int64) string {
	for _, unit := range []struct {
		name string
		size int64
	}{{"TiB", 1 << 40}, {"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10}, {"TB", 1e12}, {"GB", 1e9}, {"MB", 1e6}, {"kB", 1e3}} {
		if n != 0 && n%unit.size == 0 {
			return strconv.FormatInt(n/unit.size, 10) + unit.name
		}
	}
	return strconv.FormatInt(n, 10)
}

// keyTOML is a name as a key, in quotes where it must be.
func keyTOML(name string) string {
	if strings.Trim(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_") == "" {
		return name
	}
	return quoteTOML(name)
}

// quoteTOML is a string in quotes. What doesn't show itself is escaped: the
// settings end on a terminal. Go's own quotes know escapes that TOML doesn't.
func quoteTOML(s string) string {
	var b strings.Builder
	b.WriteByte('"')
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			b.WriteString(`\` + string(r))
		case unicode.IsPrint(r):
			b.WriteRune(r)
		default:
			fmt.Fprintf(&b, `\U%08X`, r)
		}
	}
	b.WriteByte('"')
	return b.String()
}
