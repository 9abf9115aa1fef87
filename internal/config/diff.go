package config

import (
	"reflect"
	"slices"
)

// Diff names the keys that differ between two readings of the settings, sorted:
// those that a reload can apply, and those that count only after a restart.
//
// Handlers and clients are compared by name; where the list itself changed (one
// added, removed or moved) the list is named. A bot that is new or gone needs a
// restart, since its loops, its place in the store and its id are settled at
// start; its own keys are not listed then.
func Diff(old, new *Config) (reloadable, restart []string) {
	d := &differ{}
	d.table(reflect.ValueOf(*old), reflect.ValueOf(*new), "", false)
	slices.Sort(d.reload)
	slices.Sort(d.restart)
	return d.reload, d.restart
}

// differ collects the keys that differ.
type differ struct {
	reload, restart []string
}

func (d *differ) add(path string, restart bool) {
	if restart {
		d.restart = append(d.restart, path)
		return
	}
	d.reload = append(d.reload, path)
}

// table compares two settings structs key by key.
func (d *differ) table(a, b reflect.Value, path string, restart bool) {
	for _, f := range fieldsOf(a.Type()) {
		x, y := a.Field(f.index), b.Field(f.index)
		name, needs := join(path, f.name), restart || f.restart
		switch list := x.Interface().(type) {
		case []Bot:
			next, _ := y.Interface().([]Bot)
			diffNamed(d, list, next, name, true, func(b Bot) string { return b.Name })
		case []Handler:
			next, _ := y.Interface().([]Handler)
			diffNamed(d, list, next, name, needs, func(h Handler) string { return h.Name })
			if order(list, next, func(h Handler) string { return h.Name }) {
				d.add(name, needs)
			}
		case []Client:
			next, _ := y.Interface().([]Client)
			diffNamed(d, list, next, name, needs, func(c Client) string { return c.Name })
		default:
			if f.isTable() && x.Kind() == reflect.Struct {
				d.table(x, y, name, needs)
			} else if !f.same(x, y) {
				d.add(name, needs)
			}
		}
	}
}

// same compares two values of the key. An absent list and an empty one differ
// only where absence means something of its own.
func (f field) same(x, y reflect.Value) bool {
	if k := x.Kind(); (k == reflect.Slice || k == reflect.Map) && !f.unset && x.Len()+y.Len() == 0 {
		return true
	}
	return reflect.DeepEqual(x.Interface(), y.Interface())
}

// diffNamed compares two lists of tables by the names of their elements. An
// element that is only in one of them counts as a change with the given weight.
func diffNamed[T any](d *differ, a, b []T, path string, restart bool, name func(T) string) {
	old := map[string]T{}
	for _, one := range a {
		old[name(one)] = one
	}
	for _, one := range b {
		key := join(path, name(one))
		was, ok := old[name(one)]
		if !ok {
			d.add(key, restart)
			continue
		}
		delete(old, name(one))
		// What is in a table decides by itself what a change of it needs.
		d.table(reflect.ValueOf(was), reflect.ValueOf(one), key, false)
	}
	for gone := range old {
		d.add(join(path, gone), restart)
	}
}

// order reports whether the elements that both lists have stand in another
// order: with handlers the first match wins, so their order is a setting.
func order[T any](a, b []T, name func(T) string) bool {
	place := map[string]int{}
	for i, one := range a {
		place[name(one)] = i + 1
	}
	last := 0
	for _, one := range b {
		i := place[name(one)]
		if i == 0 {
			continue
		}
		if i < last {
			return true
		}
		last = i
	}
	return false
}
