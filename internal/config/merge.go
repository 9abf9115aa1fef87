package config

import "strconv"

// merge adds the tree of a later file to that of the files before it. Tables
// with one name become one table, lists of tables are strung together in the
// order of the files, and anything else that both set is an error naming both
// places: which of them would win is not for us to guess.
func merge(into, from *node, path string) Errors {
	var errs Errors
	for _, key := range from.keys {
		child, name := from.child[key], join(path, key)
		have, ok := into.child[key]
		switch {
		case !ok:
			into.set(key, child)
		case have.kind == kindTable && child.kind == kindTable:
			errs = append(errs, merge(have, child, name)...)
		case have.kind == kindTables && child.kind == kindTables:
			have.items = append(have.items, child.items...)
		case have.kind == kindTables && child.kind == kindTable:
			errs = append(errs, newError(child.at, name,
				"already set at "+have.at.String()+" as a list of tables", "begin with [["+name+"]]"))
		default:
			errs = append(errs, newError(child.at, name, "already set at "+have.at.String(), "remove one of the two"))
		}
	}
	return errs
}

// places notes where each key of the tree was set.
func places(n *node, path string, into map[string]Position) {
	if path != "" {
		into[path] = n.at
	}
	for _, key := range n.keys {
		places(n.child[key], join(path, key), into)
	}
	for i, item := range n.items {
		places(item, join(path, strconv.Itoa(i)), into)
	}
}
