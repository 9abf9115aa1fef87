package manage

import (
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net/http"
	"os"
	"time"
	"unicode/utf8"

	"github.com/tgspool/tgspool/internal/spool"
	"github.com/tgspool/tgspool/internal/wire"
)

// jobPart is the part of a form that holds the job.
const jobPart = "job"

// formOf returns the boundary of a request's form, and whether it is one.
func formOf(r *http.Request) (boundary string, ok bool) {
	media, options, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	return options["boundary"], err == nil && media == "multipart/form-data"
}

// postForm queues the job of a form: its part "job" is the job as it is posted
// without files, every other one a file under the name of its parameter, or under
// the one behind attach://. The files are on disk before the job is.
func (a *api) postForm(r *http.Request, bot *spool.Bot, boundary string, wait time.Duration) (int, any, error) {
	f := &form{Upload: wire.NewUpload(r.Context(), a.store, a.maxUpload())}
	defer func() { f.Drop() }()
	if err := f.read(r, boundary); err != nil {
		return 0, nil, err
	}
	p, err := readJob(f.job, time.Now())
	if err != nil {
		return 0, nil, inside(jobPart, err)
	}
	if err := f.belongTo(&p); err != nil {
		return 0, nil, err
	}
	job, err := a.build(r, bot.Name(), p)
	if err != nil {
		return 0, nil, err
	}
	if err := f.Finish(); err != nil {
		return 0, nil, err
	}
	job.ID = f.Job()
	ctx, cancel := change(r.Context())
	defer cancel()
	made, err := bot.Enqueue(ctx, job)
	if err != nil {
		return 0, nil, err
	}
	if made[0].Duplicate {
		f.Drop() // now: the wait may be long
	}
	f.Upload = &wire.Upload{} // the files are the job's
	return a.answerQueued(r, made, false, wait)
}

// form is a job with its files while it comes in.
type form struct {
	*wire.Upload

	job []byte // nil: it hasn't come
}

// read reads a form to its end.
func (f *form) read(r *http.Request, boundary string) error {
	by, _ := r.Context().Value(carrierKey{}).(*carrier) // every request has one
	limit := f.Limit() + wire.FormSlack
	if r.ContentLength > limit {
		by.w.Header().Set("Connection", "close") // the rest isn't read
		return f.tooLarge()
	}
	g := &wire.Gathering{}
	if err := g.ReadMultipart(wire.Limit(wire.Paced(by.w, by.body, true), limit), boundary, f); err != nil {
		return f.cut(err)
	}
	arrived(r)
	parts := g.Params(func(string) bool { return false })
	if text, given := parts.Text(jobPart); given && f.job == nil {
		f.job = []byte(text)
	}
	stray := ""
	parts.Each(func(name string, _ json.RawMessage) {
		if name != jobPart {
			stray = max(stray, name)
		}
	})
	switch {
	case stray != "":
		return problemf(http.StatusUnprocessableEntity,
			"the part %q is neither %q nor a file: parameters belong into the job, files have a file name", short(stray), jobPart)
	case f.job == nil:
		return problemf(http.StatusUnprocessableEntity, `the form has no part %q with the job`, jobPart)
	case !utf8.Valid(f.job):
		return problemf(http.StatusBadRequest, "the job is not UTF-8")
	}
	return nil
}

// Take takes one file while it comes; the job may be written as one, too.
func (f *form) Take(field, name string, content io.Reader) (err error) {
	switch {
	case field == "":
		return problemf(http.StatusUnprocessableEntity, "the file %q has no name of a parameter", short(name))
	case field == jobPart && f.job != nil, f.Has(field):
		return problemf(http.StatusBadRequest, "%q is given twice", short(field))
	case field != jobPart:
		return f.Upload.Take(field, name, content)
	}
	f.job, err = io.ReadAll(wire.Limit(content, wire.MaxParams))
	return err
}

// belongTo gives the files to a job.
func (f *form) belongTo(p *posted) error {
	p.options.Files = f.Files()
	if len(p.params) == 0 {
		return nil
	}
	all, err := readObject(p.params)
	if err != nil {
		return inside("params", err)
	}
	for _, m := range all {
		if f.Has(m.name) && !m.null() {
			return problemf(http.StatusUnprocessableEntity, "%q is given as a parameter and as a file", short(m.name))
		}
	}
	return nil
}

func (f *form) tooLarge() error {
	return problemf(http.StatusRequestEntityTooLarge, "the files take more than the %d bytes that max_upload in [store] allows", f.Limit())
}

// cut says why a form couldn't be read to its end.
func (f *form) cut(err error) error {
	if e, ok := errors.AsType[*wire.Error](err); ok {
		if *e == *wire.TooLarge(f.Limit()) || *e == *wire.TooLarge(f.Limit() + wire.FormSlack) {
			return f.tooLarge()
		}
		return err
	}
	_, ours := errors.AsType[*Problem](err)
	switch {
	case ours, errors.Is(err, wire.ErrStore):
		return err
	case errors.Is(err, os.ErrDeadlineExceeded):
		return problemf(http.StatusRequestTimeout, "the form came too slowly")
	}
	return problemf(http.StatusBadRequest, "the form ended early, or is malformed")
}
