package botapi

import (
	"net/url"
	"strings"
)

// Disposition is what the Content-Disposition of a form's part says.
type Disposition struct {
	Name   string // of the field
	File   string // file name without folders, may be empty
	IsFile bool   // there is a file name, even an empty one
}

// ParseDisposition reads a Content-Disposition as it comes: with or without
// blanks and quotes, in any encoding: libraries write it in ways that the standard
// parser refuses. A value without quotes goes up to the next
// parameter that is known, or to the end.
func ParseDisposition(header string) (d Disposition) {
	_, rest, _ := strings.Cut(header, ";")
	extended := false // filename* has been there, and counts
	for rest != "" {
		key, value, found := strings.Cut(rest, "=")
		if !found {
			break
		}
		key = strings.ToLower(strings.Trim(key, " \t;"))
		value, rest = cutParameter(strings.TrimLeft(value, " \t"))
		switch {
		case key == "name" && d.Name == "":
			d.Name = strings.ToValidUTF8(value, "\uFFFD")
		case key == "filename*":
			if name, ok := decodeExtended(value); ok {
				d.File, d.IsFile, extended = baseName(name), true, true
			}
		case key == "filename" && !extended:
			d.File, d.IsFile = baseName(value), true
		}
	}
	return d
}

// cutParameter takes a parameter's value from the front.
func cutParameter(s string) (value, rest string) {
	if !strings.HasPrefix(s, `"`) {
		end := len(s)
		for i := range s {
			if s[i] == ';' && knownParameter(s[i+1:]) {
				end = i
				break
			}
		}
		return strings.TrimSpace(s[:end]), strings.TrimPrefix(s[end:], ";")
	}
	var b strings.Builder
	for i := 1; i < len(s); i++ {
		switch {
		case s[i] == '"':
			_, rest, _ = strings.Cut(s[i+1:], ";")
			return b.String(), rest
		case s[i] == '\\' && i+1 < len(s) && (s[i+1] == '"' || s[i+1] == '\\'):
			i++
		}
		b.WriteByte(s[i])
	}
	return b.String(), "" // the closing quote is missing
}

func knownParameter(s string) bool {
	key, _, found := strings.Cut(s, "=")
	key = strings.ToLower(strings.TrimSpace(key))
	return found && (key == "name" || key == "filename" || key == "filename*")
}

// decodeExtended reads the form UTF-8'en'name%20with%20escapes.
func decodeExtended(value string) (string, bool) {
	charset, rest, ok := strings.Cut(value, "'")
	if !ok || !strings.EqualFold(charset, "utf-8") {
		return "", false
	}
	_, escaped, ok := strings.Cut(rest, "'")
	if !ok {
		return "", false
	}
	name, err := url.PathUnescape(escaped)
	return name, err == nil
}

// baseName drops folders: where a file lay is nobody's business.
func baseName(name string) string {
	name = name[strings.LastIndexByte(name, '/')+1:]
	return strings.ToValidUTF8(name, "\uFFFD")
}
