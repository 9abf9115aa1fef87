package manage_test

import (
	"bytes"
	"io"
	"mime/multipart"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tgspool/tgspool/internal/manage"
	"github.com/tgspool/tgspool/internal/spool"
)

// part is one part of a form; one with a file name is a file.
type part struct{ name, file, content string }

const album = `{"method":"sendMediaGroup","chat":"me","params":{"media":[{"type":"photo","media":"attach://a"}]},"dedupe_key":"k"}`

// formOf makes a form of the parts.
func formOf(t *testing.T, parts ...part) (kind, body string) {
	t.Helper()
	var b bytes.Buffer
	form := multipart.NewWriter(&b)
	for _, p := range parts {
		create := form.CreateFormField
		if p.file != "" {
			create = func(name string) (io.Writer, error) { return form.CreateFormFile(name, p.file) }
		}
		w, err := create(p.name)
		if err == nil {
			_, err = io.WriteString(w, p.content)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := form.Close(); err != nil {
		t.Fatal(err)
	}
	return form.FormDataContentType(), b.String()
}

// form posts a job with files.
func (w *world) form(parts ...part) answer {
	w.t.Helper()
	kind, body := formOf(w.t, parts...)
	return w.do("POST", "/v1/bots/home/jobs", kind, body)
}

// left lists what lies in the folder of uploads.
func (w *world) left() []string {
	w.t.Helper()
	found, err := filepath.Glob(filepath.Join(w.store.Dir(), "files", "*"))
	if err != nil {
		w.t.Fatal(err)
	}
	return found
}

// TestForm_StoresFiles takes the job and its files in any order, and keeps the
// files as long as the job.
func TestForm_StoresFiles(t *testing.T) {
	w := newWorld(t)
	content := strings.Repeat("picture", 100_000)
	job := into[spool.Job](t, w.form(part{"a", "a b.jpg", content}, part{"job", "", album}), http.StatusCreated)
	if len(job.Files) != 1 || job.Files[0].Field != "a" || job.Files[0].Name != "a b.jpg" || job.Files[0].Size != int64(len(content)) {
		t.Fatalf("files %+v", job.Files)
	}
	if stored, err := os.ReadFile(filepath.Join(w.store.Dir(), job.Files[0].Path)); err != nil || string(stored) != content {
		t.Errorf("stored %d bytes, %v", len(stored), err)
	}
	again := into[struct {
		ID        int64
		Duplicate bool
	}](t, w.form(part{"job", "job.json", album}, part{"a", "a.jpg", "other"}), http.StatusOK)
	if again.ID != job.ID || !again.Duplicate {
		t.Errorf("the second is %+v", again)
	}
	if files := w.left(); len(files) != 1 {
		t.Errorf("files %q", files)
	}
	if plain := w.form(part{"job", "", ding}); plain.status != http.StatusCreated {
		t.Errorf("a form without files: %d %s", plain.status, plain.body)
	}
	if a := w.post(jobPath(job.ID)+"/cancel", ""); a.status != http.StatusOK {
		t.Errorf("cancel: %d %s", a.status, a.body)
	}
	if files := w.left(); len(files) != 0 {
		t.Errorf("files %q are left", files)
	}
}

// TestForm_LongCaption goes as a caption and texts behind it; only the first has
// the file.
func TestForm_LongCaption(t *testing.T) {
	w := newWorld(t)
	long := `{"method":"sendPhoto","chat":"me","split":true,"params":{"caption":"` + strings.Repeat("word ", 1500) + `"}}`
	first := into[struct {
		spool.Job
		Parts []int64
	}](t, w.form(part{"job", "", long}, part{"photo", "p", "x"}), http.StatusCreated)
	if len(first.Parts) < 2 || len(first.Files) != 1 {
		t.Fatalf("parts %v, files %v", first.Parts, first.Files)
	}
	rest := into[spool.Job](t, w.get(jobPath(first.Parts[1])), http.StatusOK)
	if rest.Method != "sendMessage" || len(rest.Files) != 0 {
		t.Errorf("the second is %s with %v", rest.Method, rest.Files)
	}
}

// TestForm_Refused says what is wrong and leaves neither job nor file.
func TestForm_Refused(t *testing.T) {
	w := newWorld(t)
	photo := part{"photo", "p.jpg", "x"}
	job := `{"method":"sendPhoto","chat":"me"}`
	tests := []struct {
		name   string
		parts  []part
		status int
		says   string
	}{
		{"no job", []part{photo}, 422, `no part "job"`},
		{"a job that is none", []part{photo, {"job", "", "[1]"}}, 400, "job"},
		{"a job that is too big", []part{photo, {"job", "", strings.Repeat(" ", 1<<20+1)}}, 413, "1048576"},
		{"an unknown member", []part{photo, {"job", "", `{"methud":"x"}`}}, 422, `"methud"`},
		{"a parameter of its own", []part{photo, {"job", "", job}, {"caption", "", "x"}}, 422, `"caption" is neither`},
		{"two of a name", []part{photo, photo, {"job", "", job}}, 400, `"photo" is given twice`},
		{"two jobs", []part{{"job", "j", job}, {"job", "j", job}}, 400, `"job" is given twice`},
		{"a file that is a parameter, too", []part{photo, {"job", "", `{"method":"sendPhoto","chat":"me","params":{"photo":"id"}}`}}, 422, `"photo" is given as a parameter and as a file`},
		{"a file without a name", []part{{"", "p", "x"}, {"job", "", job}}, 422, `"p" has no name`},
		{"a chat that isn't known", []part{photo, {"job", "", `{"method":"sendPhoto","chat":"famly"}`}}, 422, "famly"},
		{"too many bytes", []part{{"photo", "p", strings.Repeat("x", 50_000_001)}, {"job", "", job}}, 413, "50000000 bytes that max_upload"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if a := w.form(tt.parts...); a.status != tt.status || !strings.Contains(string(a.body), strings.ReplaceAll(tt.says, `"`, `\"`)) {
				t.Errorf("answer %d %s, want %d %s", a.status, a.body, tt.status, tt.says)
			}
		})
	}
	kind, body := formOf(t, part{"job", "", job}, photo)
	for name, cut := range map[string]string{"cut": body[:len(body)-20], "something else": "hello"} {
		if a := w.do("POST", "/v1/bots/home/jobs", kind, cut); a.status != http.StatusBadRequest {
			t.Errorf("%s: answer %d %s", name, a.status, a.body)
		}
	}
	announced := httptest.NewRequestWithContext(t.Context(), "POST", "/v1/bots/home/jobs", strings.NewReader(body))
	announced.ContentLength = 5 << 30
	announced.Header.Set("Content-Type", kind)
	rec := httptest.NewRecorder()
	if w.api.ServeHTTP(rec, announced); rec.Code != http.StatusRequestEntityTooLarge {
		t.Errorf("5 GiB announced: answer %d %s", rec.Code, rec.Body)
	}
	if list := into[list](t, w.get("/v1/bots/home/jobs"), http.StatusOK); len(list.Items) != 0 || len(w.left()) != 0 {
		t.Errorf("%d jobs and the files %q are left", len(list.Items), w.left())
	}
}

// TestForm_Trouble of the disk is told, and passes.
func TestForm_Trouble(t *testing.T) {
	w := newWorld(t)
	inTheWay := filepath.Join(w.store.Dir(), "files")
	if err := os.WriteFile(inTheWay, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	parts := []part{{"job", "", `{"method":"sendPhoto","chat":"me"}`}, {"photo", "p", "x"}}
	if a := w.form(parts...); a.status != http.StatusInsufficientStorage || !strings.Contains(string(a.body), "can't be stored") {
		t.Errorf("answer %d %s", a.status, a.body)
	}
	if !strings.Contains(w.logs.String(), "a job's files weren't taken") {
		t.Errorf("logs %s", &w.logs)
	}
	if err := os.Remove(inTheWay); err != nil {
		t.Fatal(err)
	}
	if a := w.form(parts...); a.status != http.StatusCreated {
		t.Errorf("answer %d %s", a.status, a.body)
	}
}

// TestForm_Callers hand over files with the methods that they may call; none of
// them names the server's own.
func TestForm_Callers(t *testing.T) {
	w := newWorld(t)
	photo := part{"photo", "p", "x"}
	if a := w.as(bell()).form(part{"job", "", `{"method":"sendPhoto","chat":"me"}`}, photo); a.status != http.StatusForbidden {
		t.Errorf("a method that it may not call: %d %s", a.status, a.body)
	}
	if files := w.left(); len(files) != 0 {
		t.Errorf("files %q are left", files)
	}
	socket := w.as(&manage.Caller{Name: "this socket", Origins: []string{"submit:1000"}})
	own := into[spool.Job](t, socket.form(part{"job", "", `{"method":"sendPhoto","chat":"me"}`}, photo), http.StatusCreated)
	if own.Origin != "submit:1000" || len(own.Files) != 1 {
		t.Errorf("job %+v", own)
	}
	for _, params := range []string{
		`{"photo":"file:///etc/passwd"}`,
		`{"media":[{"type":"photo","media":"FILE:///etc/passwd"}]}`,
	} {
		a := socket.post("/v1/bots/home/jobs", `{"method":"sendMediaGroup","chat":"me","params":`+params+`}`)
		if a.status != http.StatusForbidden || !strings.Contains(string(a.body), "the server's own files") {
			t.Errorf("%s: answer %d %s", params, a.status, a.body)
		}
	}
}
