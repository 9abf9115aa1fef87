package handler

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"
)

// printed is a program's standard output as a text for a chat; it is empty when
// there is nothing that Telegram would take for a text. A letter of another
// encoding here and there is still a text; a picture isn't.
func printed(stdout []byte) (string, error) {
	if bytes.IndexByte(stdout, 0) >= 0 || !mostlyText(stdout) {
		return "", errBinary
	}
	s := plain(stdout)
	if strings.TrimSpace(s) == "" {
		return "", nil
	}
	return s, nil
}

// mostlyText reports whether at least half of the letters are UTF-8.
func mostlyText(b []byte) bool {
	all, bad := 0, 0
	for _, r := range string(b) {
		if r == utf8.RuneError {
			bad++
		}
		all++
	}
	return 2*bad <= all
}

// object encodes parameters as Telegram reads them: <, > and & stay readable.
func object(v any) (json.RawMessage, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, fmt.Errorf("encoding parameters: %w", err)
	}
	return bytes.TrimRight(b.Bytes(), "\n"), nil
}
