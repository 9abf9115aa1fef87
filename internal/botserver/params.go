package botserver

import (
	"encoding/json"
	"strconv"
	"strings"
)

// Params are the parameters of a call: a JSON object whose bytes go on as they
// are, and the same by name.
type Params struct {
	raw    json.RawMessage            // what goes on; nil: none
	fields map[string]json.RawMessage // the first of equal names
}

// Raw is the JSON object that goes on to Telegram.
func (p *Params) Raw() json.RawMessage { return p.raw }

// Text is a parameter as Telegram reads it: a string without its quotes,
// anything else as it stands. It is "" and false when absent or null.
func (p *Params) Text(name string) (string, bool) {
	v, ok := p.fields[name]
	if !ok || string(v) == "null" {
		return "", false
	}
	return textOf(v), true
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

func textOf(value json.RawMessage) string {
	if len(value) > 0 && value[0] == '"' {
		var s string
		if json.Unmarshal(value, &s) == nil {
			return s
		}
	}
	return string(value)
}
