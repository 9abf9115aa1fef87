package cli

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"io"
	"io/fs"
	"mime/multipart"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/tgspool/tgspool/internal/localapi"
)

// attachment is a file on its way to the daemon.
type attachment struct {
	name    string
	content io.Reader
	size    int64 // in bytes; 0 when it isn't known
	file    io.Closer
}

// sendFile queues a call with a file. It is opened here, with the rights of who
// calls, and handed over while it is read.
func (a *app) sendFile(ctx context.Context, f *sendFlags, args []string, wait time.Duration) error {
	method, field, path := "sendPhoto", "photo", f.photo
	if f.document != "" {
		method, field, path = "sendDocument", "document", f.document
	}
	caption := ""
	switch {
	case f.photo != "" && f.document != "":
		return usagef("--photo and --document exclude each other")
	case path == "-" && slices.Equal(args, []string{"-"}):
		return usagef("stdin can't be both the file and the text")
	case len(args) > 0:
		var err error
		if caption, err = a.readText(args); err != nil {
			return err
		}
	}
	params, err := f.params("caption", "caption_entities", caption)
	if err != nil {
		return err
	}
	file, err := a.attach(path)
	if err != nil {
		return err
	}
	defer func() { _ = file.file.Close() }() // only read
	if f.every != "" && f.key == "" {
		sum, err := file.sum()
		if err != nil {
			return err
		}
		f.key = everyKey(method, append(slices.Clone(params), sum...), &f.chat)
	}
	body, err := f.body(method, params, &f.chat)
	if err != nil {
		return err
	}
	q, err := file.form(body, field)
	if err != nil {
		return err
	}
	return a.enqueue(ctx, q, wait)
}

// attach opens a file; - is stdin. Empty ones are refused, as by Telegram.
func (a *app) attach(path string) (*attachment, error) {
	if path == "-" {
		if isTerminal(a.stdin) {
			return nil, withHint(usagef("there is no file on stdin"), "name one, or pipe a program's output into it")
		}
		return stream("stdin", a.stdin, io.NopCloser(nil))
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, unreadable(err)
	}
	info, err := f.Stat()
	switch {
	case err != nil:
		err = unreadable(err)
	case info.IsDir():
		err = dataf("%s is a folder", path)
	case info.Mode().IsRegular() && info.Size() > 0:
		whole := &exactly{f: f, left: info.Size(), path: path}
		return &attachment{name: filepath.Base(path), content: whole, size: info.Size(), file: f}, nil
	default: // a pipe, or one of /proc's, whose size says nothing
		var t *attachment
		if t, err = stream(filepath.Base(path), f, f); err == nil {
			return t, nil
		}
	}
	_ = f.Close()
	return nil, err
}

// stream is an attachment that ends when its reader does.
func stream(name string, r io.Reader, file io.Closer) (*attachment, error) {
	content := bufio.NewReader(r)
	_, err := content.Peek(1)
	switch {
	case errors.Is(err, io.EOF):
		return nil, dataf("%s is empty; Telegram takes no empty files", name)
	case err != nil:
		return nil, unreadable(err)
	}
	return &attachment{name: name, content: content, file: file}, nil
}

// unreadable is the error of a file that was named by who calls.
func unreadable(err error) error {
	if bad, ok := errors.AsType[*fs.PathError](err); ok {
		return dataf("%s can't be read: %s", bad.Path, bad.Err)
	}
	return dataf("the file can't be read: %s", err)
}

// exactly reads as many bytes as a file had when it was opened: what is written
// behind them meanwhile, as to a log, isn't sent.
type exactly struct {
	f    *os.File
	left int64
	path string
}

// Read reads on.
func (e *exactly) Read(p []byte) (int, error) {
	if e.left == 0 {
		return 0, io.EOF
	}
	n, err := e.f.Read(p[:min(int64(len(p)), e.left)])
	switch e.left -= int64(n); {
	case errors.Is(err, io.EOF):
		return n, dataf("%s became shorter while it was read", e.path)
	case err != nil:
		return n, unreadable(err)
	}
	return n, nil
}

// sum is the hash of the content, which is read twice for it.
func (t *attachment) sum() ([]byte, error) {
	e, ok := t.content.(*exactly)
	if !ok {
		return nil, usagef("--every needs a --key where the file comes out of a pipe")
	}
	sum, again := sha256.New(), *e
	if _, err := io.Copy(sum, e); err != nil {
		return nil, err
	}
	if _, err := again.f.Seek(0, io.SeekStart); err != nil {
		return nil, unreadable(err)
	}
	t.content = &again
	return sum.Sum(nil), nil
}

// form is the request that hands the file over with its job.
func (t *attachment) form(job []byte, field string) (localapi.Request, error) {
	var head bytes.Buffer
	w := multipart.NewWriter(&head)
	err := w.WriteField("job", string(job))
	if err == nil {
		_, err = w.CreateFormFile(field, t.name)
	}
	if err != nil {
		return localapi.Request{}, err // never: it is written to memory
	}
	tail := "\r\n--" + w.Boundary() + "--\r\n"
	q := localapi.Request{Type: w.FormDataContentType(), Stream: io.MultiReader(&head, t.content, strings.NewReader(tail))}
	if t.size > 0 {
		q.Size = int64(head.Len()) + t.size + int64(len(tail))
	}
	return q, nil
}
