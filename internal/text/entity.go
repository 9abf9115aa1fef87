package text

import (
	"encoding/json"
	"fmt"
	"maps"
	"strconv"
)

// Entity is a MessageEntity. Offset and length count UTF-16 units; all other
// members are kept as they came.
type Entity struct {
	Offset, Length int
	members        map[string]json.RawMessage
}

// UnmarshalJSON reads an entity. Numbers may stand in quotes, as Telegram lets them.
func (e *Entity) UnmarshalJSON(data []byte) error {
	var members map[string]json.RawMessage
	if err := json.Unmarshal(data, &members); err != nil || members == nil {
		return fmt.Errorf("%w: an entity is no object", ErrMarkup)
	}
	offset, err := number(members, "offset")
	if err != nil {
		return err
	}
	length, err := number(members, "length")
	if err != nil {
		return err
	}
	*e = Entity{offset, length, members}
	return nil
}

func number(members map[string]json.RawMessage, name string) (int, error) {
	s := string(members[name])
	if len(s) > 2 && s[0] == '"' {
		s = s[1 : len(s)-1]
	}
	n, err := strconv.ParseInt(s, 10, 32)
	if err != nil || n < 0 {
		return 0, fmt.Errorf("%w: an entity has no valid %s", ErrMarkup, name)
	}
	return int(n), nil
}

// MarshalJSON writes the entity with all its members.
func (e Entity) MarshalJSON() ([]byte, error) {
	members := maps.Clone(e.members)
	if members == nil {
		members = map[string]json.RawMessage{}
	}
	members["offset"] = strconv.AppendInt(nil, int64(e.Offset), 10)
	members["length"] = strconv.AppendInt(nil, int64(e.Length), 10)
	return json.Marshal(members)
}

// checkEntities refuses what Telegram refuses: entities beyond the text, or that
// begin or end inside of a surrogate pair.
func checkEntities(s string, list []Entity) error {
	edges := map[int]bool{}
	for _, e := range list {
		edges[e.Offset], edges[e.Offset+e.Length] = true, true
	}
	n := 0
	delete(edges, 0)
	for _, r := range s {
		n += unitsOf(r)
		delete(edges, n)
	}
	for at := range edges {
		return fmt.Errorf("%w: an entity begins or ends at UTF-16 offset %d, where no character of the text does", ErrMarkup, at)
	}
	return nil
}

// within are the entities of the units from from to to, counted from there. One
// that reaches beyond is cut off.
func within(list []Entity, from, to int) []Entity {
	var out []Entity
	for _, e := range list {
		begin, end := max(e.Offset, from), min(e.Offset+e.Length, to)
		if begin < end {
			e.Offset, e.Length = begin-from, end-begin
			out = append(out, e)
		}
	}
	return out
}
