package manage

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"mime"
	"mime/multipart"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/tgspool/tgspool/internal/outbox"
	"github.com/tgspool/tgspool/internal/spool"
)

const (
	// maxNotify is the most that a notification's body may take, in bytes.
	maxNotify = 1 << 20
	// maxParts is the most messages that one notification may become.
	maxParts = 20
)

// note is a notification that has been read: a text for people, never markup, so
// that no "<" of a label can spoil it.
type note struct {
	text      string
	chat      string // a name to be resolved; empty: as the query says
	noPreview bool
}

// notify queues a text for a chat, whatever form of a notification it came in:
// plain text, {"text":…}, what apprise posts (title, message, type), what
// Grafana or alertmanager post.
func (a *api) notify(r *http.Request) (int, any, error) {
	bot, err := a.bot(r)
	if err != nil {
		return 0, nil, err
	}
	q, err := readQuery(r, "chat", "silent", "dedupe_key", "lane", "ttl", "wait")
	if err != nil {
		return 0, nil, err
	}
	wait, err := q.wait()
	if err != nil {
		return 0, nil, err
	}
	n, err := readNote(r)
	if err != nil {
		return 0, nil, err
	}
	job, err := a.noteJob(r, bot.Name(), q, n)
	if err != nil {
		return 0, nil, err
	}
	ctx, cancel := change(r.Context())
	defer cancel()
	made, err := bot.Enqueue(ctx, job)
	if err != nil {
		return 0, nil, err
	}
	return a.answerQueued(r, made, false, wait)
}

// noteJob makes the job of the text, which brings its parts along when it is long.
func (a *api) noteJob(r *http.Request, bot string, q params, n note) (spool.NewJob, error) {
	o, err := q.noteOptions(time.Now())
	if err != nil {
		return spool.NewJob{}, err
	}
	silent, err := q.flag("silent")
	if err != nil {
		return spool.NewJob{}, err
	}
	chat := q["chat"]
	if chat == "" {
		chat = n.chat
	}
	message := map[string]any{"text": n.text}
	if silent {
		message["disable_notification"] = true
	}
	if n.noPreview {
		message["link_preview_options"] = map[string]bool{"is_disabled": true}
	}
	raw, err := encodeText(message)
	if err != nil {
		return spool.NewJob{}, err
	}
	o.Split = true
	job, err := a.build(r, bot, posted{method: "sendMessage", params: raw, chat: &chat, options: o})
	if parts := 1 + len(job.Parts); err == nil && parts > maxParts {
		err = problemf(http.StatusRequestEntityTooLarge, "the text takes %d messages, more than %d", parts, maxParts)
	}
	return job, err
}

// noteOptions reads what the query says of the jobs.
func (q params) noteOptions(now time.Time) (outbox.Options, error) {
	o := outbox.Options{LateNote: true, DedupeKey: q["dedupe_key"], Lane: spool.Lane(q["lane"])}
	p := posted{method: "sendMessage"}
	if s, ok := q["ttl"]; ok {
		d, err := ParseDuration(s)
		if err != nil {
			return o, problemf(http.StatusBadRequest, "ttl: %s", err)
		}
		o.ExpiresAt = now.Add(d)
	}
	p.options = o
	return o, p.check(now)
}

// readNote reads a notification in any of its forms.
func readNote(r *http.Request) (note, error) {
	media, args, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil && r.Header.Get("Content-Type") != "" {
		return note{}, problemf(http.StatusUnsupportedMediaType, "the content type can't be read")
	}
	body, err := readNoteBody(r)
	if err != nil {
		return note{}, err
	}
	var n note
	switch {
	case media == "multipart/form-data":
		n, err = readParts(body, args["boundary"])
	case media == "application/x-www-form-urlencoded" || media == "" || media == "text/plain":
		n = readText(media, body)
	case media == jsonType || strings.HasSuffix(media, "+json"):
		n, err = readNoteJSON(body)
	default:
		return n, problemf(http.StatusUnsupportedMediaType, "content type %q is not taken; send text/plain, %s or a form", media, jsonType)
	}
	n.text = strings.TrimSpace(strings.ToValidUTF8(n.text, "\uFFFD"))
	if err == nil && n.text == "" {
		err = problemf(http.StatusUnprocessableEntity, `there is no text: neither a plain body nor "text", "message", "body", "title" or "alerts"`)
	}
	return n, err
}

func readNoteBody(r *http.Request) ([]byte, error) {
	body, err := io.ReadAll(io.LimitReader(r.Body, maxNotify+1))
	if _, large := errors.AsType[*http.MaxBytesError](err); large || len(body) > maxNotify {
		return nil, problemf(http.StatusRequestEntityTooLarge, "the body is larger than %d bytes", maxNotify)
	}
	if err != nil {
		return nil, problemf(http.StatusBadRequest, "the body ended early")
	}
	arrived(r)
	return body, nil
}

// readText reads a body that is the text itself. What curl -d calls a form is
// one only when it has a field of a notification.
func readText(media string, body []byte) note {
	if media == "application/x-www-form-urlencoded" {
		if form, err := url.ParseQuery(string(body)); err == nil {
			if n := fromForm(form, 0); n.text != "" {
				return n
			}
		}
	}
	return note{text: string(body)}
}

// readParts reads a form that came in parts.
func readParts(body []byte, boundary string) (note, error) {
	form, attached := url.Values{}, 0
	parts := multipart.NewReader(bytes.NewReader(body), boundary)
	for {
		part, err := parts.NextPart()
		if errors.Is(err, io.EOF) {
			return fromForm(form, attached), nil
		}
		if err != nil {
			return note{}, problemf(http.StatusBadRequest, "the form can't be read")
		}
		if part.FileName() != "" {
			attached++
			continue
		}
		value, err := io.ReadAll(part)
		if err != nil {
			return note{}, problemf(http.StatusBadRequest, "the form can't be read")
		}
		form.Add(part.FormName(), string(value))
	}
}

func fromForm(form url.Values, attached int) note {
	return message{
		Text: form.Get("text"), Title: form.Get("title"), Message: form.Get("message"), Body: form.Get("body"),
		Type: form.Get("type"), Chat: json.RawMessage(strconv.Quote(form.Get("chat"))),
	}.note(attached)
}

// encodeText encodes parameters as they are meant: <, > and & stay readable.
func encodeText(v any) (json.RawMessage, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	err := enc.Encode(v)
	return bytes.TrimRight(b.Bytes(), "\n"), err
}
