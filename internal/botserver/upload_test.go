package botserver_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"mime/multipart"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tgspool/tgspool/internal/botserver"
	"github.com/tgspool/tgspool/internal/telegramsim"
)

// part is one part of a form; one with a file name is a file.
type part struct{ field, file, content string }

// formRequest makes a call as a form, with a boundary of its own each time.
func formRequest(method string, parts ...part) *http.Request {
	var b bytes.Buffer
	form := multipart.NewWriter(&b)
	for _, p := range parts {
		var w io.Writer
		if p.file == "" {
			w, _ = form.CreateFormField(p.field) // writes to memory
		} else {
			w, _ = form.CreateFormFile(p.field, p.file)
		}
		_, _ = io.WriteString(w, p.content)
	}
	_ = form.Close()
	return request(method, form.FormDataContentType(), b.String())
}

func photo(content string) *http.Request {
	return formRequest("sendPhoto", part{"chat_id", "", "7"}, part{"photo", "p.jpg", content})
}

// left lists what lies in the folder of uploads, once the commit is through that
// an answer doesn't wait for.
func left(k *kit) []string {
	k.t.Helper()
	k.pass(time.Second)
	found, err := filepath.Glob(filepath.Join(k.dir, "files", "*", "*"))
	k.must(err)
	return found
}

func TestUpload(t *testing.T) {
	content := strings.Repeat("picture", 100_000)
	sum := sha256.Sum256([]byte(content))
	bubble(t, func(k *kit) {
		k.sim.SetOffline(true)
		p := k.begin(photo(content))
		synctest.Wait()
		if files := left(k); len(files) != 1 {
			t.Fatalf("files %q while the job waits", files)
		}
		job := k.jobs()[0]
		if len(job.Files) != 1 || job.Files[0].Size != int64(len(content)) || job.Files[0].Name != "p.jpg" || job.Files[0].Field != "photo" {
			t.Errorf("files %+v", job.Files)
		}
		if string(job.Params) != `{"chat_id":"7"}` {
			t.Errorf("parameters %s", job.Params)
		}
		p.hangUp()
		<-p.done
		k.restart(true)
		k.sim.SetOffline(false)
		if a := k.serve(photo(content)); a.status != 200 || a.header.Get("Tgspool-Job") != "1" {
			t.Errorf("answer %d %s, job %s", a.status, a.body, a.header.Get("Tgspool-Job"))
		}
		var sent []telegramsim.ArrivedFile
		for _, a := range k.sim.Journal() {
			if a.Effect {
				sent = append(sent, a.Files...)
			}
		}
		if len(sent) != 1 || sent[0].SHA256 != hex.EncodeToString(sum[:]) || sent[0].Name != "p.jpg" {
			t.Errorf("sent %+v", sent)
		}
		synctest.Wait()
		if files := left(k); len(files) != 0 {
			t.Errorf("files %q are left", files)
		}
	})
}

func TestUpload_OtherContentIsAnotherCall(t *testing.T) {
	bubble(t, func(k *kit) {
		k.sim.SetOffline(true)
		for _, content := range []string{"one", "two", "one"} {
			p := k.begin(photo(content))
			synctest.Wait()
			p.hangUp()
			<-p.done
		}
		if n := len(k.jobs()); n != 2 {
			t.Errorf("%d jobs, want 2", n)
		}
		if n := len(left(k)); n != 2 {
			t.Errorf("%d files, want 2", n)
		}
	})
}

func TestUpload_OrphansAreTidied(t *testing.T) {
	bubble(t, func(k *kit) {
		k.sim.SetOffline(true)
		p := k.begin(photo("kept"))
		synctest.Wait()
		p.hangUp()
		<-p.done
		orphan := filepath.Join(k.dir, "files", "77")
		k.must(os.MkdirAll(orphan, 0o700))
		k.must(os.WriteFile(filepath.Join(orphan, "0"), []byte("x"), 0o600))
		k.restart(true)
		if files := left(k); len(files) != 1 || !strings.HasSuffix(files[0], "/1/0") {
			t.Errorf("files %q", files)
		}
		k.sim.SetOffline(false)
		time.Sleep(time.Minute)
		if files := left(k); len(files) != 0 {
			t.Errorf("files %q are left", files)
		}
	})
}

func TestUpload_Limits(t *testing.T) {
	small := func(c *botserver.Config) { c.MaxUpload = 1000 }
	bubble(t, func(k *kit) {
		t.Run("while streaming", func(*testing.T) {
			r := photo(strings.Repeat("x", 1001))
			r.ContentLength = -1
			if a := k.serve(r); a.status != 413 {
				t.Errorf("answer %d %s", a.status, a.body)
			}
		})
		t.Run("two files together", func(*testing.T) {
			r := formRequest("sendMediaGroup", part{"a", "a", strings.Repeat("x", 600)}, part{"b", "b", strings.Repeat("x", 600)})
			if a := k.serve(r); a.status != 413 {
				t.Errorf("answer %d %s", a.status, a.body)
			}
		})
		t.Run("by what is announced", func(*testing.T) {
			r := photo("x")
			r.ContentLength = 5 << 30
			if a := k.serve(r); a.status != 413 {
				t.Errorf("answer %d %s", a.status, a.body)
			}
		})
		t.Run("too many parameters", func(*testing.T) {
			if a := k.call("sendMessage", `{"text":"`+strings.Repeat("x", 1<<20)+`"}`); a.status != 413 {
				t.Errorf("answer %d %s", a.status, a.body)
			}
		})
		t.Run("a form that is cut", func(*testing.T) {
			r := photo("xxx")
			body, err := io.ReadAll(r.Body)
			k.must(err)
			r.Body = io.NopCloser(bytes.NewReader(body[:len(body)-30]))
			if a := k.serve(r); a.status != 400 {
				t.Errorf("answer %d %s", a.status, a.body)
			}
		})
		if n := len(k.jobs()); n != 0 {
			t.Errorf("%d jobs", n)
		}
		if files := left(k); len(files) != 0 {
			t.Errorf("files %q are left", files)
		}
	}, small)
}

func TestUpload_AlbumWithAttachNames(t *testing.T) {
	album := func(name string) *http.Request {
		return formRequest("sendMediaGroup", part{"chat_id", "", "7"},
			part{"media", "", `[{"type":"photo","media":"attach://` + name + `1"},{"type":"photo","media":"attach://` + name + `2"}]`},
			part{name + "1", "a.jpg", "first"}, part{name + "2", "b.jpg", "second"})
	}
	bubble(t, func(k *kit) {
		k.sim.SetOffline(true)
		p := k.begin(album("x7f"))
		synctest.Wait()
		p.hangUp()
		<-p.done
		k.sim.SetOffline(false)
		a := k.serve(album("kk2"))
		if a.status != 200 || a.header.Get("Tgspool-Job") != "1" || !strings.HasPrefix(string(a.json.Result), "[") {
			t.Errorf("answer %d %s, job %s", a.status, a.body, a.header.Get("Tgspool-Job"))
		}
	})
}

func TestUpload_NothingIsTaken(t *testing.T) {
	bubble(t, func(k *kit) {
		k.stop() // one that takes nothing, as a full one
		for _, r := range []*http.Request{photo("x"), request("sendMessage", "application/json", hello)} {
			if a := k.serve(r); a.status != 429 || a.json.Parameters.RetryAfter < 1 {
				t.Errorf("answer %d %s", a.status, a.body)
			}
		}
		k.start(true)
	})
}
