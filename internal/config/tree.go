package config

import (
	"bytes"
	"errors"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/pelletier/go-toml/v2"
	"github.com/pelletier/go-toml/v2/unstable"
)

// kind is what a node holds.
type kind int

const (
	kindTable   kind = iota // a table, by header or inline
	kindTables              // a list of tables made of [[headers]]
	kindList                // a list in brackets
	kindString              // text is the string itself
	kindInteger             // text is the number as written
	kindFloat               // text is the number as written
	kindBool                // text is true or false
	kindTime                // text is a date or time as written; no key takes one
)

// String returns the kind as it stands in errors.
func (k kind) String() string {
	return [...]string{"a table", "a list of tables", "a list", "a string", "an integer", "a number", "true or false", "a date"}[k]
}

// node is one value of a settings file, with its place.
type node struct {
	kind kind
	at   Position // the key; for an element of a list as val
	val  Position // the value
	text string   // scalars only

	keys  []string         // tables only: the order in the file
	child map[string]*node // tables only
	items []*node          // lists only

	header Position // tables only: its own [header], if it has one
}

// quoteHint says how a value that stands where a string is wanted becomes one.
func (n *node) quoteHint() string {
	if n.kind < kindString {
		return ""
	}
	return "in quotes"
}

func newTable(at Position) *node {
	return &node{kind: kindTable, at: at, val: at, child: map[string]*node{}}
}

// set adds a child to a table.
func (n *node) set(key string, child *node) {
	n.keys = append(n.keys, key)
	n.child[key] = child
}

// treeBuilder turns the text of one file into a tree.
type treeBuilder struct {
	file   string
	order  int
	data   []byte
	lines  []int // the offset of each line's start
	parser unstable.Parser
	root   *node
	table  *node  // where key = value lines go now
	prefix string // its dotted path
	errs   Errors
}

// parse returns the tree of one file, nil when it is no TOML at all: a tree cut
// short would only cause errors that are none. With other errors (a key set
// twice) the tree is whole but for what they name. go-toml has the last word on
// what is TOML and what isn't.
func parse(file string, order int, data []byte) (*node, Errors) {
	data = bytes.TrimPrefix(data, []byte("\xef\xbb\xbf"))
	b := &treeBuilder{file: file, order: order, data: data, lines: lineStarts(data)}
	b.root = newTable(Position{File: file, order: order})
	b.table = b.root
	if off := invalidUTF8(data); off >= 0 {
		b.fail(b.position(off), "", "not UTF-8 text", "save the file as UTF-8")
		return nil, b.errs
	}
	b.parser.Reset(data)
	for b.parser.NextExpression() {
		b.expression(b.parser.Expression())
	}
	if err := b.parser.Error(); err != nil {
		b.syntax(err)
		return nil, b.errs
	}
	if len(b.errs) == 0 {
		b.strict()
	}
	return b.root, b.errs
}

// invalidUTF8 returns the offset of the first byte that is not UTF-8 text, NUL
// included (as in UTF-16), or -1.
func invalidUTF8(data []byte) int {
	for i := 0; i < len(data); {
		r, size := utf8.DecodeRune(data[i:])
		if (r == utf8.RuneError && size <= 1) || r == 0 {
			return i
		}
		i += size
	}
	return -1
}

func (b *treeBuilder) fail(at Position, key, why, hint string) {
	b.errs = append(b.errs, newError(at, key, why, hint))
}

// position turns an offset into line and column.
func (b *treeBuilder) position(offset int) Position {
	offset = min(max(offset, 0), len(b.data))
	line, found := slices.BinarySearch(b.lines, offset)
	if !found {
		line-- // the offset is behind the start of the line before
	}
	column := utf8.RuneCount(b.data[b.lines[line]:offset])
	return Position{File: b.file, Line: line + 1, Column: column + 1, order: b.order}
}

// lineStarts returns the offsets at which lines start, 0 first.
func lineStarts(data []byte) []int {
	starts := []int{0}
	for i, c := range data {
		if c == '\n' {
			starts = append(starts, i+1)
		}
	}
	return starts
}

// syntax reports what stopped the parser.
func (b *treeBuilder) syntax(err error) {
	var perr *unstable.ParserError
	offset := len(b.data)
	if errors.As(err, &perr) {
		// A highlight is a slice of the data; the distance of the ends of both
		// tells where it starts. An empty one may be no slice of it at all.
		if off := cap(b.data) - cap(perr.Highlight); len(perr.Highlight) > 0 && off >= 0 && off < len(b.data) {
			offset = off
		}
	}
	b.fail(b.position(offset), "", strings.TrimPrefix(err.Error(), "toml: "), "")
}

// strict lets go-toml decode the file as a whole, for the rules of TOML that a
// tree of merged tables doesn't show: tables defined twice, inline tables
// extended, numbers out of range.
func (b *treeBuilder) strict() {
	var whole map[string]any
	err := toml.Unmarshal(b.data, &whole)
	if err == nil {
		return
	}
	at := Position{File: b.file, Line: 1, Column: 1, order: b.order}
	var derr *toml.DecodeError
	if errors.As(err, &derr) {
		// go-toml counts columns in bytes.
		line, column := derr.Position()
		at = b.position(b.lines[min(max(line, 1), len(b.lines))-1] + column - 1)
	}
	b.fail(at, "", strings.TrimPrefix(err.Error(), "toml: "), "")
}

// expression adds one line (or header) of the file to the tree.
func (b *treeBuilder) expression(n *unstable.Node) {
	switch n.Kind {
	case unstable.Table:
		parent, path, last := b.walk(b.root, "", n.Key())
		b.table, b.prefix = b.enter(parent, path, last, false)
		b.begin(last)
	case unstable.ArrayTable:
		parent, path, last := b.walk(b.root, "", n.Key())
		b.table, b.prefix = b.enter(parent, path, last, true)
	case unstable.KeyValue:
		b.keyValue(b.table, b.prefix, n)
	}
}

// begin notes that the table has a header of its own; it may have one only.
func (b *treeBuilder) begin(last *unstable.Node) {
	if b.table == nil {
		return
	}
	at := b.position(int(last.Raw.Offset))
	if first := b.table.header; first.Line != 0 {
		b.fail(at, b.prefix, "already begun at "+first.String(), "put both parts under one header")
		return
	}
	b.table.header = at
}

// keyValue adds key = value under the table.
func (b *treeBuilder) keyValue(table *node, prefix string, n *unstable.Node) {
	parent, path, last := b.walk(table, prefix, n.Key())
	key, at := string(last.Data), b.position(int(last.Raw.Offset))
	child := b.value(n.Value(), b.valueStart(last), join(path, key))
	child.at = at
	if parent == nil {
		return
	}
	if first, ok := parent.child[key]; ok {
		b.fail(at, join(path, key), "already set at "+first.at.String(), "remove one of the two")
		return
	}
	parent.set(key, child)
}

// walk goes down all parts of a dotted key but the last, making tables that
// aren't there yet. parent is nil when a part is no table; that is reported.
func (b *treeBuilder) walk(from *node, prefix string, it unstable.Iterator) (parent *node, path string, last *unstable.Node) {
	parent, path = from, prefix
	for it.Next() {
		if last != nil && parent != nil {
			parent, path = b.enter(parent, path, last, false)
		}
		last = it.Node()
	}
	return parent, path, last
}

// enter returns the table of that name, made when it isn't there. With element,
// it is a fresh element of a list of tables; without, a name that is such a
// list means its last element, as TOML has it.
func (b *treeBuilder) enter(parent *node, prefix string, name *unstable.Node, element bool) (*node, string) {
	key := string(name.Data)
	path, at := join(prefix, key), b.position(int(name.Raw.Offset))
	if parent == nil {
		return nil, path
	}
	have, ok := parent.child[key]
	switch {
	case !ok && !element:
		have = newTable(at)
		parent.set(key, have)
		return have, path
	case !ok:
		have = &node{kind: kindTables, at: at, val: at}
		parent.set(key, have)
		fallthrough
	case element && have.kind == kindTables:
		item := newTable(at)
		have.items = append(have.items, item)
		return item, path
	case !element && have.kind == kindTables:
		return have.items[len(have.items)-1], path
	case !element && have.kind == kindTable:
		return have, path
	}
	b.fail(at, path, "already set at "+have.at.String()+" as "+have.kind.String(), "")
	return nil, path
}

// valueStart returns the offset of the value behind the last part of its key.
func (b *treeBuilder) valueStart(key *unstable.Node) int {
	off := int(key.Raw.Offset + key.Raw.Length)
	for off < len(b.data) && strings.IndexByte(" \t=", b.data[off]) >= 0 {
		off++
	}
	return off
}

// value builds the node of a value that starts at the offset.
func (b *treeBuilder) value(n *unstable.Node, offset int, path string) *node {
	pos := b.position(offset)
	out := &node{at: pos, val: pos, text: string(n.Data)}
	switch n.Kind {
	case unstable.String:
		out.kind = kindString
	case unstable.Integer:
		out.kind = kindInteger
	case unstable.Float:
		out.kind = kindFloat
	case unstable.Bool:
		out.kind = kindBool
	case unstable.Array:
		out.kind, out.text = kindList, ""
		b.list(out, n, offset, path)
	case unstable.InlineTable:
		*out = *newTable(pos)
		for it := n.Children(); it.Next(); {
			b.keyValue(out, path, it.Node())
		}
	default:
		out.kind = kindTime
	}
	return out
}

// list adds the elements of a list that starts at the offset. The parser gives
// no place for an element that is a list or a table itself; it is found from
// the first thing inside.
func (b *treeBuilder) list(out *node, n *unstable.Node, offset int, path string) {
	for it := n.Children(); it.Next(); {
		item := it.Node()
		at := offset
		if item.Raw.Length > 0 {
			at = int(item.Raw.Offset)
		} else if inner := firstInside(item); inner >= 0 {
			at = max(bytes.LastIndexAny(b.data[:inner], "[{"), offset)
		}
		out.items = append(out.items, b.value(item, at, path))
	}
}

// firstInside returns the offset of the first scalar or key in a list or
// table, or -1 when it is empty.
func firstInside(n *unstable.Node) int {
	for it := n.Children(); it.Next(); {
		item := it.Node()
		if item.Kind == unstable.KeyValue {
			return int(item.Raw.Offset)
		}
		if item.Raw.Length > 0 {
			return int(item.Raw.Offset)
		}
		if off := firstInside(item); off >= 0 {
			return off
		}
	}
	return -1
}

// join puts a key behind a dotted path, quoted where TOML needs it so.
func join(path, key string) string {
	if strings.ContainsFunc(key, func(r rune) bool { return r != '-' && (r > 'z' || !validName(string(r), 1)) }) {
		key = strconv.Quote(key)
	}
	if path == "" {
		return key
	}
	return path + "." + key
}
