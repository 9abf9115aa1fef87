package wire

import (
	"bufio"
	"errors"
	"io"
	"mime"
	"mime/multipart"
	"net/http"
	"net/url"
	"strings"
)

// ReadMultipart reads a form. A part with a file name is a file, even when the
// name is empty, any other a parameter. Libraries write the header in ways that
// the standard parser refuses, and then drops the part without a word: file
// names without quotes, with blanks, with letters of all countries. So the
// header is read here.
func (g *Gathering) ReadMultipart(body io.Reader, boundary string, up Files) error {
	if boundary == "" {
		if n, err := io.Copy(io.Discard, body); err != nil || n == 0 {
			return err
		}
		return errorf(http.StatusBadRequest, "the form has no boundary")
	}
	begun := bufio.NewReader(body)
	if _, err := begun.Peek(1); errors.Is(err, io.EOF) {
		return nil // a call without parameters, as one library writes it
	}
	form := multipart.NewReader(begun, boundary)
	for {
		part, err := form.NextRawPart()
		if err == io.EOF { //nolint:errorlint // a wrapped one is a body that was cut
			// What follows the last boundary must be read, too: only then is a
			// hang-up noticed.
			_, err = io.Copy(io.Discard, begun)
			return err
		}
		if err != nil {
			return err
		}
		if err := readPart(part, g, up); err != nil {
			return err
		}
	}
}

func readPart(part *multipart.Part, g *Gathering, up Files) error {
	d := parseDisposition(part.Header.Get("Content-Disposition"))
	if d.isFile {
		return up.Take(d.name, d.file, part)
	}
	value, err := io.ReadAll(io.LimitReader(part, MaxParams+1))
	if err != nil {
		return err
	}
	if kind, _, err := mime.ParseMediaType(part.Header.Get("Content-Type")); err == nil && kind == "application/x-www-form-urlencoded" {
		return g.AddForm(string(value))
	}
	if d.name == "" {
		return nil
	}
	return g.addText(d.name, string(value))
}

// disposition is what the header of a part says.
type disposition struct {
	name   string // of the field
	file   string // file name without folders, may be empty
	isFile bool
}

// parseDisposition reads a Content-Disposition as it comes: with or without
// blanks and quotes, in any encoding. A value without quotes goes up to the next
// parameter that is known, or to the end.
func parseDisposition(header string) (d disposition) {
	_, rest, _ := strings.Cut(header, ";")
	extended := false // filename* has been there, and counts
	for rest != "" {
		key, value, found := strings.Cut(rest, "=")
		if !found {
			break
		}
		key = strings.ToLower(strings.Trim(key, " \t;"))
		value, rest = cutValue(strings.TrimLeft(value, " \t"))
		switch {
		case key == "name" && d.name == "":
			d.name = strings.ToValidUTF8(value, "\uFFFD")
		case key == "filename*":
			if name, ok := decodeExtended(value); ok {
				d.file, d.isFile, extended = baseName(name), true, true
			}
		case key == "filename" && !extended:
			d.file, d.isFile = baseName(value), true
		}
	}
	return d
}

// cutValue takes a parameter's value from the front.
func cutValue(s string) (value, rest string) {
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
