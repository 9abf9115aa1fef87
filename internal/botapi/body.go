package botapi

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"mime/multipart"
	"os"
	"sync"
)

// requestBody is the body of one request: JSON, or a form with files that are read while
// they are sent. It can be read once only, so that nobody below can send it again.
type requestBody struct {
	contentType string
	size        int64
	progress    func(n int64) // told of every piece that is taken; set before the call

	reader io.Reader
	files  []io.Closer
	once   sync.Once // a transport may close from its writer and from its caller at once
}

// Read hands out the next piece.
func (b *requestBody) Read(p []byte) (int, error) {
	n, err := b.reader.Read(p)
	if n > 0 && b.progress != nil {
		b.progress(int64(n))
	}
	return n, err
}

// Close closes the files.
func (b *requestBody) Close() (err error) {
	b.once.Do(func() {
		for _, f := range b.files {
			err = errors.Join(err, f.Close())
		}
	})
	return err
}

// close is Close where nobody is left to hear of an error: the files were only read.
func (b *requestBody) close() { _ = b.Close() }

func newBody(r Request) (*requestBody, error) {
	params := r.Params
	if len(bytes.TrimSpace(params)) == 0 {
		params = json.RawMessage("{}")
	}
	if len(r.Files) == 0 {
		return &requestBody{
			contentType: "application/json",
			size:        int64(len(params)),
			reader:      bytes.NewReader(params),
		}, nil
	}
	return newForm(params, r.Files)
}

// newForm lays the form out beforehand, so that its exact length can be announced.
func newForm(params json.RawMessage, files []File) (*requestBody, error) {
	var text bytes.Buffer
	form := multipart.NewWriter(&text)
	if err := writeFields(form, params); err != nil {
		return nil, err
	}
	body := &requestBody{contentType: form.FormDataContentType()}
	pieces := make([]io.Reader, 0, 2*len(files)+1)
	flush := func() {
		body.size += int64(text.Len())
		pieces = append(pieces, bytes.NewReader(bytes.Clone(text.Bytes())))
		text.Reset()
	}
	for _, f := range files {
		content, err := openFile(f)
		if err != nil {
			body.close()
			return nil, err
		}
		body.files = append(body.files, content.file)
		name := f.Name
		if name == "" {
			name = f.Field // without a file name the part would count as a parameter
		}
		if _, err := form.CreateFormFile(f.Field, name); err != nil {
			body.close()
			return nil, fmt.Errorf("writing form: %w", err)
		}
		flush()
		body.size += content.left
		pieces = append(pieces, content)
	}
	if err := form.Close(); err != nil {
		body.close()
		return nil, fmt.Errorf("writing form: %w", err)
	}
	flush()
	body.reader = io.MultiReader(pieces...)
	return body, nil
}

// writeFields writes the parameters as the Bot API reads them from a form: strings as
// they are, everything else as JSON.
func writeFields(form *multipart.Writer, params json.RawMessage) error {
	var failed error
	err := eachField(params, func(key string, value []byte) bool {
		failed = form.WriteField(key, textOf(value))
		return failed == nil
	})
	if err != nil {
		return fmt.Errorf("%w: reading parameters: %w", ErrRequest, err)
	}
	return failed
}

// fileContent is a file cut to the size that was announced.
type fileContent struct {
	file *os.File
	left int64
}

func openFile(f File) (*fileContent, error) {
	file, err := os.Open(f.Path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%w: file of %q is gone", ErrRequest, clip(f.Field, 64))
	}
	if err != nil {
		return nil, fmt.Errorf("opening file of %q: %w", clip(f.Field, 64), errors.Unwrap(err))
	}
	info, err := file.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%w: %q is no regular file", ErrRequest, clip(f.Field, 64))
	}
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return &fileContent{file: file, left: info.Size()}, nil
}

// Read returns an error when the file turns out shorter: what was announced can't be
// sent, and the server waits in vain for the rest instead of taking half a file.
func (c *fileContent) Read(p []byte) (int, error) {
	if c.left == 0 {
		return 0, io.EOF
	}
	if int64(len(p)) > c.left {
		p = p[:c.left]
	}
	n, err := c.file.Read(p)
	c.left -= int64(n)
	if errors.Is(err, io.EOF) && c.left > 0 {
		err = io.ErrUnexpectedEOF
	}
	return n, err
}
