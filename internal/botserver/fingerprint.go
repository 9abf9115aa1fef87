package botserver

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"hash"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/tgspool/tgspool/internal/spool"
	"github.com/tgspool/tgspool/internal/wire"
)

const attach = "attach://"

// fingerprint is equal for calls that mean the same: who calls, the method, the
// parameters, the contents of the files. It leaves out what libraries make up
// afresh each time: boundaries, the order of parameters, and the names by which
// parameters point at files.
func fingerprint(bot int64, client, method string, p *wire.Params, files []spool.File, sums [][sha256.Size]byte) (sum [spool.PrintSize]byte) {
	h := sha256.New()
	add(h, strconv.FormatInt(bot, 10), client, method)
	named := map[string]string{} // by field: content and name
	for i, f := range files {
		named[f.Field] = hex.EncodeToString(sums[i][:]) + " " + f.Name
	}
	used := map[string]bool{}
	values := map[string]json.RawMessage{}
	p.Each(func(name string, value json.RawMessage) { values[name] = value })
	for _, name := range slices.Sorted(maps.Keys(values)) {
		add(h, name, withoutNames(plain(values[name]), named, used))
	}
	rest := make([]string, 0, len(named))
	for field, file := range named {
		if !used[field] {
			rest = append(rest, field+" "+file)
		}
	}
	slices.Sort(rest)
	add(h, rest...)
	copy(sum[:], h.Sum(nil))
	return sum
}

// add hashes texts so that none can run into the next.
func add(h hash.Hash, texts ...string) {
	for _, text := range texts {
		_, _ = io.WriteString(h, strconv.Itoa(len(text))+":"+text) // a hash never fails
	}
}

// plain is a value in one form, whichever way it was written: JSON in a string
// or as itself, members in any order. Numbers keep their digits.
func plain(value json.RawMessage) string {
	text := wire.TextOf(value)
	if !strings.HasPrefix(text, "{") && !strings.HasPrefix(text, "[") {
		return text
	}
	dec := json.NewDecoder(bytes.NewReader([]byte(text)))
	dec.UseNumber()
	var tree any
	if err := dec.Decode(&tree); err != nil || dec.More() {
		return text
	}
	return string(marshal(tree))
}

// withoutNames puts the files in the place of the names that point at them.
func withoutNames(text string, files map[string]string, used map[string]bool) string {
	if len(files) == 0 || !strings.Contains(text, attach) {
		return text
	}
	fields := make([]string, 0, len(files))
	for field := range files {
		fields = append(fields, field)
	}
	// The longest first: one name may begin with another.
	slices.SortFunc(fields, func(a, b string) int { return len(b) - len(a) })
	for _, field := range fields {
		if strings.Contains(text, attach+field) {
			used[field] = true
			text = strings.ReplaceAll(text, attach+field, attach+"\x00"+files[field])
		}
	}
	return text
}
