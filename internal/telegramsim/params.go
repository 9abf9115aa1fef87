package telegramsim

import (
	"bytes"
	"compress/gzip"
	"compress/zlib"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"hash"
	"io"
	"mime"
	"mime/multipart"
	"net/http"
	"net/url"
	"strings"

	"github.com/tgspool/tgspool/internal/botapi"
)

const (
	maxParamBytes = 1 << 20  // all parameters that are not files, together
	maxFiles      = 50       // uploads in one request
	maxKeptFile   = 20 << 20 // larger uploads can't be downloaded, so their bytes are not kept
)

// params are the parameters of one call: text by name, and uploads by field.
// The first value of a name wins, and the query string comes before the body.
type params struct {
	text    map[string]string
	uploads map[string]*upload
	order   []string // fields of the uploads as they came
	bytes   int      // size of the text so far
}

// upload is a file that came with a request.
type upload struct {
	field, name, mime string
	size              int64
	sha256            string
	data              []byte // nil when larger than maxKeptFile
}

// errTooLarge is returned for a request over one of the limits; the answer is
// 413 without a body.
var errTooLarge = errors.New("request entity too large")

// get returns a text parameter, empty when absent.
func (p *params) get(name string) string { return p.text[name] }

// has tells whether a text parameter came at all.
func (p *params) has(name string) bool {
	_, ok := p.text[name]
	return ok
}

// truth reads a boolean: true, yes and 1 in any case, all else is false.
func (p *params) truth(name string) bool {
	switch strings.ToLower(strings.TrimSpace(p.get(name))) {
	case "true", "yes", "1":
		return true
	}
	return false
}

// integer reads a number the lenient way: the digits in front count, whatever
// follows does not, and no digits are 0.
func (p *params) integer(name string) int64 {
	n, _ := looseInt(p.get(name))
	return n
}

// looseInt reads the integer at the start of a text, clamped to 64 bits, and
// tells whether the text was nothing else.
func looseInt(text string) (int64, bool) {
	text = strings.TrimSpace(text)
	digits, negative := strings.CutPrefix(text, "-")
	var n int64
	used := 0
	for used < len(digits) && digits[used] >= '0' && digits[used] <= '9' {
		if n > (1<<63-1-9)/10 {
			n = 1<<63 - 1
		} else {
			n = n*10 + int64(digits[used]-'0')
		}
		used++
	}
	if negative {
		n = -n
	}
	return n, used > 0 && used == len(digits)
}

// add keeps a text parameter unless its name came before.
func (p *params) add(name, value string) error {
	p.bytes += len(name) + len(value)
	if p.bytes > maxParamBytes {
		return errTooLarge
	}
	if _, ok := p.text[name]; !ok {
		p.text[name] = value
	}
	return nil
}

// readParams reads the parameters of a request: its query string, then its
// body. A body of an unknown type holds no parameters, and broken JSON is no
// error: what could be read counts.
func readParams(r *http.Request) (*params, error) {
	p := &params{text: make(map[string]string), uploads: make(map[string]*upload)}
	if err := p.addForm(r.URL.RawQuery); err != nil {
		return nil, err
	}
	if r.Body == nil {
		return p, nil
	}
	body, err := decoded(r.Body, r.Header.Get("Content-Encoding"))
	if err != nil {
		return nil, err
	}
	return p, p.addBody(body, r.Header.Get("Content-Type"))
}

// addBody reads a body of the given content type to its end.
func (p *params) addBody(body io.Reader, contentType string) error {
	kind, attrs, err := mime.ParseMediaType(contentType)
	if err != nil {
		kind = strings.ToLower(strings.TrimSpace(contentType))
	}
	switch kind {
	case "multipart/form-data":
		return p.addMultipart(multipart.NewReader(body, attrs["boundary"]))
	case "application/json", "application/x-www-form-urlencoded":
		text, err := io.ReadAll(io.LimitReader(body, maxParamBytes+1))
		if err != nil {
			return err
		}
		if len(text) > maxParamBytes {
			return errTooLarge
		}
		if kind == "application/json" {
			return p.addJSON(text)
		}
		return p.addForm(string(text))
	default:
		_, err := io.Copy(io.Discard, body)
		return err
	}
}

// decoded undoes a content encoding.
func decoded(body io.Reader, encoding string) (io.Reader, error) {
	switch strings.ToLower(encoding) {
	case "gzip":
		return gzip.NewReader(body)
	case "deflate":
		return zlib.NewReader(body)
	}
	return body, nil
}

// addForm reads name=value pairs in their order, skipping what can't be read.
func (p *params) addForm(text string) error {
	for pair := range strings.SplitSeq(text, "&") {
		name, value, _ := strings.Cut(pair, "=")
		name, errName := url.QueryUnescape(name)
		value, errValue := url.QueryUnescape(value)
		if name == "" || errName != nil || errValue != nil {
			continue
		}
		if err := p.add(name, value); err != nil {
			return err
		}
	}
	return nil
}

// addJSON reads the members of a JSON object. A string is unescaped, anything
// else keeps its raw text, so null is the four letters "null". It stops quietly
// where the JSON is broken.
func (p *params) addJSON(text []byte) error {
	dec := json.NewDecoder(bytes.NewReader(text))
	if start, err := dec.Token(); err != nil || start != json.Delim('{') {
		return nil //nolint:nilerr // broken JSON means missing parameters, not an error
	}
	for dec.More() {
		name, err := dec.Token()
		if err != nil {
			return nil //nolint:nilerr // as above
		}
		var raw json.RawMessage
		if err := dec.Decode(&raw); err != nil {
			return nil //nolint:nilerr // as above
		}
		value := string(raw)
		if raw[0] == '"' {
			if err := json.Unmarshal(raw, &value); err != nil {
				return nil //nolint:nilerr // as above
			}
		}
		key, _ := name.(string)
		if err := p.add(key, value); err != nil {
			return err
		}
	}
	return nil
}

// addMultipart reads the parts of a form. A part with a file name, however that
// is written, is a file; one of type urlencoded holds parameters of its own.
func (p *params) addMultipart(parts *multipart.Reader) error {
	for {
		part, err := parts.NextRawPart()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		d := botapi.ParseDisposition(part.Header.Get("Content-Disposition"))
		if d.IsFile {
			if err := p.addFile(d, part); err != nil {
				return err
			}
			continue
		}
		text, err := io.ReadAll(io.LimitReader(part, maxParamBytes+1))
		if err != nil {
			return err
		}
		if part.Header.Get("Content-Type") == "application/x-www-form-urlencoded" {
			err = p.addForm(string(text))
		} else {
			err = p.add(d.Name, string(text))
		}
		if err != nil {
			return err
		}
	}
}

// addFile reads one upload to its end, hashing as it goes.
func (p *params) addFile(d botapi.Disposition, part *multipart.Part) error {
	if len(p.uploads) >= maxFiles {
		return errTooLarge
	}
	keep := &keeper{sum: sha256.New()}
	if _, err := io.Copy(keep, part); err != nil {
		return err
	}
	name := d.Name
	if _, ok := p.uploads[name]; ok {
		return nil
	}
	up := &upload{
		field: name, name: d.File, mime: part.Header.Get("Content-Type"),
		size: keep.size, sha256: hex.EncodeToString(keep.sum.Sum(nil)),
	}
	if keep.size <= maxKeptFile {
		up.data = keep.buf.Bytes()
	}
	p.uploads[name] = up
	p.order = append(p.order, name)
	return nil
}

// keeper takes the bytes of an upload: a sum of all, the bytes of small ones.
type keeper struct {
	sum  hash.Hash
	buf  bytes.Buffer
	size int64
}

// Write never fails.
func (k *keeper) Write(b []byte) (int, error) {
	k.size += int64(len(b))
	if k.size <= maxKeptFile {
		k.buf.Write(b)
	} else {
		k.buf.Reset()
	}
	return k.sum.Write(b)
}
