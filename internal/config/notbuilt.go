package config

import (
	"cmp"
	"slices"
	"strings"
)

// unbuilt is a key whose meaning is settled while nothing acts on it yet.
type unbuilt struct {
	key string // as in Keys; a table stands for all that is in it
}

// notBuilt is the list of these keys. Whoever builds one takes its line away.
// It is the table of load, and of nothing else.
func notBuilt() []unbuilt {
	return []unbuilt{
		{key: "bots.NAME.admin"},
	}
}

// unbuilt reports the keys of the list that a file sets to something that should
// have an effect, as problems for Check.
func (d *decoder) unbuilt(cfg *Config, list []unbuilt) {
	defaults := map[string]string{}
	for _, k := range Keys() {
		defaults[k.Path] = strings.Trim(k.Default, `"`)
	}
	for id, n := range d.set {
		path, shown := general(id)
		i := slices.IndexFunc(list, func(u unbuilt) bool { return u.key == path })
		if i >= 0 && !n.idle(defaults[path]) {
			cfg.unbuilt = append(cfg.unbuilt, Problem{Position: n.at, Key: shown, Why: "not built yet, has no effect"})
		}
	}
	slices.SortFunc(cfg.unbuilt, func(a, b Problem) int {
		x, y := a.Position, b.Position
		return cmp.Or(cmp.Compare(x.order, y.order), cmp.Compare(x.Line, y.Line), cmp.Compare(x.Column, y.Column), strings.Compare(a.Key, b.Key))
	})
}

// idle reports whether a value asks for nothing: it is empty, none, off, or what
// holds anyway.
func (n *node) idle(def string) bool {
	if n.kind < kindString {
		return len(n.keys)+len(n.items) == 0
	}
	return slices.Contains([]string{"", "0", "0s", "false", def}, n.text)
}

// general returns the path of a key as Keys has it, and as it is shown: without
// the numbers of the elements, which the place says better.
func general(id string) (path, shown string) {
	parts := strings.Split(id, ".")
	var general, short []string
	for i, part := range parts {
		switch {
		case i == 1 && parts[0] == "bots":
			general, short = append(general, "NAME"), append(short, part)
		case i > 1 && strings.Trim(part, "0123456789") == "":
			general[len(general)-1] += "[]"
		default:
			general, short = append(general, part), append(short, part)
		}
	}
	return strings.Join(general, "."), strings.Join(short, ".")
}
