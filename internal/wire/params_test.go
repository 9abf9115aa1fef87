package wire

import (
	"encoding/json"
	"testing"
)

func TestParams_Readers(t *testing.T) {
	p := &Params{fields: map[string]json.RawMessage{
		"n": json.RawMessage(`12345678901234567`), "s": json.RawMessage(`" -7 "`), "null": json.RawMessage(`null`),
		"text": json.RawMessage(`"a\u00e9"`), "yes": json.RawMessage(`"Yes"`), "t": json.RawMessage(`true`),
		"list": json.RawMessage(`["message"]`), "float": json.RawMessage(`1.5`),
	}}
	if n, ok := p.Int("n"); !ok || n != 12345678901234567 {
		t.Errorf("n is %d, %v", n, ok)
	}
	if n, ok := p.Int("s"); !ok || n != -7 {
		t.Errorf("s is %d, %v", n, ok)
	}
	for _, name := range []string{"null", "absent", "float", "list"} {
		if n, ok := p.Int(name); ok {
			t.Errorf("%s is %d", name, n)
		}
	}
	for name, want := range map[string]string{"text": "aé", "list": `["message"]`, "t": "true"} {
		if got, ok := p.Text(name); !ok || got != want {
			t.Errorf("%s is %q, %v", name, got, ok)
		}
	}
	if _, ok := p.Text("null"); ok {
		t.Error("null is there")
	}
	if !p.Bool("yes") || !p.Bool("t") || p.Bool("text") || p.Bool("absent") {
		t.Error("booleans are read wrongly")
	}
}
