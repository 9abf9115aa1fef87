package wire

import (
	"bufio"
	"errors"
	"io"
	"mime"
	"mime/multipart"
	"net/http"

	"github.com/tgspool/tgspool/internal/botapi"
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
	d := botapi.ParseDisposition(part.Header.Get("Content-Disposition"))
	if d.IsFile {
		return up.Take(d.Name, d.File, part)
	}
	value, err := io.ReadAll(io.LimitReader(part, MaxParams+1))
	if err != nil {
		return err
	}
	if kind, _, err := mime.ParseMediaType(part.Header.Get("Content-Type")); err == nil && kind == "application/x-www-form-urlencoded" {
		return g.AddForm(string(value))
	}
	if d.Name == "" {
		return nil
	}
	return g.addText(d.Name, string(value))
}
