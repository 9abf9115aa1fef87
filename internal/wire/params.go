package wire

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Params are the parameters of a call: a JSON object whose bytes go on as they
// are, and the same by name.
type Params struct {
	raw    json.RawMessage            // what goes on; nil: none
	fields map[string]json.RawMessage // the first of equal names
}

// ParamsOf are parameters that are a JSON object already; empty: none.
func ParamsOf(object json.RawMessage) (*Params, error) {
	g := &Gathering{}
	if err := g.AddObject(object); err != nil {
		return nil, err
	}
	return g.Params(func(string) bool { return false }), nil
}

// Raw is the JSON object that goes on to Telegram; nil when there is nothing.
func (p *Params) Raw() json.RawMessage { return p.raw }

// Text is a parameter as Telegram reads it: a string without its quotes,
// anything else as it stands. It is "" and false when absent or null.
func (p *Params) Text(name string) (string, bool) {
	v, ok := p.fields[name]
	if !ok || string(v) == "null" {
		return "", false
	}
	return TextOf(v), true
}

// Int is a parameter as an integer; false when absent or none.
func (p *Params) Int(name string) (int64, bool) {
	text, ok := p.Text(name)
	if !ok {
		return 0, false
	}
	n, err := strconv.ParseInt(strings.TrimSpace(text), 10, 64)
	return n, err == nil
}

// Bool is a parameter as a boolean, as lenient as Telegram reads one.
func (p *Params) Bool(name string) bool {
	text, _ := p.Text(name)
	switch strings.ToLower(strings.TrimSpace(text)) {
	case "true", "yes", "1":
		return true
	}
	return false
}

// Each visits the parameters, in no order.
func (p *Params) Each(visit func(name string, value json.RawMessage)) {
	for name, value := range p.fields {
		visit(name, value)
	}
}

// TextOf is a JSON value as the Bot API reads it.
func TextOf(value json.RawMessage) string {
	if len(value) > 0 && value[0] == '"' {
		var s string
		if json.Unmarshal(value, &s) == nil {
			return s
		}
	}
	return string(value)
}

// Field is one parameter as it came.
type Field struct {
	Name  string
	Value json.RawMessage
}

// Gathering collects the parameters of one request in the order in which they
// count: the query's before the body's, the first of equal names before others.
type Gathering struct {
	list  []Field
	names map[string]bool
	size  int
	whole json.RawMessage // a JSON body, as long as it is all there is
}

// add takes one parameter.
func (g *Gathering) add(name string, value json.RawMessage) error {
	if g.size += len(name) + len(value); g.size > MaxParams {
		return errorf(413, "the parameters take more than %d bytes", MaxParams)
	}
	if g.names[name] {
		return nil
	}
	if g.names == nil {
		g.names = map[string]bool{}
	}
	g.names[name] = true
	g.list = append(g.list, Field{name, value})
	return nil
}

// addText takes one parameter of a query or a form.
func (g *Gathering) addText(name, value string) error {
	if !utf8.ValidString(name) || !utf8.ValidString(value) {
		return errorf(400, "strings must be encoded in UTF-8")
	}
	return g.add(name, encode(value))
}

// AddObject takes the members of a JSON body.
func (g *Gathering) AddObject(body []byte) error {
	if text := bytes.TrimSpace(body); len(text) == 0 || string(text) == "null" {
		return nil
	}
	members, err := ReadObject(body)
	if err != nil {
		return errorf(400, "can't parse the body: %s", err)
	}
	if len(g.list) == 0 {
		g.whole = body
	}
	for _, m := range members {
		if err := g.add(m.Name, m.Value); err != nil {
			return err
		}
	}
	return nil
}

// Params makes the object that goes on. An empty value under the name of a file
// is left out: it would hide the file.
func (g *Gathering) Params(isFile func(name string) bool) *Params {
	p := &Params{raw: g.whole, fields: make(map[string]json.RawMessage, len(g.list))}
	for _, f := range g.list {
		if isFile(f.Name) && string(f.Value) == `""` {
			p.raw = nil
			continue
		}
		p.fields[f.Name] = f.Value
	}
	if p.raw == nil && len(p.fields) > 0 {
		p.raw = join(g.list, p.fields)
	}
	return p
}

// join writes an object out of members whose values go on byte for byte.
func join(list []Field, kept map[string]json.RawMessage) json.RawMessage {
	var b bytes.Buffer
	for _, f := range list {
		if _, ok := kept[f.Name]; !ok {
			continue
		}
		if b.Len() == 0 {
			b.WriteByte('{')
		} else {
			b.WriteByte(',')
		}
		b.Write(encode(f.Name))
		b.WriteByte(':')
		b.Write(f.Value)
	}
	b.WriteByte('}')
	return b.Bytes()
}

// ReadObject returns the members of a JSON object in their order, each value
// with its bytes as they came. The error repeats nothing of the body.
func ReadObject(body []byte) ([]Field, error) {
	dec := json.NewDecoder(bytes.NewReader(body))
	if start, err := dec.Token(); err != nil || start != json.Delim('{') {
		return nil, errors.New("it is no JSON object")
	}
	var list []Field
	for dec.More() {
		key, err := dec.Token()
		if err != nil {
			return nil, brokenAt(dec)
		}
		var value json.RawMessage
		if err := dec.Decode(&value); err != nil {
			return nil, brokenAt(dec)
		}
		name, _ := key.(string) // an object's keys are strings
		list = append(list, Field{name, value})
	}
	if _, err := dec.Token(); err != nil {
		return nil, brokenAt(dec)
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("something follows the JSON object")
	}
	return list, nil
}

// encode writes a string as JSON without making <, > and & unreadable.
func encode(s string) json.RawMessage {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(s); err != nil { // a string always has a JSON form
		return json.RawMessage(`""`)
	}
	return bytes.TrimRight(b.Bytes(), "\n")
}

func brokenAt(dec *json.Decoder) error {
	return fmt.Errorf("its JSON is broken behind byte %d", dec.InputOffset())
}
