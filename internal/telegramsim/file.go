package telegramsim

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"mime"
	"net/http"
	"path"
	"strconv"
	"strings"
	"time"
)

const (
	maxDownload = 20 << 20 // larger files can't be fetched
	maxPhoto    = 10 << 20
	pathLife    = time.Hour // how long a file_path works
)

// file is something that has a file_id.
type file struct {
	id, unique string
	bot        *bot // ids are tied to the account
	kind       string
	name, mime string
	size       int64
	data       []byte
	path       string
	until      time.Time // of the path
}

// newFileLocked registers a file for a bot.
func (s *Sim) newFileLocked(b *bot, kind, name, mimeType, sum string, size int64, data []byte) *file {
	n := s.nextSerialLocked()
	short := sum
	if len(short) > 16 {
		short = short[:16]
	}
	f := &file{
		id:     "SimFile" + strconv.FormatInt(b.id, 36) + "x" + strconv.FormatInt(n, 36) + "AgAC" + short,
		unique: "AQAD" + short,
		bot:    b, kind: kind, name: name, mime: mimeType, size: size, data: data,
		path: kind + "s/file_" + strconv.FormatInt(n, 10) + path.Ext(name),
	}
	s.files[f.id] = f
	return f
}

// inputFile finds the file that a parameter names: an upload under the same
// name, attach:// to another, a URL, or a file_id.
func (s *Sim) inputFile(c *call, kind, name, value string) (*file, *apiError) {
	up := c.params.uploads[name]
	if ref, ok := strings.CutPrefix(value, "attach://"); ok {
		up = c.params.uploads[ref]
	} else if value != "" {
		return s.remoteFile(c, kind, value)
	}
	if up == nil {
		return nil, badRequest("there is no %s in the request", strings.ReplaceAll(kind, "_", " "))
	}
	if up.size == 0 {
		return nil, badRequest("file must be non-empty")
	}
	if kind == "photo" && up.size > maxPhoto {
		return nil, badRequest("file of size %d bytes is too big for a photo; the maximum size is %d bytes", up.size, maxPhoto)
	}
	return s.newFileLocked(c.bot, kind, up.name, mimeOf(up), up.sha256, up.size, up.data), nil
}

// remoteFile finds a file by URL, which is taken on trust, or by file_id.
func (s *Sim) remoteFile(c *call, kind, value string) (*file, *apiError) {
	if strings.HasPrefix(value, "http://") || strings.HasPrefix(value, "https://") {
		sum := sha256.Sum256([]byte(value))
		data := []byte("content of " + value)
		return s.newFileLocked(c.bot, kind, path.Base(value), "", hex.EncodeToString(sum[:]), int64(len(data)), data), nil
	}
	if f := s.files[value]; f != nil && f.bot == c.bot {
		return f, nil
	}
	return nil, badRequest("wrong file identifier/HTTP URL specified")
}

// mimeOf is the type of an upload, by its header or its name.
func mimeOf(up *upload) string {
	if up.mime != "" {
		return up.mime
	}
	if byName := mime.TypeByExtension(path.Ext(up.name)); byName != "" {
		return byName
	}
	return "application/octet-stream"
}

// object is the file as the value of a message's field.
func (f *file) object(kind string) any {
	o := object{{"file_id", f.id}, {"file_unique_id", f.unique}, {"file_size", f.size}}
	switch kind {
	case "photo":
		return []object{append(o, field{"width", 800}, field{"height", 600})}
	case "document":
		return f.named(o)
	case "audio":
		return append(f.named(o), field{"duration", 10})
	case "voice":
		return append(o, field{"duration", 3}, field{"mime_type", "audio/ogg"})
	case "video", "animation":
		return append(f.named(o), field{"width", 640}, field{"height", 360}, field{"duration", 10})
	case "video_note":
		return append(o, field{"length", 240}, field{"duration", 10})
	case "sticker":
		return append(o, field{"type", "regular"}, field{"width", 512}, field{"height", 512},
			field{"is_animated", false}, field{"is_video", false})
	}
	return o
}

// named adds the file's name and type.
func (f *file) named(o object) object {
	if f.name != "" {
		o = append(o, field{"file_name", f.name})
	}
	if f.mime != "" {
		o = append(o, field{"mime_type", f.mime})
	}
	return o
}

// learnFilesLocked makes the files of a fed update known, so that a bot can
// send them again and download them.
func (s *Sim) learnFilesLocked(b *bot, inside json.RawMessage) {
	if !strings.Contains(string(inside), `"file_id"`) {
		return
	}
	var tree any
	if json.Unmarshal(inside, &tree) == nil {
		s.learnTreeLocked(b, tree)
	}
}

// learnTreeLocked looks for objects with a file_id.
func (s *Sim) learnTreeLocked(b *bot, tree any) {
	switch node := tree.(type) {
	case []any:
		for _, child := range node {
			s.learnTreeLocked(b, child)
		}
	case map[string]any:
		for _, child := range node {
			s.learnTreeLocked(b, child)
		}
		id, _ := node["file_id"].(string)
		if id == "" || s.files[id] != nil {
			return
		}
		size, _ := node["file_size"].(float64)
		unique, _ := node["file_unique_id"].(string)
		data := []byte("content of " + id)
		if size == 0 {
			size = float64(len(data))
		}
		s.files[id] = &file{
			id: id, unique: unique, bot: b, kind: "file", size: int64(size), data: data,
			path: "files/file_" + strconv.FormatInt(s.nextSerialLocked(), 10),
		}
	}
}

// methodGetFile answers getFile.
func methodGetFile(s *Sim, c *call) (any, *apiError) {
	id := c.params.get("file_id")
	f := s.files[id]
	switch {
	case id == "":
		return nil, badRequest("file_id not specified")
	case f == nil || f.bot != c.bot:
		return nil, badRequest("invalid file_id")
	case f.size > maxDownload:
		return nil, badRequest("file is too big")
	}
	f.until = time.Now().Add(pathLife)
	return object{
		{"file_id", f.id}, {"file_unique_id", f.unique}, {"file_size", f.size}, {"file_path", f.path},
	}, nil
}

// serveFile answers a download, /file/bot<token>/<file_path>.
func (s *Sim) serveFile(w http.ResponseWriter, r *http.Request) {
	token, test, name, ok := splitPath(strings.TrimPrefix(r.URL.Path, "/file"))
	if !ok {
		_ = writeAnswer(w, refusal(failure(404, "Not Found"))) // the caller may be gone
		return
	}
	s.mu.Lock()
	b, failed := s.authLocked(&call{token: token, test: test})
	var found *file
	for _, f := range s.files {
		if failed == nil && f.bot == b && f.path == name && time.Now().Before(f.until) {
			found = f
		}
	}
	s.mu.Unlock()
	switch {
	case failed != nil:
		_ = writeAnswer(w, refusal(failed))
	case found == nil:
		_ = writeAnswer(w, refusal(failure(404, "Not Found"))) // the caller may be gone
	default:
		_ = writeAnswer(w, answer{
			status: 200, body: found.data,
			header: http.Header{"Content-Type": {"application/octet-stream"}},
		})
	}
}
